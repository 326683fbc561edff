"""Events: what it costs to hear of a submit or a finish, on a full cluster with a backlog.

    submit              a workload of the backlog's mix arrives
    finish              a workload ends and gives its quota back; nothing is decided yet
    finish, decide      the same, and cycles until nothing changes: the quota is used again

Two series each: against the length of the backlog at the most queues, and against the number of
queues at the longest backlog. Then one against the length of a backlog of twenty kinds, which must
hardly matter, a state in which queues may preempt, as in teams that lend, and
a series against the number of kinds (shape and priority) that wait in a queue.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.harness import (
    Finding,
    Row,
    Scale,
    figures,
    growth_target,
    repeated,
    row,
    seconds,
    target,
)
from bench.worlds import KINDS_IN_QUEUE, PREEMPTION, Form, Layout, backlog, full_cluster, settle
from unisono.engine.state import changes
from unisono.engine.state.cluster import ClusterState

EVENT_US = 1000
MOST_GROWTH = 0.2  # of what a finish costs, with the number that waits: hardly at all
FEW_KINDS, FEW_QUEUES = 20, 5
ALIKE = (1_000, 10_000, 30_000, 100_000)
FINISH_AND_DECIDE = 2  # which of the rows about one state


@dataclass(frozen=True)
class Sizes:
    """Lengths of the backlog and numbers of queues, smallest first."""

    pending: tuple[int, ...]
    queues: tuple[int, ...]
    kinds: tuple[int, ...]
    kinds_queues: int
    alike: tuple[int, ...]  # pending workloads of few kinds
    samples: int


SIZES: dict[Scale, Sizes] = {
    "full": Sizes(
        (100, 1_000, 10_000, 100_000), (10, 100, 1_000, 5_000), (1, 4, 16), 100, ALIKE, 200
    ),
    "quick": Sizes((100, 1_000), (10, 100), (1, 8), 50, (1_000, 3_000), 20),
    "tiny": Sizes((10, 20), (2, 4), (1, 2), 2, (20, 40), 3),
}
FORMS: tuple[Form, ...] = ("flat", "deep")


def measure(scale: Scale) -> Iterator[Finding]:
    """Measure events on states that differ in one dimension at a time."""
    sizes = SIZES[scale]
    for form in FORMS:
        yield from _of_form(form, sizes)
    yield from _of_few_kinds(sizes)
    able = Layout(sizes.queues[-1], "deep", rules=PREEMPTION)
    taken = _on(able, sizes.pending[-1], sizes.samples)
    found = taken.rows(f"deep, {able.queues:,} queues, preempting", sizes.pending[-1], "pending")
    yield from found
    yield from _promises(found)
    # What a finish wakes lies in one cohort tree, so a small cluster shows how kinds matter.
    small = Layout(sizes.kinds_queues)
    for kinds in sizes.kinds:
        taken = _on(small, 20 * small.queues, sizes.samples, kinds=kinds)
        yield from taken.rows(f"flat, {small.queues:,} queues", kinds, "kinds in a queue")


def _of_form(form: Form, sizes: Sizes) -> Iterator[Finding]:
    *fewer, pending = sizes.pending
    *less, queues = sizes.queues
    at_most_queues, at_most_pending = f"{form}, {queues:,} queues", f"{form}, {pending:,} pending"
    for count in fewer:
        taken = _on(Layout(queues, form), count, sizes.samples)
        yield from taken.rows(at_most_queues, count, "pending")
    for many in less:
        taken = _on(Layout(many, form), pending, sizes.samples)
        yield from taken.rows(at_most_pending, many, "queues")
    largest = _on(Layout(queues, form), pending, sizes.samples)
    found = largest.rows(at_most_queues, pending, "pending")
    yield from found
    yield from largest.rows(at_most_pending, queues, "queues")
    yield from _promises(found)


def _of_few_kinds(sizes: Sizes) -> Iterator[Finding]:
    """Let more and more wait of twenty kinds, whose number is what a finish has to look at."""
    finishes: list[Row] = []
    few = Layout(FEW_QUEUES)
    for count in sizes.alike:
        taken = _on(few, count, sizes.samples, kinds=FEW_KINDS // FEW_QUEUES)
        found = taken.rows(f"{FEW_KINDS} kinds", count, "pending")
        finishes.append(found[FINISH_AND_DECIDE])
        yield from found
    yield growth_target(f"growth, {finishes[0].what}", finishes, MOST_GROWTH)


def _promises(found: list[Row]) -> Iterator[Finding]:
    submit, finish, *_ = found
    yield target(submit.what, submit, EVENT_US, better="below")
    yield target(finish.what, finish, EVENT_US, better="below")


@dataclass
class _Taken:
    """Durations in seconds."""

    submits: list[float] = field(default_factory=list)
    finishes: list[float] = field(default_factory=list)
    reactions: list[float] = field(default_factory=list)

    def rows(self, where: str, n: int, of: str) -> list[Row]:
        rates = [2 / (a + b) for a, b in zip(self.submits, self.finishes, strict=True)]
        return [
            row(f"submit ({where})", n, of, self.submits, "us"),
            row(f"finish ({where})", n, of, self.finishes, "us"),
            row(f"finish, decide ({where})", n, of, self.reactions, "us"),
            figures(f"events per second ({where})", n, of, rates, "1/s"),
        ]


def _on(layout: Layout, pending: int, samples: int, *, kinds: int = KINDS_IN_QUEUE) -> _Taken:
    """Let workloads come and go on one state."""
    state = full_cluster(layout, pending, kinds=kinds)
    gc.collect()
    taken = _Taken()
    dice = random.Random(2)
    leaving = [*state.running]
    dice.shuffle(leaving)
    arriving = backlog(samples, layout.queues, kinds=kinds, seed=3, prefix="more")

    def once() -> float:
        taken.submits.append(_heard(state, changes.WorkloadWaits(arriving.pop())))
        settle(state)
        taken.finishes.append(_heard(state, changes.WorkloadGone(leaving.pop())))
        taken.reactions.append(taken.finishes[-1] + seconds(lambda: settle(state)))
        return taken.reactions[-1]

    repeated(once, samples=min(samples, len(leaving)), fewest=2)
    return taken


def _heard(state: ClusterState, change: changes.Change) -> float:
    return seconds(lambda: state.apply(change))
