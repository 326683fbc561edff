"""What accounts, users and QOS have used: a meter for everything that is asked for (spec turns §3).

A workload that runs costs its user, every account above and, where a limit asks for it, its QOS.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.model.names import Instant
from unisono.engine.model.turns import Limits, Turns, UsageRecord
from unisono.engine.ordering.accounts import Accounts
from unisono.engine.ordering.factors import Standing
from unisono.engine.ordering.meters import meters_for
from unisono.engine.ordering.tres import MICRO, MILLI

BILLING = "billing"
WALL = "wall"


class Spending:
    """Every meter, by its owner's name and by what it counts."""

    def __init__(self, rules: Turns, accounts: Accounts) -> None:
        self._rules = rules
        self._accounts = accounts
        self._meters = meters_for(rules)
        self._number: dict[tuple[str, str], int] = {}
        self._billing: list[int] = []  # the meter of each association
        self._asked_for = {
            f"qos/{one.name}": (_watched(one.limits), not one.no_decay) for one in rules.qos
        }
        self.version = 0  # grows when a reading changes although no time has passed
        self.moves = 0  # grows when somebody starts or ends

    def start(self, standing: Standing, since: Instant, now: Instant) -> None:
        """Let a workload cost something, from `since` on."""
        self.moves += 1
        if since < now:
            self.version += 1
        for owner, what, rate in self._rates(standing):
            self._meters.start(self._meter(owner, what), rate, since, now)

    def stop(self, standing: Standing, since: Instant, now: Instant) -> None:
        """Let it cost nothing any more."""
        self.moves += 1
        if self._rules.compat:
            self.version += 1
        for owner, what, rate in self._rates(standing):
            self._meters.stop(self._meter(owner, what), rate, since, now)

    def billing(self, now: Instant) -> list[float]:
        """Return what every association used until now, by number."""
        for number in range(len(self._billing), len(self._accounts.specs)):
            self._billing.append(self._meter(self._accounts.owner(number), BILLING))
        return [self._meters.value(meter, now) for meter in self._billing]

    def spent(self, owner: str, what: str, now: Instant) -> float:
        """Return what an owner used of something; nothing if nobody asked to count it."""
        number = self._number.get((owner, what))
        return self._meters.value(number, now) if number is not None else 0.0

    def fades_below(self, owner: str, what: str, limit: float, now: Instant) -> Instant | None:
        """Return when that falls below a limit by itself."""
        number = self._number.get((owner, what))
        return self._meters.below_at(number, limit, now) if number is not None else None

    def records(self) -> tuple[UsageRecord, ...]:
        """Write everything down; a user whom nobody configured is remembered by its record."""
        return tuple(
            UsageRecord(owner=owner, what=what, amount=amount, at=at)
            for (owner, what), number in sorted(self._number.items())
            for amount, at in [self._meters.read(number)]
        )

    def settled(self, now: Instant) -> tuple[UsageRecord, ...]:
        """Write down what everybody used until the same instant, for whoever begins anew."""
        return tuple(
            UsageRecord(owner=owner, what=what, amount=amount, at=at)
            for (owner, what), number in sorted(self._number.items())
            for amount, at in [self._meters.settled(number, now)]
        )

    def take_over(self, record: UsageRecord) -> None:
        """Go on from what was written down."""
        is_qos = record.owner.startswith("qos/")
        if is_qos or self._accounts.at(record.owner) is not None:
            meter = self._meter(record.owner, record.what)
            self._meters.write(meter, record.amount, record.at)
            self.version += 1

    def _meter(self, owner: str, what: str) -> int:
        number = self._number.get((owner, what))
        if number is None:
            fades = self._asked_for.get(owner, ((), True))[1]
            number = self._number[owner, what] = self._meters.add(fades=fades)
        return number

    def _rates(self, standing: Standing) -> Iterator[tuple[str, str, int]]:
        """Yield what a workload costs a second, in millionths, and whom."""
        member = standing.member
        factor = member.qos.usage_factor if member.qos is not None else 1.0
        for number in self._accounts.path(member.association):
            owner = self._accounts.owner(number)
            yield owner, BILLING, round(standing.billing_micro * factor)
            for what in _watched(self._accounts.specs[number].limits):
                if what == BILLING:
                    continue  # counted already
                yield owner, what, _rate(standing, what, factor)
        for qos in dict.fromkeys(one.name for one in (member.qos, member.partition_qos) if one):
            for what in self._asked_for[f"qos/{qos}"][0]:
                yield f"qos/{qos}", what, _rate(standing, what, factor)


def _watched(limits: Limits) -> tuple[str, ...]:
    """Return what has to be counted because somebody limits it."""
    names = tuple(name for name, _ in limits.group_tres_minutes)
    return (*names, WALL) if limits.group_wall_ms is not None else names


def _rate(standing: Standing, what: str, factor: float) -> int:
    if what == WALL:
        return MICRO
    if what == BILLING:
        return round(standing.billing_micro * factor)
    return round(standing.size.tres.get(what, 0) * (MICRO // MILLI) * factor)
