"""Which user may name which priority class."""

from __future__ import annotations

from copy import deepcopy

import pytest

from tests.apiserver.admission.manifests import cluster, job, named
from tests.apiserver.surroundings import Around, served_as
from unisono.apiserver.admission import mutate
from unisono.apiserver.errors import ApiError
from unisono.apiserver.objects import Json
from unisono.apiserver.request import User
from unisono.kinds.priorities import PRIORITY_LABEL

RULES = [
    {"names": ["urgent", "production"], "groups": ["oncall"], "namespaces": ["prod"]},
    {"names": ["urgent"], "users": ["grace"]},
    {"names": ["never"]},
]


def ruled(rules: list[Json], *, user: str = "ada", groups: tuple[str, ...] = ()) -> Around:
    context = cluster()
    policy = {"apiVersion": "unisono.dev/v1", "kind": "Policy", "metadata": {"name": "p"}}
    context.add("unisono.dev/policies", {**policy, "priorityClasses": rules})
    context.user = User(name=user, groups=groups)
    return context


def why(obj: Json, context: Around, old: Json | None = None, key: str = "batch/jobs") -> str:
    try:
        mutate(served_as(key), deepcopy(obj), deepcopy(old), context)
    except ApiError as refused:
        return f"{refused.code} {refused.message}"
    return ""


def labelled(name: str, namespace: str = "team") -> Json:
    made = job()
    made["metadata"]["labels"][PRIORITY_LABEL] = name
    made["metadata"]["namespace"] = namespace
    return made


def test_without_rules_all_users_may_name_every_class() -> None:
    assert why(labelled("urgent"), ruled([])) == ""


def test_a_named_user_may() -> None:
    refused = why(labelled("urgent"), ruled(RULES))
    assert refused.startswith("403 ")
    assert f"metadata.labels[{PRIORITY_LABEL}]" in refused
    assert 'User "ada" may not name priority class "urgent"' in refused
    assert "it is for users grace; groups oncall; namespaces prod" in refused
    assert why(labelled("urgent"), ruled(RULES, user="grace")) == ""
    assert why(labelled("production"), ruled(RULES, user="grace"))
    assert why(labelled("production"), ruled(RULES, groups=("oncall",))) == ""
    assert why(labelled("urgent", "prod"), ruled(RULES)) == ""
    assert why(labelled("other"), ruled(RULES)) == ""
    assert "only administrators may" in why(labelled("never"), ruled(RULES))
    assert why(labelled("never"), ruled(RULES, groups=("system:masters",))) == ""


def test_a_star_is_every_class_without_a_rule_of_its_own() -> None:
    rules = [{"names": ["*"]}, {"names": ["low"], "groups": ["all"]}]
    assert why(labelled("anything"), ruled(rules))
    assert why(labelled("low"), ruled(rules, groups=("all",))) == ""
    assert why(labelled("low"), ruled(rules))
    assert why(job(), ruled(rules)) == ""


@pytest.mark.parametrize(
    ("key", "spec", "path"),
    [
        ("/pods", {"priorityClassName": "urgent", "containers": []}, "spec.priorityClassName"),
        (
            "batch/jobs",
            {"template": {"spec": {"priorityClassName": "urgent"}}},
            "spec.template.spec.priorityClassName",
        ),
        (
            "batch/cronjobs",
            {"jobTemplate": {"metadata": {"labels": {PRIORITY_LABEL: "urgent"}}}},
            f"spec.jobTemplate.metadata.labels[{PRIORITY_LABEL}]",
        ),
        (
            "jobset.x-k8s.io/jobsets",
            {"replicatedJobs": [{}, {"template": {"spec": {"priorityClassName": "urgent"}}}]},
            "spec.replicatedJobs[1].template.spec.priorityClassName",
        ),
        ("batch.volcano.sh/jobs", {"priorityClassName": "urgent"}, "spec.priorityClassName"),
        (
            "kubeflow.org/pytorchjobs",
            {"runPolicy": {"schedulingPolicy": {"priorityClass": "urgent"}}},
            "spec.runPolicy.schedulingPolicy.priorityClass",
        ),
        (
            "kueue.x-k8s.io/workloads",
            {"priorityClassRef": {"name": "urgent", "kind": "PriorityClass"}},
            "spec.priorityClassRef.name",
        ),
    ],
)
def test_wherever_a_kind_names_it(key: str, spec: Json, path: str) -> None:
    assert f"{path}: User" in why(named("a", "team", spec=spec), ruled(RULES), None, key)


def test_a_change_counts_and_what_was_there_does_not() -> None:
    plain, urgent = job(), labelled("urgent")
    assert why(urgent, ruled(RULES), plain)
    assert why(urgent, ruled(RULES), urgent) == ""
    assert why(plain, ruled(RULES), urgent) == ""
    assert why(labelled("production"), ruled(RULES), urgent)


def test_a_priority_is_not_raised_by_hand() -> None:
    old = named("w", "team", spec={"priority": 10})
    for value, allowed in ((11, False), (10, True), (5, True)):
        new = named("w", "team", spec={"priority": value})
        refused = why(new, ruled(RULES), old, "kueue.x-k8s.io/workloads")
        assert (refused == "") is allowed
        assert why(new, ruled([]), old, "kueue.x-k8s.io/workloads") == ""


def test_odd_shapes_are_no_trouble() -> None:
    assert why(named("a", "team", spec={"priorityClassName": {}}), ruled(RULES)) == ""
    deep: Json = {"priorityClassName": "urgent"}
    for _ in range(3000):
        deep = {"x": deep}
    mutate(served_as("batch/jobs"), named("a", "team", spec=deep), None, ruled(RULES))
