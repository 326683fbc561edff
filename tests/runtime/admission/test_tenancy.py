"""What policies refuse of what a user writes into a job: the same as the embedded API."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.runtime.admission.test_policies import run
from unisono.apiserver.access.reserved_fields import RESERVED, decision_written
from unisono.kinds.shapes.served import Served
from unisono.kube.form import Json
from unisono.runtime.admission.policies import validating
from unisono.runtime.admission.tenancy import ITEMS, VALUES, Path, searched_kinds
from unisono.runtime.cluster.preconditions import BINDING, CLASSES_CHECKED

POLICIES = {
    one["metadata"]["name"]: one["spec"]
    for one in validating("unisono-system")
    if one["kind"] == "ValidatingAdmissionPolicy" and "-tenancy-of-" in one["metadata"]["name"]
}
PLACES = [
    pytest.param(served, path, what, id=f"{served.resource}-{'.'.join(path)}-{what}")
    for served, places in searched_kinds()
    for what, paths in (("node", places.pods), ("word", places.metadata))
    for path in paths
]


def at(path: Path, value: Json) -> Any:
    """Return an object that has something at a place and nothing else."""
    if not path:
        return value
    below = at(path[1:], value)
    match path[0]:
        case "[]":
            return [{}, below]
        case "{}":
            return {"Worker": below}
        case name:
            return {name: below}


def is_refused(served: Served, new: Json, old: Json | None = None, *, has_rights: bool) -> bool:
    """Say whether an object of a user with, or without, the right to decide is refused."""
    spec = POLICIES[f"unisono-tenancy-of-{served.resource}"]
    said = {one["name"]: one["expression"] for one in spec["variables"]}
    rights = {"binds": str(has_rights).lower(), "makes": "false"}
    taken = True
    for one in spec["validations"]:
        text = re.sub(
            r"\bvariables\.(\w+)", lambda found: {**said, **rights}[found[1]], one["expression"]
        )
        if "authorizer" not in text:
            taken = taken and run(text, new, old)
    return not taken


@pytest.mark.parametrize(("served", "path", "what"), PLACES)
def test_a_decision_of_the_scheduler_is_refused_wherever_it_stands(
    served: Served, path: Path, what: str
) -> None:
    word = min(RESERVED)
    made: Any = {
        "node": {"containers": [], "nodeName": "n1"},
        "word": {"metadata": {"annotations": {word: "theirs"}}},
    }[what]
    obj = {"metadata": {"name": "x", "namespace": "a"}, **at(path, made)}
    assert decision_written(obj, {}), "the embedded API refuses it"
    assert is_refused(served, obj, has_rights=False)
    assert not is_refused(served, obj, has_rights=True)
    assert not is_refused(served, obj, obj, has_rights=False), "it was there before"
    before = {"metadata": {"name": "x", "namespace": "a"}}
    assert is_refused(served, obj, before, has_rights=False)
    assert not is_refused(served, before, obj, has_rights=False), "it may be taken out"


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_every_word_of_ours_is_refused_as_a_label_and_as_an_annotation(word: str) -> None:
    served = next(one for one, _ in searched_kinds() if one.resource == "jobs.batch")
    for part in ("labels", "annotations"):
        template = {"metadata": {part: {word: "theirs"}}}
        obj = {"metadata": {"name": "x"}, "spec": {"template": template}}
        assert is_refused(served, obj, has_rights=False)


def test_a_gate_of_a_queue_is_lifted_by_the_queue_alone() -> None:
    pods = next(one for one, _ in searched_kinds() if one.resource == "pods")
    gates = [{"name": "kueue.x-k8s.io/admission"}, {"name": "mine"}]
    held = {"metadata": {"name": "x"}, "spec": {"schedulingGates": gates}}
    free = {"metadata": {"name": "x"}, "spec": {"schedulingGates": gates[1:]}}
    assert is_refused(pods, free, held, has_rights=False)
    assert not is_refused(pods, free, held, has_rights=True)
    assert not is_refused(pods, {"metadata": {}, "spec": {}}, free, has_rights=False)


def test_every_job_that_people_may_write_is_searched() -> None:
    found = {served.resource for served, _ in searched_kinds()}
    assert {
        "pods",
        "jobs.batch",
        "cronjobs.batch",
        "deployments.apps",
        "jobsets.jobset.x-k8s.io",
    } <= found
    assert {"trainjobs.trainer.kubeflow.org", "rayjobs.ray.io", "slurmjobs.unisono.dev"} <= found
    assert {"jobs.batch.volcano.sh", "pytorchjobs.kubeflow.org", "mpijobs.kubeflow.org"} <= found


def test_places_are_those_of_the_schema() -> None:
    found = {served.resource: places for served, places in searched_kinds()}
    assert found["pods"].pods == (("spec",),)
    assert found["rayclusters.ray.io"].pods == (
        ("spec", "headGroupSpec", "template", "spec"),
        ("spec", "workerGroupSpecs", ITEMS, "template", "spec"),
    )
    assert ("spec", "tfReplicaSpecs", VALUES, "template", "spec") in found[
        "tfjobs.kubeflow.org"
    ].pods


def test_the_controller_looks_for_a_binding_that_is_installed() -> None:
    bindings = {
        one["metadata"]["name"]
        for one in validating("unisono-system")
        if one["kind"] == BINDING.kind
    }
    assert CLASSES_CHECKED in bindings
