"""Submit slots: how many workloads may be submitted, and how many may gain age (spec priority §7).

A slot goes to the workload that was created first; a slot that becomes free goes to the next.
Workloads of one user, QOS and partition are under the same limits and form one group, so a free
slot costs a check of the first of each group. While no limit is exceeded this is only counting.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Literal, NamedTuple

from unisono.engine.model.explanation import LimitReached
from unisono.engine.model.multifactor import Partition, Qos
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.workload import Workload
from unisono.engine.ordering.accounts import NONE, Accounts
from unisono.engine.ordering.factors import JobRecord
from unisono.engine.ordering.limit_counters import Per, Scope
from unisono.engine.ordering.limits import LimitChecker, Owner
from unisono.engine.state.features import Accruing

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
    """So many slots a scope has."""

    scope: Scope
    limit: int
    owner: Owner
    per: Per


Caps = dict[What, tuple[_Cap, ...]]
_Created = tuple[Instant, int, int, str]


class SubmitSlots:
    """Which workloads count as submitted, and which gain age."""

    def __init__(self, accounts: Accounts, limits: LimitChecker) -> None:
        self._accounts = accounts
        self._limits = limits
        self._caps: dict[tuple[int, str, str, str], Caps] = {}
        self._running: dict[WorkloadKey, Caps] = {}  # only under a limit on submitted workloads
        self._waiting: dict[WorkloadKey, tuple[_Created, Caps]] = {}
        self._submitted: dict[Scope, int] = {}  # running or pending
        self._over: dict[Scope, None] = {}
        self._accruing: dict[Scope, int] = {}
        self._since: dict[WorkloadKey, Instant] = {}
        # Workloads without an accrue slot, by the identity of their caps.
        self._queues: dict[int, list[tuple[_Created, WorkloadKey]]] = {}
        self._refused: dict[WorkloadKey, LimitReached] = {}
        self._stale = False

    def add_pending(self, workload: Workload, record: JobRecord) -> None:
        """Take in a pending workload."""
        caps = self._caps_of(record)
        if caps["submitted"] or caps["accruing"]:
            created = _created(workload)
            self._waiting[workload.key] = (created, caps)
            self._count(caps, 1)
            if caps["accruing"]:
                heapq.heappush(self._queues.setdefault(id(caps), []), (created, workload.key))

    def add_running(self, key: WorkloadKey, record: JobRecord) -> None:
        """Take in a running workload; it keeps its submit slot."""
        caps = self._caps_of(record)
        if caps["submitted"]:
            self._running[key] = caps
            self._count(caps, 1)

    def remove(self, key: WorkloadKey) -> None:
        """Free the slots of a workload that starts or ends."""
        caps = self._running.pop(key, None)
        if caps is None and key in self._waiting:
            caps = self._waiting.pop(key)[1]
        if caps is None:
            self._since.pop(key, None)
            return
        self._refused.pop(key, None)
        self._stop_accruing(key, caps)
        self._count(caps, -1)

    def refusal(self, key: WorkloadKey) -> LimitReached | None:
        """Return the limit that keeps a workload from counting as submitted."""
        return self._refused.get(key)

    def accrues_since(self, key: WorkloadKey) -> Instant | None:
        """Return since when a workload gains age; 0 if no limit says, None if it does not."""
        known = self._waiting.get(key)
        is_limited = known is not None and bool(known[1]["accruing"])
        return self._since.get(key, None if is_limited else Instant(0))

    def release(self, key: WorkloadKey, now: Instant) -> None:
        """Let a workload that was held gain age from now on."""
        if key not in self._waiting or not self._waiting[key][1]["accruing"]:
            self._since[key] = now

    def accruing(self) -> Accruing:
        """Return since when workloads gain age, of those that needed a slot for it."""
        return tuple(sorted(self._since.items()))

    def load(self, accruing: Accruing) -> None:
        """Go on from recorded starts of age."""
        for key, since in accruing:
            if key in self._waiting and key not in self._since:
                self._accrue(key, since)
            else:
                self._since[key] = since

    def settle(self, now: Instant) -> list[WorkloadKey]:
        """Assign free slots, first come first served; return the workloads that changed."""
        if not self._stale:
            return []
        self._stale = False
        refused = self._without_slot() if self._over else {}
        changed = [
            key
            for key in {**refused, **self._refused}
            if (key in refused) != (key in self._refused)
        ]
        self._refused = refused
        changed.extend(self._assign_accruing(now))
        return [key for key in dict.fromkeys(changed) if key in self._waiting]

    def _without_slot(self) -> dict[WorkloadKey, LimitReached]:
        """Find the workloads without a submit slot: running ones have theirs, then the oldest."""
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

    def _assign_accruing(self, now: Instant) -> Iterator[WorkloadKey]:
        """Assign accrue slots, to the first of all groups first."""
        while True:
            first: tuple[_Created, WorkloadKey] | None = None
            for group in list(self._queues):
                head = self._first_of(group)
                if head is not None and (first is None or head < first):
                    first = head
            if first is None:
                return
            self._accrue(first[1], now)
            yield first[1]

    def _first_of(self, group: int) -> tuple[_Created, WorkloadKey] | None:
        """Return the next of a group if there is a slot for it; drop those that are gone."""
        queue = self._queues[group]
        while queue and (queue[0][1] not in self._waiting or queue[0][1] in self._since):
            heapq.heappop(queue)
        if not queue:
            del self._queues[group]
            return None
        caps = self._waiting[queue[0][1]][1]
        has_slot = all(self._accruing.get(cap.scope, 0) < cap.limit for cap in caps["accruing"])
        return queue[0] if has_slot else None

    def _accrue(self, key: WorkloadKey, since: Instant) -> None:
        self._since[key] = since
        for cap in self._waiting[key][1]["accruing"]:
            self._accruing[cap.scope] = self._accruing.get(cap.scope, 0) + 1

    def _stop_accruing(self, key: WorkloadKey, caps: Caps) -> None:
        if self._since.pop(key, None) is not None:
            for cap in caps["accruing"]:
                self._accruing[cap.scope] -= 1

    def _count(self, caps: Caps, sign: int) -> None:
        self._stale = True
        for cap in caps["submitted"]:
            count = self._submitted[cap.scope] = self._submitted.get(cap.scope, 0) + sign
            if count > cap.limit:
                self._over[cap.scope] = None
            else:
                self._over.pop(cap.scope, None)

    def _caps_of(self, record: JobRecord) -> Caps:
        """Return the slots for workloads under the same limits: one value for all of them."""
        member = record.member
        group = (member.association, _name(member.qos), _name(member.partition), member.user)
        caps = self._caps.get(group)
        if caps is None:
            found: Caps = {what: tuple(self._caps_on(record, what)) for what in _FIELDS}
            caps = self._caps[group] = found
        return caps

    def _caps_on(self, record: JobRecord, what: What) -> Iterator[_Cap]:
        association = record.member.association
        spec = self._accounts.specs[association] if association != NONE else None
        for owner in self._limits.owners(record):
            for per, field in _FIELDS[what]:
                limit: int | None = getattr(owner.limits, field)
                if limit is None:
                    continue
                if per == "group":
                    yield _Cap((owner.name, per, ""), limit, owner, per)
                elif owner.side == "Assoc" and per == "user":
                    yield _Cap((self._accounts.owner(association), "group", ""), limit, owner, per)
                elif owner.side == "QOS" and spec is not None:
                    member = spec.account if per == "account" else spec.user or ""
                    yield _Cap((owner.name, per, member), limit, owner, per)
                elif owner.side == "QOS" and per == "user" and record.member.user:
                    yield _Cap((owner.name, per, record.member.user), limit, owner, per)


def _too_many(cap: _Cap, used: int) -> LimitReached:
    return LimitReached(
        code=_CODES.get((cap.owner.side, cap.per), "AccountingPolicy"),
        owner=cap.owner.name,
        per=cap.scope[1],
        member=cap.scope[2],
        unit="jobs",
        used=used,
        wanted=1,
        limit=cap.limit,
        denied=True,
    )


def _name(one: Qos | Partition | None) -> str:
    return one.name if one is not None else ""


def _created(workload: Workload) -> _Created:
    return (
        workload.created_at,
        workload.submit_options.number,
        workload.submit_options.task,
        workload.uid,
    )
