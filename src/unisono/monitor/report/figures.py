"""The report as data: figures of a period from the rows of the ledger.

Amounts are rounded once, here: GPU-hours to hundredths, money to cents, each total as the sum of
its rounded parts. Whatever format shows them, they agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from unisono.monitor.ledger.periods import CLASSES, STATES, Account, Period, Spent, Used, settle
from unisono.monitor.ledger.queues import Waits, queue_use, waits_of
from unisono.monitor.ledger.rows import NodeRow, PodRow, QueueRow, WorkloadRow
from unisono.monitor.report.advice import Advisor, Gpu

_MOST_WASTE = 10
_MOST_DOWN = 10
_MOST_DAYS = 400
UNMANAGED = "-"
_IDLE, _LOST = CLASSES.index("idle"), CLASSES.index("lost")


class Rows(NamedTuple):
    """What the ledger says about a period, and about that before it."""

    pods: Sequence[PodRow]
    workloads: Sequence[WorkloadRow]
    nodes: Sequence[NodeRow]
    queues: Sequence[QueueRow]


class Only(NamedTuple):
    """Whose usage is told; empty means everybody's."""

    queue: str = ""
    team: str = ""
    user: str = ""


class Amounts(msgspec.Struct, rename="camel", gc=False):
    """GPU-hours by class, money in cents."""

    allocated: float = 0.0
    busy: float = 0.0
    idle: float = 0.0
    unmeasured: float = 0.0
    starting: float = 0.0
    lost: float = 0.0
    cost_cents: int = 0
    wasted_cents: int = 0  # of that, for what was idle or lost

    @property
    def efficiency(self) -> float | None:
        """How busy GPUs were while somebody looked; None if nobody did."""
        measured = self.busy + self.idle
        return self.busy / measured if measured else None


class Job(msgspec.Struct, rename="camel", gc=False):
    """One workload."""

    namespace: str
    name: str
    kind: str
    queue: str
    team: str
    user: str
    gpus: int
    model: str
    capacity_type: str
    outcome: str
    wait_seconds: int | None
    amounts: Amounts
    advice: tuple[str, ...] = ()


class Share(msgspec.Struct, rename="camel"):
    """What somebody used, all jobs together."""

    name: str
    jobs: int
    amounts: Amounts


class Queue(msgspec.Struct, rename="camel"):
    """One queue."""

    name: str
    is_deleted: bool
    nominal: float
    used: float
    borrowed: float
    starved: float
    waits: Waits
    still_waiting: int


class Capacity(msgspec.Struct, rename="camel"):
    """GPUs of one sort: GPU-hours by state."""

    model: str
    capacity_type: str
    allocated: float
    held: float
    free: float
    down: float
    overhead_cents: int  # what is paid for and in nobody's bill
    nodes: int
    # Came and went without a pod: bought for a gang that could not be served as a whole, say.
    unused_nodes: int
    unused_node_seconds: int
    unused_cents: int


class Down(msgspec.Struct, rename="camel"):
    """A node that was not up all the time."""

    node: str
    times: int
    seconds: int


class Waiting(msgspec.Struct, rename="camel"):
    """A workload that still waits."""

    namespace: str
    name: str
    kind: str
    queue: str
    team: str
    user: str
    gpus: int
    age_seconds: int


class Headline(msgspec.Struct, rename="camel"):
    """The first lines."""

    capacity: float
    amounts: Amounts
    overhead_cents: int
    coverage: float | None  # of the running time, how much was measured
    unknown_owner: float  # GPU-hours of jobs that nobody owns up to
    unpriced: float  # GPU-hours of jobs on machines whose price nobody knows
    jobs: int
    waits: Waits

    @property
    def total_cents(self) -> int:
        """Everything that was paid."""
        return self.amounts.cost_cents + self.overhead_cents


class Report(msgspec.Struct, rename="camel"):
    """All of it."""

    since: int
    until: int
    headline: Headline
    before: Headline  # the same length of time before
    teams: tuple[Share, ...]
    users: tuple[Share, ...]
    queues: tuple[Queue, ...]
    capacity: tuple[Capacity, ...]
    down: tuple[Down, ...]
    fragmentation: dict[int, float]
    broken_up: float  # the same as one number, for the sizes that were asked for
    by_day: dict[int, float]
    outcomes: dict[str, int]  # how tries ended
    waste: tuple[Job, ...]
    jobs: tuple[Job, ...]
    waiting: tuple[Waiting, ...]


def report(
    rows: Callable[[Period], Rows],
    period: Period,
    *,
    only: Only = Only(),  # noqa: B008  (frozen)
    gpus: Sequence[Gpu] = (),
) -> Report:
    """Return the report of a period; `rows` are those that touch a period."""
    found = rows(period)
    settled = _Settled(found, period, only)
    earlier = Period(period.since - period.seconds, period.since)
    jobs = tuple(settled.jobs(Advisor(gpus)))
    wasteful = sorted(
        (one for one in jobs if one.amounts.wasted_cents),
        key=lambda one: (-one.amounts.wasted_cents, one.namespace, one.name),
    )
    days = settled.account.by_day
    return Report(
        since=period.since,
        until=period.until,
        headline=settled.headline(jobs),
        before=_headline_of(rows(earlier), earlier, only),
        teams=_shares(jobs, lambda one: one.team),
        users=_shares(jobs, lambda one: one.user),
        queues=tuple(settled.queues()),
        capacity=settled.capacity(),
        down=_down(found.nodes, period),
        fragmentation={
            size: round(part, 4) for size, part in settled.account.fragmentation.items()
        },
        broken_up=round(settled.account.broken_up, 4),
        by_day={day: _hours(seconds) for day, seconds in sorted(days.items())[:_MOST_DAYS]},
        outcomes=settled.outcomes(),
        waste=tuple(wasteful[:_MOST_WASTE]),
        jobs=jobs,
        waiting=tuple(settled.waiting()),
    )


def _headline_of(rows: Rows, period: Period, only: Only) -> Headline:
    settled = _Settled(rows, period, only, in_brief=True)
    return settled.headline(tuple(settled.jobs(None)))


class _Settled:
    """A period, settled and narrowed to those who are asked for."""

    def __init__(self, rows: Rows, period: Period, only: Only, *, in_brief: bool = False) -> None:
        self._rows = rows
        self._period = period
        self._only = only
        self._tries: dict[str, list[WorkloadRow]] = {}
        for one in rows.workloads:
            self._tries.setdefault(one.uid, []).append(one)
        self.account: Account = settle(
            period, rows.pods, self._tries, rows.nodes, in_brief=in_brief
        )
        self._prices = {(one.model, one.capacity_type): _gpu_price(one) for one in rows.nodes}

    def jobs(self, advisor: Advisor | None) -> Iterable[Job]:
        """Yield the jobs that used something, the dearest first; nobody advises on old ones."""
        found: list[Job] = []
        for used in self.account.used.values():
            tries = self._tries.get(used.workload, [])
            last = tries[-1] if tries else None
            job = self._job(used, last, advisor)
            if self._is_wanted(job.queue, job.team, job.user):
                found.append(job)
        found.sort(key=lambda one: (-one.amounts.cost_cents, one.namespace, one.name, one.model))
        return found

    def _job(self, used: Used, last: WorkloadRow | None, advisor: Advisor | None) -> Job:
        price = self._prices.get((used.model, used.capacity_type), 0.0)
        waited = last.ready - last.since if last is not None and last.ready else None
        return Job(
            namespace=used.pod.namespace,
            name=last.owner if last is not None else used.pod.name,
            kind=last.kind if last is not None else "Pod",
            queue=last.queue if last is not None else UNMANAGED,
            team=last.team if last is not None else used.pod.namespace,
            user=last.user if last is not None else "unknown",
            gpus=last.gpus if last is not None else used.pod.gpus,
            model=used.model,
            capacity_type=used.capacity_type,
            outcome=last.outcome if last is not None else used.pod.outcome,
            wait_seconds=waited,
            amounts=_amounts(used.spent),
            advice=() if advisor is None else tuple(advisor.advise(used, last, price)),
        )

    def headline(self, jobs: Sequence[Job]) -> Headline:
        amounts = _sum(one.amounts for one in jobs)
        capacity = self.capacity()
        running = amounts.allocated - amounts.starting - amounts.lost
        measured = amounts.busy + amounts.idle
        return Headline(
            capacity=_rounded(
                sum(one.allocated + one.held + one.free + one.down for one in capacity)
            ),
            amounts=amounts,
            overhead_cents=sum(one.overhead_cents for one in capacity),
            coverage=round(measured / running, 4) if running > 0 else None,
            unknown_owner=_rounded(
                sum(one.amounts.allocated for one in jobs if one.user == "unknown")
            ),
            unpriced=_rounded(
                sum(
                    one.amounts.allocated
                    for one in jobs
                    if not self._prices.get((one.model, one.capacity_type))
                )
            ),
            jobs=len({(one.namespace, one.kind, one.name) for one in jobs}),
            waits=waits_of(one for some in self._waits().values() for one in some),
        )

    def _waits(self) -> dict[str, list[int]]:
        """Return how long those waited who started in the period, by queue."""
        found: dict[str, list[int]] = {}
        for one in self._rows.workloads:
            if self._period.since <= one.ready < self._period.until and self._is_mine(one):
                found.setdefault(one.queue, []).append(one.ready - one.since)
        return found

    def queues(self) -> Iterable[Queue]:
        """Yield queues."""
        use = queue_use(self._period, self._rows.queues, self._rows.workloads)
        waits = self._waits()
        waiting = Counter(one.queue for one in self.waiting())
        for name, one in use.items():
            if not name or self._only.queue not in ("", name):
                continue
            yield Queue(
                name=name,
                is_deleted=one.is_deleted,
                nominal=_hours(one.nominal),
                used=_hours(one.used),
                borrowed=_hours(one.borrowed),
                starved=_hours(one.starved),
                waits=waits_of(waits.get(name, ())),
                still_waiting=waiting[name],
            )

    def capacity(self) -> tuple[Capacity, ...]:
        """Return the GPUs by sort."""
        return tuple(
            Capacity(
                model=model,
                capacity_type=capacity_type,
                **{state: _hours(sort.seconds[state]) for state in STATES},
                overhead_cents=sum(
                    _cents(sort.micro_usd[state]) for state in STATES if state != "allocated"
                ),
                nodes=sort.nodes,
                unused_nodes=sort.unused_nodes,
                unused_node_seconds=sort.unused_seconds,
                unused_cents=_cents(sort.unused_micro_usd),
            )
            for (model, capacity_type), sort in sorted(self.account.sorts.items())
        )

    def outcomes(self) -> dict[str, int]:
        """Return how many tries ended how."""
        found: dict[str, int] = {}
        for one in self._rows.workloads:
            if self._period.since <= one.ended < self._period.until and self._is_mine(one):
                found[one.outcome] = found.get(one.outcome, 0) + 1
        return dict(sorted(found.items()))

    def waiting(self) -> Iterable[Waiting]:
        """Yield who still waits at the end of the period, the oldest first."""
        until = self._period.until
        for one in sorted(self._rows.workloads, key=lambda one: (one.since, one.uid)):
            is_open = not one.ended or one.ended >= until
            is_waiting = not one.reserved or one.reserved >= until
            if one.since < until and is_open and is_waiting and self._is_mine(one):
                yield Waiting(
                    namespace=one.namespace,
                    name=one.owner,
                    kind=one.kind,
                    queue=one.queue,
                    team=one.team,
                    user=one.user,
                    gpus=one.gpus,
                    age_seconds=until - one.since,
                )

    def _is_mine(self, one: WorkloadRow) -> bool:
        return self._is_wanted(one.queue, one.team, one.user)

    def _is_wanted(self, queue: str, team: str, user: str) -> bool:
        only = self._only
        return only.queue in ("", queue) and only.team in ("", team) and only.user in ("", user)


def _down(nodes: Iterable[NodeRow], period: Period) -> tuple[Down, ...]:
    """Return the nodes that were down, the longest first."""
    found: dict[str, Down] = {}
    for one in nodes:
        seconds = 0 if one.is_up else period.clip(one.since, one.until).seconds
        if seconds:
            there = found.setdefault(one.name, Down(one.name, 0, 0))
            there.times += 1
            there.seconds += seconds
    longest = sorted(found.values(), key=lambda one: (-one.seconds, one.node))
    return tuple(longest[:_MOST_DOWN])


def _shares(jobs: Iterable[Job], whose: Callable[[Job], str]) -> tuple[Share, ...]:
    found: dict[str, list[Job]] = {}
    for one in jobs:
        found.setdefault(whose(one), []).append(one)
    shares = [
        Share(name, len({(one.namespace, one.kind, one.name) for one in of}), _sum_of(of))
        for name, of in found.items()
    ]
    return tuple(sorted(shares, key=lambda one: (-one.amounts.cost_cents, one.name)))


def _sum_of(jobs: Iterable[Job]) -> Amounts:
    return _sum(one.amounts for one in jobs)


def _amounts(spent: Spent) -> Amounts:
    hours = [_hours(spent.seconds[name]) for name in CLASSES]
    cents = [_cents(spent.micro_usd[name]) for name in CLASSES]
    busy, idle, unmeasured, starting, lost = hours
    return Amounts(
        allocated=_rounded(sum(hours)),
        busy=busy,
        idle=idle,
        unmeasured=unmeasured,
        starting=starting,
        lost=lost,
        cost_cents=sum(cents),
        wasted_cents=cents[_IDLE] + cents[_LOST],
    )


def _sum(amounts: Iterable[Amounts]) -> Amounts:
    every = list(amounts)
    # Hundredths of hours, added up as they are: a float is far more exact than their rounding.
    return Amounts(
        allocated=_rounded(sum(one.allocated for one in every)),
        busy=_rounded(sum(one.busy for one in every)),
        idle=_rounded(sum(one.idle for one in every)),
        unmeasured=_rounded(sum(one.unmeasured for one in every)),
        starting=_rounded(sum(one.starting for one in every)),
        lost=_rounded(sum(one.lost for one in every)),
        cost_cents=sum(one.cost_cents for one in every),
        wasted_cents=sum(one.wasted_cents for one in every),
    )


def _gpu_price(node: NodeRow) -> float:
    return node.micro_usd_hour / 1e6 / node.gpus if node.gpus else 0.0


def _hours(seconds: int) -> float:
    """Return hours in hundredths: 36 seconds each."""
    return (seconds + 18) // 36 / 100


def _rounded(hours: float) -> float:
    return round(hours, 2)


def _cents(micro_usd: int) -> int:
    return (micro_usd + 5_000) // 10_000
