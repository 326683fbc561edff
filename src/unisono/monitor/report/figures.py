"""The report as data: figures of a period from the rows of the ledger.

Amounts are rounded once, here: GPU-hours to hundredths, money to cents, each total as the sum of
its rounded parts. Whatever format shows them, they agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from unisono.monitor.ledger.periods import CLASSES, STATES, Account, Period, Spent, Used, settle
from unisono.monitor.ledger.queues import Waits, queue_use, waits_of
from unisono.monitor.ledger.rows import NodeRow, PodRow, QueueRow, WorkloadRow
from unisono.monitor.report.advice import Gpu, advice_for

_HOUR = 3600
_MOST_WASTE = 10
_MOST_DAYS = 400
UNMANAGED = "-"


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


class Amounts(msgspec.Struct, rename="camel"):
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


class Job(msgspec.Struct, rename="camel"):
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


class Waiting(msgspec.Struct, rename="camel"):
    """A workload that still waits."""

    namespace: str
    name: str
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
    fragmentation: dict[int, float]
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
    jobs = tuple(settled.jobs(gpus))
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
        fragmentation={
            size: round(part, 4) for size, part in settled.account.fragmentation.items()
        },
        by_day={day: _hours(seconds) for day, seconds in sorted(days.items())[:_MOST_DAYS]},
        outcomes=settled.outcomes(),
        waste=tuple(wasteful[:_MOST_WASTE]),
        jobs=jobs,
        waiting=tuple(settled.waiting()),
    )


def _headline_of(rows: Rows, period: Period, only: Only) -> Headline:
    settled = _Settled(rows, period, only)
    return settled.headline(tuple(settled.jobs(())))


class _Settled:
    """A period, settled and narrowed to those who are asked for."""

    def __init__(self, rows: Rows, period: Period, only: Only) -> None:
        self._rows = rows
        self._period = period
        self._only = only
        self._tries: dict[str, list[WorkloadRow]] = {}
        for one in rows.workloads:
            self._tries.setdefault(one.uid, []).append(one)
        self.account: Account = settle(period, rows.pods, self._tries, rows.nodes)
        self._prices = {(one.model, one.capacity_type): _gpu_price(one) for one in rows.nodes}

    def jobs(self, gpus: Sequence[Gpu]) -> Iterable[Job]:
        """Yield the jobs that used something, the dearest first."""
        found: list[Job] = []
        for used in self.account.used.values():
            tries = self._tries.get(used.workload, [])
            last = tries[-1] if tries else None
            job = self._job(used, last, gpus)
            if self._is_wanted(job.queue, job.team, job.user):
                found.append(job)
        found.sort(key=lambda one: (-one.amounts.cost_cents, one.namespace, one.name, one.model))
        return found

    def _job(self, used: Used, last: WorkloadRow | None, gpus: Sequence[Gpu]) -> Job:
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
            advice=tuple(advice_for(used, last, gpus, price)),
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
            jobs=len({(one.namespace, one.kind, one.name) for one in jobs}),
            waits=waits_of(self._waited()),
        )

    def _waited(self, queue: str = "") -> Iterable[int]:
        for one in self._rows.workloads:
            if self._period.since <= one.ready < self._period.until:
                if self._is_mine(one) and queue in ("", one.queue):
                    yield one.ready - one.since

    def queues(self) -> Iterable[Queue]:
        """Yield queues."""
        use = queue_use(self._period, self._rows.queues, self._rows.workloads)
        waiting = list(self.waiting())
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
                waits=waits_of(self._waited(name)),
                still_waiting=sum(1 for some in waiting if some.queue == name),
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
    hours = {name: _hours(seconds) for name, seconds in spent.seconds.items()}
    cents: Mapping[str, int] = {name: _cents(spent.micro_usd[name]) for name in CLASSES}
    return Amounts(
        allocated=_rounded(sum(hours.values())),
        **hours,
        cost_cents=sum(cents.values()),
        wasted_cents=cents["idle"] + cents["lost"],
    )


def _sum(amounts: Iterable[Amounts]) -> Amounts:
    total = Amounts()
    for one in amounts:
        for name in ("allocated", *CLASSES):
            setattr(total, name, _rounded(getattr(total, name) + getattr(one, name)))
        total.cost_cents += one.cost_cents
        total.wasted_cents += one.wasted_cents
    return total


def _gpu_price(node: NodeRow) -> float:
    return node.micro_usd_hour / 1e6 / node.gpus if node.gpus else 0.0


def _hours(seconds: int) -> float:
    return _rounded(seconds / _HOUR)


def _rounded(hours: float) -> float:
    return round(hours, 2)


def _cents(micro_usd: int) -> int:
    return (micro_usd + 5_000) // 10_000
