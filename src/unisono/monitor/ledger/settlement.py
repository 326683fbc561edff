"""From the rows of a period to its account: every GPU-second in one state, in columns.

A segment is the time of a pod during which its node stayed as it was. A sweep over all segments
then finds what every GPU was, second by second: allocated, held, free or down. Every row of a node
is a lane of its own, in which pods and held GPUs begin and end; what begins in a lane also ends in
it, so running sums are zero where the next lane begins.

A month has a hundred thousand pods and more. All that is counted is whole numbers below 2^53, which
sums of floats hold exactly; so NumPy may add them up, and parts still make up the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from unisono.monitor.ledger.accounts import (
    CLASSES,
    SIZES,
    STATES,
    Account,
    Parts,
    Period,
    Sort,
    Spent,
    Used,
    priced,
)
from unisono.monitor.ledger.rows import NodeRow, PodRow, WorkloadRow

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


class Segments(NamedTuple):
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


def count_roughly(account: Account, nodes: Nodes, segments: Segments) -> None:
    """Count GPU-seconds as allocated or free, without looking at the order of things."""
    count = len(nodes.rows)
    allocated = _sums(segments.row, segments.gpu_seconds, count)
    money = _sums(segments.row, prices(segments.gpu_seconds, nodes, segments.row), count)
    there = nodes.gpus * (nodes.until - nodes.since)
    for at, row in enumerate(nodes.rows):
        sort = account.sorts.setdefault((row.model, row.capacity_type), Sort())
        sort.seconds["allocated"] += int(allocated[at])
        sort.seconds["free"] += int(there[at] - allocated[at])
        sort.micro_usd["allocated"] += int(money[at])
        sort.micro_usd["free"] += priced(int(there[at]), row) - int(money[at])


def sweep(
    account: Account, nodes: Nodes, segments: Segments, pods: Sequence[PodRow], tries: Tries
) -> None:
    """Walk through the period, from change to change."""
    kept = _kept(nodes, pods, tries)
    lane, at, allocated, held = _events(nodes, segments, kept)
    gpus = nodes.gpus[lane]
    is_up = np.array([one.is_up for one in nodes.rows], dtype=bool)[lane]
    left = gpus - np.minimum(allocated, gpus)
    kept_now = np.where(is_up, np.minimum(held, left), 0)
    passed = np.zeros(len(at), np.int64)
    passed[:-1] = np.where(lane[1:] == lane[:-1], at[1:] - at[:-1], 0)
    rest = left - kept_now
    amounts = {
        "allocated": gpus - left,
        "held": kept_now,
        "free": np.where(is_up, rest, 0),
        "down": np.where(is_up, 0, rest),
    }
    count = len(nodes.rows)
    seconds = {state: _sums(lane, amounts[state] * passed, count) for state in STATES}
    for number, row in enumerate(nodes.rows):
        sort = account.sorts.setdefault((row.model, row.capacity_type), Sort())
        for state in STATES:
            amount = int(seconds[state][number])
            sort.seconds[state] += amount
            sort.micro_usd[state] += priced(amount, row)
    used = {*segments.row.tolist(), *kept[0].tolist()}
    for rows in nodes.of_name.values():
        _count(account, nodes, rows, is_used=not used.isdisjoint(rows))
    by_free = np.bincount(rest[is_up], passed[is_up]).astype(np.int64)
    account.fragmentation = _fragmentation(dict(enumerate(by_free.tolist())))


def _events(
    nodes: Nodes, segments: Segments, kept: tuple[Integers, Integers, Integers, Integers]
) -> tuple[Integers, Integers, Integers, Integers]:
    """Return lanes and times, sorted, with what is allocated and held from each time on."""
    row, gpus, since, until = kept
    every, nothing = np.arange(len(nodes.rows)), np.zeros(len(nodes.rows), np.int64)
    none, none_kept = np.zeros(len(segments.row), np.int64), np.zeros(len(row), np.int64)
    lane = np.concatenate([every, every, segments.row, segments.row, row, row])
    at = np.concatenate([nodes.since, nodes.until, segments.since, segments.until, since, until])
    more = segments.gpus
    allocated = np.concatenate([nothing, nothing, more, -more, none_kept, none_kept])
    held = np.concatenate([nothing, nothing, none, none, gpus, -gpus])
    order = np.lexsort((at, lane))
    return lane[order], at[order], np.cumsum(allocated[order]), np.cumsum(held[order])


def _kept(
    nodes: Nodes, pods: Sequence[PodRow], tries: Tries
) -> tuple[Integers, Integers, Integers, Integers]:
    """Return what was kept for pods that came later: lane, GPUs, from when, to when."""
    found = [
        (row, hold.gpus, hold.since, hold.until)
        for hold in holds(pods, tries)
        for row in nodes.of_name.get(hold.node, ())
    ]
    row, gpus, since, until = np.array(found, dtype=np.int64).reshape(len(found), 4).T
    since, until = np.maximum(since, nodes.since[row]), np.minimum(until, nodes.until[row])
    is_there = since < until
    return row[is_there], gpus[is_there], since[is_there], until[is_there]


def _count(account: Account, nodes: Nodes, rows: Sequence[int], *, is_used: bool) -> None:
    """Count a node, and whether it was there for nothing."""
    last = max((nodes.rows[at] for at in rows), key=lambda one: one.since)
    sort = account.sorts[last.model, last.capacity_type]
    sort.nodes += 1
    if last.until and not is_used:
        sort.unused_nodes += 1
        for at in rows:
            seconds = int(nodes.until[at] - nodes.since[at])
            sort.unused_seconds += seconds
            sort.unused_micro_usd += priced(nodes.rows[at].gpus * seconds, nodes.rows[at])


def _fragmentation(seconds_free: Mapping[int, int]) -> dict[int, float]:
    """Return the part of the free GPUs that pods of a size could not use, by size."""
    free = sum(count * seconds for count, seconds in seconds_free.items())
    if not free:
        return dict.fromkeys(SIZES, 0.0)
    return {
        size: 1 - sum(one // size * size * seconds for one, seconds in seconds_free.items()) / free
        for size in SIZES
    }


def _sums(of: Integers, values: Integers, count: int) -> Integers:
    return np.bincount(of, values, count).astype(np.int64)


_DAY = 86_400


def settle(
    period: Period,
    pods: Sequence[PodRow],
    workloads: Tries,
    nodes: Iterable[NodeRow],
    *,
    in_brief: bool = False,
) -> Account:
    """Return the account of a period.

    In brief, all that was not allocated is free: enough to compare another period with.
    """
    account = Account(period)
    there = Nodes.of(nodes, period)
    segments = Segments.of(pods, there, period)
    account.roundings = len(CLASSES) * len(segments.row) + len(STATES) * len(there.rows)
    _spend(account, pods, workloads, there, segments)
    if in_brief:
        count_roughly(account, there, segments)
    else:
        _by_day(account, segments)
        sweep(account, there, segments, pods, workloads)
    return account


def _spend(
    account: Account,
    pods: Sequence[PodRow],
    workloads: Tries,
    nodes: Nodes,
    segments: Segments,
) -> None:
    """Lay what pods used on their gangs."""
    seconds = _classes(pods, workloads, segments, account.period)
    money = [prices(one, nodes, segments.row) for one in seconds]
    sizes = np.minimum(np.searchsorted(SIZES, segments.gpus), len(SIZES) - 1)
    asked = _sum_list(sizes, segments.gpu_seconds, len(SIZES))
    account.demand.update({size: one for size, one in zip(SIZES, asked, strict=True) if one})

    sorts = [(one.model, one.capacity_type) for one in nodes.rows]
    groups: dict[tuple[str, str, str, str], int] = {}
    of_group: list[int] = []
    firsts: list[tuple[PodRow, tuple[str, str]]] = []
    for at, row in zip(segments.pod.tolist(), segments.row.tolist(), strict=True):
        pod, sort = pods[at], sorts[row]
        key = (pod.workload or pod.uid, pod.namespace, *sort)
        group = groups.get(key)
        if group is None:
            group = groups[key] = len(groups)
            firsts.append((pod, sort))
        of_group.append(group)
    of, count = np.array(of_group, dtype=np.int64), len(groups)

    def total(values: NDArray[np.float64] | Integers) -> list[float]:
        found: list[float] = np.bincount(of, values, count).tolist()
        return found

    peaks = np.zeros(count, np.int64)
    np.maximum.at(peaks, of, segments.of_pod([one.peak_mib for one in pods]))
    columns = zip(
        groups.items(),
        zip(*(_sum_list(of, one, count) for one in seconds), strict=True),
        zip(*(_sum_list(of, one, count) for one in money), strict=True),
        _sum_list(of, segments.of_pod([one.idle_devices for one in pods]), count),
        _sum_list(of, segments.gpus, count),
        peaks.tolist(),
        total(segments.floats_of_pod([one.tensor for one in pods])),
        total(segments.floats_of_pod([one.covered for one in pods])),
        strict=True,
    )
    for (key, group), spent, cost, idle_devices, devices, peak_mib, tensor, covered in columns:
        pod, (model, capacity_type) = firsts[group]
        account.used[key] = Used(
            pod.workload,
            pod,
            model,
            capacity_type,
            Spent(Parts(*spent), Parts(*cost)),
            idle_devices,
            devices,
            peak_mib,
            tensor,
            covered,
        )


def _classes(
    pods: Sequence[PodRow], workloads: Tries, segments: Segments, period: Period
) -> tuple[Integers, ...]:
    """Return the GPU-seconds of every stretch, class by class."""
    gpus, since, until = segments.gpus, segments.since, segments.until
    started = segments.of_pod([one.started for one in pods])
    ended = segments.of_pod([one.ended for one in pods])
    saved = segments.of_pod([one.saved for one in pods])
    covered = segments.floats_of_pod([one.covered for one in pods])
    busy = segments.floats_of_pod([one.busy for one in pods])
    failed = segments.of_pod([is_lost(one, workloads) for one in pods]).astype(bool)

    began = np.where(started > 0, started, np.where(ended > 0, ended, until))
    starting = gpus * np.maximum(0, np.minimum(began, until) - since)
    running = segments.gpu_seconds - starting
    safe = np.where((started < saved) & (saved <= ended), saved, started)
    gone = gpus * np.maximum(0, np.minimum(until, ended) - np.maximum(since, safe))
    lost = np.where(failed & (started > 0), gone, 0)
    kept = running - lost
    # How busy it was is known of its whole life; parts of it are taken to be alike.
    life = gpus * np.maximum(1, np.where(ended > 0, ended, period.until) - began)
    whole = np.where(life > 0, life, 1)
    measured = np.minimum(kept, np.rint(covered * kept / whole).astype(np.int64))
    part = np.minimum(busy, covered) / np.where(covered > 0, covered, 1.0)
    at_work = np.minimum(measured, np.rint(part * measured).astype(np.int64))
    return at_work, measured - at_work, kept - measured, starting, lost


def _by_day(account: Account, segments: Segments) -> None:
    """Count what was held on each day."""
    period = account.period
    for day in range(period.since - period.since % _DAY, period.until, _DAY):
        long = np.minimum(segments.until, day + _DAY) - np.maximum(segments.since, day)
        amount = int((np.maximum(0, long) * segments.gpus).sum())
        if amount:
            account.by_day[day] = amount


def _sum_list(of: Integers, values: Integers, count: int) -> list[int]:
    found: list[int] = _sums(of, values, count).tolist()
    return found


# ---- attempts ------------------------------------------------------------------------------------
#
# Which try of its gang a pod was part of: whether work was lost, and what was kept for it.

Tries = Mapping[str, Sequence[WorkloadRow]]  # of each workload, by its uid


class _Hold(NamedTuple):
    """Places that were kept for a pod that came later."""

    node: str
    gpus: int
    since: int
    until: int


def is_lost(pod: PodRow, tries: Tries) -> bool:
    """Say whether a pod's end threw work away: it failed, or its gang had to leave or restart."""
    if not pod.ended or pod.outcome == "Succeeded":
        return False
    if pod.outcome == "Failed":
        return True
    attempt = _attempt_at(tries.get(pod.workload, ()), pod.bound)
    if attempt is None:
        return False
    # Deleted with the job by its owner, or after a success: no wanted work is lost.
    return attempt.outcome not in ("Deleted", "Finished") or attempt.ended > pod.ended


def holds(pods: Sequence[PodRow], tries: Tries) -> Iterable[_Hold]:
    """Yield for how long places were kept, from when a gang had quota until its pods came."""
    last: dict[tuple[str, str], int] = {}
    for pod in sorted(pods, key=lambda one: (one.bound, one.uid)):
        attempt = _attempt_at(tries.get(pod.workload, ()), pod.bound)
        if attempt is not None:
            here = pod.workload, pod.node
            since = max(attempt.reserved, last.get(here, 0))
            if since < pod.bound:
                yield _Hold(pod.node, pod.gpus, since, pod.bound)
            if pod.ended:
                last[here] = max(last.get(here, 0), pod.ended)


def _attempt_at(tries: Sequence[WorkloadRow], when: int) -> WorkloadRow | None:
    """Return the try of a gang in which something happened."""
    found = None
    for one in tries:
        if one.reserved and one.reserved <= when and (not one.ended or when <= one.ended):
            found = one
    return found
