"""Workloads whose pod sets have no pods now: admitted, and charged nothing, as in Kueue."""

from __future__ import annotations

import pytest

from tests.control.stories import told
from tests.control.test_orphaned_workloads import begin, condition, external, workload
from tests.support.control_world import World
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
