"""What the scheduler writes down for sprio: seldom, and without reading every job each time."""

from __future__ import annotations

import asyncio

from tests.control.job_kinds.test_slurm_job import submit
from tests.runner.simulated_world import node, simulated_world
from tests.support.control_world import World
from unisono.control import names
from unisono.control.actions import Again, Create, Patch
from unisono.control.job_kinds import slurm
from unisono.control.job_kinds.slurm.priority_orders import PriorityOrders
from unisono.control.view import View
from unisono.kinds.overriding import override
from unisono.kube.form import Json, Key
from unisono.kube.mapping import Kind

KEY = Key("kube-system", "slurm-turns")


class Counting(View):
    """A view that counts the jobs that are read."""

    def __init__(self, shown: View) -> None:
        self._shown = shown
        self.jobs = 0

    @override
    def get(self, kind: Kind, name: str, namespace: str = "") -> Json | None:
        self.jobs += kind == slurm.JOB
        return self._shown.get(kind, name, namespace)


def test_jobs_that_wait_are_read_once_however_often_something_happens() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", cpu="8", **{"nvidia.com/gpu": "8"}))
        for number in range(1, 8):
            await submit(world, number, "--gres=gpu:8", "-t1")
        waiting = world.assembly.scheduler.state.waiting
        assert len(waiting) == 6
        view, keeper = Counting(world.view), PriorityOrders(world.assembly.scheduler)
        now = world.clock.now() + 1000
        first = list(keeper.reconcile(KEY, view, now))
        assert isinstance(first[0], Create | Patch)
        assert view.jobs == 6
        # A second run at once is put off, and reads nothing.
        assert list(keeper.reconcile(KEY, view, now + 0.5)) == [Again(now + 2)]
        assert view.jobs == 6
        # And later only those are read that came since.
        await submit(world, 8, "--gres=gpu:8", "-t1")
        list(keeper.reconcile(KEY, view, now + 3))
        assert view.jobs == 7
        assert world.get(names.CONFIG_MAP, "slurm-turns", "kube-system")

    async def begin() -> None:
        async with simulated_world().running() as world:
            await story(world)

    asyncio.run(begin())
