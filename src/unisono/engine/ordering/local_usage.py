"""What each local queue used lately, for admission fair sharing (spec quota §10).

Consumption decays by half every half-life. It is held in millionths of a unit, rounded at one
place (`_decay`), so that the same history gives the same number everywhere. A reservation adds a
penalty at once, so that one local queue cannot win many times before its usage is sampled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from unisono.engine.model.names import CPU, Instant, LocalQueueKey, ResourceName
from unisono.engine.model.policy import AdmissionFairSharing
from unisono.engine.model.queue import MILLI
from unisono.engine.model.resources import is_gpu

MICRO = 1_000_000
_INFINITE = 1 << 120  # a local queue of weight 0 comes after everybody
_MILLICORES = 1000  # usage counts CPUs in cores

Totals = dict[ResourceName, int]


@dataclass(slots=True)
class _Consumed:
    micro: Totals = field(default_factory=dict)
    since: Instant = Instant(0)


@dataclass(slots=True)
class LocalUsage:
    """Consumption of all local queues."""

    rules: AdmissionFairSharing
    consumed: dict[LocalQueueKey, _Consumed] = field(default_factory=dict)
    penalties: dict[LocalQueueKey, Totals] = field(default_factory=dict)
    weights_milli: dict[LocalQueueKey, int] = field(default_factory=dict)

    def sample(
        self, key: LocalQueueKey, admitted: Mapping[ResourceName, int], now: Instant
    ) -> None:
        """Bring a local queue's consumption up to `now`, given what it uses."""
        entry = self.consumed.get(key)
        if entry is None:
            self.consumed[key] = _Consumed(since=now)  # nothing is known of the time before
            return
        if self.rules.half_life_ms <= 0:  # no memory at all
            admitted = {}
        # Written down by a clock that was set back since: nothing fades, and nothing grows.
        kept = _kept(max(0, now - entry.since), self.rules.half_life_ms)
        for resource in {**entry.micro, **admitted}:
            current = admitted.get(resource, 0) * MICRO
            entry.micro[resource] = _decay(entry.micro.get(resource, 0), current, kept)
        entry.since = now
        self.penalties.pop(key, None)

    def remember(self, key: LocalQueueKey, micro: Totals, since: Instant) -> None:
        """Take over what was written down about a local queue; what we measured ourselves wins."""
        if key not in self.consumed and (micro or since):
            self.consumed[key] = _Consumed(dict(micro), since)

    def penalise(
        self, key: LocalQueueKey, requested: Mapping[ResourceName, int], now: Instant
    ) -> None:
        """Count a fresh reservation at once; the next sample settles it."""
        self.consumed.setdefault(key, _Consumed(since=now))
        share = 1.0 - _kept(self.rules.sampling_ms, self.rules.half_life_ms)
        penalty = self.penalties.setdefault(key, {})
        for resource, amount in requested.items():
            penalty[resource] = penalty.get(resource, 0) + round(amount * MICRO * share)

    def of(self, key: LocalQueueKey, *, gpus_only: bool = False) -> int:
        """Return the number that orders local queues: lower goes first.

        Without configured weights, memory in bytes would swamp everything; where a queue has GPUs
        they alone count.
        """
        weight = self.weights_milli.get(key, MILLI)
        if weight <= 0:
            return _INFINITE
        entry = self.consumed.get(key)
        totals = dict(entry.micro) if entry else {}
        for resource, amount in self.penalties.get(key, {}).items():
            totals[resource] = totals.get(resource, 0) + amount
        total = sum(self._weighted(r, amount, gpus_only=gpus_only) for r, amount in totals.items())
        return total * MILLI // weight

    def _weighted(self, resource: ResourceName, amount: int, *, gpus_only: bool) -> int:
        weights = dict(self.rules.weights_milli)
        default = 0 if gpus_only and not weights and not is_gpu(resource) else MILLI
        weighted = amount * weights.get(resource, default) // MILLI
        return weighted // _MILLICORES if resource == CPU else weighted


def _kept(elapsed_ms: int, half_life_ms: int) -> float:
    """Return the fraction of old consumption that is left."""
    return 0.0 if half_life_ms <= 0 else 0.5 ** (elapsed_ms / half_life_ms)


def _decay(old: int, current: int, kept: float) -> int:
    """Mix old consumption with current usage. The one place where a float becomes a number."""
    return round(old * kept + current * (1.0 - kept))
