"""About what an API server asks webhooks: exactly what the policies on tenancy would refuse."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.runtime.admission.test_policies import run
from tests.runtime.admission.test_tenancy import PLACES, at, is_refused
from unisono.apiserver.access.reserved_fields import RESERVED
from unisono.kinds.shapes.served import Served
from unisono.kube.form import Json
from unisono.runtime.admission.tenancy import Path, searched_kinds
from unisono.runtime.webhook.configuration import (
    CLASSES_JUDGED,
    objects,
    owner_conditions,
    undecided,
)

# One by one: together they are longer than what our own reader of expressions takes.
UNDECIDED = {served.resource: undecided(places) for served, places in searched_kinds()}
CLASSES = [
    pytest.param(served, path, id=f"{served.resource}-{'.'.join(path)}")
    for served, places in searched_kinds()
    for path in places.classes
]


def is_asked(served: Served, new: Json, old: Json | None = None) -> bool:
    """Say whether a server asks about an object whose author has no right to decide."""
    return not all(run(one, new, old) for one in UNDECIDED[served.resource])


@pytest.mark.parametrize(("served", "path", "what"), PLACES)
def test_a_webhook_is_asked_about_what_a_policy_refuses(
    served: Served, path: Path, what: str
) -> None:
    made: Any = {
        "node": {"containers": [], "nodeName": "n1"},
        "word": {"metadata": {"annotations": {min(RESERVED): "theirs"}}},
    }[what]
    before: Json = {"metadata": {"name": "x", "namespace": "a"}}
    obj = {**before, **at(path, made)}
    for new, old in ((obj, None), (obj, obj), (obj, before), (before, obj), (before, None)):
        assert is_asked(served, new, old) == is_refused(served, new, old, has_rights=False)


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_every_word_of_ours_counts_as_a_label_and_as_an_annotation(word: str) -> None:
    served = next(one for one, _ in searched_kinds() if one.resource == "jobs.batch")
    for part in ("labels", "annotations"):
        template = {"metadata": {part: {word: "theirs"}}}
        obj = {"metadata": {"name": "x"}, "spec": {"template": template}}
        assert is_asked(served, obj)
        other = {"metadata": {part: {word: "mine"}}}
        assert is_asked(served, obj, {"metadata": {"name": "x"}, "spec": {"template": other}})


@pytest.mark.parametrize(("served", "path"), CLASSES)
def test_a_class_is_asked_about_when_it_is_named(served: Served, path: Path) -> None:
    *above, field = path
    before: Json = {"metadata": {"name": "x"}}
    obj = {**before, **at(tuple(above), {field: "urgent"})}
    assert is_asked(served, obj)
    assert is_asked(served, obj, before)
    assert not is_asked(served, obj, obj)
    assert not is_asked(served, {**before, **at(tuple(above), {field: ""})})
    labelled = {"metadata": {"name": "x", "labels": {"kueue.x-k8s.io/priority-class": "urgent"}}}
    assert is_asked(served, labelled)
    assert not is_asked(served, labelled, labelled)


def test_a_gate_of_a_queue_is_asked_about_when_it_goes() -> None:
    pods = next(one for one, _ in searched_kinds() if one.resource == "pods")
    gates = [{"name": "kueue.x-k8s.io/admission"}, {"name": "mine"}]
    held = {"metadata": {"name": "x"}, "spec": {"schedulingGates": gates}}
    free: Json = {"metadata": {"name": "x"}, "spec": {"schedulingGates": gates[1:]}}
    assert is_asked(pods, free, held)
    assert not is_asked(pods, {"metadata": {}, "spec": {}}, free)
    assert not is_asked(pods, held, held)


def test_owners_are_asked_about_when_a_job_is_claimed() -> None:
    (condition,) = owner_conditions()
    # The right of the author is the server's to look up; here no user has it.
    text = re.sub(r"!authorizer.*allowed\(\)", "true", condition["expression"])
    assert "authorizer" not in text
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "1", "controller": True}

    def owned(**more: Any) -> Json:
        return {"metadata": {"name": "x", "ownerReferences": [{**job, **more}]}}

    assert run(text, owned()) is True
    assert run(text, owned(), owned()) is False
    assert run(text, owned(), owned(name="other")) is True
    assert run(text, owned(controller=False)) is False
    assert run(text, owned(kind="Wedding")) is False
    assert run(text, {"metadata": {"name": "x"}}) is False


def test_a_server_without_conditions_is_not_told_about_tenancy() -> None:
    def told(*, has_conditions: bool) -> list[Json]:
        (found,) = [
            one["webhooks"]
            for one in objects("home", {}, {"validating"}, has_conditions=has_conditions)
            if one["kind"] == "ValidatingWebhookConfiguration"
        ]
        return list(found)

    assert [one["name"] for one in told(has_conditions=False)] == [
        "judge.unisono.dev",
        "intake.unisono.dev",
    ]
    every = told(has_conditions=True)
    assert CLASSES_JUDGED in {one["name"] for one in every}
    assert len({one["name"] for one in every}) == len(every)
    assert all(one["matchConditions"] for one in every)
    assert all(
        "?" not in one["expression"].replace(" ? ", "")
        for hook in every
        for one in hook["matchConditions"]
    ), "servers before 1.30 know no optional fields"
