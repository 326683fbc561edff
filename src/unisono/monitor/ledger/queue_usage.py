"""Queues over a period: what they might use, used, borrowed, and wanted in vain; and the waits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from unisono.monitor.ledger.accounts import Period
from unisono.monitor.ledger.rows import QueueRow, WorkloadRow


@dataclass(slots=True)
class QueueUse:
    """GPU-seconds of a queue."""

    nominal: int = 0
    used: int = 0
    borrowed: int = 0
    starved: int = 0  # wanted, and within what it might use, and not given
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class Waits:
    """How long tries of workloads waited; percentiles by the nearest rank."""

    count: int
    p50: int
    p90: int
    p95: int
    longest: int


def queue_use(
    period: Period, queues: Iterable[QueueRow], workloads: Iterable[WorkloadRow]
) -> dict[str, QueueUse]:
    """Return what became of each queue."""
    # By queue: a time, and by how much its own, the used and the wanted GPUs change then.
    events: dict[str, list[tuple[int, int, int, int]]] = {}
    open_queues: set[str] = set()
    for row in queues:
        part = period.clip(row.since, row.until)
        if part.seconds:
            of_queue = events.setdefault(row.queue, [])
            of_queue.append((part.since, row.gpus, 0, 0))
            of_queue.append((part.until, -row.gpus, 0, 0))
        if not row.until:
            open_queues.add(row.queue)
    first, last = period
    for one in workloads:
        gpus, end = one.gpus, min(one.ended or last, last)
        began = max(one.since, first)
        if began < end:
            served = min(max(one.reserved or end, began), end)
            of_queue = events.setdefault(one.queue, [])
            of_queue.append((began, 0, 0, gpus))
            of_queue.append((served, 0, gpus, -gpus))
            of_queue.append((end, 0, -gpus, 0))
    found = {name: _swept(of_queue) for name, of_queue in sorted(events.items())}
    for name, use in found.items():
        use.is_deleted = name not in open_queues
    return found


def _swept(events: Sequence[tuple[int, int, int, int]]) -> QueueUse:
    changes = np.array(events, dtype=np.int64)
    changes = changes[np.argsort(changes[:, 0], kind="stable")]
    passed = np.diff(changes[:, 0])
    own, used, wanted = np.cumsum(changes[:-1, 1:], axis=0).T
    return QueueUse(
        nominal=int(own @ passed),
        used=int(used @ passed),
        borrowed=int(np.maximum(0, used - own) @ passed),
        starved=int(np.maximum(0, np.minimum(wanted, own - used)) @ passed),
    )


def waits_of(seconds: Iterable[int]) -> Waits:
    """Return how long waits are.

    >>> waits_of(range(10, 101, 10))
    Waits(count=10, p50=50, p90=90, p95=100, longest=100)
    """
    ordered = sorted(seconds)
    if not ordered:
        return Waits(0, 0, 0, 0, 0)

    def rank(part: float) -> int:
        return ordered[max(0, math.ceil(part * len(ordered)) - 1)]

    return Waits(len(ordered), rank(0.5), rank(0.9), rank(0.95), ordered[-1])
