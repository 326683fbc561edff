"""Victims that may not be taken, or not for that reason, are caught."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.support.audit_plans import breaks, passes
from tests.support.quota_builders import (
    cohort,
    group,
    job,
    plan,
    preempt,
    queue,
    running,
    snapshot,
)
from unisono.engine.audit import Rule
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import PreemptionReason
from unisono.engine.model.policy import FairSharing, Policy
from unisono.engine.model.queue import BorrowWithinCohort, PreemptionRules
from unisono.engine.model.snapshot import Snapshot

WITHIN = PreemptionRules(within_queue="LowerPriority")
RECLAIM = PreemptionRules(reclaim="Any")
FAIR = Policy(fair_sharing=FairSharing())


def check(expected: Rule | None, world: Snapshot, *victims: str, **options: Any) -> None:
    """Let the only waiting workload preempt, and compare with the rule that should be broken."""
    now = options.pop("now", Instant(0))
    made = plan(now=now, preemptions=(preempt(world.waiting[0], *victims, **options),))
    if expected is None:
        passes(world, made)
    else:
        breaks(expected, world, made)


def test_an_evicted_victim_is_marked() -> None:
    high, low = job("high", "q", 4, priority=9), job("low", "q", 4)
    stays = snapshot(
        queue("q", preemption=WITHIN), waiting=(high,), admitted_workloads=(running(low),)
    )
    leaving = msgspec.structs.replace(stays, admitted_workloads=(running(low, evicting=True),))
    check(None, stays, "low")
    check("victim-flag", stays, "low", evicting=["low"])
    check(None, leaving, "low", evicting=["low"])
    check("victim-flag", leaving, "low")


@pytest.mark.parametrize(
    ("policy", "priority", "at", "expected"),
    [
        ("Never", 9, 20, "victim-rule"),
        ("LowerPriority", 6, 20, None),
        ("LowerPriority", 5, 20, "victim-rule"),
        ("LowerOrNewerEqualPriority", 6, 40, None),
        ("LowerOrNewerEqualPriority", 5, 20, None),
        ("LowerOrNewerEqualPriority", 5, 30, "victim-rule"),  # scenario 30: not newer
        ("LowerOrNewerEqualPriority", 4, 20, "victim-rule"),
    ],
)
def test_within_the_queue(policy: Any, priority: int, at: int, expected: Rule | None) -> None:
    new = job("new", "q", 4, priority=priority, created_at=Instant(at))
    young = job("young", "q", 4, priority=5, created_at=Instant(30))
    rules = PreemptionRules(within_queue=policy)
    world = snapshot(
        queue("q", preemption=rules), waiting=(new,), admitted_workloads=(running(young),)
    )
    check(expected, world, "young")


def test_the_place_in_the_queue_decides_not_the_creation() -> None:
    new = job("new", "q", 4, created_at=Instant(1), queued_at=Instant(50))
    old = job("old", "q", 4, created_at=Instant(30))
    rules = PreemptionRules(within_queue="LowerOrNewerEqualPriority")
    world = snapshot(
        queue("q", preemption=rules), waiting=(new,), admitted_workloads=(running(old),)
    )
    check("victim-rule", world, "old")


def scenario_32(policy: Any, priority: int, **victim: Any) -> Snapshot:
    """own 4, b 0 runs 4 at priority 0."""
    return snapshot(
        queue("own", "4", "k", preemption=PreemptionRules(reclaim=policy)),
        queue("b", "0", "k"),
        waiting=(job("n", "own", 4, priority=priority),),
        admitted_workloads=(running(job("v", "b", 4), **victim),),
    )


@pytest.mark.parametrize(
    ("policy", "priority", "expected"),
    [
        ("Never", 9, "victim-rule"),
        ("LowerPriority", 0, "victim-rule"),
        ("LowerPriority", 1, None),
        ("Any", -5, None),
    ],
)
def test_reclaiming_in_the_cohort(policy: Any, priority: int, expected: Rule | None) -> None:
    check(expected, scenario_32(policy, priority), "v", reason="InCohortReclamation")


def test_reasons_say_where_the_victim_is() -> None:
    check("victim-rule", scenario_32("Any", 9), "v", reason="InClusterQueue")
    high, low = job("high", "q", 4, priority=9), job("low", "q", 4)
    both = PreemptionRules(within_queue="LowerPriority", reclaim="Any")
    at_home = snapshot(
        queue("q", "4", "k", preemption=both), waiting=(high,), admitted_workloads=(running(low),)
    )
    check(None, at_home, "low")
    check("victim-rule", at_home, "low", reason="InCohortReclamation")


def test_another_cohort_is_out_of_reach() -> None:
    world = scenario_32("Any", 9)
    own, b = world.queues
    apart = msgspec.structs.replace(world, queues=(own, msgspec.structs.replace(b, cohort=None)))
    check("victim-rule", apart, "v", reason="InCohortReclamation")


def scenario_35(
    victim: int, threshold: int | None = 100, policy: Any = "LowerPriority"
) -> Snapshot:
    """a 0 and b 0 share 10; dev runs 6 in b; a wants 10 at priority 1000."""
    borrow = BorrowWithinCohort(policy=policy, max_priority_threshold=threshold)
    return snapshot(
        queue("a", "0", "k", preemption=PreemptionRules(reclaim="Any", borrow=borrow)),
        queue("b", "0", "k"),
        queue("share", "10", "k"),
        waiting=(job("prod", "a", 10, priority=1000),),
        admitted_workloads=(running(job("dev", "b", 6, priority=victim)),),
    )


@pytest.mark.parametrize(
    ("world", "expected"),
    [
        (scenario_35(100), None),
        (scenario_35(101), "victim-reason"),
        (scenario_35(101, threshold=None), None),
        (scenario_35(1000, threshold=None), "victim-reason"),
        (scenario_35(100, policy="Never"), "victim-reason"),
    ],
    ids=str,
)
def test_scenario_35_preempting_while_borrowing(world: Snapshot, expected: Rule | None) -> None:
    check(expected, world, "dev", reason="InCohortReclaimWhileBorrowing")


def test_a_borrower_does_not_reclaim() -> None:
    check("victim-reason", scenario_35(100), "dev", reason="InCohortReclamation")


def test_fair_sharing_has_its_own_reason() -> None:
    fair = msgspec.structs.replace(scenario_35(100), policy=FAIR)
    check("victim-reason", fair, "dev", reason="InCohortReclaimWhileBorrowing")
    check("victim-reason", scenario_35(100), "dev", reason="InCohortFairSharing")
    reclaims = msgspec.structs.replace(scenario_32("Any", 0), policy=FAIR)
    check(None, reclaims, "v", reason="InCohortReclamation")
    check("victim-reason", reclaims, "v", reason="InCohortFairSharing")


def test_a_victim_uses_what_is_short() -> None:
    two = (group({"f": {"gpu": "4"}, "g": {"gpu": "4"}}),)
    high = job("high", "q", 4, priority=9)
    world = snapshot(
        queue("q", preemption=WITHIN, groups=two),
        waiting=(high,),
        admitted_workloads=(running(job("on-f", "q", 4)), running(job("on-g", "q", 4), "g")),
    )
    check(None, world, "on-f")
    check("victim-unrelated", world, "on-f", "on-g")


@pytest.mark.parametrize(
    "change", [{"stop": "Hold"}, {"terminating": True}, {"cohort": "loop"}, {"checks": ()}]
)
def test_no_victims_in_an_inactive_queue(change: dict[str, Any]) -> None:
    world = scenario_32("Any", 9)
    own, b = world.queues
    closed = msgspec.structs.replace(
        world,
        queues=(own, msgspec.structs.replace(b, **change)),
        cohorts=(cohort("loop", parent="loop"),),
    )
    inactive = change != {"checks": ()}
    rule: Rule = "victim-protected"
    check(rule if inactive else None, closed, "v", reason="InCohortReclamation")


@pytest.mark.parametrize(("now", "expected"), [(999, "victim-protected"), (1000, None)])
def test_a_minimum_run_time_protects(now: int, expected: Rule | None) -> None:
    world = scenario_32("Any", 9)
    own, b = world.queues
    slow = msgspec.structs.replace(b, preemption=PreemptionRules(min_runtime_ms=1000))
    protected = msgspec.structs.replace(world, queues=(own, slow))
    check(expected, protected, "v", reason="InCohortReclamation", now=Instant(now))
    strict = msgspec.structs.replace(protected, policy=Policy(strict=True))
    check(None, strict, "v", reason="InCohortReclamation", now=Instant(now))


def test_a_slice_does_not_evict_what_it_grows_out_of() -> None:
    old = running(job("old", "q", 2))
    grown = job("grown", "q", 4, priority=9, replaces=WorkloadKey("ns/old"))
    other = running(job("other", "q", 2))
    world = snapshot(
        queue("q", preemption=WITHIN), waiting=(grown,), admitted_workloads=(old, other)
    )
    check(None, world, "other")
    check("victim-protected", world, "old", "other")


def scenario_33() -> Snapshot:
    """own 6; b 2 runs 2+2 at priority 0, c 2 runs 3+3 at priority 5; own wants 5."""
    return snapshot(
        queue("own", "6", "k", preemption=RECLAIM),
        queue("b", "2", "k"),
        queue("c", "2", "k"),
        waiting=(job("n", "own", 5),),
        admitted_workloads=(
            *(running(job(f"b-{age}", "b", 2)) for age in ("old", "new")),
            *(running(job(f"c-{age}", "c", 3, priority=5)) for age in ("old", "new")),
        ),
    )


def test_scenario_33_a_queue_within_its_quota_gives_nothing() -> None:
    check(None, scenario_33(), "b-new", "c-new", reason="InCohortReclamation")
    rule: Rule = "victim-within-quota"
    check(rule, scenario_33(), "b-new", "b-old", "c-new", reason="InCohortReclamation")
    idle = msgspec.structs.replace(
        scenario_33(), admitted_workloads=scenario_33().admitted_workloads[1:]
    )
    check(rule, idle, "b-new", "c-new", reason="InCohortReclamation")


def test_scenario_40_nor_does_a_cohort() -> None:
    """right owns 3 and uses 3; r1's workload is safe although r1 itself owns nothing."""
    world = snapshot(
        queue("q", "4", "left", preemption=RECLAIM),
        queue("r1", "0", "right"),
        queue("z", "0", "org"),
        cohorts=(cohort("left", "0", "org"), cohort("right", "3", "org")),
        waiting=(job("n", "q", 2),),
        admitted_workloads=(
            running(job("r", "r1", 3, priority=-50)),
            running(job("zz", "z", 4, priority=50)),
        ),
    )
    check(None, world, "zz", reason="InCohortReclamation")
    check("victim-within-quota", world, "r", reason="InCohortReclamation")


def fair_sharing(
    wanted: int, sizes: tuple[int, ...], policy: Policy = FAIR, weight_milli: int = 1000
) -> Snapshot:
    """a, b, c 4 each; a uses 4, b what is said; a wants more (scenarios 44 and 45)."""
    rules = PreemptionRules(within_queue="LowerPriority", reclaim="Any")
    return snapshot(
        queue("a", "4", "k", preemption=rules),
        queue("b", "4", "k", preemption=rules, weight_milli=weight_milli),
        queue("c", "4", "k", preemption=rules),
        waiting=(job("n", "a", wanted),),
        admitted_workloads=(
            running(job("a", "a", 4)),
            *(running(job(f"b{i}", "b", size)) for i, size in enumerate(sizes)),
        ),
        policy=policy,
    )


SHARING: PreemptionReason = "InCohortFairSharing"


def test_scenario_44_shares_become_equal_and_no_more() -> None:
    ones = (1,) * 8
    check(None, fair_sharing(2, ones), "b0", "b1", reason=SHARING)
    five = tuple(f"b{i}" for i in range(5))
    check("victim-unfair", fair_sharing(5, ones), *five, reason=SHARING)
    # A queue without weight may lose all that it borrows.
    check(None, fair_sharing(4, ones, weight_milli=0), *five[:4], reason=SHARING)


def test_scenario_45_one_large_victim() -> None:
    check(None, fair_sharing(3, (8,)), "b0", reason=SHARING)
    check("victim-unfair", fair_sharing(4, (8,)), "b0", reason=SHARING)  # 333 is not less than 333
    only = Policy(fair_sharing=FairSharing(strategies=("LessThanOrEqualToFinalShare",)))
    check("victim-unfair", fair_sharing(3, (8,), only), "b0", reason=SHARING)
    strict = Policy(fair_sharing=FairSharing(), strict=True)
    check(None, fair_sharing(4, (8,), strict), "b0", reason=SHARING)
