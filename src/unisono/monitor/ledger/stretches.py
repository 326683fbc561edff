"""Pods on nodes, as columns: a stretch is the time of a pod in which its node stayed as it was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from unisono.monitor.ledger.periods import Period
from unisono.monitor.ledger.rows import NodeRow, PodRow

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
FOREVER = 1 << 62
_HOUR = 3600


class Nodes(NamedTuple):
    """Rows of nodes that a period touches, and what of their time lies within it."""

    rows: Sequence[NodeRow]
    of_name: dict[str, list[int]]
    gpus: Integers
    micro_usd_hour: Integers
    since: Integers
    until: Integers

    @classmethod
    def of(cls, nodes: Iterable[NodeRow], period: Period) -> Self:
        """Take those that were there for a second at least."""
        rows = [one for one in nodes if period.clip(one.since, one.until).seconds]
        of_name: dict[str, list[int]] = {}
        for at, one in enumerate(rows):
            of_name.setdefault(one.name, []).append(at)
        return cls(
            rows,
            of_name,
            _integers(one.gpus for one in rows),
            _integers(one.micro_usd_hour for one in rows),
            _integers(max(one.since, period.since) for one in rows),
            _integers(min(one.until or FOREVER, period.until) for one in rows),
        )


class Stretches(NamedTuple):
    """Columns: which pod, on which row of a node, with how many GPUs, from when to when."""

    pod: Integers
    row: Integers
    gpus: Integers
    since: Integers
    until: Integers

    @classmethod
    def of(cls, pods: Sequence[PodRow], nodes: Nodes, period: Period) -> Self:
        """Cut the time of pods where a node's price or size changed."""
        found = [
            (at, row) for at, pod in enumerate(pods) for row in nodes.of_name.get(pod.node, ())
        ]
        pairs = np.array(found, dtype=np.int64).reshape(len(found), 2)
        pod, row = pairs[:, 0], pairs[:, 1]
        bound = _integers(one.bound for one in pods)[pod]
        ended = _integers(one.ended or FOREVER for one in pods)[pod]
        since = np.maximum(bound, nodes.since[row])
        until = np.minimum(ended, nodes.until[row])
        is_there = since < until
        gpus = _integers(one.gpus for one in pods)[pod]
        return cls(pod[is_there], row[is_there], gpus[is_there], since[is_there], until[is_there])

    @property
    def gpu_seconds(self) -> Integers:
        """How much each is."""
        return self.gpus * (self.until - self.since)

    def of_pod(self, values: Sequence[int]) -> Integers:
        """Return what holds of the pod of each."""
        return np.array(values, dtype=np.int64)[self.pod]

    def floats_of_pod(self, values: Sequence[float]) -> Floats:
        """Return the same, for what is no whole number."""
        return np.array(values, dtype=np.float64)[self.pod]


def prices(gpu_seconds: Integers, nodes: Nodes, row: Integers) -> Integers:
    """Return what GPU-seconds of nodes cost, in millionths of a dollar, rounded half up."""
    per = np.maximum(1, nodes.gpus[row]) * _HOUR
    found: Integers = (2 * gpu_seconds * nodes.micro_usd_hour[row] + per) // (2 * per)
    return found


def _integers(values: Iterable[int]) -> Integers:
    return np.array(list(values), dtype=np.int64)
