"""A second opinion on the account of a period: one pod after the other, in plain words.

The product settles with columns of NumPy. This is slow and simple, and has to say the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from unisono.monitor.ledger.accounts import CLASSES, STATES, Period, priced
from unisono.monitor.ledger.rows import NodeRow, PodRow
from unisono.monitor.ledger.settlement import Tries, holds, is_lost

_DAY = 86_400

Gang = tuple[str, str, str, str]
Change = tuple[int, int, int]  # when, and by how much GPUs become allocated and held


@dataclass(slots=True)
class Plain:
    """What has to come out."""

    seconds: dict[Gang, dict[str, int]] = field(default_factory=dict)
    micro_usd: dict[Gang, dict[str, int]] = field(default_factory=dict)
    sorts: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    by_day: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    seconds_free: dict[int, int] = field(default_factory=lambda: defaultdict(int))


def plainly(
    period: Period, pods: Sequence[PodRow], tries: Tries, nodes: Iterable[NodeRow]
) -> Plain:
    """Settle a period."""
    plain = Plain()
    changes: dict[str, list[Change]] = defaultdict(list)
    there = [one for one in nodes if period.clip(one.since, one.until).seconds]
    for pod in pods:
        for node in there:
            end = min(pod.ended or period.until, node.until or period.until)
            part = period.clip(max(pod.bound, node.since), end)
            if node.name == pod.node and end and part.seconds:
                _spend(plain, pod, node, part, tries, period)
                changes[node.name].append((part.since, pod.gpus, 0))
                changes[node.name].append((part.until, -pod.gpus, 0))
    for hold in holds(pods, tries):
        part = period.clip(hold.since, hold.until)
        if part.seconds:
            changes[hold.node].append((part.since, 0, hold.gpus))
            changes[hold.node].append((part.until, 0, -hold.gpus))
    for node in there:
        _walk(plain, node, changes[node.name], period)
    return plain


def _spend(
    plain: Plain, pod: PodRow, node: NodeRow, part: Period, tries: Tries, period: Period
) -> None:
    key = pod.workload or pod.uid, pod.namespace, node.model, node.capacity_type
    seconds = plain.seconds.setdefault(key, dict.fromkeys(CLASSES, 0))
    micro_usd = plain.micro_usd.setdefault(key, dict.fromkeys(CLASSES, 0))
    parts = _parts(pod, part, period, is_gone=is_lost(pod, tries))
    for name, amount in zip(CLASSES, parts, strict=True):
        seconds[name] += amount
        micro_usd[name] += priced(amount, node)
    for second in range(*part):
        plain.by_day[second - second % _DAY] += pod.gpus


def _parts(
    pod: PodRow, part: Period, period: Period, *, is_gone: bool
) -> tuple[int, int, int, int, int]:
    """Return the GPU-seconds of a stretch, in the order of the classes."""
    since, until = part
    began = pod.started or pod.ended or until
    starting = pod.gpus * max(0, min(began, until) - since)
    running = pod.gpus * (until - since) - starting
    lost = 0
    if is_gone and pod.started:
        safe = pod.saved if pod.started < pod.saved <= pod.ended else pod.started
        lost = pod.gpus * max(0, min(until, pod.ended) - max(since, safe))
    kept = running - lost
    measured = busy = 0
    if pod.covered:
        life = pod.gpus * max(1, (pod.ended or period.until) - began)
        measured = min(kept, round(pod.covered * kept / life))
        busy = min(measured, round(pod.busy / pod.covered * measured)) if measured else 0
    return busy, measured - busy, kept - measured, starting, lost


def _walk(plain: Plain, node: NodeRow, changes: Sequence[Change], period: Period) -> None:
    """Look at every second of a node."""
    sort = plain.sorts.setdefault((node.model, node.capacity_type), dict.fromkeys(STATES, 0))
    for second in range(*period.clip(node.since, node.until)):
        allocated = sum(change for at, change, _ in changes if at <= second)
        held = sum(change for at, _, change in changes if at <= second)
        left = node.gpus - min(allocated, node.gpus)
        kept = min(held, left) if node.is_up else 0
        sort["allocated"] += node.gpus - left
        sort["held"] += kept
        sort["free" if node.is_up else "down"] += left - kept
        if node.is_up:
            plain.seconds_free[left - kept] += 1


def fragmented(seconds_free: Mapping[int, int], size: int) -> float:
    """Return the part of the free GPUs that pods of a size could not use."""
    free = sum(one * seconds for one, seconds in seconds_free.items())
    usable = sum(one // size * size * seconds for one, seconds in seconds_free.items())
    return 1 - usable / free if free else 0.0
