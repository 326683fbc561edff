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

    seconds: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CLASSES, 0))
    micro_usd: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CLASSES, 0))

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

    def add(self, other: Spent) -> None:
        """Add another."""
        for name in CLASSES:
            self.seconds[name] += other.seconds[name]
            self.micro_usd[name] += other.micro_usd[name]


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
) -> Account:
    """Return the account of a period; `workloads` are all tries of each, by uid."""
    account = Account(period)
    by_node: dict[str, list[NodeRow]] = {}
    for node in nodes:
        if period.clip(node.since, node.until).seconds:
            by_node.setdefault(node.name, []).append(node)
    segments = [one for pod in pods for one in _segments(pod, by_node.get(pod.node, ()), period)]
    for segment in segments:
        _spend(account, segment, _is_lost(segment.pod, workloads))
    holds = list(_holds(pods, workloads))
    _sweep(account, by_node, segments, holds)
    return account


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
    spent = _spent(segment, account.period, is_lost)
    used.spent.add(spent)
    used.idle_devices += pod.idle_devices
    used.devices += pod.gpus
    used.peak_mib = max(used.peak_mib, pod.peak_mib)
    used.tensor += pod.tensor
    used.covered += pod.covered
    day = since - since % 86_400
    while day < until:
        part = Period(max(since, day), min(until, day + 86_400))
        account.by_day[day] += pod.gpus * part.seconds
        day += 86_400


def _spent(segment: _Segment, period: Period, is_lost: bool) -> Spent:
    pod, node, since, until = segment
    now = Period(since, until)
    began = pod.started or pod.ended or until
    starting = pod.gpus * now.clip(pod.bound, min(began, until)).seconds if began > since else 0
    running = pod.gpus * now.seconds - starting
    lost = 0
    if is_lost and pod.started:
        safe = pod.saved if pod.started < pod.saved <= pod.ended else pod.started
        lost = pod.gpus * now.clip(safe, pod.ended).seconds
    kept = running - lost
    # How busy it was is known of its whole life; parts of it are taken to be alike.
    life = pod.gpus * max(1, (pod.ended or period.until) - began)
    measured = min(kept, round(pod.covered * kept / life)) if pod.covered else 0
    busy = min(measured, round(pod.busy / pod.covered * measured)) if measured else 0
    spent = Spent()
    spent.seconds = {
        "busy": busy,
        "idle": measured - busy,
        "unmeasured": kept - measured,
        "starting": starting,
        "lost": lost,
    }
    spent.micro_usd = {name: priced(seconds, node) for name, seconds in spent.seconds.items()}
    return spent


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


@dataclass(slots=True)
class _Now:
    """One node at a time of the sweep."""

    node: NodeRow | None = None
    allocated: int = 0
    held: int = 0
    since: int = 0

    def states(self) -> dict[str, int]:
        """Return how many of its GPUs are in which state."""
        if self.node is None:
            return dict.fromkeys(STATES, 0)
        allocated = min(self.allocated, self.node.gpus)
        left = self.node.gpus - allocated
        if not self.node.is_up:
            return {"allocated": allocated, "held": 0, "free": 0, "down": left}
        held = min(self.held, left)
        return {"allocated": allocated, "held": held, "free": left - held, "down": 0}


def _sweep(
    account: Account,
    by_node: Mapping[str, Sequence[NodeRow]],
    segments: Iterable[_Segment],
    holds: Iterable[tuple[str, int, int, int]],
) -> None:
    """Walk through the period once, from change to change."""
    period = account.period
    events: list[tuple[int, int, str, int, int, NodeRow | None]] = []
    for name, rows in by_node.items():
        for row in rows:
            part = period.clip(row.since, row.until)
            events.append((part.until, 0, name, 0, 0, None))
            events.append((part.since, 1, name, 0, 0, row))
    for segment in segments:
        name, gpus = segment.node.name, segment.pod.gpus
        events.append((segment.since, 2, name, gpus, 0, segment.node))
        events.append((segment.until, 2, name, -gpus, 0, segment.node))
    for name, gpus, since, until in holds:
        part = period.clip(since, until)
        if part.seconds and name in by_node:
            events.append((part.since, 2, name, 0, gpus, None))
            events.append((part.until, 2, name, 0, -gpus, None))
    events.sort(key=lambda one: (one[0], one[1], one[2]))
    nodes: dict[str, _Now] = {name: _Now() for name in by_node}
    pieces = _Pieces()
    for at, step, name, allocated, held, node in events:
        pieces.pass_to(at)
        now = nodes[name]
        _close(account, now, at)
        pieces.change(now.states()["free"], -1)
        if step < 2:
            now.node = node
        else:
            now.allocated += allocated
            now.held += held
        pieces.change(now.states()["free"], 1)
    account.fragmentation = pieces.shares()


def _close(account: Account, now: _Now, at: int) -> None:
    """Count the time of a node since its last change."""
    if now.node is not None and at > now.since:
        sort = account.sorts.setdefault((now.node.model, now.node.capacity_type), Sort())
        for state, gpus in now.states().items():
            seconds = gpus * (at - now.since)
            sort.seconds[state] += seconds
            sort.micro_usd[state] += priced(seconds, now.node)
    now.since = at


class _Pieces:
    """Free GPUs over time, and how many of them pods of a size could use."""

    def __init__(self) -> None:
        self._at = 0
        self._free = 0
        self._usable = dict.fromkeys(SIZES, 0)
        self._free_seconds = 0
        self._usable_seconds = dict.fromkeys(SIZES, 0)

    def pass_to(self, at: int) -> None:
        """Let time pass."""
        passed = at - self._at
        if passed and self._free:
            self._free_seconds += passed * self._free
            for size in SIZES:
                self._usable_seconds[size] += passed * self._usable[size]
        self._at = at

    def change(self, free: int, sign: int) -> None:
        """Add or remove a node's free GPUs."""
        self._free += sign * free
        for size in SIZES:
            self._usable[size] += sign * (free // size * size)

    def shares(self) -> dict[int, float]:
        """Return the part that was of no use, by size."""
        if not self._free_seconds:
            return dict.fromkeys(SIZES, 0.0)
        return {size: 1 - self._usable_seconds[size] / self._free_seconds for size in SIZES}


def _earlier(one: int, other: int) -> int:
    """Return the earlier of two ends; 0 means that there is none yet."""
    return min(one, other) if one and other else one or other
