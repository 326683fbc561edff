"""Meters: what was used so far, fading by half every half-life (spec turns §3).

A meter is (amount, instant, rate): what had been used at the instant, and what is used per second
since. Its value at any later instant is one formula, so a meter is touched only when something
starts or ends, and reading it changes nothing:

    U(t + d) = U(t) * k + rate * (1 - k) / ln2 * H        with k = 2 ** (-d / H)

Rates are integers (millionths), so whatever was added can be taken away exactly.
"""

from __future__ import annotations

import math
from typing import Protocol

from unisono.engine.model.names import Instant
from unisono.engine.model.turns import Turns
from unisono.engine.ordering.resets import last_reset
from unisono.engine.ordering.tres import MICRO

_LN2 = math.log(2)


class Meters(Protocol):
    """Any number of meters, by number."""

    def add(self, *, fades: bool = True) -> int:
        """Make one more meter and return its number; one that does not fade only grows."""

    def start(self, meter: int, rate: int, since: Instant, now: Instant) -> None:
        """Let something count from `since` on, so much (in millionths) a second."""

    def stop(self, meter: int, rate: int, since: Instant, now: Instant) -> None:
        """Let something that counted since `since` end now."""

    def value(self, meter: int, now: Instant) -> float:
        """Return what was used until now."""

    def read(self, meter: int) -> tuple[float, Instant]:
        """Return what is written down: an amount, and the instant it is of."""

    def settled(self, meter: int, now: Instant) -> tuple[float, Instant]:
        """Return all that was used until an instant, now or shortly before, and the instant."""

    def write(self, meter: int, amount: float, at: Instant) -> None:
        """Take over what was written down; what counts now goes on counting."""

    def below_at(self, meter: int, limit: float, now: Instant) -> Instant | None:
        """Return when the value falls below a limit if nothing starts or ends; None: never."""


class ExactMeters:
    """Meters whose every reading is exact."""

    def __init__(self, rules: Turns) -> None:
        self._rules = rules
        self._amount: list[float] = []
        self._at: list[Instant] = []
        self._rate: list[int] = []
        self._fades: list[bool] = []

    def add(self, *, fades: bool = True) -> int:
        """Make one more meter and return its number."""
        self._amount.append(0.0)
        self._at.append(Instant(0))
        self._rate.append(0)
        self._fades.append(fades and self._rules.half_life_ms > 0)
        return len(self._amount) - 1

    def start(self, meter: int, rate: int, since: Instant, now: Instant) -> None:
        """Let something count; what it used before it was heard of is added."""
        amount = self.value(meter, now)
        since = max(since, last_reset(self._rules.reset, now))
        if since < now:
            amount = self._grown(meter, amount, 0.0, rate / MICRO, now - since)
        self._amount[meter], self._at[meter] = amount, now
        self._rate[meter] += rate

    def stop(self, meter: int, rate: int, since: Instant, now: Instant) -> None:
        """Let something end."""
        self._amount[meter], self._at[meter] = self.value(meter, now), now
        self._rate[meter] -= rate

    def value(self, meter: int, now: Instant) -> float:
        """Return what was used until now."""
        amount, at, rate = self._amount[meter], self._at[meter], self._rate[meter]
        reset = last_reset(self._rules.reset, now)
        if reset > at:
            amount, at = 0.0, reset
        if now <= at or (not amount and not rate):
            return amount
        return self._grown(meter, 0.0, amount, rate / MICRO, now - at)

    def _grown(self, meter: int, fixed: float, old: float, rate: float, elapsed_ms: int) -> float:
        """Return a fixed amount, an old one faded, and what the rate brought meanwhile."""
        if not self._fades[meter]:
            return fixed + old + rate * elapsed_ms / 1000
        half_life_ms = self._rules.half_life_ms
        kept = math.exp2(-elapsed_ms / half_life_ms)
        gone = -math.expm1(-elapsed_ms / half_life_ms * _LN2)
        return fixed + old * kept + rate * gone * half_life_ms / 1000 / _LN2

    def read(self, meter: int) -> tuple[float, Instant]:
        """Return what is written down."""
        return self._amount[meter], self._at[meter]

    def settled(self, meter: int, now: Instant) -> tuple[float, Instant]:
        """Return all that was used until now."""
        return self.value(meter, now), now

    def write(self, meter: int, amount: float, at: Instant) -> None:
        """Take over what was written down."""
        self._amount[meter], self._at[meter] = amount, at

    def below_at(self, meter: int, limit: float, now: Instant) -> Instant | None:
        """Return when the value falls below a limit, rounded up to a millisecond."""
        value = self.value(meter, now)
        if value < limit:
            return now
        half_life_ms = self._rules.half_life_ms
        if not self._fades[meter]:
            return None
        # It tends towards what its rate keeps up; from there nothing falls any further.
        level = self._rate[meter] / MICRO * half_life_ms / 1000 / _LN2
        if level >= limit:
            return None
        halvings = math.log2((value - level) / (limit - level))
        return Instant(now + math.ceil(halvings * half_life_ms) + 1)


def meters_for(rules: Turns) -> Meters:
    """Return the meters that the policy asks for."""
    from unisono.engine.ordering.stepwise import StepwiseMeters  # it is a sort of meters itself

    return StepwiseMeters(rules) if rules.compat else ExactMeters(rules)
