"""Jobs with a range of time limits: planned with the least, started with what is allowed."""

from __future__ import annotations

import pytest

from tests.support.quota_builders import pods, queue
from tests.support.quota_builders import snapshot as world
from unisono.engine.audit import audit
from unisono.engine.cluster import restore
from unisono.engine.cycle import plan
from unisono.engine.model.names import Instant, LocalQueueKey, NodeName, WorkloadKey
from unisono.engine.model.node import Node
from unisono.engine.model.plan import Admit, Plan
from unisono.engine.model.policy import Backfill, Policy
from unisono.engine.model.resources import amounts
from unisono.engine.model.workload import Workload
from unisono.engine.state.apply_plan import apply_plan
from unisono.engine.state.changes import WorkloadWaits
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import snapshot

MINUTE = 60_000
KINDS = [None, Backfill(dates=1), Backfill()]


def _state(rules: Backfill | None) -> ClusterState:
    nodes = tuple(Node(name=NodeName(f"n{i}"), allocatable=amounts({"gpu": 8})) for i in range(2))
    return restore(world(queue("q", "16"), policy=Policy(backfill=rules), nodes=nodes))


def _job(name: str, n: int, limit: int, least: int | None = None, priority: int = 0) -> Workload:
    return Workload(
        key=WorkloadKey(f"ns/{name}"),
        uid=name,
        queue=LocalQueueKey("ns/q"),
        pod_sets=(pods(n, {"gpu": 8}),),
        time_limit_ms=limit * MINUTE,
        least_limit_ms=None if least is None else least * MINUTE,
        priority=priority,
    )


def _decided(state: ClusterState, now: int = 0) -> Plan:
    made = plan(state, Instant(now * MINUTE))
    assert audit(snapshot(state), made) == ()
    apply_plan(state, made)
    return made


def _admitted(made: Plan, name: str) -> Admit:
    (found,) = [one for one in made.admissions if one.workload == f"ns/{name}"]
    return found


@pytest.mark.parametrize("rules", KINDS)
def test_an_idle_cluster_grants_the_longest_limit(rules: Backfill | None) -> None:
    state = _state(rules)
    state.apply(WorkloadWaits(_job("a", 1, limit=600, least=10)))
    assert _admitted(_decided(state), "a").limit_ms == 600 * MINUTE
    held = state.running[WorkloadKey("ns/a")].admitted.workload
    assert held.longest_ms == 600 * MINUTE


@pytest.mark.parametrize("rules", KINDS[1:])
def test_grants_what_is_left_before_a_reservation(rules: Backfill) -> None:
    state = _state(rules)
    state.apply(WorkloadWaits(_job("runs", 1, limit=30)))
    _decided(state)
    state.apply(WorkloadWaits(_job("big", 2, limit=60, priority=9)))
    state.apply(WorkloadWaits(_job("fixed", 1, limit=600)))
    state.apply(WorkloadWaits(_job("open", 1, limit=600, least=10)))
    made = _decided(state)
    assert [one.workload for one in made.admissions] == ["ns/open"]
    assert _admitted(made, "open").limit_ms == 30 * MINUTE
    (reserved,) = [one for one in made.reservations if one.workload == "ns/big"]
    assert reserved.start == 30 * MINUTE


@pytest.mark.parametrize("rules", KINDS[1:])
def test_waits_where_not_even_the_least_limit_is_left(rules: Backfill) -> None:
    state = _state(rules)
    state.apply(WorkloadWaits(_job("runs", 1, limit=30)))
    _decided(state)
    state.apply(WorkloadWaits(_job("big", 2, limit=60, priority=9)))
    state.apply(WorkloadWaits(_job("open", 1, limit=600, least=31)))
    assert _decided(state).admissions == ()
