"""The engine beside a placer that goes pod by pod, on the same nodes with the same gangs.

The other one is `tests/support/pod_by_pod.py`: it filters and scores every node for every pod, as
schedulers commonly do, and is written plainly. Both get the same half-full nodes and gangs of pods
with one GPU each, and both place all of them. The engine is measured cold: a shape of pod that
is asked for the first time, so that it looks at every node, too. In between stands the engine used
pod by pod: what vectors alone bring, and what deciding for the whole gang at once adds to that.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count

import numpy as np

from bench.floors import gang, placer_of, table_of
from bench.harness import Finding, Scale, figures, repeated, row, seconds, target
from tests.support.pod_by_pod import PodByPod
from unisono.engine.model.explanation import GangDoesNotFit
from unisono.engine.placement.gang import Placer
from unisono.engine.state.node_table import NodeTable, Rows

TIMES_FASTER = 50  # for 512 pods on 5,000 nodes


@dataclass(frozen=True)
class Sizes:
    """Pairs of nodes and pods; the last is what the promise is about."""

    cases: tuple[tuple[int, int], ...]
    samples: int  # of the engine; the other is slow, and slow things vary little


SIZES: dict[Scale, Sizes] = {
    "full": Sizes(((1_000, 8), (1_000, 64), (5_000, 64), (5_000, 512)), 20),
    "quick": Sizes(((1_000, 8), (1_000, 64)), 10),
    "tiny": Sizes(((40, 8), (40, 16)), 2),
}


def measure(scale: Scale) -> Iterator[Finding]:
    """Place the same gangs both ways."""
    sizes = SIZES[scale]
    for nodes, pods in sizes.cases:
        table = table_of(nodes)
        theirs = row(f"pod by pod, {pods} pods", nodes, "nodes", [_pod_by_pod(table, pods)], "ms")
        placer = placer_of(table)
        placer.place(gang(1))
        gc.collect()
        once = partial(_engine, placer, pods, count(1))
        ours = row(
            f"engine, {pods} pods", nodes, "nodes", repeated(once, samples=sizes.samples), "ms"
        )
        singly = row(
            f"engine pod by pod, {pods} pods", nodes, "nodes", [_singly(placer, pods)], "ms"
        )
        yield from (theirs, singly, ours)
        if (nodes, pods) == sizes.cases[-1]:
            ratio = theirs.median / ours.median
            what = f"times faster than pod by pod, {pods} pods"
            faster = figures(what, nodes, "nodes", [ratio], "ratio", better="above")
            yield target(what, faster, TIMES_FASTER, better="above")


def _engine(placer: Placer, pods: int, fresh: Iterator[int]) -> float:
    asked = gang(pods, more_bytes=next(fresh))

    def once() -> None:
        assert not isinstance(placer.place(asked), GangDoesNotFit), "there is room"

    return seconds(once)


def _singly(placer: Placer, pods: int) -> float:
    """Let the engine place gangs of one pod, each of which takes its node, and give all back."""
    table, asked = placer.feasibility.table, gang(1)
    requests, one = asked.demands[0].requests, np.ones(1, np.int64)
    taken: list[Rows] = []

    def once() -> None:
        for _ in range(pods):
            placements = placer.place(asked)
            assert not isinstance(placements, GangDoesNotFit), "there is room"
            rows = np.array([table.row_of[name] for name, _ in placements[0].nodes], np.intp)
            table.take(rows, one, requests)
            taken.append(rows)

    found = seconds(once)
    for rows in taken:
        table.give_back(rows, one, requests)
    return found


def _pod_by_pod(table: NodeTable, pods: int) -> float:
    """Give the other one the same nodes, as full as they are, and time one gang."""
    other = PodByPod(node for node in table.nodes if node is not None)
    for plain, row_ in zip(other.nodes, table.row_of.values(), strict=True):
        for resource, column in table.resources.items():
            plain.free[resource] = int(table.free[column, row_])
    asked = gang(pods)

    def once() -> None:
        assert other.place(asked.demands) is not None, "there is room"

    return seconds(once)
