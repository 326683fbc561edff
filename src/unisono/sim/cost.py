"""What the machines of a simulated run cost, each from its launch until it is released.

A fixed cluster has a bill as well, if the prices of its nodes are known: all of them, from the
first submission to the last completion. So the two can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unisono.engine.model.names import NodeName
from unisono.engine.model.node import Node
from unisono.engine.model.provisioning import MICRO
from unisono.engine.model.resources import Amounts, is_gpu
from unisono.sim.trace import WHOLE_GPU, FloatArray, IntArray

_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bill:
    """Every machine that was paid for, as columns."""

    start: FloatArray  # s
    end: FloatArray
    price: FloatArray  # US$ an hour
    gpu_milli: IntArray  # thousandths of GPUs that it has
    cpu: IntArray  # millicores

    @property
    def cost(self) -> float:
        """All of it, in US$."""
        return float((self.price * (self.end - self.start)).sum() / _HOUR_S)

    @property
    def machine_hours(self) -> float:
        """Hours of machines that were paid for."""
        return float((self.end - self.start).sum() / _HOUR_S)

    def paid(self, *, gpus: bool) -> float:
        """Return GPU-seconds (or CPU-seconds) that were paid for."""
        size = self.gpu_milli if gpus else self.cpu
        return float((size * (self.end - self.start)).sum() / 1000)

    def rate(self) -> tuple[FloatArray, FloatArray]:
        """Return what an hour cost over time, in steps."""
        return _steps(self.start, self.end, self.price)

    def peak(self) -> int:
        """Return how many machines there were at most."""
        return self.most(np.ones(len(self.start), np.int64))

    def most(self, amount: IntArray) -> int:
        """Return the most of something that machines had together at a time."""
        _, sums = _steps(self.start, self.end, amount.astype(np.float64))
        return int(sums.max(initial=0.0))


@dataclass(frozen=True, slots=True)
class Item:
    """One machine on a bill."""

    start: float
    end: float
    price_micro: int
    has: Amounts


def bill_of(items: Sequence[Item]) -> Bill:
    """Return the bill of some machines."""
    return Bill(
        start=np.array([one.start for one in items], np.float64),
        end=np.array([max(one.start, one.end) for one in items], np.float64),
        price=np.array([one.price_micro / MICRO for one in items], np.float64),
        gpu_milli=np.array([_gpus(one.has) * WHOLE_GPU for one in items], np.int64),
        cpu=np.array([dict(one.has).get("cpu", 0) for one in items], np.int64),  # type: ignore[call-overload]  # names are strings
    )


def fixed_nodes(
    nodes: Sequence[Node], prices: Mapping[NodeName, int], start: float, end: float
) -> list[Item]:
    """Return the cost of nodes that exist throughout; a node without a price costs nothing."""
    return [
        Item(start, end, prices[node.name], node.allocatable)
        for node in nodes
        if node.name in prices
    ]


def _gpus(has: Amounts) -> int:
    return sum(amount for name, amount in has if is_gpu(name))


def _steps(start: FloatArray, end: FloatArray, amount: FloatArray) -> tuple[FloatArray, FloatArray]:
    times, place = np.unique(np.concatenate([start, end]), return_inverse=True)
    change = np.bincount(place, np.concatenate([amount, -amount]), len(times))
    return times, np.cumsum(change)
