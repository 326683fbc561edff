"""What accounts, users and QOS have used: a counter for each that matters (spec priority §3).

A running workload is charged to its user, every account above and, where a limit needs it, its QOS.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.model.multifactor import Limits, MultifactorRules, UsageRecord
from unisono.engine.model.names import Instant
from unisono.engine.ordering.accounts import Accounts
from unisono.engine.ordering.factors import JobRecord
from unisono.engine.ordering.tres import MICRO, MILLI
from unisono.engine.ordering.usage_counters import counters_for

BILLING = "billing"
WALL = "wall"


class AccountUsage:
    """Every usage counter, by its owner's name and by what it counts."""

    def __init__(self, rules: MultifactorRules, accounts: Accounts) -> None:
        self._rules = rules
        self._accounts = accounts
        self._counters = counters_for(rules)
        self._number: dict[tuple[str, str], int] = {}
        self._billing: list[int] = []  # the counter of each association
        self._counted_for = {
            f"qos/{one.name}": (_watched(one.limits), not one.no_decay) for one in rules.qos
        }
        self.version = 0  # grows when a value changes although no time has passed
        self.moves = 0  # grows when a workload starts or ends

    def start(self, record: JobRecord, since: Instant, now: Instant) -> None:
        """Charge a workload that runs since `since`."""
        self.moves += 1
        if since < now:
            self.version += 1
        for owner, what, rate in self._rates(record):
            self._counters.start(self._counter(owner, what), rate, since, now)

    def stop(self, record: JobRecord, since: Instant, now: Instant) -> None:
        """End the charge of a workload."""
        self.moves += 1
        if self._rules.compat:
            self.version += 1
        for owner, what, rate in self._rates(record):
            self._counters.stop(self._counter(owner, what), rate, since, now)

    def billing(self, now: Instant) -> list[float]:
        """Return the billing usage of every association, by number."""
        for number in range(len(self._billing), len(self._accounts.specs)):
            self._billing.append(self._counter(self._accounts.owner(number), BILLING))
        return [self._counters.value(counter, now) for counter in self._billing]

    def used(self, owner: str, what: str, now: Instant) -> float:
        """Return what an owner used of something; 0 if no limit needs it counted."""
        number = self._number.get((owner, what))
        return self._counters.value(number, now) if number is not None else 0.0

    def decays_below(self, owner: str, what: str, limit: float, now: Instant) -> Instant | None:
        """Return when that decays below a limit."""
        number = self._number.get((owner, what))
        return self._counters.below_at(number, limit, now) if number is not None else None

    def records(self) -> tuple[UsageRecord, ...]:
        """Return all counters as they are stored; users that are not configured too."""
        return tuple(
            UsageRecord(owner=owner, what=what, amount=amount, at=at)
            for (owner, what), number in sorted(self._number.items())
            for amount, at in [self._counters.read(number)]
        )

    def settled(self, now: Instant) -> tuple[UsageRecord, ...]:
        """Return all usage until the same instant, for counters of other rules to go on from."""
        return tuple(
            UsageRecord(owner=owner, what=what, amount=amount, at=at)
            for (owner, what), number in sorted(self._number.items())
            for amount, at in [self._counters.settled(number, now)]
        )

    def load(self, record: UsageRecord) -> None:
        """Go on from recorded usage."""
        is_qos = record.owner.startswith("qos/")
        if is_qos or self._accounts.at(record.owner) is not None:
            counter = self._counter(record.owner, record.what)
            self._counters.write(counter, record.amount, record.at)
            self.version += 1

    def _counter(self, owner: str, what: str) -> int:
        number = self._number.get((owner, what))
        if number is None:
            decays = self._counted_for.get(owner, ((), True))[1]
            number = self._number[owner, what] = self._counters.add(decays=decays)
        return number

    def _rates(self, record: JobRecord) -> Iterator[tuple[str, str, int]]:
        """Yield what a workload is charged: owner, what, and millionths a second."""
        member = record.member
        factor = member.qos.usage_factor if member.qos is not None else 1.0
        for number in self._accounts.path(member.association):
            owner = self._accounts.owner(number)
            yield owner, BILLING, round(record.billing_micro * factor)
            for what in _watched(self._accounts.specs[number].limits):
                if what == BILLING:
                    continue  # counted already
                yield owner, what, _rate(record, what, factor)
        for qos in dict.fromkeys(one.name for one in (member.qos, member.partition_qos) if one):
            for what in self._counted_for[f"qos/{qos}"][0]:
                yield f"qos/{qos}", what, _rate(record, what, factor)


def _watched(limits: Limits) -> tuple[str, ...]:
    """Return what has to be counted because it is limited."""
    names = tuple(name for name, _ in limits.group_tres_minutes)
    return (*names, WALL) if limits.group_wall_ms is not None else names


def _rate(record: JobRecord, what: str, factor: float) -> int:
    if what == WALL:
        return MICRO
    if what == BILLING:
        return round(record.billing_micro * factor)
    return round(record.size.tres.get(what, 0) * (MICRO // MILLI) * factor)
