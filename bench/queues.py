"""One cycle against the number of queues: every queue has a head, and all are decided.

admit      every head fits: the time to plan, and the time to file the plan
refuse     the cluster is full: no head fits
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from functools import partial
from typing import get_args

from bench.harness import Finding, Scale, repeated, row, seconds
from bench.worlds import (
    FLAVOR,
    Form,
    Layout,
    backlog,
    cycle,
    empty_cluster,
    full_cluster,
    submit,
)
from unisono.engine.cycle import plan
from unisono.engine.model.queue import Flavor
from unisono.engine.state import changes
from unisono.engine.state.apply_plan import apply_plan

SIZES: dict[Scale, tuple[int, ...]] = {
    "full": (10, 100, 1_000, 5_000),
    "quick": (10, 100, 500),
    "tiny": (2, 4),
}
ROOM = 1 << 40
CYCLES = 3


def measure(scale: Scale) -> Iterator[Finding]:
    """Measure cycles over more and more heads."""
    forms: tuple[Form, ...] = get_args(Form)
    for form in forms:
        for queues in SIZES[scale]:
            plans, filings = _admitting(Layout(queues, form, gpus=ROOM))
            yield row(f"admit all heads, plan ({form})", queues, "queues", plans, "ms")
            yield row(f"admit all heads, file ({form})", queues, "queues", filings, "ms")
            refused = _refusing(Layout(queues, form))
            yield row(f"refuse all heads ({form})", queues, "queues", refused, "ms")


def _admitting(layout: Layout) -> tuple[list[float], list[float]]:
    """Admit one workload in every queue, a few times."""
    state = empty_cluster(layout)
    submit(state, backlog(CYCLES * layout.queues, layout.queues))
    gc.collect()
    plans: list[float] = []
    filings: list[float] = []
    for _ in range(CYCLES):
        plans.append(seconds(lambda: plan(state, state.now)))
        made = plan(state, state.now)
        filings.append(seconds(partial(apply_plan, state, made)))
    assert not state.waiting, "there is room for all"
    return plans, filings


def _refusing(layout: Layout) -> list[float]:
    """Look at every head of a full cluster."""
    state = full_cluster(layout, layout.queues)
    gc.collect()

    def once() -> float:
        state.apply(changes.FlavorSet(Flavor(name=FLAVOR)))
        state.refresh()
        return seconds(lambda: cycle(state))

    return repeated(once, samples=CYCLES)
