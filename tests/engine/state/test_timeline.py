"""The timeline is kept by events, stays in order, and equals one that is made anew."""

from __future__ import annotations

import gc
import random

import pytest

from tests.support.quota_builders import job, queue, running
from tests.support.quota_builders import snapshot as world
from unisono.engine.cluster import restore
from unisono.engine.cycle import plan
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.policy import Backfill, Policy
from unisono.engine.state.apply_plan import apply_plan
from unisono.engine.state.changes import WorkloadGone, WorkloadHolds, WorkloadWaits
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.timeline import RESTING_KEPT, Group, Timeline

POLICY = Policy(backfill=Backfill(dates=1))


def _anew(state: ClusterState) -> Timeline:
    made = Timeline(POLICY.backfill)
    made.rebuild(state.running.values(), state.local_queues.values())
    return made


def _order(timeline: Timeline) -> list[list[tuple[WorkloadKey, int]]]:
    """Return the workloads of each group, groups by their first members."""
    for group in timeline.order:
        assert group.places == sorted(each.place for each in group.members)
        assert group.limits == sorted(each.limit for each in group.members)
    first = [group.places[0] for group in timeline.order]
    assert first == sorted(first)
    assert {*timeline.groups} == {*timeline.order}
    return [[(each.waiting.key, each.limit) for each in group.members] for group in timeline.order]


def _ends(timeline: Timeline) -> list[tuple[Instant, WorkloadKey]]:
    assert timeline.ends == sorted(timeline.ends) == [running.end[0] for running in timeline.ending]
    return sorted((end, running.admitted.workload.key) for end, _, running in timeline.endings())


@pytest.mark.parametrize("seed", range(5))
def test_it_stays_in_order_as_workloads_come_and_go(seed: int) -> None:
    random_source = random.Random(seed)
    state = restore(world(queue("q", "9"), queue("r", "9"), policy=POLICY))
    for number in range(150):
        one_job = job(
            f"job-{random_source.randrange(25)}",
            random_source.choice("qr"),
            random_source.randint(1, 2),
            priority=random_source.choice((0, 0, 7)),
            created_at=Instant(random_source.choice((number, 1000 - number))),
            time_limit_ms=random_source.choice((10, 20, 30)),
        )
        match random_source.randrange(4):
            case 0:
                state.apply(WorkloadGone(one_job.key))
            case 1:
                since = Instant(random_source.randrange(5) * 10)
                state.apply(WorkloadHolds(running(one_job, reserved_at=since)))
            case _:
                state.apply(WorkloadWaits(one_job))
        kept, anew = state.timeline, _anew(state)
        assert _order(kept) == _order(anew)
        assert _ends(kept) == _ends(anew)


def test_a_group_that_comes_back_has_no_verdict_yet() -> None:
    state = restore(world(queue("q", "1"), policy=POLICY))
    state.apply(WorkloadHolds(running(job("runs", "q"))))
    state.apply(WorkloadWaits(job("waits", "q")))
    apply_plan(state, plan(state, Instant(1)))
    (group,) = state.timeline.groups
    assert group.blockers
    state.apply(WorkloadGone(WorkloadKey("ns/waits")))
    assert not state.timeline.groups
    state.apply(WorkloadWaits(job("comes-back", "q")))
    assert [*state.timeline.groups] == [group]
    assert (group.blockers, group.recorded_in, group.is_delaying) == ((), 0, False)


def test_groups_that_never_come_back_are_forgotten() -> None:
    state = restore(world(queue("q", "1"), policy=POLICY))
    before = _groups()
    for number in range(RESTING_KEPT + 10):
        state.apply(WorkloadWaits(job("job", "q", priority=number)))
        state.apply(WorkloadGone(WorkloadKey("ns/job")))
    apply_plan(state, plan(state, Instant(1)))  # what came and went is no change any more
    assert _groups() - before <= RESTING_KEPT


def _groups() -> int:
    gc.collect()
    return sum(isinstance(each, Group) for each in gc.get_objects())
