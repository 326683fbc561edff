"""No workload sleeps through what concerns it: each way to be woken, as one small story.

`hears` also wakes every workload after the story and demands that nothing more happens.
"""

from __future__ import annotations

import msgspec
import pytest

from tests.support.quota_builders import admission, cohort, group, job, pods, queue, running
from tests.support.quota_builders import snapshot as world
from tests.support.state_laws import NOTHING, Deeds, at_rest, reactions
from unisono.engine.cycle import plan
from unisono.engine.model.names import Instant, LocalQueueKey, QueueName, WorkloadKey
from unisono.engine.model.policy import AdmissionFairSharing, PodsReady, Policy
from unisono.engine.model.queue import (
    Cohort,
    Flavor,
    FlavorFungibility,
    LocalQueue,
    PreemptionRules,
)
from unisono.engine.model.snapshot import Namespace
from unisono.engine.model.workload import AdmittedWorkload
from unisono.engine.state.apply_plan import apply_plan
from unisono.engine.state.changes import (
    LocalQueueSet,
    NamespaceSet,
    QueueSet,
    TimePassed,
    WorkloadGone,
    WorkloadHolds,
    WorkloadWaits,
)

replace = msgspec.structs.replace
WITHIN = PreemptionRules(within_queue="LowerPriority")
RECENT = Policy(admission_fair_sharing=AdmissionFairSharing())
BLOCKING = Policy(pods_ready=PodsReady(block_admission=True))


def gone(name: str) -> WorkloadGone:
    return WorkloadGone(WorkloadKey(f"ns/{name}"))


def local_queue(name: str, *, used: int = 0, weight_milli: int = 1000) -> LocalQueue:
    """Make a local queue of q that used so many GPUs lately."""
    return LocalQueue(
        key=LocalQueueKey(f"ns/{name}"),
        queue=QueueName("q"),
        weight_milli=weight_milli,
        consumed_micro=(("gpu", used * 1_000_000),) if used else (),  # type: ignore[arg-type]
        consumed_at=Instant(1),
    )


# --- quota that is freed -------------------------------------------------------------------------


def test_a_release_wakes_workloads_it_may_help() -> None:
    held = [running(job(f"r{number}", "b", 2)) for number in range(3)]
    state = at_rest(
        world(
            queue("a", "0", "all"),
            queue("b", "6", "all"),
            admitted_workloads=tuple(held),
            waiting=(job("two", "a", 2), job("four", "a", 4)),
        )
    )
    assert reactions(state, gone("r0")) == Deeds(["two"], [])
    assert reactions(state, gone("r1")) == NOTHING
    assert reactions(state, gone("r2")) == Deeds(["four"], [])


def test_pods_that_are_done_free_quota() -> None:
    """Scenario 59."""
    four = running(job("four", "q", pod_sets=(pods(4, {"gpu": 1}),)))
    state = at_rest(
        world(queue("q", "4"), admitted_workloads=(four,), waiting=(job("one", "q", 1),))
    )
    workload = replace(four.workload, reclaimable=(("main", 1),))
    assert reactions(state, WorkloadHolds(replace(four, workload=workload))) == Deeds(["one"], [])


def test_an_elastic_slice_is_free_to_move_once_the_old_one_has_ended() -> None:
    old = running(job("old", "q", pod_sets=(pods(1, {"gpu": 1}),)), flavor="f1")
    new = job("new", "q", pod_sets=(pods(4, {"gpu": 1}),), replaces=old.workload.key)
    flavors = group({"f1": {"gpu": "0"}, "f2": {"gpu": "8"}})
    state = at_rest(
        world(
            queue("q", cohort="all", groups=(flavors,)),
            cohorts=(cohort("all", groups=(group({"f1": {"gpu": "8"}}),)),),
            admitted_workloads=(old, running(job("x", "q", 7), flavor="f1")),
            waiting=(new,),
        )
    )
    assert reactions(state, gone("old")) == Deeds(["new"], [])


def test_freed_quota_may_move_an_earlier_pod_set_out_of_the_way() -> None:
    """p1 borrows f1 because f2 is full; then p1 takes f2, and p2, which can only use f1, fits."""
    rules = FlavorFungibility(when_can_borrow="TryNextFlavor")
    zoned = tuple(
        Flavor(name=name, node_labels=(("zone", name),))  # type: ignore[arg-type]
        for name in ("f1", "f2")
    )
    both = job(
        "both",
        "q",
        pod_sets=(
            pods(1, {"gpu": 4}, "p1"),
            pods(1, {"gpu": 4}, "p2", node_selector=(("zone", "f1"),)),
        ),
    )
    state = at_rest(
        world(
            queue(
                "q",
                cohort="all",
                fungibility=rules,
                groups=(group({"f1": {"gpu": "0"}, "f2": {"gpu": "4"}}),),
            ),
            flavors=zoned,
            cohorts=(cohort("all", groups=(group({"f1": {"gpu": "4"}, "f2": {"gpu": "4"}}),)),),
            admitted_workloads=(running(job("x", "q", 2), flavor="f2"),),
            waiting=(both,),
        )
    )
    assert reactions(state, gone("x")) == Deeds(["both"], [])


# --- heads of lines ------------------------------------------------------------------------------


def test_a_newcomer_that_becomes_the_head_of_a_blocked_queue_is_evaluated() -> None:
    state = at_rest(world(queue("q", "4", strategy="StrictFIFO"), waiting=(job("big", "q", 5),)))
    first = job("first", "q", 2, priority=5)
    assert reactions(state, WorkloadWaits(first)) == Deeds(["first"], [])
    behind = job("behind", "q", 1, created_at=Instant(9))
    assert reactions(state, WorkloadWaits(behind)) == NOTHING
    assert reactions(state, gone("big")) == Deeds(["behind"], [])


def test_an_older_workload_of_a_refused_class_is_evaluated() -> None:
    """Under LowerOrNewerEqualPriority the older one may do what the newer one could not."""
    rules = PreemptionRules(within_queue="LowerOrNewerEqualPriority")
    held = running(job("held", "q", 4, created_at=Instant(20)))
    newer = job("newer", "q", 4, created_at=Instant(30))
    state = at_rest(
        world(queue("q", "4", preemption=rules), admitted_workloads=(held,), waiting=(newer,))
    )
    older = job("older", "q", 4, created_at=Instant(10))
    assert reactions(state, WorkloadWaits(older)) == Deeds(["older"], ["held"])


def test_a_preemptor_that_no_longer_fits_lets_go() -> None:
    """It is set aside like every other one, and the cycles come to an end."""
    low, high = running(job("low", "q", 4)), job("high", "q", 4, priority=5)
    state = at_rest(world(queue("q", "4", preemption=WITHIN)))
    for change in (WorkloadHolds(low), WorkloadWaits(high)):
        state.apply(change)
    apply_plan(state, plan(state, Instant(0)))
    assert state.queues[QueueName("q")].pending.preemptor == high.key
    assert reactions(state, QueueSet(queue("q", "2"))) == NOTHING
    assert state.queues[QueueName("q")].pending.preemptor is None


def test_a_namespace_that_is_let_in_is_examined() -> None:
    from unisono.engine.model.selection import LabelSelector, Requirement

    picky = LabelSelector((Requirement("team", "In", ("a",)),))
    state = at_rest(world(queue("q", "4", namespace_selector=picky), waiting=(job("w", "q"),)))
    assert reactions(state, NamespaceSet(Namespace("ns", (("team", "b"),)))) == NOTHING
    assert reactions(state, NamespaceSet(Namespace("ns", (("team", "a"),)))) == Deeds(["w"], [])


# --- recent usage --------------------------------------------------------------------------------


def test_equals_of_another_local_queue_keep_their_place_in_the_index() -> None:
    held = job("held", "q", 4)
    state = at_rest(
        world(
            queue("q", "4", usage_based_admission=True),
            policy=RECENT,
            local_queues=tuple(local_queue(name) for name in ("q", "x", "y")),
            admitted_workloads=(AdmittedWorkload(workload=held, admission=admission(held)),),
            waiting=(job("x1", "x", 3), job("y1", "y", 3)),
        )
    )
    assert reactions(state, gone("x1")) == NOTHING
    assert reactions(state, gone("held")) == Deeds(["y1"], [])


def test_a_change_of_weight_may_change_the_head() -> None:
    """10 / 1 against 20 / 1, then 20 / 8; the first one blocks a StrictFIFO queue."""
    state = at_rest(
        world(
            queue("q", "4", usage_based_admission=True, strategy="StrictFIFO"),
            policy=RECENT,
            local_queues=(local_queue("x", used=10), local_queue("y", used=20)),
            waiting=(job("x1", "x", 9), job("y1", "y", 2)),
        )
    )
    heavier = local_queue("y", used=20, weight_milli=8000)
    assert reactions(state, LocalQueueSet(heavier)) == Deeds(["y1"], [])


# --- victims -------------------------------------------------------------------------------------


def test_a_candidate_becomes_fair_game_when_its_minimum_runtime_is_over() -> None:
    rules = replace(WITHIN, min_runtime_ms=1000)
    state = at_rest(
        world(
            queue("q", "4", preemption=rules),
            admitted_workloads=(running(job("low", "q", 4)),),
            waiting=(job("high", "q", 4, priority=5),),
        )
    )
    early, late = Instant(999), Instant(1000)
    assert reactions(state, TimePassed(early), now=early) == NOTHING
    assert reactions(state, TimePassed(late), now=late) == Deeds(["high"], ["low"])


def test_a_lowered_priority_makes_a_victim() -> None:
    held = running(job("held", "q", 4, priority=5))
    state = at_rest(
        world(
            queue("q", "4", preemption=WITHIN),
            admitted_workloads=(held,),
            waiting=(job("w", "q", 4, priority=5),),
        )
    )
    lower = replace(held, workload=replace(held.workload, priority=0))
    assert reactions(state, WorkloadHolds(lower)) == Deeds(["w"], ["held"])


def test_a_preempted_workload_may_preempt_again_after_its_back_off() -> None:
    """Spec quota §18.2b: a minute after the first time."""
    state = at_rest(
        world(
            queue("q", "4", preemption=WITHIN),
            admitted_workloads=(running(job("low", "q", 4)),),
            waiting=(
                replace(
                    job("w", "q", 4, priority=5), preemptions=1, may_preempt_at=Instant(60_000)
                ),
            ),
        )
    )
    early, late = Instant(59_999), Instant(60_000)
    assert reactions(state, TimePassed(early), now=early) == NOTHING
    assert reactions(state, TimePassed(late), now=late) == Deeds(["w"], ["low"])


# --- across trees --------------------------------------------------------------------------------


@pytest.mark.parametrize("drained", [False, True])
def test_readiness_anywhere_concerns_all(drained: bool) -> None:
    """Scenario 56: b's workload waits for a's pods, until they are ready or sent away."""
    unready = running(job("a1", "a", 1), ready=False)
    state = at_rest(
        world(
            queue("a", "4"),
            queue("b", "4"),
            policy=BLOCKING,
            admitted_workloads=(unready,),
            waiting=(job("b1", "b", 1),),
        )
    )
    if drained:
        stop = QueueSet(queue("a", "4", stop="HoldAndDrain"))
        assert reactions(state, stop) == Deeds(["b1"], ["a1"])
    else:
        assert reactions(state, WorkloadHolds(replace(unready, ready=True))) == Deeds(["b1"], [])


def test_a_queue_that_moves_brings_quota_to_its_new_tree() -> None:
    state = at_rest(
        world(
            queue("poor", "0", "here"),
            queue("rich", "4", "there"),
            cohorts=(Cohort(name="here"), Cohort(name="there")),  # type: ignore[arg-type]
            waiting=(job("w", "poor", 3),),
        )
    )
    assert reactions(state, QueueSet(queue("rich", "4", "here"))) == Deeds(["w"], [])
