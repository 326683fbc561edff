"""Events: what it costs to hear of a submit or a finish, on a full cluster with a backlog.

    submit              a workload of the backlog's mix arrives
    finish              a workload leaves and gives its quota back; nobody is decided on yet
    finish, decide      the same, and cycles until nothing changes: who can use it has started

Two series each: against the length of the backlog at the most queues, and against the number of
queues at the longest backlog. The last states may preempt, as teams that lend to each other do.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.harness import Finding, Row, Scale, figures, repeated, row, seconds, target
from bench.worlds import PREEMPTION, Form, Layout, backlog, full_cluster, settle
from unisono.engine.state import changes
from unisono.engine.state.cluster import ClusterState

EVENT_US = 1000


@dataclass(frozen=True)
class Sizes:
    """Lengths of the backlog and numbers of queues, smallest first."""

    pending: tuple[int, ...]
    queues: tuple[int, ...]
    samples: int


SIZES: dict[Scale, Sizes] = {
    "full": Sizes((100, 1_000, 10_000, 100_000), (10, 100, 1_000, 5_000), 200),
    "quick": Sizes((100, 1_000), (10, 100), 20),
    "tiny": Sizes((10, 20), (2, 4), 3),
}
FORMS: tuple[Form, ...] = ("flat", "deep")


def measure(scale: Scale) -> Iterator[Finding]:
    """Measure events on states that differ in one dimension at a time."""
    sizes = SIZES[scale]
    for form in FORMS:
        yield from _of_form(form, sizes, scale)


def _of_form(form: Form, sizes: Sizes, scale: Scale) -> Iterator[Finding]:
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
    yield from largest.rows(at_most_queues, pending, "pending")
    yield from largest.rows(at_most_pending, queues, "queues")
    able = _on(Layout(queues, form, rules=PREEMPTION), pending, sizes.samples)
    yield from able.rows(f"{at_most_queues}, preempting", pending, "pending")
    for where, found in ((at_most_queues, largest), (f"{at_most_queues}, preempting", able)):
        submit, finish, *_ = found.rows(where, pending, "pending")
        yield target(submit.what, submit, EVENT_US, scale=scale, better="below")
        yield target(finish.what, finish, EVENT_US, scale=scale, better="below")


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


def _on(layout: Layout, pending: int, samples: int) -> _Taken:
    """Let workloads come and go on one state."""
    state = full_cluster(layout, pending)
    gc.collect()
    taken = _Taken()
    dice = random.Random(2)
    leaving = [*state.running]
    dice.shuffle(leaving)
    arriving = backlog(samples, layout.queues, seed=3, prefix="more")

    def once() -> float:
        taken.submits.append(_heard(state, changes.WorkloadWaits(arriving.pop())))
        settle(state)
        taken.finishes.append(_heard(state, changes.WorkloadGone(leaving.pop())))
        taken.reactions.append(taken.finishes[-1] + seconds(lambda: settle(state)))
        return taken.reactions[-1]

    repeated(once, samples=min(samples, len(leaving)))
    return taken


def _heard(state: ClusterState, change: changes.Change) -> float:
    return seconds(lambda: state.apply(change))
