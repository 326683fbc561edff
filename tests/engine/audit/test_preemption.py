"""Preemptions that may not happen, or take more than is needed, are caught."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.audit_plans import breaks, passes
from tests.support.preemption_oracle import Question, is_sufficient, needless, smallest_sets
from tests.support.quota_builders import (
    GPU,
    admission,
    admit,
    cohort,
    job,
    plan,
    preempt,
    queue,
    running,
    snapshot,
)
from unisono.engine.audit import audit
from unisono.engine.model.explanation import Explanation, QuotaExhausted
from unisono.engine.model.names import FlavorName, Instant, QueueName, WorkloadKey
from unisono.engine.model.plan import Wait
from unisono.engine.model.policy import FairSharing, Policy
from unisono.engine.model.queue import BorrowWithinCohort, PreemptionRules
from unisono.engine.model.snapshot import Snapshot

WITHIN = PreemptionRules(within_queue="LowerPriority")
BOTH = PreemptionRules(within_queue="LowerPriority", reclaim="Any")
FAIR = Policy(fair_sharing=FairSharing())


def scenario_28() -> Snapshot:
    """q 10: p1 of 1, p2 of 4, p3 of 5 run; a new one wants 4."""
    return snapshot(
        queue("q", "10", preemption=WITHIN),
        waiting=(job("new", "q", 4, priority=9),),
        admitted_workloads=(
            running(job("p1", "q", 1, priority=1)),
            running(job("p2", "q", 4, priority=2)),
            running(job("p3", "q", 5, priority=3)),
        ),
    )


def test_a_preemption_names_victims() -> None:
    world = scenario_28()
    breaks("no-victims", world, plan(preemptions=(preempt(world.waiting[0]),)))


def test_scenario_28_no_needless_victims() -> None:
    world = scenario_28()
    new = world.waiting[0]
    passes(world, plan(preemptions=(preempt(new, "p2"),)))
    found = breaks("victim-needless", world, plan(preemptions=(preempt(new, "p1", "p2"),)))
    assert "ns/p1 could stay" in found.message


def test_scenario_28_by_trying_everything() -> None:
    world = scenario_28()
    p1, p2, p3 = (WorkloadKey(f"ns/p{i}") for i in (1, 2, 3))
    question = Question(world, world.waiting[0].key, admission(world.waiting[0]))
    assert not is_sufficient(question, [p1])
    assert is_sufficient(question, [p1, p2])
    assert needless(question, [p1, p2]) == {p1}
    assert needless(question, [p2, p3]) == {p2, p3}
    assert needless(question, [p2]) == frozenset()
    assert smallest_sets(question) == [{p2}, {p3}]


def test_trying_everything_without_borrowing() -> None:
    own = running(job("own", "a", 2))
    other = running(job("other", "b", 4))
    new = job("new", "a", 4)
    world = snapshot(
        queue("a", "4", "k"), queue("b", "4", "k"), waiting=(new,), admitted_workloads=(own, other)
    )
    borrowing = Question(world, new.key, admission(new))
    assert smallest_sets(borrowing) == [{other.workload.key}, {own.workload.key}]
    at_home = Question(world, new.key, admission(new), may_borrow=False)
    assert smallest_sets(at_home) == [{own.workload.key}]


def test_no_victims_for_a_workload_that_fits() -> None:
    world = scenario_28()
    one = msgspec.structs.replace(world, admitted_workloads=world.admitted_workloads[:2])
    breaks("victim-needless", one, plan(preemptions=(preempt(one.waiting[0], "p2"),)))


def test_a_victim_that_is_evicted_already_is_not_needless() -> None:
    world = scenario_28()
    p1 = msgspec.structs.replace(world.admitted_workloads[0], evicting=True)
    leaving = msgspec.structs.replace(world, admitted_workloads=(p1, *world.admitted_workloads[1:]))
    made = preempt(world.waiting[0], "p1", "p2", evicting=["p1"])
    passes(leaving, plan(preemptions=(made,)))


def test_a_victim_may_be_needed_to_end_within_the_own_quota() -> None:
    """Scenario 34: own 4 runs 2 of its own; b borrowed. Wanting 4, its own has to leave too."""
    n = job("n", "own", 4, priority=5)
    world = snapshot(
        queue("own", "4", "k", preemption=BOTH),
        queue("b", "2", "k"),
        waiting=(n,),
        admitted_workloads=(
            running(job("o-low", "own", 2, priority=-10)),
            running(job("b1", "b", 4)),
        ),
    )
    made = preempt(n, "b1", reason="InCohortReclamation")
    low = preempt(n, "o-low")
    both = msgspec.structs.replace(made, victims=(*made.victims, *low.victims))
    passes(world, plan(preemptions=(both,)))
    # Four leave of b's and the queue would borrow 2: enough room, but not by right.
    breaks("victim-reason", world, plan(preemptions=(made,)))


def test_others_of_the_plan_count_when_need_is_judged() -> None:
    """x starts with what was free, so the preemptor needs its second victim."""
    p, x = job("p", "own", 4), job("x", "x", 2)
    holders = tuple(running(job(f"v{i}", "r", 2)) for i in range(2))
    world = snapshot(
        queue("own", "4", "k", preemption=BOTH),
        queue("x", "2", "k"),
        queue("r", "0", "k"),
        waiting=(p, x),
        admitted_workloads=holders,
    )
    made = preempt(p, "v0", "v1", reason="InCohortReclamation")
    passes(world, plan(preemptions=(made,), admissions=(admit(x),)))
    breaks("victim-needless", world, plan(preemptions=(made,)))


def test_need_is_not_checked_while_quota_is_held_back() -> None:
    """An eviction under way has an unknown preemptor; v1 may be needed for that reason."""
    p = job("p", "own", 4)
    holders = tuple(running(job(f"v{i}", "r", 2)) for i in range(2))
    leaving = running(job("leaving", "x", 1), evicting=True)
    world = snapshot(
        queue("own", "4", "k", preemption=BOTH),
        queue("x", "3", "k"),
        queue("r", "0", "k"),
        waiting=(p,),
        admitted_workloads=(*holders, leaving),
    )
    made = preempt(p, "v0", "v1", reason="InCohortReclamation")
    passes(world, plan(preemptions=(made,)))


def second_preemption() -> Snapshot:
    """Two preemptors; the second takes one victim more than it needs."""
    return snapshot(
        queue("a", "4", "k", preemption=BOTH),
        queue("b", "4", "k", preemption=BOTH),
        queue("r", "0", "k"),
        queue("t", "2", "k"),
        waiting=(job("pa", "a", 4), job("pb", "b", 4), job("pt", "t", 2)),
        admitted_workloads=tuple(running(job(f"v{i}", "r", 4 if i < 2 else 1)) for i in range(3)),
    )


@pytest.mark.parametrize("tried", [True, False])
def test_a_reservation_silences_it_for_later_preemptors(tried: bool) -> None:
    world = second_preemption()
    a, b, t = world.waiting
    fact = QuotaExhausted(
        queue=QueueName("t"),
        pod_set="main",
        flavor=FlavorName("f"),
        resource=GPU,
        wanted=2,
        available=1,
        tried_preemption=tried,
    )
    explained = Explanation(workload=t.key, queue=QueueName("t"), blockers=(fact,))
    made = plan(
        preemptions=(
            preempt(a, "v0", reason="InCohortReclamation"),
            preempt(b, "v1", "v2", reason="InCohortReclamation"),
        ),
        waits=(Wait(outcome="park", explanation=explained),),
    )
    if tried:
        passes(world, made)
    else:
        breaks("victim-needless", world, made)


def test_after_being_preempted_one_waits_before_preempting() -> None:
    late = job("late", "q", 4, priority=9, may_preempt_at=Instant(60_000), preemptions=1)
    low = running(job("low", "q", 4))
    world = snapshot(queue("q", preemption=WITHIN), waiting=(late,), admitted_workloads=(low,))
    made = preempt(late, "low")
    breaks("preemption-backoff", world, plan(now=Instant(59_999), preemptions=(made,)))
    passes(world, plan(now=Instant(60_000), preemptions=(made,)))
    for policy in (Policy(strict=True), Policy(anti_thrash=False)):
        off = msgspec.structs.replace(world, policy=policy)
        passes(off, plan(preemptions=(made,)))
    leaving = msgspec.structs.replace(low, evicting=True)
    counted = msgspec.structs.replace(world, admitted_workloads=(leaving,))
    passes(counted, plan(preemptions=(preempt(late, "low", evicting=["low"]),)))


def scenario_36(rules: PreemptionRules, policy: Policy) -> Snapshot:
    """a 2 borrows 2 of b's; a workload in a requests 4."""
    return snapshot(
        queue("a", "2", "k", preemption=rules),
        queue("b", "2", "k"),
        waiting=(job("hi", "a", 4, priority=10),),
        admitted_workloads=(running(job("low", "a", 4)),),
        policy=policy,
    )


def test_scenario_36_a_borrower_may_not_preempt_in_its_own_queue() -> None:
    made = preempt(job("hi", "a", 4), "low")
    borrow = PreemptionRules(
        within_queue="LowerPriority",
        reclaim="Any",
        borrow=BorrowWithinCohort(policy="LowerPriority"),
    )
    breaks("preemption-forbidden", scenario_36(BOTH, Policy()), plan(preemptions=(made,)))
    passes(scenario_36(borrow, Policy()), plan(preemptions=(made,)))
    passes(scenario_36(BOTH, FAIR), plan(preemptions=(made,)))
    # Scenario 52: fair sharing does not help where nothing may be reclaimed.
    breaks("preemption-forbidden", scenario_36(WITHIN, FAIR), plan(preemptions=(made,)))


def test_reclaiming_up_the_tree_allows_it_too() -> None:
    """Scenario 39: team owns 4 and has a parent, so q may reclaim although it owns nothing."""
    n = job("n", "q", 4)
    world = snapshot(
        queue("q", "0", "team", preemption=BOTH),
        queue("ext", "0", "org"),
        cohorts=(cohort("team", "4", "org"),),
        waiting=(n,),
        admitted_workloads=(running(job("e", "ext", 4, priority=100)),),
    )
    passes(world, plan(preemptions=(preempt(n, "e", reason="InCohortReclamation"),)))


def test_fair_sharing_fills_back_too() -> None:
    """Scenario 44: two of b's eight are enough for two."""
    a2 = job("a2", "a", 2)
    world = snapshot(
        *(queue(name, "4", "k", preemption=BOTH) for name in "abc"),
        waiting=(a2,),
        admitted_workloads=(
            running(job("a", "a", 4)),
            *(running(job(f"b{i}", "b", 1)) for i in range(8)),
        ),
        policy=FAIR,
    )
    two = preempt(a2, "b7", "b6", reason="InCohortFairSharing")
    passes(world, plan(preemptions=(two,)))
    three = preempt(a2, "b7", "b6", "b5", reason="InCohortFairSharing")
    breaks("victim-needless", world, plan(preemptions=(three,)))


@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=6),
    spare=st.integers(0, 3),
    wanted=st.integers(1, 8),
    data=st.data(),
)
def test_the_auditor_agrees_with_trying_everything(
    sizes: list[int], spare: int, wanted: int, data: st.DataObject
) -> None:
    new = job("new", "q", wanted, priority=9)
    holders = tuple(running(job(f"v{i}", "q", size)) for i, size in enumerate(sizes))
    total = sum(sizes) + spare
    world = snapshot(
        queue("q", str(total), preemption=WITHIN), waiting=(new,), admitted_workloads=holders
    )
    names = sorted(data.draw(st.sets(st.sampled_from([h.workload.uid for h in holders]))))
    keys = [WorkloadKey(f"ns/{name}") for name in names]
    question = Question(world, new.key, admission(new))
    found = audit(world, plan(preemptions=(preempt(new, *names),)))
    broken = {each.rule for each in found}
    assert ("preemption-short" in broken) == (not is_sufficient(question, keys))
    blamed = [each for each in found if each.rule == "victim-needless"]
    assert len(blamed) == len(needless(question, keys))
    if not broken:
        assert frozenset(keys) in smallest_sets(question)
