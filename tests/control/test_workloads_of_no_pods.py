"""Workloads whose pod sets have no pods now: admitted, and charged nothing, as in Kueue."""

from __future__ import annotations

import pytest

from tests.control.stories import told
from tests.control.test_orphaned_workloads import begin, condition, external, workload
from tests.support.control_objects import node
from tests.support.control_world import World
from unisono.control import names
from unisono.control.admission.placement import hosts_of
from unisono.kube.form import Json


def of_counts(*counts: int) -> Json:
    """Return a Workload with a pod set for each count, slipped in as a foreign controller's."""
    made = external("zeta")
    template = made["spec"]["podSets"][0]["template"]
    made["spec"]["podSets"] = [
        {"name": f"s{index}", "count": count, "template": template}
        for index, count in enumerate(counts)
    ]
    return made


@pytest.mark.parametrize("counts", [(0,), (0, 0), (0, 1)])
def test_it_is_admitted_and_charged_for_the_pods_that_it_has(counts: tuple[int, ...]) -> None:
    async def story(world: World) -> None:
        await begin(world)
        await world.create(of_counts(*counts))
        await world.pass_time(10)
        assert condition(workload(world), "Admitted")[0] == "True"
        assigned = workload(world)["status"]["admission"]["podSetAssignments"]
        assert [one["name"] for one in assigned] == [f"s{i}" for i in range(len(counts))]
        assert [one["count"] for one in assigned] == [*counts]
        world.restart()
        await world.pass_time(600)
        assert condition(workload(world), "Admitted")[0] == "True"
        assert condition(workload(world), "Evicted") == ("", "")
        (running,) = world.assembly.scheduler.state.running.values()
        pods = sum(one.count for one in running.admitted.admission.pod_sets)
        assert pods == sum(counts)

    told(story)


def hosts(of: Json) -> list[str]:
    return [host for host, _ in hosts_of(of)]


@pytest.mark.parametrize("loss", ["deleted", "not ready"])
def test_without_pods_of_ours_it_gets_another_node_for_one_that_is_lost(loss: str) -> None:
    async def story(world: World) -> None:
        await begin(world)
        await world.create(node("n2"))
        await world.create(external("zeta"))
        await world.pass_time(10)
        (first,) = set(hosts(workload(world)))
        if loss == "deleted":
            await world.client.delete(names.NODE, first, "")
        else:
            (ready,) = world.get(names.NODE, first, "")["status"]["conditions"]
            unready = {**ready, "status": "False", "reason": "KubeletNotReady"}
            await world.set_status(names.NODE, first, {"conditions": [unready]}, "")
        await world.pass_time(60)
        (second,) = set(hosts(workload(world)))
        assert second != first
        assert "unhealthyNodes" not in workload(world)["status"]
        assert condition(workload(world), "Admitted")[0] == "True"

    told(story)


def test_without_another_node_it_says_which_one_is_lost_and_keeps_its_quota() -> None:
    async def story(world: World) -> None:
        await begin(world)
        await world.create(external("zeta"))
        await world.pass_time(10)
        lost = world.get(names.NODE, "n1", "")
        await world.client.delete(names.NODE, "n1", "")
        await world.pass_time(10)
        assert workload(world)["status"]["unhealthyNodes"] == [{"name": "n1"}]
        await world.pass_time(4000)
        assert condition(workload(world), "Evicted") == ("", "")
        for field in ("resourceVersion", "uid", "creationTimestamp", "managedFields"):
            lost["metadata"].pop(field, None)
        await world.create(lost)
        await world.pass_time(60)
        assert "unhealthyNodes" not in workload(world)["status"]
        assert hosts(workload(world)) == ["n1"]

    told(story)
