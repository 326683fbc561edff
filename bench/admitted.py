"""Cycles and events against the number of admitted workloads.

A hundred queues are full of one-GPU workloads and a thousand more wait. What happens to one of them
must not cost more because many others run.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from bench.harness import Finding, Scale, repeated, row, seconds
from bench.worlds import (
    Layout,
    admitted_workload,
    cycle,
    empty_cluster,
    pods,
    settle,
    submit,
    workload,
)
from unisono.engine.state import changes
from unisono.engine.state.cluster import ClusterState


@dataclass(frozen=True)
class Sizes:
    """How many are admitted, how many wait, in how many queues."""

    admitted: tuple[int, ...]
    pending: int
    queues: int
    samples: int


SIZES: dict[Scale, Sizes] = {
    "full": Sizes((100, 1_000, 10_000, 50_000), 1_000, 100, 300),
    "quick": Sizes((100, 1_000, 5_000), 200, 100, 100),
    "tiny": Sizes((4, 8), 8, 2, 3),
}


def measure(scale: Scale) -> Iterator[Finding]:
    """Let workloads come and go among more and more others."""
    sizes = SIZES[scale]
    for admitted in sizes.admitted:
        state = _cluster(admitted, sizes)
        gc.collect()
        idle = repeated(partial(seconds, partial(cycle, state)), samples=sizes.samples)
        finishes, cycles, submits = _turnover(state, sizes)
        yield row("submit", admitted, "admitted", submits, "us")
        yield row("finish", admitted, "admitted", finishes, "us")
        yield row("cycle that admits one", admitted, "admitted", cycles, "us")
        yield row("cycle that evaluates nothing", admitted, "admitted", idle, "us")


def _cluster(admitted: int, sizes: Sizes) -> ClusterState:
    state = empty_cluster(Layout(sizes.queues, gpus=admitted // sizes.queues))
    for number in range(admitted):
        held = workload(number, number % sizes.queues, pods(1, 1), prefix="held")
        state.apply(changes.WorkloadHolds(admitted_workload(held, number % sizes.queues)))
    submit(
        state,
        (workload(number, number % sizes.queues, pods(1, 1)) for number in range(sizes.pending)),
    )
    settle(state)
    assert len(state.running) == admitted, "the cluster is full"
    return state


def _turnover(state: ClusterState, sizes: Sizes) -> tuple[list[float], list[float], list[float]]:
    """Let one finish, one start in its place, and one more arrive, over and over."""
    leaving = [*state.running]
    finishes: list[float] = []
    cycles: list[float] = []
    submits: list[float] = []
    for number in range(min(sizes.samples, len(leaving))):
        gone = changes.WorkloadGone(leaving[number])
        finishes.append(seconds(partial(state.apply, gone)))
        cycles.append(seconds(lambda: cycle(state)))
        settle(state)
        more = workload(number, number % sizes.queues, pods(1, 1), prefix="more")
        waits = changes.WorkloadWaits(more)
        submits.append(seconds(partial(state.apply, waits)))
        settle(state)
    assert len(state.running) == len(leaving), "every workload that ended was replaced"
    return finishes, cycles, submits
