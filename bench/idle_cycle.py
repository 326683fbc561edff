"""Cycles that can admit nothing, on a full cluster with a backlog that does not fit.

    nothing changed       nothing is evaluated
    small release         one GPU was freed and no workload can use it: the first cycle after,
                          and all cycles until nothing changes
    every head            a flavor was set anew, so every queue is looked at as if for the first
                          time: drawing the consequences (`reopen`), and one cycle over all heads

The number of queues grows with the backlog: twenty workloads wait in a queue.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass

from bench.harness import Finding, Row, Scale, repeated, row, seconds, target
from bench.worlds import (
    FLAVOR,
    NO_PREEMPTION,
    PREEMPTION,
    Form,
    Layout,
    cycle,
    full_cluster,
    settle,
    small_holder,
)
from unisono.engine.model.queue import Flavor, PreemptionRules
from unisono.engine.state import changes
from unisono.engine.state.cluster import ClusterState

IDLE_MS = 50
IN_A_QUEUE = 20


@dataclass(frozen=True)
class Sizes:
    """Lengths of the backlog, smallest first."""

    pending: tuple[int, ...]
    samples: int


SIZES: dict[Scale, Sizes] = {
    "full": Sizes((1_000, 10_000, 100_000), 30),
    "quick": Sizes((400, 2_000), 5),
    "tiny": Sizes((20, 40), 3),
}
STATES: tuple[tuple[str, Form, PreemptionRules], ...] = (
    ("flat", "flat", NO_PREEMPTION),
    ("deep", "deep", NO_PREEMPTION),
    ("deep, preempting", "deep", PREEMPTION),
)


def measure(scale: Scale) -> Iterator[Finding]:
    """Measure idle cycles on states of growing size."""
    sizes = SIZES[scale]
    for name, form, rules in STATES:
        found: list[Row] = []
        for pending in sizes.pending:
            state = full_cluster(Layout(pending // IN_A_QUEUE, form, rules=rules), pending)
            gc.collect()
            found = [*_rows(state, f"({name})", pending, sizes.samples)]
            yield from found
        for measured in found[:2] + found[-1:]:
            what = f"cycle, {measured.what}"
            yield target(what, measured, IDLE_MS, better="below")


def _rows(state: ClusterState, where: str, pending: int, samples: int) -> Iterator[Row]:
    taken = repeated(lambda: seconds(lambda: cycle(state)), samples=samples)
    yield row(f"nothing changed {where}", pending, "pending", taken, "ms")
    first, all_of_them = _after_small_releases(state, samples)
    yield row(f"small release {where}", pending, "pending", first, "ms")
    yield row(f"small release, until settled {where}", pending, "pending", all_of_them, "ms")
    reopened, heads = _after_flavor_was_set(state)
    yield row(f"every head, reopen {where}", pending, "pending", reopened, "ms")
    yield row(f"every head {where}", pending, "pending", heads, "ms")


def _after_small_releases(state: ClusterState, samples: int) -> tuple[list[float], list[float]]:
    """Free one GPU in one queue after the other; each is taken back afterwards."""
    queues = iter(range(len(state.queues)))
    first: list[float] = []

    def once() -> float:
        key = small_holder(next(queues))
        admitted = state.running[key].admitted
        state.apply(changes.WorkloadGone(key))
        first.append(seconds(lambda: cycle(state)))
        taken = first[-1] + seconds(lambda: settle(state))
        state.apply(changes.WorkloadHolds(admitted))
        settle(state)
        return taken

    waiting = len(state.waiting)
    all_of_them = repeated(once, samples=min(samples, len(state.queues)), fewest=2)
    assert len(state.waiting) == waiting, "one GPU is too little for any of them"
    return first, all_of_them


def _after_flavor_was_set(state: ClusterState) -> tuple[list[float], list[float]]:
    """Wake all pending workloads by a change of configuration."""
    reopened: list[float] = []

    def once() -> float:
        state.apply(changes.FlavorSet(Flavor(name=FLAVOR)))
        reopened.append(seconds(state.refresh))
        return seconds(lambda: cycle(state))

    return reopened, repeated(once, samples=5, fewest=2)
