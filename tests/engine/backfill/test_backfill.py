"""Backfill: what has to wait is reserved for, and nothing starts that delays a reservation."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tests.support.quota_builders import job, pods, queue
from tests.support.quota_builders import snapshot as world
from unisono.engine.cluster import restore
from unisono.engine.cycle import plan
from unisono.engine.dry_run import dry_run, one_cycle
from unisono.engine.explain.waiting import explanation
from unisono.engine.model.explanation import Planned, QuotaExhausted, WouldDelay
from unisono.engine.model.names import Instant, LocalQueueKey, NodeName, WorkloadKey
from unisono.engine.model.node import Node, NodePod
from unisono.engine.model.policy import Backfill, Policy
from unisono.engine.model.resources import amounts
from unisono.engine.model.workload import Workload
from unisono.engine.state.changes import (
    PodGone,
    PodOnNode,
    QueueSet,
    TimePassed,
    WorkloadGone,
    WorkloadWaits,
)
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import snapshot

EASY = Backfill(dates=1)
CONSERVATIVE = Backfill()
SECOND = 1000


@dataclass
class Machine:
    """A small cluster on which jobs end by themselves."""

    state: ClusterState
    starts: dict[str, int] = field(default_factory=dict)
    reservations: dict[str, int] = field(default_factory=dict)
    now: int = 0
    _ends: list[tuple[int, str]] = field(default_factory=list)
    _runs: dict[str, int] = field(default_factory=dict)

    def submit(
        self,
        name: str,
        gpus: int,
        limit: int,
        *,
        n: int = 1,
        run: int | None = None,
        priority: int = 0,
    ) -> None:
        """Submit a job of `n` pods with so many GPUs each."""
        self._runs[name] = limit if run is None else run
        self.state.apply(
            WorkloadWaits(
                Workload(
                    key=WorkloadKey(f"ns/{name}"),
                    uid=name,
                    queue=LocalQueueKey("ns/q"),
                    pod_sets=(pods(n, {"gpu": gpus}),),
                    created_at=Instant(self.now * SECOND),
                    time_limit_ms=limit * SECOND,
                    priority=priority,
                )
            )
        )

    def decide(self) -> None:
        """Decide until nothing changes."""
        changed = True
        while changed:
            made, changed = one_cycle(self.state, Instant(self.now * SECOND))
            for admit in made.admissions:
                name = admit.workload.removeprefix("ns/")
                self.starts[name] = self.now
                self._ends.append((self.now + self._runs[name], name))
            for reserved in made.reservations:
                self.reservations[reserved.workload.removeprefix("ns/")] = reserved.start // SECOND

    def go_to(self, instant: int) -> None:
        """Let time pass: jobs end at their times, and a cycle follows each end."""
        while self._ends and min(self._ends)[0] <= instant:
            self.now = min(self._ends)[0]
            self.state.apply(TimePassed(Instant(self.now * SECOND)))
            for end, name in sorted(self._ends):
                if end == self.now:
                    self._ends.remove((end, name))
                    self.state.apply(WorkloadGone(WorkloadKey(f"ns/{name}")))
            self.decide()
        self.now = instant
        self.state.apply(TimePassed(Instant(instant * SECOND)))
        self.decide()

    def why(self, name: str) -> object:
        """Return the first reason why a job waits."""
        found = explanation(self.state, WorkloadKey(f"ns/{name}"))
        assert found is not None, f"{name} does not wait"
        return found.blockers[0]


def machine(rules: Backfill, *nodes: int) -> Machine:
    """Return a cluster with nodes of so many GPUs each."""
    total = sum(nodes)
    return Machine(
        restore(
            world(
                queue("q", str(total)),
                policy=Policy(backfill=rules),
                nodes=tuple(
                    Node(name=NodeName(f"n{number}"), allocatable=amounts({"gpu": size}))
                    for number, size in enumerate(nodes)
                ),
            )
        )
    )


def test_the_first_that_waits_has_a_reservation_and_others_backfill() -> None:
    """Performance scenario 4: shadow time 100, 20 extra nodes."""
    here = machine(EASY, *[1] * 100)
    here.submit("A", 1, 100, n=60)
    here.decide()
    here.now = 1
    for name, size, limit in (("B", 80, 100), ("C", 30, 50), ("D", 30, 200), ("E", 20, 200)):
        here.submit(name, 1, limit, n=size)
    here.go_to(1)
    assert here.reservations == {"B": 100}
    assert here.starts == {"A": 0, "C": 1}
    assert here.why("B") == Planned(
        start=Instant(100 * SECOND), position=1, limit_ms=100 * SECOND, limit_from="request"
    )
    here.go_to(300)
    assert here.starts == {"A": 0, "C": 1, "E": 51, "B": 100, "D": 200}


def test_backfill_without_the_small_job_is_as_before() -> None:
    """Performance scenario 5."""
    here = machine(EASY, *[1] * 100)
    here.submit("A", 1, 100, n=60)
    here.decide()
    here.now = 1
    for name, size, limit in (("B", 80, 100), ("C", 30, 50), ("D", 30, 200)):
        here.submit(name, 1, limit, n=size)
    here.go_to(1)
    here.go_to(51)
    assert here.why("D") == WouldDelay(
        reserved_for=WorkloadKey("ns/B"), start=Instant(100 * SECOND), limit_ms=200 * SECOND
    )
    here.go_to(300)
    assert here.starts == {"A": 0, "C": 1, "B": 100, "D": 200}


def test_an_arrival_at_the_end_of_another_starts_at_once() -> None:
    """Performance scenario 6."""
    here = machine(EASY, 1)
    here.submit("A", 1, 10)
    here.decide()
    here.go_to(9)
    here.now = 10
    here.state.apply(WorkloadGone(WorkloadKey("ns/A")))
    here.submit("B", 1, 10)
    here.decide()
    assert here.starts == {"A": 0, "B": 10}


@pytest.mark.parametrize("rules", [EASY, CONSERVATIVE])
def test_a_reservation_of_part_of_a_node_leaves_the_rest_of_it(rules: Backfill) -> None:
    """Slurm scenario 8: six of eight GPUs are reserved, so two are free for others."""
    here = machine(rules, 8)
    here.submit("A", 4, 30)
    here.decide()
    here.submit("B", 6, 60)
    here.submit("C", 2, 60)
    here.submit("C2", 2, 25)
    here.go_to(0)
    assert here.reservations["B"] == 30
    assert here.starts == {"A": 0, "C": 0, "C2": 0}
    here.go_to(30)
    assert here.starts["B"] == 30


def test_every_pending_job_has_a_reservation_and_keeps_it() -> None:
    """Slurm scenario 7."""
    here = machine(CONSERVATIVE, 1, 1, 1, 1)
    here.submit("A", 1, 30, n=2)
    here.decide()
    for name, size, limit in (("B", 4, 60), ("C", 2, 20), ("D", 2, 60)):
        here.submit(name, 1, limit, n=size)
    here.go_to(0)
    assert here.starts == {"A": 0, "C": 0}
    assert here.reservations == {"B": 30, "D": 90}
    here.go_to(100)
    assert here.starts == {"A": 0, "C": 0, "B": 30, "D": 90}


def test_early_ends_bring_reservations_forward() -> None:
    here = machine(CONSERVATIVE, 1, 1, 1, 1)
    here.submit("A", 1, 30, n=2, run=10)
    here.decide()
    here.submit("B", 1, 60, n=4)
    here.submit("D", 1, 60, n=2)
    here.go_to(5)
    assert here.reservations == {"B": 30, "D": 90}
    here.go_to(10)
    assert here.starts == {"A": 0, "B": 10}
    assert here.reservations["D"] == 70


def test_jobs_that_never_fit_hold_up_no_others() -> None:
    here = machine(EASY, 4, 4)
    here.submit("A", 4, 100)
    here.decide()
    here.submit("giant", 8, 10)  # no node has eight
    here.submit("B", 4, 50, n=2)
    here.submit("C", 4, 200)
    here.go_to(0)
    assert here.reservations == {"B": 100}
    assert here.starts == {"A": 0}


def test_shortest_first() -> None:
    rules = Backfill(dates=1, shortest_first=True)
    here = machine(rules, 1, 1, 1)
    here.submit("A", 1, 100, n=2)
    here.decide()
    here.submit("B", 1, 100, n=3)
    here.submit("long", 1, 90)
    here.submit("short", 1, 20)
    here.go_to(0)
    assert here.starts == {"A": 0, "short": 0}


def test_an_arrival_of_higher_priority_takes_the_reservation() -> None:
    here = machine(EASY, 1, 1)
    here.submit("A", 1, 100)
    here.decide()
    here.submit("B", 1, 100, n=2)
    here.go_to(1)
    assert here.reservations == {"B": 100}
    here.submit("vip", 1, 10, n=2, priority=9)
    here.submit("small", 1, 50)
    here.go_to(2)
    assert here.reservations == {"B": 100, "vip": 100}
    assert here.starts == {"A": 0, "small": 2}
    here.go_to(100)
    assert here.starts["vip"] == 100


def test_a_group_that_would_delay_a_reservation_is_explained_without_evaluation() -> None:
    here = machine(EASY, 8)
    here.submit("A", 4, 10)
    here.submit("B", 1, 30)
    here.decide()
    here.submit("C", 8, 10)
    here.submit("D", 2, 90)
    here.submit("E", 2, 80)
    here.decide()
    for name, limit in (("D", 90), ("E", 80)):
        assert here.why(name) == WouldDelay(
            reserved_for=WorkloadKey("ns/C"), start=Instant(30 * SECOND), limit_ms=limit * SECOND
        )
    here.go_to(10)  # A has ended: the reservation is as before, and the verdict on D holds for E
    made = plan(here.state, Instant(11 * SECOND))
    assert not made.waits
    again = restore(snapshot(here.state))
    for name in ("C", "D", "E"):
        key = WorkloadKey(f"ns/{name}")
        assert explanation(again, key) == explanation(here.state, key)
    here.state.apply(WorkloadGone(WorkloadKey("ns/C")))
    here.submit("F", 8, 10, priority=1)
    here.submit("G", 2, 70)
    here.decide()
    assert here.starts.keys() == {"A", "B"}
    for name, limit in (("D", 90), ("E", 80), ("G", 70)):
        assert here.why(name) == WouldDelay(
            reserved_for=WorkloadKey("ns/F"), start=Instant(30 * SECOND), limit_ms=limit * SECOND
        )
    again = restore(snapshot(here.state))
    for name in ("D", "E", "F", "G"):
        key = WorkloadKey(f"ns/{name}")
        assert explanation(again, key) == explanation(here.state, key)


@pytest.mark.parametrize("nodes", [(8,), (4, 4)])
def test_reports_the_reservation_once_quota_no_longer_blocks(
    nodes: tuple[int, ...],
) -> None:
    """A verdict on the first of a group does not hold for the others if the reason changes."""
    here = machine(EASY, *nodes)
    here.submit("A", 1, 100)
    here.decide()
    here.submit("all", 8 // len(nodes), 10, n=len(nodes))
    here.submit("long", 1, 200)
    here.submit("short", 1, 20, n=7)
    here.decide()
    assert here.starts.keys() == {"A", "short"}
    here.submit("more", 1, 300)
    here.decide()
    for name in ("more", "long"):  # until shorter jobs took the rest
        why = here.why(name)
        assert isinstance(why, QuotaExhausted)
        assert (why.wanted, why.available) == (1, 0)
    here.go_to(20)  # seven GPUs are free again
    for name, limit in (("long", 200), ("more", 300)):
        assert here.why(name) == WouldDelay(
            reserved_for=WorkloadKey("ns/all"), start=Instant(100 * SECOND), limit_ms=limit * SECOND
        )
    again = restore(snapshot(here.state))
    for name in ("long", "more"):
        key = WorkloadKey(f"ns/{name}")
        assert explanation(again, key) == explanation(here.state, key)


@pytest.mark.parametrize("rules", [EASY, CONSERVATIVE])
@pytest.mark.parametrize("size", [1, 4])
def test_a_reservation_waits_for_terminating_pods_of_ended_jobs(rules: Backfill, size: int) -> None:
    here = machine(rules, 8, 8)
    here.submit("A", 8, 100, n=2)
    here.decide()
    here.submit("B", size, 10, n=16 // size)
    here.go_to(1)
    assert here.reservations == {"B": 100}
    here.now = 50
    here.state.apply(TimePassed(Instant(50 * SECOND)))
    here.state.apply(WorkloadGone(WorkloadKey("ns/A")))
    for number, leaves_s in enumerate((60, 80)):
        pod = NodePod(
            key=f"ns/A-{number}",
            node=NodeName(f"n{number}"),
            requests=amounts({"gpu": 8}),
            leaves_at=Instant(leaves_s * SECOND),
        )
        here.state.apply(PodOnNode(pod))
    here.decide()
    assert (here.reservations["B"], "B" in here.starts) == (80, False)
    # It is overdue, but not by so much that its nodes are given up.
    here.now = 90
    here.state.apply(TimePassed(Instant(90 * SECOND)))
    here.state.apply(PodGone("ns/A-0"))
    here.decide()
    assert (here.reservations["B"], "B" in here.starts) == (90, False)
    here.state.apply(PodGone("ns/A-1"))
    here.decide()
    assert here.starts["B"] == 90


def test_no_reservation_counts_on_a_pod_that_hangs() -> None:
    here = machine(EASY, 8)
    hanging = NodePod(
        key="ns/old", node=NodeName("n0"), requests=amounts({"gpu": 8}), leaves_at=Instant(0)
    )
    here.state.apply(PodOnNode(hanging))
    here.submit("B", 8, 10)
    here.go_to(30)
    assert "B" in here.reservations
    here.reservations.clear()
    here.submit("C", 8, 10)
    here.go_to(90)
    assert here.reservations == {}


@pytest.mark.parametrize("nodes", [(4, 4), ()], ids=["nodes", "quota alone"])
@pytest.mark.parametrize("rules", [EASY, CONSERVATIVE], ids=["EASY", "conservative"])
def test_a_slice_that_was_replaced_in_this_cycle_does_not_end_a_second_time(
    rules: Backfill, nodes: tuple[int, ...]
) -> None:
    here = machine(rules, *nodes)
    if not nodes:
        here.state = restore(world(queue("q", "8"), policy=Policy(backfill=rules)))
    here.submit("small", 2, 100)
    here.submit("long", 2, 500)
    here.decide()
    grown = Workload(
        key=WorkloadKey("ns/grown"),
        uid="grown",
        queue=LocalQueueKey("ns/q"),
        pod_sets=(pods(2, {"gpu": 2}),),
        time_limit_ms=400 * SECOND,
        replaces=WorkloadKey("ns/small"),
        priority=1,
    )
    here.state.apply(WorkloadWaits(grown))
    here.submit("next", 4, 100)
    made = plan(here.state, Instant(SECOND))
    assert [admit.workload for admit in made.admissions] == ["ns/grown"]
    # Only when "grown" ends are there four GPUs: at 100 nothing does.
    assert [(reserved.workload, reserved.start) for reserved in made.reservations] == [
        ("ns/next", 401 * SECOND)
    ]


@pytest.mark.parametrize("dates", [1, None])
def test_stopped_queue_starts_nothing_until_it_is_open(dates: int | None) -> None:
    """Found by the judge of explanations: plans started workloads of closed queues."""
    state = restore(
        world(
            queue("q", stop="Hold"),
            policy=Policy(backfill=Backfill(dates=dates)),
            waiting=(job("a", "q"),),
        )
    )
    assert dry_run(state, state.now) == []
    state.apply(WorkloadWaits(job("b", "q")))
    assert dry_run(state, state.now) == []
    state.apply(QueueSet(queue("q")))
    started = [one.workload for made in dry_run(state, state.now) for one in made.admissions]
    assert started == ["ns/a", "ns/b"]
