"""Pods without a job: alone in a queue, in Kueue's groups, under PodGroups (jobs §6)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.control.stories import (
    conditions,
    delete,
    gpu_node,
    nodes_of,
    phases,
    pods,
    queue_of,
    told,
)
from tests.support.control_objects import priority
from tests.support.control_world import World
from unisono.control.conditions import find
from unisono.control.names import POD, WORKLOAD
from unisono.control.pod_gangs.membership import COSCHEDULING, UPSTREAM_GROUP, VOLCANO
from unisono.kube.form import Json

QUEUE = {"kueue.x-k8s.io/queue-name": "lq-cq"}


def bare(
    name: str, *, gpus: int = 1, labels: Json | None = None, says: Json | None = None, **spec: Any
) -> Json:
    """Return a pod that runs for ever, unless it says otherwise."""
    container: Json = {"name": "c", "image": "x"}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": labels or {},
            "annotations": {"unisono.dev/run-seconds": "forever", **(says or {})},
        },
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }


def in_group(name: str, total: int, **more: Any) -> Json:
    """Return a pod of Kueue's group `g`."""
    labels = {**QUEUE, "kueue.x-k8s.io/pod-group-name": "g", **more.pop("labels", {})}
    says = {"kueue.x-k8s.io/pod-group-total-count": str(total), **more.pop("says", {})}
    return bare(name, labels=labels, says=says, **more)


def why(world: World, name: str) -> str:
    """Return why a pod has no node."""
    found = find(pods(world)[name]["status"].get("conditions"), "PodScheduled")
    return f"{found['reason']}: {found['message']}" if found is not None else ""


def test_a_single_pod_waits_for_its_queue() -> None:
    async def story(world: World) -> None:
        await world.create(*queue_of(1), gpu_node("n1", 4))
        await world.create(bare("a", labels=QUEUE, says={"unisono.dev/run-seconds": "20"}))
        await world.create(bare("b", labels=QUEUE))
        await world.settle()
        assert phases(world) == {"a": "Running", "b": "Pending"}
        assert pods(world)["b"]["spec"]["schedulingGates"]
        await world.pass_time(21)
        assert phases(world) == {"a": "Succeeded", "b": "Running"}
        await delete(world, POD, "b")
        assert [one["metadata"]["name"][:5] for one in world.every(WORKLOAD)] == ["pod-a"]

    told(story)


def test_a_group_starts_when_all_of_its_pods_exist_and_fit() -> None:
    async def story(world: World) -> None:
        await world.create(*queue_of(4), gpu_node("n1", 2))
        await world.create(in_group("a", 3), in_group("b", 3))
        await world.settle()
        assert world.every(WORKLOAD) == []
        await world.create(in_group("c", 3, gpus=0))
        await world.settle()
        assert phases(world) == {"a": "Running", "b": "Running", "c": "Running"}
        (workload,) = world.every(WORKLOAD)
        assert workload["metadata"]["name"] == "g"
        assert sorted(one["count"] for one in workload["spec"]["podSets"]) == [1, 2]
        assert conditions(world)["PodsReady"] == "True Started"

    told(story)


def test_a_group_ends_when_all_have_succeeded_and_may_replace_failed_pods() -> None:
    async def story(world: World) -> None:
        ends = {"unisono.dev/run-seconds": "10"}
        await world.create(*queue_of(2), gpu_node("n1", 2))
        await world.create(
            in_group("a", 2, says=ends),
            in_group("b", 2, says={**ends, "unisono.dev/exit-code": "1"}),
        )
        await world.settle()
        await world.pass_time(12)
        assert phases(world) == {"a": "Succeeded", "b": "Failed"}
        assert "Finished" not in conditions(world)
        await world.create(in_group("c", 2, says=ends))
        await world.settle()
        assert phases(world)["c"] == "Running"
        await world.pass_time(12)
        assert conditions(world)["Finished"] == "True Succeeded"
        await delete(world, POD, "a")
        assert "a" not in phases(world)

    told(story)


def test_a_group_that_is_preempted_goes_as_a_whole() -> None:
    async def story(world: World) -> None:
        made = queue_of(2)
        made[1]["spec"]["preemption"] = {"withinClusterQueue": "LowerPriority"}
        await world.create(*made, priority("high", 100), gpu_node("n1", 2))
        await world.create(in_group("a", 2), in_group("b", 2))
        await world.settle()
        urgent = {**QUEUE, "kueue.x-k8s.io/priority-class": "high"}
        await world.create(bare("urgent", labels=urgent))
        await world.settle()
        assert phases(world) == {"urgent": "Running"}
        assert len(world.every(WORKLOAD)) == 1

    told(story)


def podgroup(kind: str) -> Json:
    """Return a group `g` of at least two pods, in the words of one API."""
    made: Json = {
        "coscheduling": (COSCHEDULING, {"minMember": 2}),
        "volcano": (VOLCANO, {"minMember": 2}),
        "upstream": (UPSTREAM_GROUP, {"schedulingPolicy": {"gang": {"minCount": 2}}}),
    }
    found, spec = made[kind]
    return {
        "apiVersion": found.api_version,
        "kind": found.kind,
        "metadata": {"name": "g", "namespace": "default"},
        "spec": spec,
    }


def member(kind: str, name: str, **says: str) -> Json:
    """Return a pod of group `g`."""
    texts = {f"unisono.dev/{key.replace('_', '-')}": value for key, value in says.items()}
    match kind:
        case "coscheduling":
            return bare(name, labels={"scheduling.x-k8s.io/pod-group": "g"}, says=texts)
        case "volcano":
            return bare(name, says={**texts, "scheduling.k8s.io/group-name": "g"})
        case _:
            return bare(name, says=texts, schedulingGroup={"podGroupName": "g"})


@pytest.mark.parametrize("kind", ["coscheduling", "volcano", "upstream"])
def test_pods_of_a_pod_group_start_together(kind: str) -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1", 1), member(kind, "a"))
        await world.settle()
        assert why(world, "a") == 'Unschedulable: there is no PodGroup "g"'
        await world.create(podgroup(kind))
        await world.settle()
        assert why(world, "a") == "Unschedulable: 1 of 2 pods exist"
        await world.create(member(kind, "b"))
        await world.settle()
        assert nodes_of(world) == {"a": "", "b": ""}
        assert "1 of 2 pods fit" in why(world, "a")
        await world.create(gpu_node("n2", 2))
        await world.settle()
        assert sorted(nodes_of(world).values()) in (["n1", "n2"], ["n2", "n2"])
        assert set(phases(world).values()) == {"Running"}
        await world.create(member(kind, "c"))
        await world.settle()
        assert phases(world)["c"] == "Running"

    told(story)


def test_the_status_of_a_pod_group() -> None:
    async def story(world: World) -> None:
        def status() -> Json:
            return dict(world.get(COSCHEDULING, "g").get("status") or {})

        await world.create(gpu_node("n0", 0), podgroup("coscheduling"))
        await world.create(member("coscheduling", "a", run_seconds="9"))
        await world.settle()
        assert status()["phase"] == "Pending"
        await world.create(member("coscheduling", "b", run_seconds="9"))
        await world.settle()
        assert status()["phase"] == "PreScheduling"
        await world.create(gpu_node("n1", 2))
        await world.settle()
        assert (status()["phase"], status()["running"]) == ("Running", 2)
        await world.pass_time(10)
        assert (status()["phase"], status()["succeeded"]) == ("Finished", 2)
        assert conditions(world)["Finished"] == "True Succeeded"

    told(story)


def test_scenario_29_a_group_that_was_started_stays_so() -> None:
    async def story(world: World) -> None:
        def started() -> tuple[str, str, str]:
            (found,) = world.get(UPSTREAM_GROUP, "g")["status"]["conditions"]
            assert found["type"] == "PodGroupInitiallyScheduled"
            return found["status"], found["reason"], found["message"]

        group = podgroup("upstream")
        group["spec"]["schedulingPolicy"]["gang"]["minCount"] = 4
        await world.create(group, *(member("upstream", name) for name in "abcdef"))
        await world.settle()
        assert started() == ("False", "Unschedulable", "0 of 4 pods have a node")
        await world.create(gpu_node("n1", 5))
        await world.settle()
        assert sum(node == "n1" for node in nodes_of(world).values()) == 5
        assert started()[:2] == ("True", "Scheduled")
        for name in "abc":
            await delete(world, POD, name)
        assert started()[:2] == ("True", "Scheduled")

    told(story)


def test_scenario_24_pods_that_finish_give_their_places_back_one_by_one() -> None:
    async def story(world: World) -> None:
        group = podgroup("coscheduling")
        group["spec"]["minMember"] = 4
        await world.create(group, *(gpu_node(f"n{number}", 1) for number in range(4)))
        lengths = {"a": "10", "b": "20", "c": "30", "d": "40"}
        for name, length in lengths.items():
            await world.create(member("coscheduling", name, run_seconds=length))
        await world.settle()
        assert set(phases(world).values()) == {"Running"}
        await world.create(bare("x", schedulerName="unisono"), bare("y", schedulerName="unisono"))
        await world.settle()
        assert (phases(world)["x"], phases(world)["y"]) == ("Pending", "Pending")
        await world.pass_time(11)
        assert (phases(world)["a"], phases(world)["x"]) == ("Succeeded", "Running")
        assert (phases(world)["y"], phases(world)["b"]) == ("Pending", "Running")
        await world.pass_time(10)
        assert phases(world)["y"] == "Running"
        await world.pass_time(20)
        assert {phases(world)[name] for name in "abcd"} == {"Succeeded"}  # no pod was evicted
        assert conditions(world)["Finished"] == "True Succeeded"

    told(story)


def test_a_group_that_is_no_gang_lets_its_pods_start_one_by_one() -> None:
    async def story(world: World) -> None:
        group = podgroup("upstream")
        group["spec"] = {"schedulingPolicy": {"basic": {}}}
        await world.create(gpu_node("n1", 1), group, member("upstream", "a"))
        await world.settle()
        assert phases(world) == {"a": "Running"}

    told(story)


def test_a_crash_between_any_two_steps_is_survived() -> None:
    async def story(world: World) -> None:
        await world.create(*queue_of(2), gpu_node("n1", 2), in_group("a", 2), in_group("b", 2))
        for _ in range(60):
            world.pump()
            if await world.driver.step() is None and not world.pump():
                break
            world.restart()
        await world.settle()
        assert phases(world) == {"a": "Running", "b": "Running"}

    told(story)


def test_a_workload_of_kubernetes_with_groups_in_it() -> None:
    async def story(world: World) -> None:
        workload = {
            "apiVersion": "scheduling.k8s.io/v1alpha1",
            "kind": "Workload",
            "metadata": {"name": "train", "namespace": "default"},
            "spec": {"podGroups": [{"name": "w", "policy": {"gang": {"minCount": 2}}}]},
        }
        names = {"name": "train", "podGroup": "w"}
        await world.create(gpu_node("n1", 2), workload, bare("a", workloadRef=names))
        await world.settle()
        assert why(world, "a") == "Unschedulable: 1 of 2 pods exist"
        await world.create(bare("b", workloadRef=names))
        await world.settle()
        assert phases(world) == {"a": "Running", "b": "Running"}

    told(story)
