"""Places: how many workloads may be submitted, and how many of them may grow older (spec turns §7).

Who came first has the place; a place that becomes free goes to the next. Workloads of one user,
QOS and partition have the same limits above them and stand in one group, so a place that becomes
free costs a look at the first of each group. While nobody exceeds a limit this is only counting.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Literal, NamedTuple

from unisono.engine.model.explanation import LimitReached
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.turns import Partition, Qos
from unisono.engine.model.workload import Workload
from unisono.engine.ordering.accounts import Accounts
from unisono.engine.ordering.factors import Standing
from unisono.engine.ordering.limits import LimitDesk, Owner
from unisono.engine.ordering.membership import NONE
from unisono.engine.ordering.tallies import Per, Scope

What = Literal["submitted", "accruing"]
_FIELDS: dict[What, tuple[tuple[Per, str], ...]] = {
    "submitted": (
        ("group", "group_submitted"),
        ("user", "submitted_per_user"),
        ("account", "submitted_per_account"),
    ),
    "accruing": (
        ("group", "group_jobs_accruing"),
        ("user", "jobs_accruing_per_user"),
        ("account", "jobs_accruing_per_account"),
    ),
}
_CODES: dict[tuple[str, Per], str] = {
    ("Assoc", "group"): "AssocGrpSubmitJobsLimit",
    ("Assoc", "user"): "AssocMaxSubmitJobLimit",
    ("QOS", "group"): "QOSGrpSubmitJobsLimit",
    ("QOS", "user"): "QOSMaxSubmitJobPerUserLimit",
    ("QOS", "account"): "MaxSubmitJobsPerAccount",
}


class _Cap(NamedTuple):
    """So many may be in a scope."""

    scope: Scope
    limit: int
    owner: Owner
    per: Per


Caps = dict[What, tuple[_Cap, ...]]
_Came = tuple[Instant, int, int, str]


class Places:
    """Who has a place among those that may be submitted, and among those that may age."""

    def __init__(self, accounts: Accounts, limits: LimitDesk) -> None:
        self._accounts = accounts
        self._limits = limits
        self._caps: dict[tuple[int, str, str, str], Caps] = {}
        self._running: dict[WorkloadKey, Caps] = {}  # only of those with a limit above them
        self._waiting: dict[WorkloadKey, tuple[_Came, Caps]] = {}
        self._submitted: dict[Scope, int] = {}  # everybody, running or waiting
        self._over: dict[Scope, None] = {}
        self._ageing: dict[Scope, int] = {}
        self._since: dict[WorkloadKey, Instant] = {}
        self._queues: dict[int, list[tuple[_Came, WorkloadKey]]] = {}  # who wants to age, by caps
        self._refused: dict[WorkloadKey, LimitReached] = {}
        self._stale = False

    def submit(self, workload: Workload, standing: Standing) -> None:
        """Let somebody wait."""
        caps = self._caps_of(standing)
        if caps["submitted"] or caps["accruing"]:
            came = _came(workload)
            self._waiting[workload.key] = (came, caps)
            self._count(caps, 1)
            if caps["accruing"]:
                heapq.heappush(self._queues.setdefault(id(caps), []), (came, workload.key))

    def run(self, key: WorkloadKey, standing: Standing) -> None:
        """Let somebody run; it keeps its place among the submitted."""
        caps = self._caps_of(standing)
        if caps["submitted"]:
            self._running[key] = caps
            self._count(caps, 1)

    def withdraw(self, key: WorkloadKey) -> None:
        """Let somebody be gone."""
        caps = self._running.pop(key, None)
        if caps is None and key in self._waiting:
            caps = self._waiting.pop(key)[1]
        if caps is None:
            self._since.pop(key, None)
            return
        self._refused.pop(key, None)
        self._stop_ageing(key, caps)
        self._count(caps, -1)

    def refusal(self, key: WorkloadKey) -> LimitReached | None:
        """Return the limit that keeps a workload from counting as submitted."""
        return self._refused.get(key)

    def accrues_since(self, key: WorkloadKey) -> Instant | None:
        """Return since when a workload may age; 0 if nobody limits that, None if it may not."""
        known = self._waiting.get(key)
        is_limited = known is not None and bool(known[1]["accruing"])
        return self._since.get(key, None if is_limited else Instant(0))

    def release(self, key: WorkloadKey, now: Instant) -> None:
        """Let somebody age from now on who was held back until now."""
        if key not in self._waiting or not self._waiting[key][1]["accruing"]:
            self._since[key] = now

    def ageing(self) -> tuple[tuple[WorkloadKey, Instant], ...]:
        """Write down since when those age who needed leave to."""
        return tuple(sorted(self._since.items()))

    def take_over(self, ageing: tuple[tuple[WorkloadKey, Instant], ...]) -> None:
        """Go on from what was written down."""
        for key, since in ageing:
            if key in self._waiting and key not in self._since:
                self._let_age(key, since)
            else:
                self._since[key] = since

    def settle(self, now: Instant) -> list[WorkloadKey]:
        """Give free places away, first come first served; return whose case changed."""
        if not self._stale:
            return []
        self._stale = False
        refused = self._beyond() if self._over else {}
        changed = [
            key
            for key in {**refused, **self._refused}
            if (key in refused) != (key in self._refused)
        ]
        self._refused = refused
        changed.extend(self._grant(now))
        return [key for key in dict.fromkeys(changed) if key in self._waiting]

    def _beyond(self) -> dict[WorkloadKey, LimitReached]:
        """Find who is beyond a limit, counting who runs before who came first."""
        counts: dict[Scope, int] = {}
        for caps in self._running.values():
            for cap in caps["submitted"]:
                counts[cap.scope] = counts.get(cap.scope, 0) + 1
        refused: dict[WorkloadKey, LimitReached] = {}
        for key, (_, caps) in sorted(self._waiting.items(), key=lambda item: item[1][0]):
            full = next(
                (cap for cap in caps["submitted"] if counts.get(cap.scope, 0) >= cap.limit), None
            )
            if full is not None:
                refused[key] = _too_many(full, counts.get(full.scope, 0))
                continue
            for cap in caps["submitted"]:
                counts[cap.scope] = counts.get(cap.scope, 0) + 1
        return refused

    def _grant(self, now: Instant) -> Iterator[WorkloadKey]:
        """Let as many grow older as may, the first of all groups first."""
        while True:
            first: tuple[_Came, WorkloadKey] | None = None
            for group in list(self._queues):
                head = self._first_of(group)
                if head is not None and (first is None or head < first):
                    first = head
            if first is None:
                return
            self._let_age(first[1], now)
            yield first[1]

    def _first_of(self, group: int) -> tuple[_Came, WorkloadKey] | None:
        """Return who of a group would age next, if there is room; drop those that are gone."""
        queue = self._queues[group]
        while queue and (queue[0][1] not in self._waiting or queue[0][1] in self._since):
            heapq.heappop(queue)
        if not queue:
            del self._queues[group]
            return None
        caps = self._waiting[queue[0][1]][1]
        room = all(self._ageing.get(cap.scope, 0) < cap.limit for cap in caps["accruing"])
        return queue[0] if room else None

    def _let_age(self, key: WorkloadKey, since: Instant) -> None:
        self._since[key] = since
        for cap in self._waiting[key][1]["accruing"]:
            self._ageing[cap.scope] = self._ageing.get(cap.scope, 0) + 1

    def _stop_ageing(self, key: WorkloadKey, caps: Caps) -> None:
        if self._since.pop(key, None) is not None:
            for cap in caps["accruing"]:
                self._ageing[cap.scope] -= 1

    def _count(self, caps: Caps, sign: int) -> None:
        self._stale = True
        for cap in caps["submitted"]:
            count = self._submitted[cap.scope] = self._submitted.get(cap.scope, 0) + sign
            if count > cap.limit:
                self._over[cap.scope] = None
            else:
                self._over.pop(cap.scope, None)

    def _caps_of(self, standing: Standing) -> Caps:
        """Return the places that there are for workloads like this one: one value for all."""
        member = standing.member
        group = (member.association, _name(member.qos), _name(member.partition), member.user)
        caps = self._caps.get(group)
        if caps is None:
            found: Caps = {what: tuple(self._caps_on(standing, what)) for what in _FIELDS}
            caps = self._caps[group] = found
        return caps

    def _caps_on(self, standing: Standing, what: What) -> Iterator[_Cap]:
        association = standing.member.association
        spec = self._accounts.specs[association] if association != NONE else None
        for owner in self._limits.owners(standing):
            for per, field in _FIELDS[what]:
                limit: int | None = getattr(owner.limits, field)
                if limit is None:
                    continue
                if per == "group":
                    yield _Cap((owner.name, per, ""), limit, owner, per)
                elif owner.side == "Assoc" and per == "user":
                    yield _Cap((self._accounts.owner(association), "group", ""), limit, owner, per)
                elif owner.side == "QOS" and spec is not None:
                    whose = spec.account if per == "account" else spec.user or ""
                    yield _Cap((owner.name, per, whose), limit, owner, per)
                elif owner.side == "QOS" and per == "user" and standing.member.user:
                    yield _Cap((owner.name, per, standing.member.user), limit, owner, per)


def _too_many(cap: _Cap, used: int) -> LimitReached:
    return LimitReached(
        code=_CODES.get((cap.owner.side, cap.per), "AccountingPolicy"),
        owner=cap.owner.name,
        per=cap.scope[1],
        whose=cap.scope[2],
        unit="jobs",
        used=used,
        wanted=1,
        limit=cap.limit,
        denied=True,
    )


def _name(one: Qos | Partition | None) -> str:
    return one.name if one is not None else ""


def _came(workload: Workload) -> _Came:
    return workload.created_at, workload.turn.number, workload.turn.task, workload.uid
