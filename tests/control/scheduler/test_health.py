"""Health is progress: an idle scheduler is well, one that cannot plan or write is not."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from tests.support.control_objects import job, node, queue
from tests.support.control_world import World
from unisono.control.assembly import embedded
from unisono.control.scheduler.health import UNHEALTHY_AFTER_S, UNREADY_AFTER_S, Health
from unisono.control.scheduler.loop import CYCLE
from unisono.control.view import View
from unisono.engine.cycle import plan
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import Plan
from unisono.engine.state.cluster import ClusterState
from unisono.kube.form import Key

KEY = WorkloadKey("ns/w")


def test_an_idle_scheduler_is_well_for_ever() -> None:
    health = Health()
    assert health.why_not_ready(1e9) == ""
    health.began(100.0)
    health.planned(100.0)
    assert health.why_not_ready(1e9) == ""
    assert health.planned_at == 100.0


def test_a_scheduler_that_cannot_plan_is_not_ready_and_then_not_healthy() -> None:
    health = Health()
    health.began(100.0)
    health.began(150.0)
    health.problem = "ZeroDivisionError: a rule failed"
    assert health.why_not_ready(100.0 + UNREADY_AFTER_S) == ""
    late = 101.0 + UNREADY_AFTER_S
    expected = "no plan could be made for 61 s: ZeroDivisionError: a rule failed"
    assert health.why_not_ready(late) == expected
    assert health.why_unhealthy(late) == ""
    assert health.why_unhealthy(101.0 + UNHEALTHY_AFTER_S)


def test_writes_that_fail_make_it_unready_but_not_unhealthy() -> None:
    health = Health()
    health.could_not_write(100.0)
    assert "no decision could be written" in health.why_not_ready(1000.0)
    assert health.why_unhealthy(1000.0) == ""
    health.wrote(1001.0)
    assert health.why_not_ready(2000.0) == ""


def test_the_oldest_unexplained_workload_counts() -> None:
    health = Health()
    health.unexplained(KEY, 10.0)
    health.unexplained(WorkloadKey("ns/other"), 20.0)
    health.unexplained(KEY, 30.0)
    assert health.unexplained_s(40.0) == 30.0
    health.explained(KEY)
    assert health.unexplained_s(40.0) == 20.0


@pytest.mark.parametrize("with_quarantine", [False, True])
def test_a_living_scheduler_is_well_with_and_without_quarantine(with_quarantine: bool) -> None:
    def decides(state: ClusterState, now: Instant) -> Plan:
        for key in state.waiting:
            if with_quarantine and "job-bad" in key:
                state.evaluating = key
                raise ZeroDivisionError("a rule failed")
        return plan(state, now)

    async def run() -> None:
        async with World(assemble=partial(embedded, decides=decides)).running() as world:
            await world.create(node("n1"), *queue(), job("bad", pods=1), job("big", gpus=64))
            await world.settle()
            later = world.clock.now() + 1000
            health = world.assembly.scheduler.health
            assert health.why_not_ready(later) == ""
            assert health.unexplained_s(later) == 0.0
            assert health.planned_at > 0
            assert (health.written_at > 0) is not with_quarantine

    asyncio.run(run())


def test_a_scheduler_that_nothing_helps_is_seen() -> None:
    """An exception with nothing to leave out comes through, and the plan stays owed."""
    broken = False

    def decides(state: ClusterState, now: Instant) -> Plan:
        if broken:
            raise ZeroDivisionError("everything failed")
        return plan(state, now)

    async def run() -> None:
        nonlocal broken
        async with World(assemble=partial(embedded, decides=decides)).running() as world:
            await world.create(node("n1"), *queue())
            await world.settle()
            broken = True
            scheduler = world.assembly.scheduler
            now = world.clock.now() + 1
            for _ in range(3):
                with pytest.raises(ZeroDivisionError):
                    for _ in scheduler.reconcile(*_cycle(world, now)):
                        pass
            assert "everything failed" in scheduler.health.why_not_ready(now + 61)
            broken = False
            for _ in scheduler.reconcile(*_cycle(world, now + 62)):
                pass
            assert scheduler.health.why_not_ready(now + 200) == ""

    asyncio.run(run())


def _cycle(world: World, now: float) -> tuple[Key, View, float]:
    return CYCLE, world.view, now
