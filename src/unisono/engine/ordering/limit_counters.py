"""What limits count: running workloads and their TRES, for every scope that a limit may have.

A scope is an association with all below it, a QOS, a user within a QOS, or an account within a QOS.
Integers only: what was added is taken away exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from unisono.engine.model.names import Instant
from unisono.engine.ordering.accounts import NONE, Accounts, Membership
from unisono.engine.ordering.factors import JobRecord
from unisono.engine.ordering.tres import MICRO, MILLI, Tres

Per = Literal["group", "user", "account"]
# An owner, what of it is counted, and within a QOS the user's or the account's name.
Scope = tuple[str, Per, str]


def scopes_of(member: Membership, accounts: Accounts) -> Iterator[Scope]:
    """Yield the scopes that a workload counts in."""
    spec = accounts.specs[member.association] if member.association != NONE else None
    for number in accounts.path(member.association):
        yield accounts.owner(number), "group", ""
    for qos in dict.fromkeys(one.name for one in (member.qos, member.partition_qos) if one):
        yield f"qos/{qos}", "group", ""
        if spec is not None:
            yield f"qos/{qos}", "user", spec.user or ""
            yield f"qos/{qos}", "account", spec.account
        elif member.user:
            yield f"qos/{qos}", "user", member.user


@dataclass(slots=True)
class LimitCounter:
    """What runs in one scope."""

    jobs: int = 0
    tres: Tres = field(default_factory=dict)
    # Of workloads with a time limit: their TRES, and TRES times the instant of their end.
    limited: Tres = field(default_factory=dict)
    ends: Tres = field(default_factory=dict)

    def run_minutes(self, name: str, now: Instant) -> int:
        """Return the TRES minutes that what runs may still use, in thousandths."""
        return (self.ends.get(name, 0) - now * self.limited.get(name, 0)) // 60_000


@dataclass(slots=True)
class Counted:
    """One workload as it was counted, so that it is uncounted alike."""

    scopes: tuple[Scope, ...]
    tres: Tres
    end: Instant | None


class LimitCounters:
    """The counters of all scopes."""

    __slots__ = ("_by_scope",)

    def __init__(self) -> None:
        self._by_scope: dict[Scope, LimitCounter] = {}

    def of(self, scope: Scope) -> LimitCounter:
        """Return the counter of a scope; of nothing if it was never counted."""
        return self._by_scope.get(scope, _NOTHING)

    def add(self, counted: Counted) -> None:
        """Count a workload."""
        self._count(counted, 1)

    def remove(self, counted: Counted) -> None:
        """Count a workload no longer."""
        self._count(counted, -1)

    def _count(self, counted: Counted, sign: int) -> None:
        for scope in counted.scopes:
            counter = self._by_scope.get(scope)
            if counter is None:
                counter = self._by_scope[scope] = LimitCounter()
            counter.jobs += sign
            for name, amount in counted.tres.items():
                counter.tres[name] = counter.tres.get(name, 0) + sign * amount
                if counted.end is not None:
                    counter.limited[name] = counter.limited.get(name, 0) + sign * amount
                    counter.ends[name] = counter.ends.get(name, 0) + sign * amount * counted.end
            if not counter.jobs:
                del self._by_scope[scope]


_NOTHING = LimitCounter()


def counted(record: JobRecord, accounts: Accounts, since: Instant) -> Counted:
    """Return a workload as it counts while it runs."""
    limit_ms = record.time_limit_ms
    return Counted(
        scopes=tuple(scopes_of(record.member, accounts)),
        tres=billed(record),
        end=None if limit_ms is None else Instant(since + limit_ms),
    )


def billed(record: JobRecord) -> Tres:
    """Return the TRES of a workload, billing included."""
    return {**record.size.tres, "billing": record.billing_micro * MILLI // MICRO}
