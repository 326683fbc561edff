"""What a workload weighs in the engine, beyond the manifest, which the API server keeps.

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
    Layout,
    admitted_workload,
    backlog,
    empty_cluster,
    fill,
    pods,
    settle,
    submit,
    workload,
)
from unisono.engine.state import changes

MOST_BYTES = 1536


@dataclass(frozen=True)
class Sizes:
    """How many workloads just arrived; how many are parked, or admitted."""

    arrived: int
    settled: int


# A figure for one workload does not depend on how many there are, and tracing makes cycles slow.
SIZES: dict[Scale, Sizes] = {
    "full": Sizes(100_000, 20_000),
    "quick": Sizes(10_000, 2_000),
    "tiny": Sizes(40, 20),
}
IN_A_QUEUE = 20


def measure(scale: Scale) -> Iterator[Finding]:
    """Weigh pending and admitted workloads."""
    sizes = SIZES[scale]
    tracemalloc.start()
    try:
        arrived = _pending("just arrived", sizes.arrived, decided=False)
        parked = _pending("parked", sizes.settled, decided=True)
        admitted = _admitted(sizes.settled)
    finally:
        tracemalloc.stop()
    yield from (arrived, parked, admitted)
    for measured in (arrived, parked):
        yield target(measured.what, measured, MOST_BYTES, better="below")


def _pending(name: str, count: int, *, decided: bool) -> Row:
    """Weigh a backlog, with or without the verdicts on it."""
    queues = count // IN_A_QUEUE
    state = empty_cluster(Layout(queues))
    fill(state, range(queues))
    before = _allocated()
    submit(state, backlog(count, queues))
    if decided:
        settle(state)
    assert len(state.waiting) == count, "nothing fits"
    return _row(f"a pending workload, {name}", count, "pending", _allocated() - before)


def _admitted(count: int) -> Row:
    """Weigh workloads that hold quota."""
    queues = count // IN_A_QUEUE
    state = empty_cluster(Layout(queues))
    before = _allocated()
    for number in range(count):
        held = workload(number, number % queues, pods(1, 1), prefix="held")
        state.apply(changes.WorkloadHolds(admitted_workload(held, number % queues)))
    return _row("an admitted workload", count, "admitted", _allocated() - before)


def _allocated() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def _row(what: str, n: int, of: str, total: int) -> Row:
    return figures(what, n, of, [total / n], "B")
