"""From the rows of the ledger to the report of a period.

All sums are made of whole GPU-seconds and millionths of a dollar. Hours are never rounded here, but
where they are shown; money is laid on jobs in whole cents whose sum is the rounded sum
(`rounding`), and every other bill is made of those. So whatever is added up, it agrees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from unisono.monitor.ledger.accounts import (
    STATES,
    Account,
    Parts,
    Period,
    Sort,
    Spent,
    Used,
)
from unisono.monitor.ledger.queue_usage import queue_use, waits_of
from unisono.monitor.ledger.rows import NodeRow, PodRow, QueueRow, WorkloadRow
from unisono.monitor.ledger.settlement import settle
from unisono.monitor.ledger.start_estimates import accuracy, scores
from unisono.monitor.report.advice import STRAGGLER, Advisor, Gpu
from unisono.monitor.report.faults import faults_of
from unisono.monitor.report.model import (
    Amounts,
    Capacity,
    Down,
    Estimates,
    Fault,
    Headline,
    Job,
    Queue,
    Report,
    Share,
    Waiting,
)
from unisono.monitor.report.reconcile import reconcile
from unisono.monitor.report.rounding import carried, carried_within

_MOST_WASTE = 10
_MOST_DOWN = 10
_MOST_DAYS = 400
UNMANAGED = "-"
UNKNOWN_USER = "unknown"
_MICRO_A_CENT = 10_000


class Rows(NamedTuple):
    """What the ledger says about a period, and about that before it."""

    pods: Sequence[PodRow]
    workloads: Sequence[WorkloadRow]
    nodes: Sequence[NodeRow]
    queues: Sequence[QueueRow]


class _Charged(NamedTuple):
    """A job and what it used, exactly."""

    job: Job
    spent: Spent


class Only(NamedTuple):
    """Which usage is reported; empty means all."""

    queue: str = ""
    team: str = ""
    user: str = ""


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
    charged = settled.jobs(Advisor(gpus))
    jobs = tuple(one.job for one in charged)
    wasteful = sorted(
        (one for one in jobs if one.amounts.wasted_cents),
        key=lambda one: (-one.amounts.wasted_cents, one.namespace, one.name),
    )
    days = settled.account.by_day
    headline = settled.headline(charged)
    shares = {
        "teams": _shares(charged, lambda one: one.team),
        "users": _shares(charged, lambda one: one.user),
        "queues": _shares(charged, lambda one: one.queue),
    }
    return Report(
        since=period.since,
        until=period.until,
        headline=headline,
        before=_headline_of(rows(earlier), earlier, only),
        reconciliation=reconcile(settled.account, found.pods, found.nodes, headline, shares),
        teams=shares["teams"],
        users=shares["users"],
        by_queue=shares["queues"],
        queues=tuple(settled.queues()),
        capacity=settled.capacity(),
        down=_down(found.nodes, period),
        faults=settled.faults(),
        fragmentation={
            size: round(part, 4) for size, part in settled.account.fragmentation.items()
        },
        broken_up=round(settled.account.broken_up, 4),
        by_day={day: _hours(seconds) for day, seconds in sorted(days.items())[:_MOST_DAYS]},
        gaps=settled.gaps(),
        outcomes=settled.outcomes(),
        waste=tuple(wasteful[:_MOST_WASTE]),
        jobs=jobs,
        waiting=tuple(settled.waiting()),
    )


def _headline_of(rows: Rows, period: Period, only: Only) -> Headline:
    settled = _Settled(rows, period, only, in_brief=True)
    return settled.headline(settled.jobs(None))


class _Settled:
    """The account of a period, filtered."""

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
        self._mine = [one for one in rows.workloads if self._is_mine(one)]
        self._waits = self._how_long()
        self._slow: dict[str, list[str]] = {}

    def jobs(self, advisor: Advisor | None) -> list[_Charged]:
        """Return the jobs with usage, the most expensive first; without an advisor, no advice.

        Cents are laid on all of them, so a report about some says of each what all of it says.
        """
        self._slow = self.slow_nodes() if advisor is not None else {}
        every = [self._charged(used, advisor) for used in self.account.used.values()]
        every.sort(key=lambda one: _bill(one.job))  # neighbours are of one team, user and queue
        costs = carried((one.spent.cost for one in every), _MICRO_A_CENT)
        wasted = carried_within((one.spent.wasted for one in every), costs, _MICRO_A_CENT)
        found: list[_Charged] = []
        for one, cost, waste in zip(every, costs, wasted, strict=True):
            job = one.job
            if self._is_wanted(job.queue, job.team, job.user):
                job.amounts = _amounts(one.spent.seconds, cost, waste)
                found.append(one)
        found.sort(key=lambda one: (-one.job.amounts.cost_cents, *_named(one.job)))
        return found

    def _charged(self, used: Used, advisor: Advisor | None) -> _Charged:
        tries = self._tries.get(used.workload, [])
        last = tries[-1] if tries else None
        return _Charged(self._job(used, last, advisor), used.spent)

    def _job(self, used: Used, last: WorkloadRow | None, advisor: Advisor | None) -> Job:
        price = self._prices.get((used.model, used.capacity_type), 0.0)
        waited = last.ready - last.since if last is not None and last.ready else None
        return Job(
            namespace=used.pod.namespace,
            name=last.owner if last is not None else used.pod.name,
            kind=last.kind if last is not None else "Pod",
            queue=last.queue if last is not None else UNMANAGED,
            team=last.team if last is not None else used.pod.namespace,
            user=last.user if last is not None else UNKNOWN_USER,
            gpus=last.gpus if last is not None else used.pod.gpus,
            model=used.model,
            capacity_type=used.capacity_type,
            outcome=last.outcome if last is not None else used.pod.outcome,
            wait_seconds=waited,
            amounts=Amounts(),
            advice=()
            if advisor is None
            else tuple(
                advisor.advise(used, last, price, self._slow.get(used.workload or used.pod.uid, ()))
            ),
        )

    def headline(self, charged: Sequence[_Charged]) -> Headline:
        amounts = _sum(charged)
        capacity = self.capacity()
        running = amounts.allocated - amounts.starting - amounts.lost
        measured = amounts.busy + amounts.idle
        sorts = self.account.sorts.values()
        return Headline(
            capacity=_hours(sum(sum(one.seconds.values()) for one in sorts)),
            amounts=amounts,
            overhead_cents=sum(one.overhead_cents for one in capacity),
            coverage=round(measured / running, 4) if running > 0 else None,
            unknown_owner=_hours(
                sum(one.spent.allocated for one in charged if one.job.user == UNKNOWN_USER)
            ),
            unpriced=_hours(
                sum(
                    one.spent.allocated
                    for one in charged
                    if not self._prices.get((one.job.model, one.job.capacity_type))
                )
            ),
            jobs=len({(one.job.namespace, one.job.kind, one.job.name) for one in charged}),
            waits=waits_of(one for some in self._waits.values() for one in some),
            estimates=self._estimates(),
            recorded_seconds=self._period.seconds - sum(u - s for s, u in self.gaps()),
        )

    def gaps(self) -> tuple[tuple[int, int], ...]:
        """Return the parts of the period in which no node was there: off, or not recorded."""
        found: list[tuple[int, int]] = []
        at = self._period.since
        for since, until in sorted(
            self._period.clip(one.since, one.until) for one in self._rows.nodes
        ):
            if since >= until:
                continue
            if since > at:
                found.append((at, since))
            at = max(at, until)
        if at < self._period.until:
            found.append((at, self._period.until))
        return tuple(found)

    def slow_nodes(self) -> dict[str, list[str]]:
        """Return the slow nodes that a workload's pods were on, by its uid."""
        slow: dict[str, list[NodeRow]] = {}
        for one in self._rows.nodes:
            if one.problem == STRAGGLER:
                slow.setdefault(one.name, []).append(one)
        found: dict[str, list[str]] = {}
        for pod in self._rows.pods if slow else ():
            until = pod.ended or self._period.until
            rows = slow.get(pod.node, ())
            if any(row.since < until and pod.bound < (row.until or until) for row in rows):
                names = found.setdefault(pod.workload or pod.uid, [])
                if pod.node not in names:
                    names.append(pod.node)
        return found

    def _estimates(self) -> Estimates | None:
        """Return how true the starts were that workloads were told which started in the period."""
        since, until = self._period
        started = [one for one in self._mine if since <= one.admitted < until]
        every = [score for one in started for score in scores(one)]
        first = [one for one in every if one.when == "first"]
        found, half = accuracy(first), accuracy([one for one in every if one.when == "half"])
        if found is None:
            return None
        reserved = [one for one in first if one.told.reserved]
        return Estimates(
            jobs=found.jobs,
            within_jobs=found.within_jobs,
            within=found.within,
            half_way_jobs=half.jobs if half is not None else 0,
            half_way_within=half.within if half is not None else None,
            reservations=len(reserved),
            reservations_kept=sum(one.is_kept for one in reserved),
        )

    def _how_long(self) -> dict[str, list[int]]:
        """Return the waits of workloads that started in the period, by queue."""
        found: dict[str, list[int]] = {}
        since, until = self._period
        for one in self._mine:
            if since <= one.ready < until:
                found.setdefault(one.queue, []).append(one.ready - one.since)
        return found

    def queues(self) -> Iterable[Queue]:
        """Yield queues."""
        use = queue_use(self._period, self._rows.queues, self._rows.workloads)
        waits = self._waits
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
        sorts = sorted(self.account.sorts.items())
        overheads = carried((_overhead(sort) for _, sort in sorts), _MICRO_A_CENT)
        return tuple(
            Capacity(
                model=model,
                capacity_type=capacity_type,
                **{state: _hours(sort.seconds[state]) for state in STATES},
                overhead_cents=overhead,
                nodes=sort.nodes,
                unused_nodes=sort.unused_nodes,
                unused_node_seconds=sort.unused_seconds,
                unused_cents=_cents(sort.unused_micro_usd),
            )
            for ((model, capacity_type), sort), overhead in zip(sorts, overheads, strict=True)
        )

    def faults(self) -> tuple[Fault, ...]:
        """Return what broken and slow nodes cost the reported users."""
        pods = self._rows.pods
        if self._only != Only():
            mine = {one.uid for one in self._mine}
            pods = [one for one in pods if one.workload in mine]
        return faults_of(self._period, pods, self._tries, self._rows.nodes)

    def outcomes(self) -> dict[str, int]:
        """Return how many tries ended how."""
        found: dict[str, int] = {}
        since, until = self._period
        for one in self._mine:
            if since <= one.ended < until:
                found[one.outcome] = found.get(one.outcome, 0) + 1
        return dict(sorted(found.items()))

    def waiting(self) -> Iterable[Waiting]:
        """Yield the workloads that still wait at the end of the period, the oldest first."""
        until = self._period.until
        found = [
            one
            for one in self._mine
            if one.since < until
            and (not one.reserved or one.reserved >= until)
            and (not one.ended or one.ended >= until)
        ]
        for one in sorted(found, key=lambda one: (one.since, one.uid)):
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


def _bill(job: Job) -> tuple[str, ...]:
    return (job.team, job.user, job.queue, *_named(job))


def _named(job: Job) -> tuple[str, str, str, str]:
    return job.namespace, job.name, job.model, job.capacity_type


def _overhead(sort: Sort) -> int:
    return sum(amount for state, amount in sort.micro_usd.items() if state != "allocated")


def _shares(charged: Iterable[_Charged], key: Callable[[Job], str]) -> tuple[Share, ...]:
    found: dict[str, list[_Charged]] = {}
    for one in charged:
        found.setdefault(key(one.job), []).append(one)
    shares = [
        Share(name, len({(one.job.namespace, one.job.kind, one.job.name) for one in of}), _sum(of))
        for name, of in found.items()
    ]
    return tuple(sorted(shares, key=lambda one: (-one.amounts.cost_cents, one.name)))


def _amounts(seconds: Parts, cost_cents: int, wasted_cents: int) -> Amounts:
    busy, idle, unmeasured, starting, lost = map(_hours, seconds)
    allocated = _hours(sum(seconds))
    return Amounts(allocated, busy, idle, unmeasured, starting, lost, cost_cents, wasted_cents)


def _sum(charged: Sequence[_Charged]) -> Amounts:
    nothing = Parts(0, 0, 0, 0, 0)
    seconds = [nothing, *(one.spent.seconds for one in charged)]
    return _amounts(
        Parts(*map(sum, zip(*seconds, strict=True))),
        sum(one.job.amounts.cost_cents for one in charged),
        sum(one.job.amounts.wasted_cents for one in charged),
    )


def _gpu_price(node: NodeRow) -> float:
    return node.micro_usd_hour / 1e6 / node.gpus if node.gpus else 0.0


def _hours(seconds: int) -> float:
    return seconds / 3600


def _cents(micro_usd: int) -> int:
    return (micro_usd + 5_000) // _MICRO_A_CENT
