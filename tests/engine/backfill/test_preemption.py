"""Backfill and preemption together: no victim is freed twice, and preemption ends."""

from __future__ import annotations

import pytest

from tests.support.quota_builders import job, pods, queue
from tests.support.quota_builders import snapshot as world
from unisono.engine.cluster import restore
from unisono.engine.dry_run import dry_run
from unisono.engine.model.names import Instant, NodeName, WorkloadKey
from unisono.engine.model.node import Node
from unisono.engine.model.policy import Backfill, Policy
from unisono.engine.model.queue import PreemptionRules
from unisono.engine.model.resources import amounts
from unisono.engine.model.workload import Workload
from unisono.engine.state.changes import QueueSet, WorkloadWaits

RECLAIMS = PreemptionRules(within_queue="LowerPriority", reclaim="Any")
RULES = [Backfill(dates=1), Backfill(dates=2), Backfill()]


def asking(name: str, of: str, gpus: int, at: int, priority: int = 0) -> Workload:
    """Return a job of one-GPU pods that was submitted at an instant and runs for a minute."""
    return job(
        name,
        of,
        pod_sets=(pods(gpus, {"gpu": 1}),),
        created_at=Instant(at),
        priority=priority,
        time_limit_ms=60_000,
    )


@pytest.mark.parametrize("rules", RULES)
def test_quota_is_reclaimed_once_although_the_victim_came_first(rules: Backfill) -> None:
    state = restore(
        world(
            queue("a", "4", "all", preemption=RECLAIMS),
            queue("b", "4", "all"),
            policy=Policy(backfill=rules),
            nodes=tuple(
                Node(name=NodeName(f"n{number}"), allocatable=amounts({"gpu": 4}))
                for number in range(2)
            ),
            waiting=(asking("b1", "b", 4, 0), asking("b2", "b", 4, 1)),
        )
    )
    dry_run(state, Instant(10))
    assert sorted(state.running) == ["ns/b1", "ns/b2"]
    for number in range(3):
        state.apply(WorkloadWaits(asking(f"a{number}", "a", 4, 20 + number)))
    plans = dry_run(state, Instant(30), most_cycles=20)
    assert len(plans) < 20, "they displace each other for ever"
    assert WorkloadKey("ns/a0") in state.running
    assert len(state.running) == 2


@pytest.mark.parametrize("rules", RULES)
def test_two_preemptors_do_not_count_on_one_victim_twice(rules: Backfill) -> None:
    state = restore(
        world(
            queue("a", "4", preemption=RECLAIMS),
            policy=Policy(backfill=rules),
            nodes=(Node(name=NodeName("n"), allocatable=amounts({"gpu": 4})),),
            waiting=(asking("low", "a", 4, 0),),
        )
    )
    dry_run(state, Instant(10))
    for number in range(3):
        state.apply(WorkloadWaits(asking(f"high{number}", "a", 3, 20 + number, priority=5)))
    plans = dry_run(state, Instant(30), most_cycles=20)
    assert len(plans) < 20
    assert sorted(state.running) == ["ns/high0"]


def test_a_job_without_pods() -> None:
    state = restore(
        world(
            queue("a", "4"),
            policy=Policy(backfill=Backfill()),
            nodes=(Node(name=NodeName("n"), allocatable=amounts({"gpu": 4})),),
            waiting=(asking("full", "a", 4, 0), asking("none", "a", 0, 1)),
        )
    )
    dry_run(state, Instant(10))
    assert sorted(state.running) == ["ns/full", "ns/none"]


@pytest.mark.parametrize("rules", RULES)
def test_changed_preemption_rules_hold_for_pending_jobs(rules: Backfill) -> None:
    nodes = (Node(name=NodeName("n"), allocatable=amounts({"gpu": 4})),)
    state = restore(
        world(
            queue("a", "4"),
            policy=Policy(backfill=rules),
            nodes=nodes,
            waiting=(asking("low", "a", 4, 0),),
        )
    )
    dry_run(state, Instant(10))
    state.apply(WorkloadWaits(asking("high", "a", 4, 20, priority=1)))
    dry_run(state, Instant(30))
    assert [*state.running] == ["ns/low"]
    state.apply(QueueSet(queue("a", "4", preemption=RECLAIMS)))
    dry_run(state, Instant(40), most_cycles=20)
    assert [*state.running] == ["ns/high"]
