"""Fair-sharing preemption: shares decide the victims, with the numbers of scenarios 43 to 52."""

from __future__ import annotations

import msgspec
import pytest

from tests.engine.preemption.test_classical import held, victims
from tests.support.quota_builders import cohort, job, queue
from tests.support.quota_builders import snapshot as world
from tests.support.state_laws import Deeds, at_rest, reactions
from unisono.engine.model.names import Instant
from unisono.engine.model.policy import FairSharing, Policy
from unisono.engine.model.queue import BorrowWithinCohort, PreemptionRules
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import AdmittedWorkload
from unisono.engine.state.changes import WorkloadWaits

replace = msgspec.structs.replace
FAIR = Policy(fair_sharing=FairSharing())
FINAL = Policy(fair_sharing=FairSharing(strategies=("LessThanOrEqualToFinalShare",)))
INITIAL = Policy(fair_sharing=FairSharing(strategies=("LessThanInitialShare",)))
RULES = PreemptionRules(within_queue="LowerPriority", reclaim="Any")


def three(
    *admitted_workloads: AdmittedWorkload, policy: Policy = FAIR, **weights_milli: int
) -> Snapshot:
    """Return the cluster of most scenarios: a, b and c with 4 each."""
    queues = (
        queue(name, "4", "all", preemption=RULES, weight_milli=weights_milli.get(name, 1000))
        for name in "abc"
    )
    return world(*queues, policy=policy, admitted_workloads=admitted_workloads)


def eight_small() -> list[AdmittedWorkload]:
    """Let b use 8 GPUs in eight workloads, b8 being the newest."""
    return [held(f"b{number}", "b", 1, 0, number) for number in range(1, 9)]


def test_scenario_43() -> None:
    """c stays within its quota, so it reclaims without comparing shares."""
    cluster = three(
        held("a1", "a", 4),
        held("b1", "b", 3, 0, 1),
        held("b2", "b", 3, 0, 2),
        held("c1", "c", 2),
    )
    assert victims(cluster, waiting=job("w", "c", 2)) == {"b2": "InCohortReclamation"}


def test_scenario_44() -> None:
    """Two leave (166.7 against 166.7), three would be unfair; weights move the line."""
    cluster = three(held("a1", "a", 4), *eight_small())
    assert victims(cluster, waiting=job("w", "a", 2)) == {
        "b8": "InCohortFairSharing",
        "b7": "InCohortFairSharing",
    }
    assert not victims(cluster, waiting=job("w", "a", 3))
    heavy = three(held("a1", "a", 4), *eight_small(), a=2000)
    assert victims(heavy, waiting=job("w", "a", 3)).keys() == {"b8", "b7", "b6"}
    weightless = three(held("a1", "a", 4), *eight_small(), b=0)
    assert victims(weightless, waiting=job("w", "a", 4)).keys() == {"b8", "b7", "b6", "b5"}


def test_scenario_45() -> None:
    """One large victim falls by the second strategy only, and then stays away."""
    admitted_workloads = held("a1", "a", 4), held("b1", "b", 8)
    assert victims(three(*admitted_workloads), waiting=job("w", "a", 3)) == {
        "b1": "InCohortFairSharing"
    }
    assert not victims(three(*admitted_workloads), waiting=job("w", "a", 4))
    assert not victims(three(*admitted_workloads, policy=FINAL), waiting=job("w", "a", 3))
    state = at_rest(three(*admitted_workloads))
    assert reactions(state, WorkloadWaits(job("w", "a", 3))) == Deeds(["w"], ["b1"])


@pytest.mark.parametrize(
    ("policy", "expected"), [(FAIR, "high"), (FINAL, "high"), (INITIAL, "low")]
)
def test_scenario_46(policy: Policy, expected: str) -> None:
    """The first strategy prefers victims it can take fairly to the least important ones."""
    admitted_workloads = held("a1", "a", 4), held("low", "b", 6, 0), held("high", "b", 2, 9)
    cluster = three(*admitted_workloads, policy=policy)
    assert victims(cluster, waiting=job("w", "a", 2)).keys() == {expected}


@pytest.mark.parametrize(("wanted", "expected"), [(1, "b-new"), (2, "a2-1")])
def test_scenario_48(wanted: int, expected: str) -> None:
    """Sides of the tree are compared first, then the queues of a side."""
    cluster = world(
        *(queue(name, "0", side, preemption=RULES) for name, side in _PLACES),
        policy=FAIR,
        cohorts=(cohort("root", "8"), cohort("orgA", "0", "root"), cohort("orgB", "0", "root")),
        admitted_workloads=(
            held("a2-1", "a2", 3, 0, 1),
            held("b-old", "b1", 2, 0, 1),
            held("b-new", "b1", 3, 0, 2),
        ),
    )
    assert victims(cluster, waiting=job("w", "a1", wanted)).keys() == {expected}


_PLACES = (("a1", "orgA"), ("a2", "orgA"), ("b1", "orgB"))


def test_scenario_49() -> None:
    """borrowWithinCohort means nothing where shares are fair."""
    rules = replace(RULES, borrow=BorrowWithinCohort(policy="LowerPriority"))
    cluster = world(
        queue("a", "4", "all", preemption=rules),
        queue("b", "4", "all"),
        queue("pool", "0", "all"),
        policy=FAIR,
        admitted_workloads=(
            held("a1", "a", 4, 10),
            held("b1", "b", 3),
            held("p1", "pool", 1, -100),
        ),
    )
    waiting = job("w", "a", 1, priority=10)
    assert not victims(cluster, waiting=waiting)
    classical = replace(cluster, policy=Policy())
    assert victims(classical, waiting=waiting) == {"p1": "InCohortReclaimWhileBorrowing"}


def test_scenario_50() -> None:
    """A loop without end in Kueue; here at most one preemption each, and then rest."""
    state = at_rest(
        world(
            queue("a", "4", "all", preemption=RULES),
            queue("b", "2", "all", preemption=RULES),
            policy=FAIR,
        )
    )
    arrivals = [("b-big", "b", 6, 1), ("a-mid", "a", 5, 0), ("b-small", "b", 2, 0)]
    evicted: list[str] = []
    for second, (name, of, gpus, priority) in enumerate(arrivals):
        now = Instant(second * 1000)
        workload = job(name, of, gpus, priority=priority, created_at=now)
        evicted += reactions(state, WorkloadWaits(workload), now=now).evicted
    assert evicted[0] == "b-big"
    assert len(evicted) == len(set(evicted))


def test_scenario_52() -> None:
    """Larger than nominal and reclaim=Never: nothing allows preempting while borrowing."""
    cluster = world(
        queue("a", "2", "all", preemption=PreemptionRules(within_queue="LowerPriority")),
        queue("b", "4", "all"),
        policy=FAIR,
        admitted_workloads=(held("low", "a", 3), held("b1", "b", 3)),
    )
    assert not victims(cluster, waiting=job("hi", "a", 4, priority=9))


def test_a_queue_takes_its_own_least_important_when_its_share_is_the_highest() -> None:
    admitted_workloads = held("low", "a", 3, 0), held("b1", "b", 4), held("c1", "c", 5, 9)
    cluster = three(*admitted_workloads)
    found = victims(cluster, waiting=job("w", "a", 3, priority=5))
    assert found == {"low": "InClusterQueue"}


def test_victims_that_are_unfair_after_reprieve_are_refused() -> None:
    """Spec quota §18.3: in strict mode, as in Kueue, there is no second look.

    b1 is taken first, which brings b's share down to 167, below c's 333; so c1 is taken as well.
    Then b1 turns out needless and stays, and with it b's share is 500: c1 left for a greater one.
    """
    cluster = world(
        *(queue(name, "2", "all", preemption=RULES) for name in "abc"),
        policy=INITIAL,
        admitted_workloads=(held("b1", "b", 2, 0), held("c1", "c", 4, 1)),
    )
    waiting = job("w", "b", 3, priority=1)
    assert not victims(cluster, waiting=waiting)
    strict = replace(cluster, policy=replace(INITIAL, strict=True))
    assert victims(strict, waiting=waiting) == {"c1": "InCohortFairSharing"}
