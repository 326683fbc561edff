"""The state hears events: each costs what it changes, says what it means, and may come twice."""

from __future__ import annotations

import msgspec
import pytest

from tests.support import state_laws
from tests.support.quota_builders import (
    ACCOUNT,
    GPU,
    cohort,
    group,
    job,
    pods,
    pool,
    queue,
    running,
)
from tests.support.quota_builders import snapshot as world
from tests.support.state_laws import NOTHING, Deeds, at_rest, reactions
from unisono.engine.audit import audit
from unisono.engine.cluster import new_cluster, restore
from unisono.engine.cycle import plan
from unisono.engine.explain.waiting import explanation
from unisono.engine.model.explanation import (
    BehindInQueue,
    Deactivated,
    DeadlineMissed,
    ExceedsMaximum,
    Gated,
    NotBefore,
    OnHold,
    QueueInactive,
    QueueMissing,
    QueueStopped,
)
from unisono.engine.model.names import CohortName, FlavorName, Instant, QueueName, WorkloadKey
from unisono.engine.model.queue import Flavor, LocalQueue
from unisono.engine.model.resources import FlavorResource
from unisono.engine.state.changes import (
    Change,
    CohortSet,
    FlavorGone,
    FlavorSet,
    LocalQueueGone,
    LocalQueueSet,
    QueueGone,
    QueueSet,
    TimePassed,
    WorkloadGone,
    WorkloadHolds,
    WorkloadWaits,
)
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.quota_tree import available
from unisono.engine.state.snapshots import pending, snapshot

replace = msgspec.structs.replace
Q = QueueName("q")


def key(name: str) -> WorkloadKey:
    return WorkloadKey(f"ns/{name}")


def why(state: ClusterState, name: str) -> object:
    """Return the first fact that keeps a workload waiting."""
    found = explanation(state, key(name))
    assert found is not None
    return found.blockers[0]


def usage(state: ClusterState, name: str = "q", flavor_resource: FlavorResource = ACCOUNT) -> int:
    state.refresh()
    return state.queues[QueueName(name)].node.cell(flavor_resource).usage


# --- a workload's life ---------------------------------------------------------------------------


def test_receiving_something_twice_changes_nothing() -> None:
    state = restore(world(queue("q", "4")))
    waits, holds = WorkloadWaits(job("w", "q", 1)), WorkloadHolds(running(job("h", "q", 2)))
    for change in (waits, holds, waits, holds):
        state.apply(change)
    assert (list(state.waiting), list(state.running)) == ([key("w")], [key("h")])
    assert usage(state) == 2
    for _ in range(2):
        state.apply(WorkloadGone(key("h")))
        state.apply(WorkloadGone(key("w")))
    assert not state.waiting
    assert not state.running
    assert usage(state) == 0


def test_a_trigger_without_a_value_counts_as_well() -> None:
    changes: list[Change] = [
        WorkloadWaits(job("a", "q")),
        TimePassed(Instant(7)),
        WorkloadGone(key("a")),
    ]
    applied, called = (restore(world(queue("q"))) for _ in range(2))
    received: list[list[Change]] = [[], []]
    applied.listener, called.listener = received[0].append, received[1].append
    for change in changes:
        applied.apply(change)
    called.submit(job("a", "q"))
    called.advance(Instant(7))
    called.remove(key("a"))
    assert received == [changes, changes]
    assert snapshot(applied) == snapshot(called)


def test_a_workload_is_in_one_place_at_a_time() -> None:
    state = restore(world(queue("q", "4"), waiting=(job("w", "q", 2),)))
    state.apply(WorkloadHolds(running(job("w", "q", 2))))
    assert (len(state.waiting), usage(state)) == (0, 2)
    state.apply(WorkloadWaits(job("w", "q", 2)))
    assert (len(state.running), usage(state)) == (0, 0)


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        ({"active": False}, Deactivated()),
        ({"gated_by": "another"}, Gated(by="another")),
        ({"on_hold": True}, OnHold()),
        ({"requeue_at": Instant(5)}, OnHold(until=Instant(5))),
        ({"begin_at": Instant(5)}, NotBefore(begin=Instant(5))),
        (
            {"deadline": Instant(5), "time_limit_ms": 6},
            DeadlineMissed(deadline=Instant(5), limit_ms=6),
        ),
    ],
)
def test_a_held_workload_says_why_and_blocks_no_other(
    edit: dict[str, object], expected: object
) -> None:
    held = replace(job("held", "q", 2, priority=9), **edit)
    state = at_rest(world(queue("q", "4", strategy="StrictFIFO"), waiting=(held,)))
    assert why(state, "held") == expected
    assert pending(state, Q) == []
    assert reactions(state, WorkloadWaits(job("other", "q", 2))) == Deeds(["other"], [])
    assert reactions(state, WorkloadWaits(job("held", "q", 2))) == Deeds(["held"], [])


def test_time_brings_back_a_postponed_workload() -> None:
    """Scenario 55: on hold until 360 s."""
    state = at_rest(world(queue("q", "4"), waiting=(job("w", "q", requeue_at=Instant(360)),)))
    assert reactions(state, TimePassed(Instant(359)), now=Instant(359)) == NOTHING
    assert reactions(state, TimePassed(Instant(360)), now=Instant(360)) == Deeds(["w"], [])


def test_a_workload_with_a_begin_time_begins_then() -> None:
    state = at_rest(world(queue("q", "4"), waiting=(job("w", "q", begin_at=Instant(360)),)))
    assert reactions(state, TimePassed(Instant(359)), now=Instant(359)) == NOTHING
    assert reactions(state, TimePassed(Instant(360)), now=Instant(360)) == Deeds(["w"], [])


def test_a_workload_that_cannot_end_in_time_any_more_steps_aside() -> None:
    big = running(job("big", "q", 4))
    late = job("late", "q", 4, deadline=Instant(400), time_limit_ms=100)
    state = at_rest(world(queue("q", "4"), admitted_workloads=(big,), waiting=(late,)))
    assert reactions(state, TimePassed(Instant(300)), now=Instant(300)) == NOTHING
    assert pending(state, Q) == [key("late")]
    assert reactions(state, TimePassed(Instant(301)), now=Instant(301)) == NOTHING
    assert why(state, "late") == DeadlineMissed(deadline=Instant(400), limit_ms=100)
    assert reactions(state, WorkloadGone(key("big")), now=Instant(301)) == NOTHING


def test_a_workload_behind_another_says_so() -> None:
    """Scenario 1: B blocks a StrictFIFO queue, C waits behind it."""
    jobs = [
        job(name, "q", size, created_at=Instant(at))
        for name, size, at in (("A", 6, 1), ("B", 4, 2), ("C", 2, 3))
    ]
    state = restore(world(queue("q", "8", strategy="StrictFIFO"), waiting=tuple(jobs)))
    assert reactions(state) == Deeds(["A"], [])
    assert why(state, "C") == BehindInQueue(queue=Q, head=key("B"), position=1)


# --- charges -------------------------------------------------------------------------------------


def test_an_admitted_workload_is_charged_by_what_its_queue_says_now() -> None:
    """From a flavor's quota to the pool's and back; what was unmetered becomes metered."""
    admitted = running(job("h", "q", 3))
    state = restore(world(queue("q", "4"), admitted_workloads=(admitted,)))
    shared = FlavorResource("pool:f", GPU)
    state.apply(QueueSet(queue("q", groups=(pool(["f"], "4"),))))
    assert (usage(state), usage(state, flavor_resource=shared)) == (0, 3)
    unmetered = group({"f": {"cpu": "4"}}, covered=("gpu", "cpu"))
    state.apply(QueueSet(queue("q", groups=(unmetered,))))
    assert (usage(state), usage(state, flavor_resource=shared)) == (0, 0)
    state.apply(QueueSet(queue("q", "4")))
    assert usage(state) == 3
    state_laws.check_tree(state)


def test_a_queue_may_be_set_after_its_admitted_workloads() -> None:
    state = new_cluster()
    state.apply(WorkloadHolds(running(job("h", "q", 3))))
    assert usage(state) == 3
    state.apply(QueueSet(queue("q", "4", "all")))
    state.apply(CohortSet(cohort("all", "2")))
    state.apply(FlavorSet(Flavor(name=FlavorName("f"))))
    state_laws.check_tree(state)
    assert available(state.queues[Q].node.cell(ACCOUNT)) == 3


def test_a_flavor_that_is_no_longer_listed_drains() -> None:
    """Spec quota §18.8: the usage stays, as over-use of a flavor-resource without quota."""
    state = restore(world(queue("q", "4"), admitted_workloads=(running(job("h", "q", 3)),)))
    state.apply(QueueSet(queue("q", groups=(group({"g": {"gpu": "4"}}),))))
    assert usage(state) == 3
    assert available(state.queues[Q].node.cell(ACCOUNT)) == -3
    state.apply(WorkloadGone(key("h")))
    assert usage(state) == 0


# --- configuration -------------------------------------------------------------------------------


def test_a_deleted_queue_stays_in_the_cohort_until_its_admitted_workloads_have_ended() -> None:
    admitted = running(job("h", "a", pod_sets=(pods(3, {"gpu": 1}),)))
    state = restore(
        world(
            queue("a", "3", "all"),
            queue("b", "0", "all"),
            admitted_workloads=(admitted,),
            waiting=(job("w", "a"),),
        )
    )
    state.apply(QueueGone(QueueName("a")))
    assert why(state, "w") == QueueInactive(queue=QueueName("a"), why="Terminating")
    shrunk = replace(admitted.workload, reclaimable=(("main", 1),))
    state.apply(WorkloadHolds(replace(admitted, workload=shrunk)))
    assert usage(state, "a") == 2
    state_laws.check_tree(state)
    state.apply(WorkloadGone(key("h")))
    state.refresh()
    assert [*state.queues] == ["b"]
    assert isinstance(why(state, "w"), QueueMissing)


def test_a_queue_that_comes_back_is_queued_in_again() -> None:
    """Spec quota §18.8."""
    state = at_rest(world(queue("q", "4"), waiting=(job("big", "q", 9), job("w", "q", 1))))
    assert isinstance(why(state, "big"), ExceedsMaximum)
    reactions(state, QueueGone(Q), WorkloadGone(key("w")))
    assert why(state, "big") == QueueMissing(local_queue=job("x", "q").queue, queue=Q)
    assert reactions(state, QueueSet(queue("q", "9"))) == Deeds(["big"], [])


def test_a_missing_flavor_closes_the_queue() -> None:
    state = restore(world(queue("q", "4"), waiting=(job("w", "q"),)))
    assert reactions(state, FlavorGone(FlavorName("f"))) == NOTHING
    assert why(state, "w") == QueueInactive(queue=Q, why="FlavorNotFound", detail="f")
    assert reactions(state, FlavorSet(Flavor(name=FlavorName("f")))) == Deeds(["w"], [])


def test_cohorts_in_a_cycle_admit_nothing() -> None:
    """Scenario 69."""
    state = restore(
        world(
            queue("a", "4", "A"),
            cohorts=(cohort("A", parent="B"), cohort("B", parent="A")),
            admitted_workloads=(running(job("h", "a", 1)),),
            waiting=(job("w", "a"),),
        )
    )
    assert reactions(state) == NOTHING
    found = why(state, "w")
    assert isinstance(found, QueueInactive)
    assert found.why == "CohortCycle"
    assert reactions(state, CohortSet(cohort("B"))) == Deeds(["w"], [])
    assert usage(state, "a") == 2


def test_a_local_queue_may_be_stopped_and_deleted_and_come_back() -> None:
    """Scenario 71: only its own workloads leave."""
    local_queues = {name: LocalQueue(key=job("x", name).queue, queue=Q) for name in ("x", "y")}
    state = at_rest(
        world(
            queue("q", "4"),
            local_queues=tuple(local_queues.values()),
            waiting=(job("x1", "x", 2), job("y1", "y", 2), job("y2", "y", 2)),
        )
    )
    stop = LocalQueueSet(replace(local_queues["x"], stop="HoldAndDrain"))
    assert reactions(state, stop) == Deeds(["y2"], ["x1"])
    assert why(state, "x1") == QueueStopped(queue="ns/x", local=True, drain=True)
    assert reactions(state, LocalQueueGone(local_queues["x"].key)) == NOTHING
    assert why(state, "x1") == QueueMissing(local_queue=local_queues["x"].key)
    back = LocalQueueSet(local_queues["x"])
    assert reactions(state, back, WorkloadGone(key("y1"))) == Deeds(["x1"], [])


def test_a_stopped_queue_goes_on_lending() -> None:
    """Scenario 11."""
    state = restore(
        world(
            queue("s", "8", "all", stop="Hold"), queue("r", "0", "all"), waiting=(job("w", "r", 8),)
        )
    )
    assert reactions(state) == Deeds(["w"], [])


def test_moving_away_and_back_is_the_identity() -> None:
    """Scenario 68, there and back."""
    a = queue("a", "4", "X")
    state = restore(
        world(
            a,
            queue("b", "4", "X"),
            queue("c", "4", "Y"),
            admitted_workloads=(running(job("h", "a", 6)),),
        )
    )
    before = state_laws.cells_of(state)
    state.apply(QueueSet(replace(a, cohort=CohortName("Y"))))
    state_laws.check_tree(state)
    assert available(state.queues[QueueName("c")].node.cell(ACCOUNT)) == 2
    state.apply(QueueSet(a))
    state.refresh()
    assert state_laws.cells_of(state) == before


def test_versions_count_events() -> None:
    state = restore(replace(world(queue("q")), version=41))
    assert snapshot(state).version == 41
    state.apply(TimePassed(Instant(1)))
    assert snapshot(state).version == 42


@pytest.mark.parametrize("back_ms", [1, 3_600_000])
def test_the_clock_never_goes_back(back_ms: int) -> None:
    """A wall clock that was set back once had every plan refused until it had caught up."""
    late = Instant(10_000_000)
    state = restore(world(queue("q"), now=late, waiting=(job("first", "q"),)))
    early = Instant(late - back_ms)
    state.apply(TimePassed(early))
    assert state.now == late
    made = plan(state, early)
    assert made.now == late
    assert audit(snapshot(state), made) == ()
    assert [one.workload for one in made.admissions] == ["ns/first"]
