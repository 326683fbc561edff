"""Meters that count as Slurm does, from cycle to cycle (spec turns §3, `compat`).

Every period, what was used is multiplied by d ** period (d = 1 - 0.693 / half-life, per second),
and each workload that runs adds `rate * s * d ** s` for the s seconds since it started or since
the cycle before. One that ends in between adds its rest at once, and that rest fades with all else
at the next cycle. Between two cycles a reading does not change, except by such rests.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from unisono.engine.model.names import Instant
from unisono.engine.model.turns import Turns
from unisono.engine.ordering.resets import last_reset
from unisono.engine.ordering.tres import MICRO

_LN2_OF_SLURM = 0.693


@dataclass(slots=True)
class _Meter:
    fades: bool
    amount: float = 0.0
    at: Instant = Instant(0)  # the last cycle, or when it was written down
    rate: int = 0  # of what ran already then
    fresh: list[tuple[Instant, int]] = field(default_factory=list)  # started since: when, rate

    def copy(self) -> _Meter:
        return _Meter(self.fades, self.amount, self.at, self.rate, list(self.fresh))


class StepwiseMeters:
    """Meters that move once a period."""

    def __init__(self, rules: Turns) -> None:
        self._rules = rules
        self._period_ms = max(1, rules.calc_period_ms)
        self._meters: list[_Meter] = []

    def add(self, *, fades: bool = True) -> int:
        """Make one more meter and return its number."""
        self._meters.append(_Meter(fades and self._rules.half_life_ms > 0))
        return len(self._meters) - 1

    def start(self, meter: int, rate: int, since: Instant, now: Instant) -> None:
        """Let something count; it is first added at the next cycle, or if that was missed, now."""
        one = self._moved(self._meters[meter], now)
        if since < one.at:
            one.amount += self._added(one, rate, one.at - since)
            one.rate += rate
        else:
            one.fresh.append((since, rate))
        self._meters[meter] = one

    def stop(self, meter: int, rate: int, since: Instant, now: Instant) -> None:
        """Let something end: its rest is added at once."""
        one = self._moved(self._meters[meter], now)
        if (since, rate) in one.fresh:
            one.fresh.remove((since, rate))
        else:
            one.rate -= rate
        one.amount += self._added(one, rate, now - max(since, one.at))
        self._meters[meter] = one

    def value(self, meter: int, now: Instant) -> float:
        """Return what was used until the last cycle, and the rests since."""
        return self._moved(self._meters[meter], now).amount

    def read(self, meter: int) -> tuple[float, Instant]:
        """Return what is written down."""
        return self._meters[meter].amount, self._meters[meter].at

    def settled(self, meter: int, now: Instant) -> tuple[float, Instant]:
        """Return all that was used until the last cycle."""
        one = self._moved(self._meters[meter], now)
        return one.amount, one.at

    def write(self, meter: int, amount: float, at: Instant) -> None:
        """Take over what was written down."""
        one = self._meters[meter]
        one.amount, one.at = amount, at
        one.rate += sum(rate for since, rate in one.fresh if since <= at)
        one.fresh = [(since, rate) for since, rate in one.fresh if since > at]

    def below_at(self, meter: int, limit: float, now: Instant) -> Instant | None:
        """Return the first cycle after which the value is below a limit; None: not by itself."""
        one = self._moved(self._meters[meter], now)
        if one.amount < limit:
            return now
        if not one.fades:
            return None
        cycles = 0
        while one.amount >= limit:
            before = one.amount
            one = self._moved(one, Instant(one.at - one.at % self._period_ms + self._period_ms))
            cycles += 1
            if one.amount >= before or cycles > _MOST_CYCLES:
                return None
        return one.at

    def _moved(self, meter: _Meter, now: Instant) -> _Meter:
        """Return a meter as it is after every cycle until now."""
        one = meter.copy()
        reset = last_reset(self._rules.reset, now)
        if reset > one.at:
            one.amount = 0.0
        last = Instant(now - now % self._period_ms)
        while one.at < last and (one.amount or one.rate or one.fresh):
            self._cycle(one, Instant(one.at - one.at % self._period_ms + self._period_ms))
            if not one.fresh and one.at < last:
                self._many_cycles(one, (last - one.at) // self._period_ms)
        one.at = max(one.at, last)
        return one

    def _cycle(self, one: _Meter, at: Instant) -> None:
        elapsed_ms = at - one.at
        one.amount *= self._kept(one, elapsed_ms)
        one.amount += self._added(one, one.rate, elapsed_ms)
        for since, rate in one.fresh:
            if since <= at:
                one.amount += self._added(one, rate, at - max(since, one.at))
                one.rate += rate
        one.fresh = [(since, rate) for since, rate in one.fresh if since > at]
        one.at = at

    def _many_cycles(self, one: _Meter, cycles: int) -> None:
        """Pass many cycles in which nothing starts or ends: a geometric series."""
        kept = self._kept(one, self._period_ms)
        added = self._added(one, one.rate, self._period_ms)
        all_kept = kept**cycles
        series = cycles if kept == 1.0 else (1.0 - all_kept) / (1.0 - kept)
        one.amount = one.amount * all_kept + added * series
        one.at = Instant(one.at + cycles * self._period_ms)

    def _kept(self, one: _Meter, elapsed_ms: int) -> float:
        if not one.fades:
            return 1.0
        per_second = 1.0 - _LN2_OF_SLURM / (self._rules.half_life_ms / 1000)
        return float(max(0.0, per_second) ** (elapsed_ms / 1000))

    def _added(self, one: _Meter, rate: int, elapsed_ms: int) -> float:
        return rate / MICRO * elapsed_ms / 1000 * self._kept(one, elapsed_ms)


_MOST_CYCLES = 100_000  # a year of five minutes; a limit that far away is no reason to look again
