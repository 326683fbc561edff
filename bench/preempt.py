"""One preemption search: a cycle with one head and very many workloads that it may displace.

    own queue   all candidates run in the head's queue, with a lower priority
    reclaim     a hundred queues have borrowed everything that the head's queue owns
    fair        all quota belongs to the cohort; other queues use all of it, the head's nothing

Every candidate holds one GPU. The head asks for eight, or for so many that every search is at its
longest: all of them, or under fair sharing an equal share.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from bench.harness import Finding, Row, Scale, growth_target, repeated, row, seconds, series, target
from bench.worlds import (
    PREEMPTION,
    Layout,
    admitted_workload,
    empty_cluster,
    pods,
    submit,
    workload,
)
from unisono.engine.cycle import plan
from unisono.engine.model.policy import FairSharing, Policy
from unisono.engine.model.queue import PreemptionRules
from unisono.engine.state import changes
from unisono.engine.state.cluster import ClusterState

FEW = 8
SEARCH_MS = 20  # for few victims among the most candidates
MOST_GROWTH = 1.1
WITHIN = PreemptionRules(within_queue="LowerPriority")
FAIR = Policy(fair_sharing=FairSharing())


@dataclass(frozen=True)
class Sizes:
    """How many candidates; how many other queues hold them, and under fair sharing."""

    candidates: tuple[int, ...]
    queues: int
    sharers: int


SIZES: dict[Scale, Sizes] = {
    "full": Sizes((100, 1_000, 3_000, 10_000), 100, 10),
    "quick": Sizes((100, 1_000), 100, 10),
    "tiny": Sizes((10, 20), 2, 2),
}


def measure(scale: Scale) -> Iterator[Finding]:
    """Search among more and more candidates."""
    rows = [*_searches(SIZES[scale])]
    yield from rows
    for same in series(rows):
        what = same[0].what
        if not what.endswith("most victims"):
            yield target(f"search, {what}", same[-1], SEARCH_MS, better="below")
        yield growth_target(f"growth, {what}", same, MOST_GROWTH)


def _searches(sizes: Sizes) -> Iterator[Row]:
    for many in sizes.candidates:
        alone = Layout(1, gpus=many, rules=WITHIN)
        state = _crowded(alone, many, first_queue=0)
        yield from _rows(state, "own queue", many, most=many)
        state = _crowded(_lending(sizes.queues, many), many, first_queue=1)
        yield from _rows(state, f"reclaim from {sizes.queues}", many, most=many)
        state = _crowded(_sharing(sizes.sharers, many), many, first_queue=1, policy=FAIR)
        yield from _rows(state, f"fair, {sizes.sharers} others", many, most=_share(sizes, many))


def _lending(others: int, gpus: int) -> Layout:
    """Let queue 0 own everything, in one cohort with queues that own nothing."""
    size = others + 1
    return Layout(size, cohort_size=size, gpus=0, lender_gpus=gpus, rules=PREEMPTION)


def _sharing(others: int, gpus: int) -> Layout:
    """Let the cohort own everything."""
    size = others + 1
    return Layout(size, cohort_size=size, gpus=0, cohort_gpus=gpus, rules=PREEMPTION)


def _share(sizes: Sizes, many: int) -> int:
    """Return what each queue gets when all share alike."""
    return many // (sizes.sharers + 1)


def _crowded(
    layout: Layout, many: int, *, first_queue: int, policy: Policy | None = None
) -> ClusterState:
    """Let queues from `first_queue` on hold one GPU in each of many workloads."""
    state = empty_cluster(layout, policy)
    for number in range(many):
        queue = first_queue + number % (layout.queues - first_queue)
        held = workload(number, queue, pods(1, 1), prefix="held")
        state.apply(changes.WorkloadHolds(admitted_workload(held, queue)))
    return state


def _rows(state: ClusterState, where: str, many: int, *, most: int) -> Iterator[Row]:
    """Ask for few GPUs and for the most."""
    for name, gpus in ((f"{min(FEW, most)} victims", min(FEW, most)), ("most victims", most)):
        head = workload(many, 0, pods(gpus, 1), priority=100)
        submit(state, [head])
        made = plan(state, state.now)
        assert len(made.preemptions) == 1, f"{where}: {made.waits}"
        assert len(made.preemptions[0].victims) == gpus, "one GPU a victim"
        gc.collect()
        taken = repeated(partial(seconds, partial(plan, state, state.now)), samples=5)
        yield row(f"{where}, {name}", many, "candidates", taken, "ms")
        state.apply(changes.WorkloadGone(head.key))
