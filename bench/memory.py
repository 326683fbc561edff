"""What a workload weighs in the engine, beyond the manifest that somebody else keeps.

Counted is everything that Python allocates from the moment at which the first workload is made:
the engine's `Workload` with its strings (key, identity and local queue are distinct strings for
each, as if decoded from manifests), its place in every index and line, its share of shapes, menus,
verdicts and wake lists. Not counted is the cluster's configuration, and what the allocator keeps
in reserve. A backlog is weighed twice: when it has just arrived, and when all of it was examined
and is parked under what would unblock it.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass

from bench.harness import Finding, Row, Scale, figures, target
from bench.worlds import (
    GPUS_OWNED,
    Layout,
    backlog,
    empty_cluster,
    fill,
    holding,
    pods,
    settle,
    submit,
    workload,
)
from unisono.engine.state import changes
from unisono.engine.state.cluster import ClusterState

MOST_BYTES = 1536


@dataclass(frozen=True)
class Sizes:
    """How many workloads, over how many queues."""

    workloads: int
    queues: int


SIZES: dict[Scale, Sizes] = {
    "full": Sizes(100_000, 5_000),
    "quick": Sizes(10_000, 500),
    "tiny": Sizes(40, 4),
}


def measure(scale: Scale) -> Iterator[Finding]:
    """Weigh pending and admitted workloads."""
    sizes = SIZES[scale]
    tracemalloc.start()
    try:
        fresh, parked = _pending(sizes)
        yield fresh
        yield parked
        yield _admitted(sizes)
    finally:
        tracemalloc.stop()
    for measured in (fresh, parked):
        yield target(measured.what, measured, MOST_BYTES, scale=scale, better="below")


def _pending(sizes: Sizes) -> tuple[Row, Row]:
    state = empty_cluster(Layout(sizes.queues))
    fill(state, range(sizes.queues))
    before = _allocated()
    submit(state, backlog(sizes.workloads, sizes.queues))
    fresh = _allocated() - before
    settle(state)
    parked = _allocated() - before
    assert len(state.waiting) == sizes.workloads, "nobody fits"
    return (
        _row("a pending workload, just arrived", sizes.workloads, "pending", fresh),
        _row("a pending workload, parked", sizes.workloads, "pending", parked),
    )


def _admitted(sizes: Sizes) -> Row:
    state = empty_cluster(Layout(sizes.queues, gpus=GPUS_OWNED * sizes.workloads))
    before = _allocated()
    _hold(state, sizes)
    weight = _allocated() - before
    return _row("an admitted workload", sizes.workloads, "admitted", weight)


def _hold(state: ClusterState, sizes: Sizes) -> None:
    for number in range(sizes.workloads):
        queue = number % sizes.queues
        held = workload(number, queue, pods(1, 1), prefix="held")
        state.apply(changes.WorkloadHolds(holding(held, queue)))


def _allocated() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def _row(what: str, n: int, of: str, total: int) -> Row:
    return figures(what, n, of, [total / n], "B")
