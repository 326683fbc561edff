"""Usage of accounts, users and QOS: counters that decay by half every half-life (spec priority §3).

`ExactCounters` are (amount, instant, rate): what had been used at the instant, and what is used per
second since. The value at any later instant is one formula, so a counter is touched only when a
workload starts or ends, and reading it changes nothing:

    U(t + d) = U(t) * k + rate * (1 - k) / ln2 * H        with k = 2 ** (-d / H)

`PeriodicCounters` count as Slurm does, from one calculation to the next (`compat`): every period,
the amount is multiplied by d ** period (d = 1 - 0.693 / half-life, per second), and each running
workload adds `rate * s * d ** s` for the s seconds since it started or since the calculation
before. One that ends in between adds its rest at once, and that rest decays with all else at the
next calculation. Between two calculations a value changes only by such rests.

Rates are integers (millionths), so what was added is taken away exactly.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Literal, Protocol

from unisono.engine.model.multifactor import Limits, MultifactorRules, UsageRecord
from unisono.engine.model.names import Instant
from unisono.engine.ordering.accounts import Accounts
from unisono.engine.ordering.factors import JobRecord
from unisono.engine.ordering.tres import MICRO, MILLI

_LN2 = math.log(2)


class UsageCounters(Protocol):
    """Any number of usage counters, by number."""

    def add(self, *, decays: bool = True) -> int:
        """Make one more counter and return its number; one that does not decay only grows."""

    def start(self, counter: int, rate: int, since: Instant, now: Instant) -> None:
        """Charge a workload that runs since `since`, so much (in millionths) a second."""

    def stop(self, counter: int, rate: int, since: Instant, now: Instant) -> None:
        """End the charge of a workload that ran since `since`."""

    def value(self, counter: int, now: Instant) -> float:
        """Return what was used until now."""

    def read(self, counter: int) -> tuple[float, Instant]:
        """Return the counter as it is stored: an amount, and the instant it is of."""

    def settled(self, counter: int, now: Instant) -> tuple[float, Instant]:
        """Return all usage until an instant, now or shortly before, and the instant."""

    def write(self, counter: int, amount: float, at: Instant) -> None:
        """Take over a stored counter; workloads charged now go on being charged."""

    def below_at(self, counter: int, limit: float, now: Instant) -> Instant | None:
        """Return when the value decays below a limit if nothing starts or ends; None: never."""


class ExactCounters:
    """Counters whose value is exact at every instant."""

    def __init__(self, rules: MultifactorRules) -> None:
        self._rules = rules
        self._amount: list[float] = []
        self._at: list[Instant] = []
        self._rate: list[int] = []
        self._decays: list[bool] = []

    def add(self, *, decays: bool = True) -> int:
        """Make one more counter and return its number."""
        self._amount.append(0.0)
        self._at.append(Instant(0))
        self._rate.append(0)
        self._decays.append(decays and self._rules.half_life_ms > 0)
        return len(self._amount) - 1

    def start(self, counter: int, rate: int, since: Instant, now: Instant) -> None:
        """Charge a workload; what it used before it was known here is added."""
        amount = self.value(counter, now)
        since = max(since, last_reset(self._rules.reset, now))
        if since < now:
            amount = self._grown(counter, amount, 0.0, rate / MICRO, now - since)
        self._amount[counter], self._at[counter] = amount, now
        self._rate[counter] += rate

    def stop(self, counter: int, rate: int, since: Instant, now: Instant) -> None:
        """End a charge."""
        self._amount[counter], self._at[counter] = self.value(counter, now), now
        self._rate[counter] -= rate

    def value(self, counter: int, now: Instant) -> float:
        """Return what was used until now."""
        amount, at, rate = self._amount[counter], self._at[counter], self._rate[counter]
        reset = last_reset(self._rules.reset, now)
        if reset > at:
            amount, at = 0.0, reset
        if now <= at or (not amount and not rate):
            return amount
        return self._grown(counter, 0.0, amount, rate / MICRO, now - at)

    def _grown(self, counter: int, fixed: float, old: float, rate: float, elapsed_ms: int) -> float:
        """Return a fixed amount, an old one decayed, and what the rate added meanwhile."""
        if not self._decays[counter]:
            return fixed + old + rate * elapsed_ms / 1000
        half_life_ms = self._rules.half_life_ms
        kept = math.exp2(-elapsed_ms / half_life_ms)
        gone = -math.expm1(-elapsed_ms / half_life_ms * _LN2)
        return fixed + old * kept + rate * gone * half_life_ms / 1000 / _LN2

    def read(self, counter: int) -> tuple[float, Instant]:
        """Return the counter as it is stored."""
        return self._amount[counter], self._at[counter]

    def settled(self, counter: int, now: Instant) -> tuple[float, Instant]:
        """Return all that was used until now."""
        return self.value(counter, now), now

    def write(self, counter: int, amount: float, at: Instant) -> None:
        """Take over a stored counter."""
        self._amount[counter], self._at[counter] = amount, at

    def below_at(self, counter: int, limit: float, now: Instant) -> Instant | None:
        """Return when the value decays below a limit, rounded up to a millisecond."""
        value = self.value(counter, now)
        if value < limit:
            return now
        half_life_ms = self._rules.half_life_ms
        if not self._decays[counter]:
            return None
        # The value tends towards what the rate sustains and never decays below that.
        level = self._rate[counter] / MICRO * half_life_ms / 1000 / _LN2
        if level >= limit:
            return None
        halvings = math.log2((value - level) / (limit - level))
        return Instant(now + math.ceil(halvings * half_life_ms) + 1)


_LN2_OF_SLURM = 0.693
# A year of five minutes: a limit that far away is no reason to evaluate a workload again.
_MOST_CALCULATIONS = 100_000


@dataclass(slots=True)
class _Counter:
    decays: bool
    amount: float = 0.0
    at: Instant = Instant(0)  # the last calculation, or when it was stored
    rate: int = 0  # of what ran already then
    fresh: list[tuple[Instant, int]] = field(default_factory=list)  # started since then: when, rate
    # All that runs, and how often: a stored counter may be of before some of it started.
    charged: Counter[tuple[Instant, int]] = field(default_factory=Counter)

    def copy(self) -> _Counter:
        return _Counter(self.decays, self.amount, self.at, self.rate, [*self.fresh], self.charged)


class PeriodicCounters:
    """Counters that change once a period."""

    def __init__(self, rules: MultifactorRules) -> None:
        self._rules = rules
        self._period_ms = max(1, rules.calc_period_ms)
        self._counters: list[_Counter] = []

    def add(self, *, decays: bool = True) -> int:
        """Make one more counter and return its number."""
        self._counters.append(_Counter(decays and self._rules.half_life_ms > 0))
        return len(self._counters) - 1

    def start(self, counter: int, rate: int, since: Instant, now: Instant) -> None:
        """Charge a workload from the next calculation on; at once if that was missed."""
        one = self._moved(self._counters[counter], now)
        if since < one.at:
            one.amount += self._added(one, rate, one.at - since)
            one.rate += rate
        else:
            one.fresh.append((since, rate))
        one.charged[since, rate] += 1
        self._counters[counter] = one

    def stop(self, counter: int, rate: int, since: Instant, now: Instant) -> None:
        """End a charge: its rest is added at once."""
        one = self._moved(self._counters[counter], now)
        if (since, rate) in one.fresh:
            one.fresh.remove((since, rate))
        else:
            one.rate -= rate
        one.charged[since, rate] -= 1
        if not one.charged[since, rate]:
            del one.charged[since, rate]
        one.amount += self._added(one, rate, now - max(since, one.at))
        self._counters[counter] = one

    def value(self, counter: int, now: Instant) -> float:
        """Return the usage until the last calculation, and the rests since."""
        return self._moved(self._counters[counter], now).amount

    def read(self, counter: int) -> tuple[float, Instant]:
        """Return the counter as it is stored."""
        return self._counters[counter].amount, self._counters[counter].at

    def settled(self, counter: int, now: Instant) -> tuple[float, Instant]:
        """Return all usage until the last calculation."""
        one = self._moved(self._counters[counter], now)
        return one.amount, one.at

    def write(self, counter: int, amount: float, at: Instant) -> None:
        """Take over a stored counter."""
        one = self._counters[counter]
        one.amount, one.at = amount, at
        one.rate = sum(rate * n for (since, rate), n in one.charged.items() if since <= at)
        one.fresh = [charge for charge in one.charged.elements() if charge[0] > at]

    def below_at(self, counter: int, limit: float, now: Instant) -> Instant | None:
        """Return the first calculation after which the value is below a limit; None: none is."""
        one = self._moved(self._counters[counter], now)
        if one.amount < limit:
            return now
        if not one.decays:
            return None
        calculations = 0
        while one.amount >= limit:
            before = one.amount
            one = self._moved(one, Instant(one.at - one.at % self._period_ms + self._period_ms))
            calculations += 1
            if one.amount >= before or calculations > _MOST_CALCULATIONS:
                return None
        return one.at

    def _moved(self, counter: _Counter, now: Instant) -> _Counter:
        """Return a counter as it is after every calculation until now."""
        one = counter.copy()
        reset = last_reset(self._rules.reset, now)
        if reset > one.at:
            one.amount = 0.0
        last = Instant(now - now % self._period_ms)
        while one.at < last and (one.amount or one.rate or one.fresh):
            self._calculate(one, Instant(one.at - one.at % self._period_ms + self._period_ms))
            if not one.fresh and one.at < last:
                self._calculate_many(one, (last - one.at) // self._period_ms)
        one.at = max(one.at, last)
        return one

    def _calculate(self, one: _Counter, at: Instant) -> None:
        elapsed_ms = at - one.at
        one.amount *= self._kept(one, elapsed_ms)
        one.amount += self._added(one, one.rate, elapsed_ms)
        for since, rate in one.fresh:
            if since <= at:
                one.amount += self._added(one, rate, at - max(since, one.at))
                one.rate += rate
        one.fresh = [(since, rate) for since, rate in one.fresh if since > at]
        one.at = at

    def _calculate_many(self, one: _Counter, calculations: int) -> None:
        """Do many calculations between which nothing starts or ends: a geometric series."""
        kept = self._kept(one, self._period_ms)
        added = self._added(one, one.rate, self._period_ms)
        all_kept = kept**calculations
        series = calculations if kept == 1.0 else (1.0 - all_kept) / (1.0 - kept)
        one.amount = one.amount * all_kept + added * series
        one.at = Instant(one.at + calculations * self._period_ms)

    def _kept(self, one: _Counter, elapsed_ms: int) -> float:
        if not one.decays:
            return 1.0
        per_second = 1.0 - _LN2_OF_SLURM / (self._rules.half_life_ms / 1000)
        return float(max(0.0, per_second) ** (elapsed_ms / 1000))

    def _added(self, one: _Counter, rate: int, elapsed_ms: int) -> float:
        return rate / MICRO * elapsed_ms / 1000 * self._kept(one, elapsed_ms)


def counters_for(rules: MultifactorRules) -> UsageCounters:
    """Return the counters that the policy asks for."""
    return PeriodicCounters(rules) if rules.compat else ExactCounters(rules)


Period = Literal["never", "daily", "weekly", "monthly", "quarterly", "yearly"]
_HOUR_MS = 3600 * 1000


def last_reset(period: Period, now: Instant) -> Instant:
    """Return the last instant at which usage became zero; 0 if there was none.

    A day, a week (from Sunday), a month, a quarter and a year begin at midnight in UTC.

    >>> last_reset("monthly", Instant(1_767_268_800_000)) == Instant(1_767_225_600_000)
    True
    """
    if period == "never":
        return Instant(0)
    return _of_hour(period, now // _HOUR_MS)


@lru_cache(maxsize=64)  # asked many times about one hour
def _of_hour(period: Period, hour: int) -> Instant:
    moment = datetime.fromtimestamp(hour * 3600, tz=UTC)
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    match period:
        case "weekly":
            day -= timedelta(days=(day.weekday() + 1) % 7)
        case "monthly":
            day = day.replace(day=1)
        case "quarterly":
            day = day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "yearly":
            day = day.replace(month=1, day=1)
        case "daily" | "never":
            pass
    return Instant(round(day.timestamp() * 1000))


# --- usage of accounts, users and QOS -------------------------------------------------------------

# A counter for each that matters. A running workload is charged to its user, every account above
# and, where a limit needs it, its QOS.


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
