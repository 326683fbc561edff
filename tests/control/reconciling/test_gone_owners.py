"""Parts of a deleted job are not created in a loop while the watch of jobs is behind."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

import pytest
from typing_extensions import override

from tests.control.job_kinds.test_volcano_policies import task, vcjob
from tests.control.training_world import gpu_node, job_set, replicated
from tests.support.control_world import World
from unisono.control import names
from unisono.control.job_kinds import volcano
from unisono.kube.form import Json
from unisono.kube.mapping import Kind

OWNERS: dict[str, tuple[Json, Kind, Kind]] = {
    "Volcano Job": (vcjob(task("w", 2)), volcano.JOB, volcano.POD_GROUP),
    "JobSet": (job_set(replicated(gpus=1)), names.JOB_SET, names.JOB),
}


class LateWorld(World):
    """A cluster of which the watches of some kinds are late."""

    late: Collection[Kind] = ()

    @override
    def pump(self) -> bool:
        kinds = self._kinds
        self._kinds = [kind for kind in kinds if kind not in self.late]
        try:
            return super().pump()
        finally:
            self._kinds = kinds


@pytest.mark.parametrize("of", OWNERS)
def test_parts_of_a_deleted_job_are_created_at_most_once_more(of: str) -> None:
    made, owner, part = OWNERS[of]
    created: list[str] = []

    async def main() -> None:
        world = LateWorld()
        async with world.running():
            await world.create(gpu_node("n1", 8), made)
            await world.settle()
            assert world.every(part)
            world.late = (owner,)
            world.driver.listeners.append(
                lambda kind, change: created.append(str(change)) if kind == part else None
            )
            await world.client.delete(
                owner, made["metadata"]["name"], "default", propagation="Background"
            )
            await world.settle(500)
            assert world.every(part) == []

    asyncio.run(main())
    assert len(created) < 20
