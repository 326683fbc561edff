"""Stories on a real control plane: stock job controller and kube-scheduler, and our controllers.

`kubectl apply -k deploy` has been there, and one of our replicas runs with the rights of its role.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.real.cluster import asked, kubectl, put, there, until
from tests.real.control_plane import ControlPlane
from tests.real.stage import WORKLOAD, Stage, gang, staged
from unisono.control import names
from unisono.kube.client import Client
from unisono.kube.form import Json

pytestmark = [pytest.mark.real, pytest.mark.slow]

_KUEUE = "kueue.x-k8s.io/v1beta2"


@pytest.fixture(scope="module")
def stage(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(plane, "team-of-stories", tmp_path_factory.mktemp("stage")) as made:
        made.replica().until_told("leading")
        yield made


def _pods(stage: Stage, name: str) -> list[Json]:
    """Return the pods whose names begin so."""
    found = there(stage.plane, names.POD, stage.namespace)
    return [pod for pod in found if pod["metadata"]["name"].startswith(name)]


def _nodes(stage: Stage, name: str) -> list[str]:
    return [node for pod in _pods(stage, name) if (node := pod["spec"].get("nodeName"))]


def _is_over(stage: Stage, name: str) -> bool:
    pods = _pods(stage, name)
    return bool(pods) and all(pod["status"]["phase"] == "Succeeded" for pod in pods)


def _pod(name: str, namespace: str, seconds: float, **labels: str) -> Json:
    limits = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "8"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": labels,
            "annotations": {"unisono.dev/run-seconds": f"{seconds:g}"},
        },
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "train:1", "resources": {"limits": limits}}],
        },
    }


def test_a_gang_waits_for_a_node_that_other_pods_use(stage: Stage) -> None:
    put(stage.plane, _pod("stranger", stage.namespace, seconds=80))
    until("kube-scheduler has placed it", lambda: len(_nodes(stage, "stranger")) == 1)
    stage.submit("whole", 4)

    def waits() -> bool:
        return any(
            "3 of 4 pods fit" in one["message"]
            for found in there(stage.plane, WORKLOAD, stage.namespace)
            for one in (found.get("status") or {}).get("conditions") or ()
        )

    until("it is told why it waits", waits)
    assert _pods(stage, "whole") == []
    stage.until_all_ended()
    assert len(set(_nodes(stage, "whole"))) == 4

    def is_told() -> bool:  # events may take some seconds
        told = kubectl(stage.plane, "describe", "job", "whole", "-n", stage.namespace)
        return "CreatedWorkload" in told and "Admitted by clusterQueue all" in told

    until("people are told", is_told)


def test_pods_that_name_us_are_bound_by_us(stage: Stage) -> None:
    stage.submit("bound", 3, scheduler=names.SCHEDULER)
    stage.until_all_ended()
    assert len(set(_nodes(stage, "bound"))) == 3
    for pod in _pods(stage, "bound"):
        assert names.HOSTNAME not in (pod["spec"].get("nodeSelector") or {})


def test_a_gang_of_more_priority_takes_the_place_of_another_as_a_whole(stage: Stage) -> None:
    priority = {"apiVersion": _KUEUE, "kind": "WorkloadPriorityClass", "value": 1000}
    put(stage.plane, priority | {"metadata": {"name": "urgent"}})
    stage.submit("patient", 4, seconds=80)
    until("it runs", lambda: len(_nodes(stage, "patient")) == 4)
    stage.submit("urgent", 2, labels={names.PRIORITY_LABEL: "urgent"})
    until("the other one runs", lambda: len(_nodes(stage, "urgent")) == 2)
    until("nothing of the first is left", lambda: _nodes(stage, "patient") == [])
    evictions = [
        one["reason"]
        for workload in there(stage.plane, WORKLOAD, stage.namespace)
        for one in (workload["status"].get("schedulingStats") or {}).get("evictions") or ()
    ]
    assert evictions == ["Preempted"]  # its Workload is still the same, with its place in the queue
    stage.until_all_ended()


def test_a_failed_pod_of_a_job_is_replaced(stage: Stage) -> None:
    job = gang("shaky", stage.namespace, 2, seconds=20)
    job["spec"]["backoffLimit"] = 3
    annotations = job["spec"]["template"]["metadata"]["annotations"]
    annotations["unisono.dev/fail-after"] = "5"
    annotations["unisono.dev/fail-times"] = "1"
    put(stage.plane, job)
    stage.jobs["shaky"] = 2
    stage.until_all_ended()
    del stage.jobs["shaky"]


def test_a_pod_group_starts_when_all_of_it_is_there(stage: Stage) -> None:
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "pods", "namespace": stage.namespace},
        "spec": {"minMember": 2},
    }
    label = {"scheduling.x-k8s.io/pod-group": "pods"}
    pods = [_pod(f"member-{one}", stage.namespace, 30, **label) for one in range(2)]
    for pod in pods:
        pod["spec"]["schedulerName"] = "scheduler-plugins-scheduler"
    put(stage.plane, group, pods[0])
    until("a scheduler looked at it", lambda: bool(_conditions(_pods(stage, "member-0")[0])))
    assert _nodes(stage, "member") == []
    put(stage.plane, pods[1])
    until("both have nodes", lambda: len(_nodes(stage, "member")) == 2)
    until("both are over", lambda: _is_over(stage, "member"))


def _conditions(pod: Json) -> list[Json]:
    return (pod.get("status") or {}).get("conditions") or []


def test_a_plain_pod_of_a_queue_is_gated_admitted_and_bound_by_the_stock_scheduler(
    stage: Stage,
) -> None:
    queued = _pod("plain", stage.namespace, 20, **{names.QUEUE_LABEL: "team"})

    async def work(client: Client) -> Json:
        return await client.create(queued)

    made = asked(stage.plane, work)
    assert {"name": names.GATE} in made["spec"]["schedulingGates"]
    until("it is over", lambda: _is_over(stage, "plain"))
    (pod,) = _pods(stage, "plain")
    assert pod["spec"]["nodeSelector"][names.HOSTNAME] == pod["spec"]["nodeName"]


def test_nothing_went_wrong_on_the_way(stage: Stage) -> None:
    assert stage.auditor.wrong == []
    for one in stage.replicas:
        assert one.told("a step failed") is None
        assert one.process.poll() is None
