"""Tallies: how many workloads, and how much of each TRES, every owner of limits has now.

A scope is what one limit counts: an association with all below it, a QOS, a user within a QOS, an
account within a QOS. Integers only: whatever was added is taken away exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from unisono.engine.model.names import Instant
from unisono.engine.ordering.accounts import Accounts
from unisono.engine.ordering.factors import Standing
from unisono.engine.ordering.membership import NONE, Member
from unisono.engine.ordering.tres import MICRO, MILLI, Tres

Per = Literal["group", "user", "account"]
# An owner, what of it is counted, and within a QOS the user's or the account's name.
Scope = tuple[str, Per, str]


def scopes_of(member: Member, accounts: Accounts) -> Iterator[Scope]:
    """Yield everything that a workload counts for."""
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
class Tally:
    """What one scope has now."""

    jobs: int = 0
    tres: Tres = field(default_factory=dict)
    # Of those with a time limit: their TRES, and TRES times the instant of their end.
    limited: Tres = field(default_factory=dict)
    ends: Tres = field(default_factory=dict)

    def run_minutes(self, name: str, now: Instant) -> int:
        """Return the TRES minutes that what runs may still use, in thousandths."""
        return (self.ends.get(name, 0) - now * self.limited.get(name, 0)) // 60_000


@dataclass(slots=True)
class Counted:
    """One workload as it was counted, so that it is taken away as it came."""

    scopes: tuple[Scope, ...]
    tres: Tres
    end: Instant | None


class Tallies:
    """All scopes."""

    __slots__ = ("_by_scope",)

    def __init__(self) -> None:
        self._by_scope: dict[Scope, Tally] = {}

    def of(self, scope: Scope) -> Tally:
        """Return what a scope has; nothing if it was never counted."""
        return self._by_scope.get(scope, _NOTHING)

    def come(self, counted: Counted) -> None:
        """Count a workload."""
        self._count(counted, 1)

    def go(self, counted: Counted) -> None:
        """Count it no longer."""
        self._count(counted, -1)

    def _count(self, counted: Counted, sign: int) -> None:
        for scope in counted.scopes:
            tally = self._by_scope.get(scope)
            if tally is None:
                tally = self._by_scope[scope] = Tally()
            tally.jobs += sign
            for name, amount in counted.tres.items():
                tally.tres[name] = tally.tres.get(name, 0) + sign * amount
                if counted.end is not None:
                    tally.limited[name] = tally.limited.get(name, 0) + sign * amount
                    tally.ends[name] = tally.ends.get(name, 0) + sign * amount * counted.end
            if not tally.jobs:
                del self._by_scope[scope]


_NOTHING = Tally()


def counted(standing: Standing, accounts: Accounts, since: Instant) -> Counted:
    """Return a workload as it counts while it runs."""
    limit_ms = standing.time_limit_ms
    return Counted(
        scopes=tuple(scopes_of(standing.member, accounts)),
        tres=billed(standing),
        end=None if limit_ms is None else Instant(since + limit_ms),
    )


def billed(standing: Standing) -> Tres:
    """Return what a workload takes, its price included."""
    return {**standing.size.tres, "billing": standing.billing_micro * MILLI // MICRO}
