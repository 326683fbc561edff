"""Classical preemption: the victims of a workload, with the numbers of scenarios 28 to 41."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.quota_builders import cohort, group, job, pods, queue, running
from tests.support.quota_builders import snapshot as world
from unisono.engine.audit import audit
from unisono.engine.cluster import restore
from unisono.engine.cycle import plan
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.policy import AdmissionFairSharing, Policy
from unisono.engine.model.queue import BorrowWithinCohort, LocalQueue, PreemptionRules
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import AdmittedWorkload, Workload

replace = msgspec.structs.replace
NOW = Instant(1000)
WITHIN = PreemptionRules(within_queue="LowerPriority")
ANY = PreemptionRules(reclaim="Any")
BOTH = PreemptionRules(within_queue="LowerPriority", reclaim="Any")
BORROWING = BorrowWithinCohort(policy="LowerPriority")


def victims(snapshot: Snapshot, *, waiting: Workload) -> dict[str, str]:
    """Return the victims of one workload, and why; the plan passes the audit."""
    snapshot = replace(snapshot, waiting=(waiting,), now=NOW)
    made = plan(restore(snapshot), NOW)
    assert not audit(snapshot, made)
    return {
        victim.workload.removeprefix("ns/"): victim.reason
        for preemption in made.preemptions
        for victim in preemption.victims
    }


def held(name: str, of: str, gpus: int, priority: int = 0, since: int = 0) -> AdmittedWorkload:
    """Let a workload run since an instant."""
    return running(job(name, of, gpus, priority=priority), reserved_at=Instant(since))


# --- in one queue --------------------------------------------------------------------------------


def test_scenario_28() -> None:
    """p1 is taken first and put back, because p2 alone is enough."""
    admitted_workloads = held("p1", "q", 1, 1), held("p2", "q", 4, 2), held("p3", "q", 5, 3)
    cluster = world(queue("q", "10", preemption=WITHIN), admitted_workloads=admitted_workloads)
    assert victims(cluster, waiting=job("new", "q", 4, priority=9)) == {"p2": "InClusterQueue"}


@pytest.mark.parametrize(("wanted", "expected"), [(3, {"p2"}), (4, {"p1", "p2"})])
def test_scenario_29(wanted: int, expected: set[str]) -> None:
    """Among equals the later one leaves first."""
    admitted_workloads = held("p1", "q", 2, 1, 10), held("p2", "q", 3, 1, 20), held("p3", "q", 5, 3)
    cluster = world(queue("q", "10", preemption=WITHIN), admitted_workloads=admitted_workloads)
    assert victims(cluster, waiting=job("new", "q", wanted, priority=9)).keys() == expected


@pytest.mark.parametrize(("created", "expected"), [(20, {"young"}), (40, set())])
def test_scenario_30(created: int, expected: set[str]) -> None:
    rules = PreemptionRules(within_queue="LowerOrNewerEqualPriority")
    admitted_workloads = tuple(
        running(job(name, "q", 2, priority=5, created_at=Instant(at)))
        for name, at in (("old", 10), ("young", 30))
    )
    cluster = world(queue("q", "4", preemption=rules), admitted_workloads=admitted_workloads)
    new = job("new", "q", 2, priority=5, created_at=Instant(created))
    assert victims(cluster, waiting=new).keys() == expected


def test_scenario_38() -> None:
    """A workload that is leaving anyway is counted on first, and not evicted again."""
    leaving = replace(held("b", "q", 2, 3), evicting=True)
    cluster = world(
        queue("q", "4", preemption=WITHIN), admitted_workloads=(held("a", "q", 2), leaving)
    )
    waiting = job("new", "q", 2, priority=9)
    assert victims(cluster, waiting=waiting).keys() == {"b"}
    made = plan(restore(replace(cluster, waiting=(waiting,))), Instant(0))
    assert made.preemptions[0].victims[0].already_evicting


def test_scenario_53() -> None:
    """What a local queue used lately outranks priority."""
    local_queues = tuple(
        LocalQueue(
            key=job("w", name).queue,
            queue=queue("q").name,
            consumed_micro=(("gpu", used * 10**6),),  # type: ignore[arg-type]
            consumed_at=NOW,
        )
        for name, used in (("greedy", 10), ("modest", 1), ("q", 0))
    )
    admitted_workloads = tuple(
        replace(held(name, "q", 2, priority), workload=job(name, lq, 2, priority=priority))
        for name, lq, priority in (("x", "greedy", 5), ("y", "modest", 0))
    )
    cluster = world(
        queue("q", "4", preemption=WITHIN, usage_based_admission=True),
        policy=Policy(admission_fair_sharing=AdmissionFairSharing()),
        local_queues=local_queues,
        admitted_workloads=admitted_workloads,
    )
    assert victims(cluster, waiting=job("n", "q", 2, priority=9)).keys() == {"x"}


def test_a_workload_that_has_not_run_long_enough_is_spared() -> None:
    """Spec quota §18.5."""
    rules = replace(WITHIN, min_runtime_ms=500)
    admitted_workloads = held("fresh", "q", 2, 0, 600), held("settled", "q", 2, 1, 500)
    cluster = world(queue("q", "4", preemption=rules), admitted_workloads=admitted_workloads)
    assert victims(cluster, waiting=job("n", "q", 2, priority=9)).keys() == {"settled"}
    assert not victims(cluster, waiting=job("n", "q", 4, priority=9))


def test_a_workload_that_was_preempted_lately_preempts_nothing() -> None:
    """Spec quota §18.2b; in strict mode it does, as in Kueue."""
    cluster = world(queue("q", "4", preemption=WITHIN), admitted_workloads=(held("low", "q", 4),))
    back = replace(job("w", "q", 4, priority=9), preemptions=1, may_preempt_at=Instant(NOW + 1))
    assert not victims(cluster, waiting=back)
    assert victims(replace(cluster, policy=Policy(strict=True)), waiting=back)
    assert victims(cluster, waiting=replace(back, may_preempt_at=NOW))


# --- in a cohort ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (2, {"y-lo"}),
        (3, {"y-new"}),
        (4, {"y-lo", "y-new"}),
        (5, {"y-lo", "y-new"}),
        (6, {"y-lo", "y-new", "x-old"}),
    ],
)
def test_scenario_31(wanted: int, expected: set[str]) -> None:
    cluster = world(
        queue("own", "6", "all", preemption=ANY),
        queue("b1", "2", "all"),
        queue("b2", "2", "all"),
        admitted_workloads=(
            held("x-hi", "b1", 3, 10, 10),
            held("x-old", "b1", 2, 0, 10),
            held("y-new", "b2", 3, 0, 20),
            held("y-lo", "b2", 2, -5, 10),
        ),
    )
    found = victims(cluster, waiting=job("w", "own", wanted))
    assert found == dict.fromkeys(expected, "InCohortReclamation")


@pytest.mark.parametrize(("priority", "expected"), [(0, set()), (1, {"b1"})])
def test_scenario_32(priority: int, expected: set[str]) -> None:
    rules = PreemptionRules(reclaim="LowerPriority")
    cluster = world(
        queue("own", "4", "all", preemption=rules),
        queue("b", "0", "all"),
        admitted_workloads=(held("b1", "b", 4),),
    )
    assert victims(cluster, waiting=job("w", "own", 4, priority=priority)).keys() == expected


def test_scenario_33() -> None:
    """b-old is protected once b is back at its nominal quota."""
    cluster = world(
        queue("own", "6", "all", preemption=ANY),
        queue("b", "2", "all"),
        queue("c", "2", "all"),
        admitted_workloads=(
            held("b-old", "b", 2, 0, 1),
            held("b-new", "b", 2, 0, 2),
            held("c-old", "c", 3, 5, 1),
            held("c-new", "c", 3, 5, 2),
        ),
    )
    assert victims(cluster, waiting=job("w", "own", 5)).keys() == {"b-new", "c-new"}


@pytest.mark.parametrize(("wanted", "expected"), [(2, {"b1"}), (4, {"b1", "o-low"})])
def test_scenario_34(wanted: int, expected: set[str]) -> None:
    """Other queues give way before one's own."""
    cluster = world(
        queue("own", "4", "all", preemption=BOTH),
        queue("b", "2", "all"),
        admitted_workloads=(held("o-low", "own", 2, -10), held("b1", "b", 4)),
    )
    assert victims(cluster, waiting=job("w", "own", wanted, priority=5)).keys() == expected


@pytest.mark.parametrize(
    ("threshold", "priority", "is_evicted"),
    [(100, 100, True), (100, 101, False), (None, 101, True), (None, 1000, False)],
)
def test_scenario_35(threshold: int | None, priority: int, is_evicted: bool) -> None:
    rules = replace(ANY, borrow=replace(BORROWING, max_priority_threshold=threshold))
    cluster = world(
        queue("a", "0", "all", preemption=rules),
        queue("b", "0", "all"),
        queue("share", "10", "all"),
        admitted_workloads=(held("dev", "b", 6, priority),),
    )
    expected = {"dev": "InCohortReclaimWhileBorrowing"} if is_evicted else {}
    assert victims(cluster, waiting=job("prod", "a", 10, priority=1000)) == expected


def test_scenario_36() -> None:
    """Larger than nominal: not even its own queue, unless it may preempt while borrowing."""

    def cluster(rules: PreemptionRules) -> Snapshot:
        return world(
            queue("a", "2", "all", preemption=rules),
            queue("b", "2", "all"),
            admitted_workloads=(held("low", "a", 4),),
        )

    assert not victims(cluster(BOTH), waiting=job("hi", "a", 4, priority=10))
    assert victims(cluster(BOTH), waiting=job("hi", "a", 2, priority=10)).keys() == {"low"}
    borrowing = replace(BOTH, borrow=BORROWING)
    assert victims(cluster(borrowing), waiting=job("hi", "a", 4, priority=10)).keys() == {"low"}


def test_scenario_39() -> None:
    """What the team's own cohort owns comes back, whatever the priorities."""
    cluster = world(
        queue("q", "0", "team", preemption=ANY),
        queue("ext", "0", "org"),
        cohorts=(cohort("org"), cohort("team", "4", "org")),
        admitted_workloads=(held("borrower", "ext", 4, 100),),
    )
    assert victims(cluster, waiting=job("n", "q", 4)) == {"borrower": "InCohortReclamation"}
    theirs = replace(cluster, cohorts=(cohort("org", "4"), cohort("team", "0", "org")))
    assert not victims(theirs, waiting=job("n", "q", 4))
    borrowing = queue("q", "0", "team", preemption=replace(ANY, borrow=BORROWING))
    eager = replace(theirs, queues=(borrowing, theirs.queues[1]))
    higher = job("n", "q", 4, priority=101)
    assert victims(eager, waiting=higher) == {"borrower": "InCohortReclaimWhileBorrowing"}


def test_scenario_40() -> None:
    """A side that is within its quota is left alone, despite its lower priority."""
    cluster = world(
        queue("q", "4", "left", preemption=ANY),
        queue("r1", "0", "right"),
        queue("z", "0", "org"),
        cohorts=(cohort("left", "0", "org"), cohort("right", "3", "org")),
        admitted_workloads=(held("r", "r1", 3, -50), held("z1", "z", 4, 50)),
    )
    assert victims(cluster, waiting=job("n", "q", 2)).keys() == {"z1"}


def test_scenario_41() -> None:
    """Nominal GPUs are out of reach for a workload that has to borrow CPUs."""

    def both(gpu: str, cpu: str) -> tuple[object, ...]:
        return (group({"f": {"cpu": cpu, "gpu": gpu}}),)

    borrower = job("borrower", "b", pod_sets=(pods(1, {"cpu": 6, "gpu": 4}),))
    cluster = world(
        queue("a", cohort="all", groups=both("4", "0"), preemption=ANY),
        queue("b", cohort="all", groups=both("0/bl4", "0")),
        queue("share", cohort="all", groups=both("0", "20")),
        admitted_workloads=(running(borrower),),
    )
    own = job("w", "a", pod_sets=(pods(1, {"cpu": 10, "gpu": 4}),))
    assert not victims(cluster, waiting=own)
    only_gpus = job("w", "a", pod_sets=(pods(1, {"gpu": 4}),))
    assert victims(cluster, waiting=only_gpus).keys() == {"borrower"}


def test_an_inactive_queue_gives_nothing_back() -> None:
    """Its quota and usage still count in the cohort (spec quota §1)."""
    cluster = world(
        queue("own", "4", "all", preemption=ANY),
        queue("b", "0", "all", terminating=True),
        admitted_workloads=(held("b1", "b", 4),),
    )
    assert not victims(cluster, waiting=job("w", "own", 4, priority=9))
    assert WorkloadKey("ns/b1") in restore(cluster).running
