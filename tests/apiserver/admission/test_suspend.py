"""Which jobs and pods are created suspended or gated, and which are left alone."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.apiserver.admission.manifests import KUEUE, QUEUE, cluster, job, kueue, named
from tests.apiserver.surroundings import Around, served_as
from unisono.apiserver.admission import mutate
from unisono.apiserver.errors import ApiError
from unisono.apiserver.objects import Json
from unisono.apiserver.request import User


def submitted(key: str, obj: Json, context: Around) -> Json:
    mutate(served_as(key), obj, None, context)
    return obj


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("batch/jobs", ["spec", "suspend"]),
        ("jobset.x-k8s.io/jobsets", ["spec", "suspend"]),
        ("trainer.kubeflow.org/trainjobs", ["spec", "suspend"]),
        ("ray.io/rayclusters", ["spec", "suspend"]),
        ("ray.io/rayjobs", ["spec", "suspend"]),
        ("kubeflow.org/pytorchjobs", ["spec", "runPolicy", "suspend"]),
        ("kubeflow.org/mpijobs", ["spec", "runPolicy", "suspend"]),
    ],
)
def test_a_job_with_a_queue_is_created_suspended(key: str, path: list[str]) -> None:
    obj = named("j", "team", spec={"suspend": False})
    obj["metadata"]["labels"] = {QUEUE: "lq"}
    found: Any = submitted(key, obj, cluster())
    for name in path:
        found = found[name]
    assert found is True


def test_a_job_without_a_queue_is_left_alone() -> None:
    obj = job(queue="")
    before = deepcopy(obj["spec"])
    assert submitted("batch/jobs", obj, cluster())["spec"] == before


def test_a_queue_called_default_takes_all_jobs() -> None:
    context = cluster()
    door = named("default", "team", spec={"clusterQueue": "cq"})
    context.add(f"{KUEUE}/localqueues", kueue("LocalQueue", door))
    made = submitted("batch/jobs", job(queue=""), context)
    assert made["metadata"]["labels"][QUEUE] == "default"
    assert made["spec"]["suspend"] is True
    pod = submitted("/pods", named("p", "team", spec={}), context)
    assert "labels" not in pod["metadata"], "pods by themselves must ask for a queue"


def test_with_the_policy_jobs_without_a_queue_wait_too() -> None:
    context = cluster()
    policy = {"apiVersion": "unisono.dev/v1", "kind": "Policy", "metadata": {"name": "p"}}
    context.add("unisono.dev/policies", {**policy, "manageJobsWithoutQueueName": True})
    assert submitted("batch/jobs", job(queue=""), context)["spec"]["suspend"] is True
    pod = submitted("/pods", named("p", "team", spec=dict(OURS), status={}), context)
    assert [one["name"] for one in pod["spec"]["schedulingGates"]] == ["kueue.x-k8s.io/admission"]
    assert pod["metadata"]["labels"] == {"kueue.x-k8s.io/managed": "true"}


def ruled(*rules: Json, **more: Any) -> Around:
    """Return a cluster whose policy has default queues."""
    context = cluster()
    policy = {"apiVersion": "unisono.dev/v1", "kind": "Policy", "metadata": {"name": "p"}}
    context.add("unisono.dev/policies", {**policy, "defaultQueues": list(rules), **more})
    return context


@pytest.mark.parametrize(
    ("rules", "queue"),
    [
        ([{"queue": "shared"}], "shared"),
        ([{"namespaces": ["other"], "queue": "no"}, {"queue": "shared"}], "shared"),
        ([{"namespaces": ["team"], "queue": "lq"}, {"queue": "shared"}], "lq"),
        (
            [{"namespaceSelector": {"matchLabels": {"tier": "gold"}}, "queue": "gold"}],
            "gold",
        ),
        ([{"namespaceSelector": {"matchLabels": {"tier": "tin"}}, "queue": "tin"}], "default"),
        ([], "default"),
    ],
)
@pytest.mark.parametrize("key", ["batch/jobs", "/pods"])
def test_a_namespace_may_have_a_default_queue(key: str, rules: list[Json], queue: str) -> None:
    """The policy first, then the LocalQueue that is named so; whether it exists or not."""
    context = ruled(*rules)
    labels = {"labels": {"tier": "gold"}}
    context.stored["/namespaces", "", "team"]["metadata"] |= labels
    door = named("default", "team", spec={"clusterQueue": "cq"})
    context.add("kueue.x-k8s.io/localqueues", kueue("LocalQueue", door))
    obj = job(queue="") if key != "/pods" else named("p", "team", spec=dict(OURS), status={})
    made = submitted(key, obj, context)
    assert made["metadata"]["labels"][QUEUE] == queue
    gates = made["spec"].get("schedulingGates")
    assert gates if key == "/pods" else made["spec"]["suspend"] is True


OURS: Json = {"schedulerName": "unisono", "containers": []}


@pytest.mark.parametrize(
    ("spec", "metadata"),
    [
        ({"schedulerName": "default-scheduler"}, {}),
        ({}, {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}),
        ({}, {"annotations": {"scheduling.k8s.io/group-name": "g"}}),
        ({"schedulingGroup": {"podGroupName": "g"}}, {}),
        ({}, {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r"}]}),
    ],
)
def test_pods_of_others_and_of_groups_get_no_default_queue(spec: Json, metadata: Json) -> None:
    pod = named("p", "team", spec={**OURS, **spec}, status={})
    pod["metadata"] |= metadata
    made = submitted("/pods", pod, ruled({"queue": "shared"}))
    assert QUEUE not in made["metadata"].get("labels", {})
    assert "schedulingGates" not in made["spec"]


@pytest.mark.parametrize("caller", ["ada", "unisono-admin", "system:unisono"])
@pytest.mark.parametrize("is_admitted", [False, True])
def test_only_admission_resumes_a_waiting_job(*, is_admitted: bool, caller: str) -> None:
    context = cluster()
    context.user = User(name=caller)
    old = job()
    old["metadata"]["uid"] = "u1"
    old["spec"]["suspend"] = True
    new = deepcopy(old)
    new["spec"]["suspend"] = False
    workload = named("w", "team", spec={})
    workload["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "train", "uid": "u1"}]
    status = "True" if is_admitted else "False"
    workload["status"] = {"conditions": [{"type": "Admitted", "status": status}]}
    context.add("kueue.x-k8s.io/workloads", workload)
    mutate(served_as("batch/jobs"), new, old, context)
    stays = not is_admitted and caller != "system:unisono"
    assert new["spec"]["suspend"] is stays
    words = ["spec.suspend: stays true; the job starts when queue lq admits it"]
    assert context.warnings == (words if stays else [])


@pytest.mark.parametrize(
    ("context", "is_held", "words"),
    [
        (ruled(), False, "names no queue any more; nothing holds the job to quota"),
        (ruled({"queue": "shared"}), True, "starts when queue shared admits it"),
        (ruled(manageJobsWithoutQueueName=True), True, "starts when a queue admits it"),
    ],
)
def test_leaving_a_queue_is_no_way_around_it(context: Around, words: str, *, is_held: bool) -> None:
    old = job()
    old["spec"]["suspend"] = True
    new = deepcopy(old)
    del new["metadata"]["labels"][QUEUE]
    new["spec"]["suspend"] = False
    mutate(served_as("batch/jobs"), new, old, context)
    assert new["spec"]["suspend"] is is_held
    [warning] = context.warnings
    assert words in warning


def test_nothing_is_touched_where_nothing_is_managed() -> None:
    obj = job()
    obj["metadata"]["namespace"] = "kube-system"
    assert "suspend" not in submitted("batch/jobs", obj, cluster())["spec"]


def test_what_belongs_to_a_managed_job_is_left_alone() -> None:
    context = cluster()
    context.add("batch/jobs", job())
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u"}
    pod = named("p", "team", spec={})
    pod["metadata"].update(labels={QUEUE: "lq"}, ownerReferences=[{**owner, "controller": True}])
    assert "schedulingGates" not in submitted("/pods", pod, context)["spec"]
    pod["metadata"]["ownerReferences"][0]["name"] = "another-owner"
    assert "schedulingGates" in submitted("/pods", pod, context)["spec"]


def test_a_pod_with_a_queue_gets_a_gate() -> None:
    pod = named("p", "team", spec={"schedulingGates": [{"name": "other"}]}, status={})
    pod["metadata"]["labels"] = {QUEUE: "lq"}
    made = submitted("/pods", pod, cluster())
    gates = [gate["name"] for gate in made["spec"]["schedulingGates"]]
    assert gates == ["other", "kueue.x-k8s.io/admission"]
    assert made["metadata"]["labels"]["kueue.x-k8s.io/managed"] == "true"
    assert made["status"]["conditions"][0]["reason"] == "SchedulingGated"
    assert "finalizers" not in made["metadata"]


def test_pods_of_a_group_are_counted_even_when_they_are_over() -> None:
    pod = named("p", "team", spec={}, status={})
    pod["metadata"]["labels"] = {QUEUE: "lq", "kueue.x-k8s.io/pod-group-name": "g"}
    made = submitted("/pods", pod, cluster())
    assert made["metadata"]["finalizers"] == ["kueue.x-k8s.io/managed"]


def test_a_name_that_no_queue_can_have() -> None:
    with pytest.raises(ApiError) as refused:
        submitted("batch/jobs", job(queue="Not_A_Queue"), cluster())
    assert refused.value.code == 422
    [cause] = refused.value.causes
    assert cause.field == f"metadata.labels[{QUEUE}]"


@pytest.mark.parametrize(("held", "allowed"), [(True, True), (False, False)])
def test_only_a_suspended_job_may_change_its_queue(*, held: bool, allowed: bool) -> None:
    old = job()
    old["spec"]["suspend"] = held
    new = deepcopy(old)
    new["metadata"]["labels"][QUEUE] = "other"
    if allowed:
        mutate(served_as("batch/jobs"), new, old, cluster())
    else:
        with pytest.raises(ApiError) as refused:
            mutate(served_as("batch/jobs"), new, old, cluster())
        assert refused.value.code == 422


# ---- the submitter -----------------------------------------------------------------------------

SUBMITTER = "unisono.dev/submitter"


def test_the_submitter_is_recorded() -> None:
    obj = job()
    obj["metadata"]["annotations"] = {SUBMITTER: "another user"}
    made = submitted("batch/jobs", obj, cluster())
    assert made["metadata"]["annotations"] == {SUBMITTER: "ada"}


def test_what_a_controller_makes_has_the_submitter_of_the_job() -> None:
    context = cluster()
    owned = context.add("batch/jobs", job())
    owned["metadata"]["annotations"] = {SUBMITTER: "grace"}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u"}
    pod = named("p", "team", spec={})
    pod["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    # Any user can write such a reference, and would pass for another.
    assert submitted("/pods", deepcopy(pod), context)["metadata"]["annotations"] == {
        SUBMITTER: "ada"
    }
    context.user = User(name="system:unisono", groups=("system:masters",))
    assert submitted("/pods", pod, context)["metadata"]["annotations"] == {SUBMITTER: "grace"}


def test_a_job_of_a_cron_job_is_its_authors() -> None:
    context = cluster()
    timed = {"apiVersion": "batch/v1", "kind": "CronJob", **named("nightly", "team", spec={})}
    context.add("batch/cronjobs", submitted("batch/cronjobs", timed, context))
    context.user = User(name="system:unisono", groups=("system:masters",))
    made = job()
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "u"}
    made["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    assert submitted("batch/jobs", made, context)["metadata"]["annotations"] == {SUBMITTER: "ada"}


@pytest.mark.parametrize("given", [{}, {SUBMITTER: "mallory"}, None])
def test_the_submitter_does_not_change(given: Json | None) -> None:
    old = submitted("batch/jobs", job(), cluster())
    new = deepcopy(old)
    new["metadata"]["annotations"] = given
    mutate(served_as("batch/jobs"), new, old, cluster())
    assert new["metadata"]["annotations"] == {SUBMITTER: "ada"}


def test_other_kinds_have_no_submitter() -> None:
    made = submitted("/configmaps", named("c", "team"), cluster())
    assert "annotations" not in made["metadata"]
