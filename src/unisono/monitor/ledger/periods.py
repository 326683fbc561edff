"""The GPU-seconds of a period: each in exactly one state, each with its price.

    a node's GPU   down · free · held for a gang that starts · allocated
    allocated      starting (bound, not running yet) · lost · busy · idle · unmeasured

`lost` is running time since the last checkpoint (or the start) of pods that did not end well;
`unmeasured` is running time of which nobody knows how busy the device was. Everything is counted in
whole GPU-seconds and millionths of a dollar, so that parts add up to the whole exactly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from unisono.monitor.ledger.rows import NodeRow, PodRow, WorkloadRow

CLASSES = ("busy", "idle", "unmeasured", "starting", "lost")
STATES = ("allocated", "held", "free", "down")
_HOUR = 3600
_DAY = 86_400
_NOTHING = dict.fromkeys(CLASSES, 0)
# Ends that are the owner's wish, or a success: no work was lost.
_NO_LOSS = ("Succeeded",)


class Period(NamedTuple):
    """From a second on, up to another."""

    since: int
    until: int

    def clip(self, since: int, until: int) -> Period:
        """Return the part of an interval that lies within; it may be empty."""
        return Period(max(self.since, since), min(self.until, until or self.until))

    @property
    def seconds(self) -> int:
        """How long it is."""
        return max(0, self.until - self.since)


@dataclass(slots=True)
class Spent:
    """GPU-seconds and millionths of a dollar by class."""

    seconds: dict[str, int] = field(default_factory=_NOTHING.copy)
    micro_usd: dict[str, int] = field(default_factory=_NOTHING.copy)

    @property
    def allocated(self) -> int:
        """All GPU-seconds."""
        return sum(self.seconds.values())

    @property
    def cost(self) -> int:
        """All of the money."""
        return sum(self.micro_usd.values())

    @property
    def measured(self) -> int:
        """The GPU-seconds of which somebody knows how busy they were."""
        return self.seconds["busy"] + self.seconds["idle"]


@dataclass(slots=True)
class Used:
    """What one gang used, on one sort of machine."""

    workload: str  # its uid; empty for pods that nobody manages
    pod: PodRow  # one of its pods
    model: str
    capacity_type: str
    spent: Spent = field(default_factory=Spent)
    idle_devices: int = 0
    devices: int = 0
    peak_mib: int = 0
    tensor: float = 0.0
    covered: float = 0.0


@dataclass(slots=True)
class Sort:
    """The GPUs of one model and capacity type: their seconds by state, and what they cost."""

    seconds: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STATES, 0))
    micro_usd: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STATES, 0))
    nodes: int = 0
    # Of those, the ones that are gone and never had a pod: how many, how long, what they cost.
    unused_nodes: int = 0
    unused_seconds: int = 0
    unused_micro_usd: int = 0


SortKey = tuple[str, str]  # model, capacity type


@dataclass(slots=True)
class Account:
    """A period, settled."""

    period: Period
    used: dict[tuple[str, str, str, str], Used] = field(default_factory=dict)
    sorts: dict[SortKey, Sort] = field(default_factory=dict)
    by_day: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    # The part of the free GPUs that pods of a size could not use, weighted by time.
    fragmentation: dict[int, float] = field(default_factory=dict)
    # GPU-seconds that pods of a size used; larger ones are counted with the largest.
    demand: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def broken_up(self) -> float:
        """The part of the free GPUs of no use to pods like those that were there."""
        asked = sum(self.demand.values())
        parts = (self.fragmentation[size] * used for size, used in self.demand.items())
        return sum(parts) / asked if asked else 0.0


class _Segment(NamedTuple):
    pod: PodRow
    node: NodeRow
    since: int
    until: int


def settle(
    period: Period,
    pods: Sequence[PodRow],
    workloads: Mapping[str, Sequence[WorkloadRow]],
    nodes: Sequence[NodeRow],
    *,
    in_brief: bool = False,
) -> Account:
    """Return the account of a period; `workloads` are all tries of each, by uid.

    In brief, what nobody had is free, whatever else it was: enough to compare another with.
    """
    account = Account(period)
    by_node: dict[str, list[NodeRow]] = {}
    for node in nodes:
        if period.clip(node.since, node.until).seconds:
            by_node.setdefault(node.name, []).append(node)
    segments = [one for pod in pods for one in _segments(pod, by_node.get(pod.node, ()), period)]
    for segment in segments:
        _spend(account, segment, _is_lost(segment.pod, workloads))
    if in_brief:
        _lump(account, by_node, segments)
        return account
    holds = list(_holds(pods, workloads))
    _sweep(account, by_node, segments, holds)
    return account


def _lump(
    account: Account, by_node: Mapping[str, Sequence[NodeRow]], segments: Iterable[_Segment]
) -> None:
    """Count GPU-seconds as allocated or free, without looking at the order of things."""
    for rows in by_node.values():
        for row in rows:
            amount = row.gpus * account.period.clip(row.since, row.until).seconds
            sort = account.sorts.setdefault((row.model, row.capacity_type), Sort())
            sort.seconds["free"] += amount
            sort.micro_usd["free"] += priced(amount, row)
    for pod, row, since, until in segments:
        amount = pod.gpus * (until - since)
        money = priced(amount, row)
        sort = account.sorts[row.model, row.capacity_type]
        sort.seconds["free"] -= amount
        sort.seconds["allocated"] += amount
        sort.micro_usd["free"] -= money
        sort.micro_usd["allocated"] += money


def _segments(pod: PodRow, nodes: Iterable[NodeRow], period: Period) -> Iterable[_Segment]:
    """Cut the time of a pod where its node's price or size changed."""
    for node in nodes:
        part = period.clip(max(pod.bound, node.since), _earlier(pod.ended, node.until))
        if part.seconds:
            yield _Segment(pod, node, part.since, part.until)


def _spend(account: Account, segment: _Segment, is_lost: bool) -> None:
    pod, node, since, until = segment
    key = pod.workload or pod.uid, pod.namespace, node.model, node.capacity_type
    used = account.used.get(key)
    if used is None:
        used = account.used[key] = Used(pod.workload, pod, node.model, node.capacity_type)
    spent = used.spent
    seconds, micro_usd = spent.seconds, spent.micro_usd
    twice, per = 2 * node.micro_usd_hour, max(1, node.gpus) * _HOUR
    for name, amount in zip(CLASSES, _parts(segment, account.period, is_lost), strict=True):
        if amount:
            seconds[name] += amount
            micro_usd[name] += (amount * twice + per) // (2 * per)
    size = next((one for one in SIZES if one >= pod.gpus), SIZES[-1])
    account.demand[size] += pod.gpus * (until - since)
    used.idle_devices += pod.idle_devices
    used.devices += pod.gpus
    used.peak_mib = max(used.peak_mib, pod.peak_mib)
    used.tensor += pod.tensor
    used.covered += pod.covered
    day = since - since % _DAY
    while until > day + _DAY:
        account.by_day[day] += pod.gpus * (day + _DAY - since)
        day = since = day + _DAY
    account.by_day[day] += pod.gpus * (until - since)


def _parts(segment: _Segment, period: Period, is_lost: bool) -> tuple[int, int, int, int, int]:
    """Return the GPU-seconds of a stretch, in the order of the classes."""
    pod, _, since, until = segment
    gpus = pod.gpus
    began = pod.started or pod.ended or until
    starting = gpus * max(0, min(began, until) - since) if began > since else 0
    running = gpus * (until - since) - starting
    lost = 0
    if is_lost and pod.started:
        safe = pod.saved if pod.started < pod.saved <= pod.ended else pod.started
        lost = gpus * max(0, min(until, pod.ended) - max(since, safe))
    kept = running - lost
    measured = busy = 0
    if pod.covered:
        # How busy it was is known of its whole life; parts of it are taken to be alike.
        life = gpus * max(1, (pod.ended or period.until) - began)
        measured = min(kept, round(pod.covered * kept / life))
        busy = min(measured, round(pod.busy / pod.covered * measured)) if measured else 0
    return busy, measured - busy, kept - measured, starting, lost


def priced(gpu_seconds: int, node: NodeRow) -> int:
    """Return what GPU-seconds of a node cost, in millionths of a dollar."""
    per = node.gpus * _HOUR
    return (2 * gpu_seconds * node.micro_usd_hour + per) // (2 * per) if per else 0


def _is_lost(pod: PodRow, workloads: Mapping[str, Sequence[WorkloadRow]]) -> bool:
    """Say whether a pod's end threw work away: it failed, or its gang had to leave or restart."""
    if not pod.ended or pod.outcome in _NO_LOSS:
        return False
    if pod.outcome == "Failed":
        return True
    tries = workloads.get(pod.workload, ())
    attempt = _attempt_at(tries, pod.bound)
    if attempt is None:
        return False
    # Deleted with the job by its owner, or after a success: nothing that anybody wanted is lost.
    return attempt.outcome not in ("Deleted", "Finished") or attempt.ended > pod.ended


def _attempt_at(tries: Sequence[WorkloadRow], when: int) -> WorkloadRow | None:
    """Return the try of a gang in which something happened."""
    found = None
    for one in tries:
        if one.reserved and one.reserved <= when and (not one.ended or when <= one.ended):
            found = one
    return found


def _holds(
    pods: Sequence[PodRow], workloads: Mapping[str, Sequence[WorkloadRow]]
) -> Iterable[tuple[str, int, int, int]]:
    """Yield node, GPUs and time for which places were kept for pods that came later."""
    last: dict[tuple[str, str], int] = {}
    for pod in sorted(pods, key=lambda one: (one.bound, one.uid)):
        attempt = _attempt_at(workloads.get(pod.workload, ()), pod.bound)
        if attempt is not None:
            here = pod.workload, pod.node
            since = max(attempt.reserved, last.get(here, 0))
            if since < pod.bound:
                yield pod.node, pod.gpus, since, pod.bound
            if pod.ended:
                last[here] = max(last.get(here, 0), pod.ended)


# ---- all nodes, second by second -----------------------------------------------------------------

SIZES = (1, 2, 4, 8)

_Change = tuple[int, int, int]  # when, and by how much GPUs become allocated and held


def _sweep(
    account: Account,
    by_node: Mapping[str, Sequence[NodeRow]],
    segments: Iterable[_Segment],
    holds: Iterable[tuple[str, int, int, int]],
) -> None:
    """Walk through the period node by node, from change to change."""
    period = account.period
    changes: dict[str, list[_Change]] = {name: [] for name in by_node}
    for segment in segments:
        of_node, gpus = changes[segment.node.name], segment.pod.gpus
        of_node.append((segment.since, gpus, 0))
        of_node.append((segment.until, -gpus, 0))
    for name, gpus, since, until in holds:
        part = period.clip(since, until)
        if part.seconds and name in by_node:
            changes[name].append((part.since, 0, gpus))
            changes[name].append((part.until, 0, -gpus))
    seconds_free: dict[int, int] = defaultdict(int)  # of nodes, by how many GPUs were free
    for name, rows in by_node.items():
        _walk(account, sorted(rows, key=_begin), sorted(changes[name]), seconds_free)
        _count(account, rows, is_used=bool(changes[name]))
    account.fragmentation = _fragmentation(seconds_free)


def _walk(
    account: Account,
    rows: Iterable[NodeRow],
    changes: Sequence[_Change],
    seconds_free: dict[int, int],
) -> None:
    """Count the seconds of one node by state, and how long how many of its GPUs were free."""
    allocated = held = index = 0
    for row in rows:
        at, end = account.period.clip(row.since, row.until)
        seconds = dict.fromkeys(STATES, 0)
        while at < end:
            while index < len(changes) and changes[index][0] <= at:
                allocated += changes[index][1]
                held += changes[index][2]
                index += 1
            until = min(end, changes[index][0]) if index < len(changes) else end
            taken = min(allocated, row.gpus)
            left = row.gpus - taken
            kept = min(held, left) if row.is_up else 0
            passed = until - at
            seconds["allocated"] += taken * passed
            seconds["held"] += kept * passed
            seconds["free" if row.is_up else "down"] += (left - kept) * passed
            if row.is_up:
                seconds_free[left - kept] += passed
            at = until
        sort = account.sorts.setdefault((row.model, row.capacity_type), Sort())
        for state, amount in seconds.items():
            sort.seconds[state] += amount
            sort.micro_usd[state] += priced(amount, row)


def _count(account: Account, rows: Sequence[NodeRow], *, is_used: bool) -> None:
    """Count a node, and whether it was there for nothing."""
    last = max(rows, key=_begin)
    sort = account.sorts[last.model, last.capacity_type]
    sort.nodes += 1
    if last.until and not is_used:
        lives = [(row, account.period.clip(row.since, row.until).seconds) for row in rows]
        sort.unused_nodes += 1
        sort.unused_seconds += sum(seconds for _, seconds in lives)
        sort.unused_micro_usd += sum(priced(row.gpus * seconds, row) for row, seconds in lives)


def _begin(row: NodeRow) -> int:
    return row.since


def _fragmentation(seconds_free: Mapping[int, int]) -> dict[int, float]:
    """Return the part of the free GPUs that pods of a size could not use, by size."""
    free = sum(count * seconds for count, seconds in seconds_free.items())
    if not free:
        return dict.fromkeys(SIZES, 0.0)
    return {
        size: 1 - sum(one // size * size * seconds for one, seconds in seconds_free.items()) / free
        for size in SIZES
    }


def _earlier(one: int, other: int) -> int:
    """Return the earlier of two ends; 0 means that there is none yet."""
    return min(one, other) if one and other else one or other
