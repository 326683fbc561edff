"""What webhooks change and refuse: the same as the policies, which a real API server evaluates."""

from __future__ import annotations

import base64
import copy
import json
from typing import Any

import pytest

from tests.control.job_kinds.test_volcano_policies import task, vcjob
from unisono.apiserver.patch.json_patch import json_patch
from unisono.control import names
from unisono.kinds.policy.schema import PriorityClassRule
from unisono.kube.form import Json
from unisono.runtime.webhook.rules import HOLD, INTAKE, JUDGE, OWNERS_CLAIMED, TENANCY, answer

QUEUED = {names.QUEUE_LABEL: "team"}
GROUPED = {**QUEUED, "kueue.x-k8s.io/pod-group-name": "g"}


def asked(
    path: str,
    resource: str,
    new: Json,
    old: Json | None = None,
    rules: tuple[PriorityClassRule, ...] = (),
) -> Json:
    plural, _, group = resource.partition(".")
    request = {
        "uid": "7",
        "operation": "CREATE" if old is None else "UPDATE",
        "resource": {"group": group, "version": "v1", "resource": plural},
        "userInfo": {"username": "ada", "groups": ["staff"]},
        "object": new,
        "oldObject": old,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    answered = answer(path, review, rules)
    assert answered["response"]["uid"] == "7"
    return dict(answered["response"])


def held(resource: str, new: Json) -> Json:
    """Return the object as an API server would store it."""
    response = asked(HOLD, resource, new)
    assert response["allowed"] is True
    if "patch" not in response:
        return new
    return dict(json_patch(copy.deepcopy(new), json.loads(base64.b64decode(response["patch"]))))


def made(labels: Json | None = None, spec: Json | None = None, **metadata: Any) -> Json:
    found = {"name": "x", **({"labels": labels} if labels else {}), **metadata}
    return {"metadata": found, "spec": spec if spec is not None else {}}


@pytest.mark.parametrize("spec", [{}, {"suspend": False}, {"suspend": True}])
def test_a_job_of_a_queue_is_suspended(spec: Json) -> None:
    assert held("jobs.batch", made(QUEUED, spec))["spec"] == {"suspend": True}


@pytest.mark.parametrize("spec", [{}, {"runPolicy": {}}, {"runPolicy": {"suspend": False}}])
def test_a_kubeflow_job_is_suspended_where_it_says_so(spec: Json) -> None:
    found = held("pytorchjobs.kubeflow.org", made(QUEUED, spec))
    assert found["spec"] == {"runPolicy": {"suspend": True}}


def test_a_pod_of_a_queue_gets_both_gates_and_keeps_its_own() -> None:
    spec = {"schedulingGates": [{"name": "theirs"}]}
    found = held("pods", made(QUEUED, spec))
    gates = [one["name"] for one in found["spec"]["schedulingGates"]]
    assert gates == ["theirs", "kueue.x-k8s.io/admission", names.GATE]
    assert found["metadata"]["labels"]["kueue.x-k8s.io/managed"] == "true"
    assert "finalizers" not in found["metadata"]


def test_a_pod_that_we_bind_needs_no_second_gate_and_one_of_a_group_is_kept() -> None:
    found = held("pods", made(GROUPED, {"schedulerName": names.SCHEDULER}, finalizers=["a"]))
    assert found["spec"]["schedulingGates"] == [{"name": "kueue.x-k8s.io/admission"}]
    assert found["metadata"]["finalizers"] == ["a", "kueue.x-k8s.io/managed"]
    assert held("pods", found) == found  # asked again, it has nothing to add


@pytest.mark.parametrize("resource", ["deployments.apps", "statefulsets.apps"])
def test_what_keeps_pods_running_hands_its_queue_on(resource: str) -> None:
    labels = {**QUEUED, names.PRIORITY_LABEL: "high", "app": "web"}
    templates: tuple[Json, ...] = ({}, {"metadata": {}}, {"metadata": {"labels": {"app": "web"}}})
    for template in templates:
        found = held(resource, made(labels, {"template": template}))
        carried = found["spec"]["template"]["metadata"]["labels"]
        assert carried == {
            **((template.get("metadata") or {}).get("labels") or {}),
            **QUEUED,
            names.PRIORITY_LABEL: "high",
        }
        assert held(resource, found) == found, "the second time nothing changes"
    unqueued = made({"app": "web"}, {"template": {}})
    assert held(resource, unqueued) == unqueued


def test_a_queue_named_later_is_handed_on_too() -> None:
    new, old = made(QUEUED, {"template": {}}), made(None, {"template": {}})
    assert "patch" in asked(HOLD, "deployments.apps", new, old)
    assert "patch" not in asked(HOLD, "jobs.batch", made(QUEUED), made(QUEUED))


def test_others_are_left_alone() -> None:
    owner = {"kind": "Job", "name": "y", "controller": True}
    for resource, one in (
        ("jobs.batch", made()),
        ("pods", made(QUEUED, {"nodeName": "n"})),
        ("pods", made(QUEUED, ownerReferences=[owner])),
        ("jobs.batch", made(QUEUED, ownerReferences=[owner | {"kind": "TrainJob"}])),
        ("daemonsets.apps", made(QUEUED)),
    ):
        assert held(resource, one) == one


def refused(resource: str, new: Json, old: Json | None = None) -> str:
    response = asked(JUDGE, resource, new, old)
    if response["allowed"]:
        return ""
    assert (response["status"]["code"], response["status"]["reason"]) == (422, "Invalid")
    return str(response["status"]["message"])


def test_the_name_of_a_queue_is_a_name() -> None:
    assert refused("jobs.batch", made(QUEUED)) == ""
    assert refused("jobs.batch", made()) == ""
    bad = made({names.QUEUE_LABEL: "Team_A"})
    assert refused("jobs.batch", bad).endswith("is not the name of a queue")


@pytest.mark.parametrize(
    ("resource", "held_spec", "free_spec"),
    [
        ("jobs.batch", {"suspend": True}, {"suspend": False}),
        ("mpijobs.kubeflow.org", {"runPolicy": {"suspend": True}}, {}),
        ("pods", {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}, {}),
    ],
)
def test_what_runs_keeps_its_queue(resource: str, held_spec: Json, free_spec: Json) -> None:
    other = {names.QUEUE_LABEL: "other"}
    assert refused(resource, made(other, held_spec), made(QUEUED, held_spec)) == ""
    for labels in (other, {}):
        wrong = refused(resource, made(labels, free_spec), made(QUEUED, free_spec))
        assert wrong == "the queue of a job that is not suspended cannot change"
    assert refused(resource, made(QUEUED, free_spec), made({}, free_spec)) == ""
    assert refused(resource, made(QUEUED, free_spec), made(QUEUED, free_spec)) == ""


def forbidden(response: Json) -> str:
    """Return why something is forbidden; empty if it is allowed."""
    if response["allowed"]:
        return ""
    assert (response["status"]["code"], response["status"]["reason"]) == (403, "Forbidden")
    return str(response["status"]["message"])


def test_what_is_wrong_with_a_decision_is_said() -> None:
    chosen = made(spec={"containers": [], "nodeName": "n1"})
    assert "spec.nodeName: only users who may create pods/binding" in forbidden(
        asked(TENANCY, "pods", chosen)
    )
    word = made(annotations={"kueue.x-k8s.io/workload": "theirs"})
    assert "is written by the scheduler's controllers" in forbidden(asked(TENANCY, "pods", word))
    held_back = made(spec={"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]})
    assert "is lifted when the queue" in forbidden(asked(TENANCY, "pods", made(), held_back))
    assert forbidden(asked(TENANCY, "pods", made())) == ""


def test_a_user_may_not_claim_an_owner_without_rights() -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "theirs", "uid": "1"}
    owned = made(ownerReferences=[{**owner, "controller": True}])
    assert "part of a Job (the verb update on jobs/finalizers)" in forbidden(
        asked(OWNERS_CLAIMED, "pods", owned)
    )
    assert forbidden(asked(OWNERS_CLAIMED, "pods", owned, owned)) == ""


@pytest.mark.parametrize(
    ("rule", "refusal"),
    [
        (PriorityClassRule(names=("urgent",), users=("ada",)), ""),
        (PriorityClassRule(names=("*",), groups=("staff",)), ""),
        (PriorityClassRule(names=("urgent",), namespaces=("prod",)), ""),
        (PriorityClassRule(names=("other",)), ""),
        (PriorityClassRule(names=("urgent",), groups=("oncall",)), "it is for groups oncall"),
        (PriorityClassRule(names=("urgent",)), "only administrators may"),
    ],
)
def test_classes_are_for_users_that_the_rules_name(rule: PriorityClassRule, refusal: str) -> None:
    urgent = made({"kueue.x-k8s.io/priority-class": "urgent"}, namespace="prod")
    why = forbidden(asked(TENANCY, "jobs.batch", urgent, rules=(rule,)))
    assert (refusal in why) if refusal else why == ""
    assert forbidden(asked(TENANCY, "jobs.batch", urgent, urgent, (rule,))) == "", "it was named"


def test_numbers_of_a_job_are_judged_whether_it_has_a_queue_or_not() -> None:
    job = vcjob(task("w", 2))
    assert asked(INTAKE, "jobs.batch.volcano.sh", job)["allowed"] is True
    job["spec"]["tasks"][0]["replicas"] = -1
    answered = asked(INTAKE, "jobs.batch.volcano.sh", job)
    assert answered["status"]["code"] == 422
    assert "spec.tasks[0].replicas" in answered["status"]["message"]
