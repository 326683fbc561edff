"""Counted gangs: what a pod needs is found out once, and is right for gangs of every size."""

from __future__ import annotations

from tests.support.quota_builders import job, pods, queue
from tests.support.quota_builders import snapshot as world
from unisono.engine.backfill.counted_gang import CountedGang, counted_gang
from unisono.engine.cluster import restore
from unisono.engine.model.names import NodeName
from unisono.engine.model.node import Node
from unisono.engine.model.policy import Backfill, Policy
from unisono.engine.model.resources import amounts
from unisono.engine.state.changes import NodeSet, WorkloadWaits
from unisono.engine.state.cluster import ClusterState

POLICY = Policy(backfill=Backfill(dates=1))


def _cluster() -> ClusterState:
    state = restore(world(queue("q", "9"), policy=POLICY))
    for number in range(3):
        has = amounts({"gpu": 4})
        state.apply(NodeSet(Node(name=NodeName(f"n{number}"), allocatable=has)))
    return state


def _counted(state: ClusterState, size: int, gpus: int) -> CountedGang | None:
    name = f"{size}-of-{gpus}"
    state.apply(WorkloadWaits(job(name, "q", pod_sets=(pods(size, {"gpu": gpus}),))))
    waiting = state.waiting[job(name, "q").key]
    group = state.timeline.group_of(waiting)
    assert group is not None
    return counted_gang(state, group, waiting)


def _fields(counted: CountedGang | None) -> tuple[object, ...] | None:
    if counted is None:
        return None
    cells = [(cell.flavor_resource, amount) for cell, amount in counted.cells]
    assert cells == [*counted.charges]
    return (
        (counted.pods, counted.admission_count, counted.pod_set, counted.flavor, counted.flavors),
        (cells, counted.columns, counted.requests, counted.levels, counted.is_best_fit),
        (counted.allowed.tolist(), counted.capacity.free, counted.capacity.requests),
    )


def test_each_size_is_counted_as_on_its_own() -> None:
    shared = _cluster()
    for size, gpus in [(2, 1), (1, 1), (9, 1), (3, 2), (1, 2), (10, 1), (5, 2), (2, 1)]:
        found = _counted(shared, size, gpus)
        assert _fields(found) == _fields(_counted(_cluster(), size, gpus))
        assert (found is None) == (size * gpus > 9)  # more than the queue may ever use
        assert found is None or found.charges[0][1] == size * gpus


def test_gangs_of_all_sizes_share_capacity_and_request() -> None:
    state = _cluster()
    one, other = _counted(state, 1, 1), _counted(state, 4, 1)
    assert one is not None
    assert other is not None
    assert one.capacity is other.capacity
    assert one.requests is other.requests
