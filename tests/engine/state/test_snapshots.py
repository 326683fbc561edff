"""A snapshot says everything that the next decision depends on."""

from __future__ import annotations

import msgspec

from tests.support import state_laws
from tests.support.quota_builders import job, queue, running
from tests.support.quota_builders import snapshot as world
from tests.support.state_laws import Deeds, at_rest, reactions
from unisono.engine.cluster import restore
from unisono.engine.cycle import plan
from unisono.engine.dry_run import leave
from unisono.engine.explain.waiting import explanations
from unisono.engine.model.names import Instant, QueueName, WorkloadKey
from unisono.engine.model.policy import AdmissionFairSharing, PodsReady, Policy
from unisono.engine.model.queue import LocalQueue, PreemptionRules
from unisono.engine.model.snapshot import Namespace, Snapshot
from unisono.engine.state.apply_plan import apply_plan
from unisono.engine.state.changes import (
    Change,
    LocalQueueSet,
    NamespaceSet,
    QueueSet,
    TimePassed,
    WorkloadGone,
    WorkloadHolds,
    WorkloadWaits,
)
from unisono.engine.state.snapshots import snapshot

NOW = Instant(0)
WITHIN = PreemptionRules(within_queue="LowerPriority")


def test_a_snapshot_is_a_file() -> None:
    state = at_rest(
        world(
            queue("q", "4", preemption=WITHIN),
            admitted_workloads=(running(job("h", "q", 4)),),
            waiting=(job("w", "q", 4), job("big", "q", 9)),
        )
    )
    recorded = snapshot(state)
    assert recorded.verdicts
    assert msgspec.json.decode(msgspec.json.encode(recorded), type=Snapshot) == recorded
    state_laws.check_snapshot(state, NOW)


def test_claims_of_a_preemptor_survive_a_restart() -> None:
    """mid preempted low; hi, which came later, does not get the place (spec quota §18.2a)."""
    state = restore(
        world(
            queue("q", "4", preemption=WITHIN),
            admitted_workloads=(running(job("low", "q", 4)),),
            waiting=(job("mid", "q", 4, priority=5),),
        )
    )
    apply_plan(state, plan(state, NOW))
    state.apply(WorkloadWaits(job("hi", "q", 4, priority=9)))
    assert snapshot(state).preemptors == (WorkloadKey("ns/mid"),)
    state = restore(snapshot(state))
    leave(state, WorkloadKey("ns/low"), NOW)
    assert [admit.workload for admit in plan(state, NOW).admissions] == ["ns/mid"]


def test_recent_usage_survives_a_restart() -> None:
    hour = 3600 * 1000
    policy = Policy(admission_fair_sharing=AdmissionFairSharing(half_life_ms=hour))
    local_queues = tuple(
        LocalQueue(key=job("w", name).queue, queue=QueueName("q")) for name in "xy"
    )
    state = at_rest(
        world(
            queue("q", "4", usage_based_admission=True),
            policy=policy,
            local_queues=local_queues,
            waiting=(job("x1", "x", 4),),
        )
    )
    assert snapshot(state).local_queues[0].penalty_micro
    later = Instant(hour)
    reactions(state, TimePassed(later), WorkloadGone(WorkloadKey("ns/x1")), now=later)
    state = restore(snapshot(state))
    arrivals = [WorkloadWaits(job(f"{name}2", name, 4)) for name in "xy"]
    assert reactions(state, *arrivals, now=later) == Deeds(["y2"], [])


def test_consequences_are_drawn_before_anything_is_recorded() -> None:
    """A refusal that a configuration change has made void is not in the snapshot."""
    state = at_rest(world(queue("q", "0"), waiting=(job("w", "q"),)))
    assert snapshot(state).verdicts
    state.apply(NamespaceSet(Namespace("ns")))
    assert not snapshot(state).verdicts
    state_laws.check_snapshot(state, NOW)


def test_the_order_of_events_is_not_recorded() -> None:
    """Neither in which workloads are not ready, nor in why one is stopped."""
    blocking = Policy(pods_ready=PodsReady(block_admission=True))
    a, b = queue("a", "4", "all"), queue("b", "4", "all")
    stop_a = QueueSet(msgspec.structs.replace(a, stop="HoldAndDrain"))
    local_queue_a = LocalQueue(key=job("x", "a").queue, queue=a.name, stop="HoldAndDrain")
    told: list[Change] = [
        WorkloadHolds(running(job("a1", "a", 1), ready=False)),
        WorkloadHolds(running(job("b1", "b", 1), ready=False)),
        stop_a,
        LocalQueueSet(local_queue_a),
        QueueSet(msgspec.structs.replace(b, weight_milli=2000)),
    ]
    encoded = set()
    for order in (told, told[::-1]):
        state = restore(world(a, b, policy=blocking, waiting=(job("w", "b", 1),)))
        for change in order:
            state.apply(change)
            plan(state, NOW)
        encoded.add(msgspec.json.encode(plan(state, NOW)))
    assert len(encoded) == 1


def test_every_pending_workload_is_explained_once() -> None:
    jobs = (job("one", "q", 9), job("two", "q", 1), job("three", "nowhere", 1))
    state = at_rest(world(queue("q", "0"), waiting=jobs))
    found = [each.workload for each in explanations(state)]
    assert sorted(found) == sorted(each.key for each in jobs)
