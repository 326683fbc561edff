"""Plans that use more than there is, even for a moment, are caught."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.audit_plans import breaks, passes
from tests.support.quota_builders import (
    admit,
    cohort,
    group,
    job,
    plan,
    pods,
    pool,
    preempt,
    queue,
    running,
    snapshot,
)
from unisono.engine.model.queue import BorrowWithinCohort, PreemptionRules

RECLAIM = PreemptionRules(within_queue="LowerPriority", reclaim="Any")


def test_what_fits_passes_and_one_more_does_not() -> None:
    held = running(job("held", "q", 3))
    fits, over = job("fits", "q", 1), job("over", "q", 2)
    world = snapshot(queue("q"), waiting=(fits, over), admitted_workloads=(held,))
    passes(world, plan(admissions=(admit(fits),)))
    found = breaks("over-quota", world, plan(admissions=(admit(over),)))
    assert found.workload == over.key
    assert "leaves q 1 over" in found.message


def test_admissions_of_one_plan_are_added_up() -> None:
    """Scenario 12: 14 GPUs in the cohort hold 7 and 7, but not 9 and 7."""
    a7, a9, b7 = job("a7", "a", 7), job("a9", "a", 9), job("b7", "b", 7)
    world = snapshot(
        queue("a", "4", "k"), queue("b", "4", "k"), queue("bank", "6", "k"), waiting=(a7, a9, b7)
    )
    seven = admit(b7, borrow_level=1)
    passes(world, plan(admissions=(admit(a7, borrow_level=1), seven)))
    breaks("over-quota", world, plan(admissions=(admit(a9, borrow_level=1), seven)))


def test_limits_on_borrowing_and_lending_count() -> None:
    borrower = job("b", "a", 3)
    limited = snapshot(queue("a", "0/bl2", "k"), queue("b", "9", "k"), waiting=(borrower,))
    breaks("over-quota", limited, plan(admissions=(admit(borrower, borrow_level=1),)))
    kept = snapshot(queue("a", "0", "k"), queue("b", "9/ll2", "k"), waiting=(borrower,))
    breaks("over-quota", kept, plan(admissions=(admit(borrower, borrow_level=1),)))


def test_victims_hold_their_quota_until_they_have_ended() -> None:
    """10 GPUs, 6 held by a victim: 4 may be admitted beside it, 5 only when it has left."""
    p, e4, e5 = job("p", "own", 5), job("e4", "x", 4), job("e5", "x", 5)
    world = snapshot(
        queue("own", "5", "k", preemption=RECLAIM),
        queue("x", "5", "k"),
        queue("r", "0", "k"),
        waiting=(p, e4, e5),
        admitted_workloads=(running(job("v", "r", 6)),),
    )
    leave = preempt(p, "v", reason="InCohortReclamation")
    passes(world, plan(admissions=(admit(e4),), preemptions=(leave,)))
    breaks("over-quota", world, plan(admissions=(admit(e5),), preemptions=(leave,)))


def test_evicted_workloads_still_count() -> None:
    a = job("a", "q", 2)
    leaving = running(job("leaving", "q", 3), evicting=True)
    world = snapshot(queue("q"), waiting=(a,), admitted_workloads=(leaving,))
    breaks("over-quota", world, plan(admissions=(admit(a),)))


def test_over_use_of_another_queue_is_not_reported() -> None:
    """Scenario 10 with a rest that is not lent: b may use its own although a uses too much."""
    b = job("b", "b", 1)
    world = snapshot(
        queue("a", "2", "k"),
        queue("b", "2/ll0", "k"),
        waiting=(b,),
        admitted_workloads=(running(job("a", "a", 3)),),
    )
    passes(world, plan(admissions=(admit(b),)))


def test_a_pool_is_one_limit_over_its_flavors() -> None:
    """Scenario 75: 64 on one flavor and 32 on another leave 4 of 100."""
    where = queue("q", groups=(pool(["nvidia", "efa"], "100"),))
    t3, t4 = job("t3", "q", 8), job("t4", "q", 4)
    world = snapshot(
        where,
        waiting=(t3, t4),
        admitted_workloads=(
            running(job("t1", "q", 64), "nvidia"),
            running(job("t2", "q", 32), "efa"),
        ),
    )
    breaks("over-quota", world, plan(admissions=(admit(t3, "nvidia"),)))
    passes(world, plan(admissions=(admit(t4, "efa"),)))


def test_what_a_flavor_does_not_list_is_unmetered() -> None:
    """Scenario 77: t4 has GPUs only; its cpu costs nothing."""
    where = queue("q", groups=(group({"t4": {"gpu": "4"}}, covered=("cpu", "gpu")),))
    a = job("a", "q", pod_sets=(pods(4, {"gpu": 1, "cpu": 10**9}),))
    passes(snapshot(where, waiting=(a,)), plan(admissions=(admit(a, "t4"),)))


def test_a_slice_needs_only_what_it_grows_by() -> None:
    """Scenario 60."""
    old = running(job("old", "q", 2))
    grown = job("grown", "q", 4, replaces=old.workload.key)
    world = snapshot(queue("q"), waiting=(grown,), admitted_workloads=(old,))
    passes(world, plan(admissions=(admit(grown, replaces=old.workload.key),)))
    breaks("over-quota", world, plan(admissions=(admit(grown),)))
    other = msgspec.structs.replace(world, admitted_workloads=(old, running(job("other", "q", 1))))
    breaks("over-quota", other, plan(admissions=(admit(grown, replaces=old.workload.key),)))


def test_a_slice_that_does_not_grow_may_inherit_over_use() -> None:
    old = running(job("old", "q", 6))
    same = job("same", "q", 6, replaces=old.workload.key)
    world = snapshot(queue("q"), waiting=(same,), admitted_workloads=(old,))
    passes(world, plan(admissions=(admit(same, replaces=old.workload.key),)))


@pytest.mark.parametrize(("gpus", "right", "wrong"), [(4, 0, 1), (5, 1, 0)])
def test_level_zero_is_within_the_own_quota(gpus: int, right: int, wrong: int) -> None:
    a = job("a", "a", gpus)
    world = snapshot(queue("a", "4", "k"), queue("b", "4", "k"), waiting=(a,))
    passes(world, plan(admissions=(admit(a, borrow_level=right),)))
    breaks("borrow-level", world, plan(admissions=(admit(a, borrow_level=wrong),)))


def test_a_preemptor_must_fit_when_its_victims_have_ended() -> None:
    high = job("high", "q", 4, priority=9)
    rules = PreemptionRules(within_queue="LowerPriority")
    world = snapshot(
        queue("q", preemption=rules),
        waiting=(high,),
        admitted_workloads=(running(job("one", "q", 2)), running(job("two", "q", 2))),
    )
    passes(world, plan(preemptions=(preempt(high, "one", "two"),)))
    found = breaks("preemption-short", world, plan(preemptions=(preempt(high, "one"),)))
    assert "leaves q 2 over" in found.message


def test_two_preemptors_do_not_count_on_the_same_quota() -> None:
    a, b = job("a", "a", 4), job("b", "b", 4)
    world = snapshot(
        queue("a", "4", "k", preemption=RECLAIM),
        queue("b", "4", "k", preemption=RECLAIM),
        queue("r", "0", "k"),
        waiting=(a, b),
        admitted_workloads=tuple(running(job(f"v{i}", "r", 4)) for i in range(2)),
    )
    for_a = preempt(a, "v0", reason="InCohortReclamation")
    for_b = preempt(b, "v1", reason="InCohortReclamation")
    passes(world, plan(preemptions=(for_a, for_b)))
    alone = preempt(b, reason="InCohortReclamation")
    breaks("preemption-short", world, plan(preemptions=(for_a, alone)))


def test_victims_of_another_preemptor_are_not_counted_on() -> None:
    """v is evicted for a preemptor not in the plan; its quota is not the preemptor's."""
    high = job("high", "q", 3, priority=9)
    world = snapshot(
        queue("q", preemption=PreemptionRules(within_queue="LowerPriority")),
        waiting=(high,),
        admitted_workloads=(running(job("v", "q", 2), evicting=True), running(job("w", "q", 2))),
    )
    breaks("preemption-short", world, plan(preemptions=(preempt(high, "w"),)))
    passes(world, plan(preemptions=(preempt(high, "v", "w", evicting=["v"]),)))


def test_cohorts_in_cohorts() -> None:
    """Scenario 39: team owns 4, and ext took them."""
    n = job("n", "q", 4)
    q = queue("q", "0", "team", preemption=RECLAIM)
    ext = queue("ext", "0", "org")
    held = (running(job("e", "ext", 4, priority=100)),)
    world = snapshot(
        q, ext, cohorts=(cohort("team", "4", "org"),), waiting=(n,), admitted_workloads=held
    )
    reclaim = preempt(n, "e", reason="InCohortReclamation")
    passes(world, plan(preemptions=(reclaim,)))
    # If the 4 belong to org, only borrowWithinCohort helps, and then by another name.
    owned = msgspec.structs.replace(world, cohorts=(cohort("team", "0", "org"), cohort("org", "4")))
    breaks("preemption-forbidden", owned, plan(preemptions=(reclaim,)))
    rules = PreemptionRules(reclaim="Any", borrow=BorrowWithinCohort(policy="LowerPriority"))
    above = msgspec.structs.replace(n, priority=101)
    may = msgspec.structs.replace(
        owned, queues=(msgspec.structs.replace(q, preemption=rules), ext), waiting=(above,)
    )
    borrow = preempt(above, "e", reason="InCohortReclaimWhileBorrowing")
    passes(may, plan(preemptions=(borrow,)))
    breaks("victim-reason", may, plan(preemptions=(reclaim,)))
