"""GPU fragmentation as a quantity: how many free GPUs a typical pod could not use where they are.

After FGD (Weng et al., "Beware of Fragmentation", ATC 2023), for whole GPUs. With a mix of typical
pods (shape m, weight p_m), the fragmentation of a node is the weighted number of its free GPUs that
pods of each shape would leave unused if the node were filled with them:

    F(node) = sum over m of p_m * (free GPUs - GPUs of m * how many m fit on the node)
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable

import msgspec
import numpy as np

from unisono.engine.model.resources import Amounts, is_gpu
from unisono.engine.state.node_table import Integers, NodeTable, Rows

# Weights are integers in thousandths, so that equal clusters have equal fragmentation everywhere.
MILLI = 1000


class Typical(msgspec.Struct, frozen=True):
    """A shape of pod that the cluster sees often, with its weight in thousandths."""

    gpus: int
    requests: Amounts = ()  # besides the GPUs
    weight_milli: int = MILLI


# Until there is history: jobs of one, two, four and eight GPUs, equally likely.
PRIOR = tuple(Typical(gpus, (), MILLI // 4) for gpus in (1, 2, 4, 8))


# How many admissions back the mix looks, and how many shapes of it count: enough to follow what a
# cluster runs this week, few enough to be cheap.
HISTORY = 2000
MOST_SHAPES = 16


class Mix:
    """What pods the cluster sees, learned from what was admitted lately."""

    __slots__ = ("_counts", "_recent", "typical")

    def __init__(self, recent: Iterable[Amounts] = ()) -> None:
        self._recent: deque[Amounts] = deque()
        self._counts: Counter[Amounts] = Counter()
        self.typical: tuple[Typical, ...] = PRIOR
        for requests in recent:
            self.note(requests)

    def note(self, requests: Amounts) -> None:
        """Take an admitted pod set into account; pods without GPUs fragment nothing."""
        if not any(is_gpu(resource) and amount for resource, amount in requests):
            return
        self._recent.append(requests)
        self._counts[requests] += 1
        if len(self._recent) > HISTORY:
            oldest = self._recent.popleft()
            self._counts[oldest] -= 1
            if not self._counts[oldest]:
                del self._counts[oldest]
        self.typical = self._typical()

    def recent(self) -> tuple[Amounts, ...]:
        """Return the history, oldest first."""
        return tuple(self._recent)

    def _typical(self) -> tuple[Typical, ...]:
        ranked = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_SHAPES]
        total = sum(count for _, count in ranked)
        return tuple(
            Typical(
                gpus=sum(amount for resource, amount in requests if is_gpu(resource)),
                requests=tuple(pair for pair in requests if not is_gpu(pair[0])),
                weight_milli=count * MILLI // total,
            )
            for requests, count in ranked
        )


def fragmentation(
    table: NodeTable, rows: Rows, gpu_column: int, mix: tuple[Typical, ...], taken: Amounts = ()
) -> Integers:
    """Return F of every row, in thousandths of a GPU, after one pod of `taken` was added."""
    minus = dict(taken)
    free = {
        column: table.free_of(column)[rows] - minus.get(resource, 0)
        for resource, column in table.resources.items()
    }
    gpus = np.maximum(free[gpu_column], 0)
    total = np.zeros(rows.shape[0], np.int64)
    for typical in mix:
        fitting = gpus // typical.gpus
        for resource, amount in typical.requests:
            column = table.column(resource)
            if column is not None and amount:
                fitting = np.minimum(fitting, np.maximum(free[column], 0) // amount)
        total += typical.weight_milli * (gpus - typical.gpus * fitting)
    return total


def fragmented_gpus(table: NodeTable, gpu_column: int, mix: tuple[Typical, ...] = PRIOR) -> float:
    """Return the fragmentation of the whole cluster, in GPUs."""
    rows = np.flatnonzero(table.usable[: len(table)])
    return float(fragmentation(table, rows, gpu_column, mix).sum()) / MILLI
