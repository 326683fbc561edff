"""What each LocalQueue used lately, for admission fair sharing (spec quota §10).

Usage decays by half every half-life. It is held in millionths of a unit and rounded in one place
(`_decay`), so that the same history gives the same number everywhere. A quota reservation adds a
penalty at once; without it one LocalQueue could win many times before its usage is sampled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import msgspec

from unisono.engine.model.names import CPU, Instant, LocalQueueKey, ResourceName
from unisono.engine.model.policy import AdmissionFairSharing
from unisono.engine.model.queue import MILLI, ClusterQueue, LocalQueue
from unisono.engine.model.resources import amounts, is_gpu
from unisono.engine.state.cluster_queue import LocalQueueState, Running
from unisono.engine.state.config import Config

MICRO = 1_000_000
_INFINITE = 1 << 120  # a LocalQueue of weight 0 comes after all others
_MILLICORES = 1000  # usage counts CPUs in cores

Totals = dict[ResourceName, int]


@dataclass(slots=True)
class _Consumed:
    micro: Totals = field(default_factory=dict)
    since: Instant = Instant(0)


@dataclass(slots=True)
class DecayedUsage:
    """Decayed usage and open penalties of all LocalQueues."""

    rules: AdmissionFairSharing
    consumed: dict[LocalQueueKey, _Consumed] = field(default_factory=dict)
    penalties: dict[LocalQueueKey, Totals] = field(default_factory=dict)
    weights_milli: dict[LocalQueueKey, int] = field(default_factory=dict)

    def sample(
        self, key: LocalQueueKey, admitted: Mapping[ResourceName, int], now: Instant
    ) -> None:
        """Bring a LocalQueue's usage up to `now`, given what its admitted workloads use."""
        entry = self.consumed.get(key)
        if entry is None:
            self.consumed[key] = _Consumed(since=now)  # nothing is known of the time before
            return
        if self.rules.half_life_ms <= 0:  # no memory at all
            admitted = {}
        # Sampled before the clock was set back: nothing decays, and nothing grows.
        kept = _kept(max(0, now - entry.since), self.rules.half_life_ms)
        for resource in {**entry.micro, **admitted}:
            current = admitted.get(resource, 0) * MICRO
            entry.micro[resource] = _decay(entry.micro.get(resource, 0), current, kept)
        entry.since = now
        self.penalties.pop(key, None)

    def load(self, key: LocalQueueKey, micro: Totals, since: Instant) -> None:
        """Take over stored usage of a LocalQueue; what was measured here wins."""
        if key not in self.consumed and (micro or since):
            self.consumed[key] = _Consumed(dict(micro), since)

    def penalise(
        self, key: LocalQueueKey, requested: Mapping[ResourceName, int], now: Instant
    ) -> None:
        """Count a new quota reservation at once; the next sample replaces the penalty."""
        self.consumed.setdefault(key, _Consumed(since=now))
        share = 1.0 - _kept(self.rules.sampling_ms, self.rules.half_life_ms)
        penalty = self.penalties.setdefault(key, {})
        for resource, amount in requested.items():
            penalty[resource] = penalty.get(resource, 0) + round(amount * MICRO * share)

    def of(self, key: LocalQueueKey, *, gpus_only: bool = False) -> int:
        """Return the number that orders LocalQueues: lower goes first.

        Without configured weights, memory in bytes would swamp everything; where a ClusterQueue
        has GPUs they alone count.
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


class LocalQueueUsage:
    """Usage of LocalQueues as the policy asks for it: `decayed` is None without such a policy."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self.decayed: DecayedUsage | None = None
        self.use_policy()

    def use_policy(self) -> None:
        """Start, restart or end the accounting after the policy changed."""
        rules = self._config.policy.admission_fair_sharing
        if rules is None:
            self.decayed = None
        elif self.decayed is None or self.decayed.rules != rules:
            self.decayed = DecayedUsage(rules)
            for local_queue in self._config.local_queues.values():
                self.note(local_queue)

    def note(self, local_queue: LocalQueue) -> None:
        """Take over a LocalQueue's weight and its stored usage."""
        if self.decayed is not None:
            self.decayed.weights_milli[local_queue.key] = local_queue.weight_milli
            consumed = dict(local_queue.consumed_micro)
            self.decayed.load(local_queue.key, consumed, local_queue.consumed_at)
            if local_queue.penalty_micro:
                self.decayed.penalties.setdefault(local_queue.key, dict(local_queue.penalty_micro))

    def stored(self, local_queue: LocalQueue) -> LocalQueue:
        """Return a LocalQueue with its usage of now, as it is stored."""
        if self.decayed is None:
            return local_queue
        entry = self.decayed.consumed.get(local_queue.key)
        penalty = self.decayed.penalties.get(local_queue.key, {})
        return msgspec.structs.replace(
            local_queue,
            consumed_micro=amounts(entry.micro) if entry else (),
            consumed_at=entry.since if entry else Instant(0),
            penalty_micro=amounts(penalty),
        )

    def ranking(self, queue: ClusterQueue) -> Callable[[LocalQueueKey], int] | None:
        """Return what ranks the LocalQueues of a ClusterQueue, if recent usage counts there."""
        if self.decayed is None or not queue.usage_based_admission:
            return None
        covered = (resource for group in queue.groups for resource in group.covered)
        return partial(self.decayed.of, gpus_only=any(is_gpu(resource) for resource in covered))

    def penalise(
        self, queue: ClusterQueue, key: LocalQueueKey, lq: LocalQueueState, now: Instant
    ) -> None:
        """Count the newest quota reservation of a LocalQueue at once."""
        if self.ranking(queue) is not None and self.decayed is not None and lq.running:
            newest = next(reversed(lq.running.values()))
            totals: Totals = {}
            _add_charges(totals, newest)
            self.decayed.penalise(key, totals, now)

    def sample(
        self, now: Instant, local_queues: Mapping[LocalQueueKey, LocalQueueState]
    ) -> Iterator[LocalQueueKey]:
        """Let usage decay where the sampling interval is over; yield the LocalQueues sampled."""
        if self.decayed is None:
            return
        for key in self._config.local_queues:
            entry = self.decayed.consumed.get(key)
            if entry is not None and 0 <= now - entry.since < self.decayed.rules.sampling_ms:
                continue
            lq = local_queues.get(key)
            used: Totals = {}
            for running in lq.running.values() if lq else ():
                _add_charges(used, running)
            self.decayed.sample(key, used, now)
            if lq is not None:
                yield key


def _add_charges(totals: Totals, running: Running) -> None:
    for cell, amount in running.charges:
        resource = cell.flavor_resource.resource
        totals[resource] = totals.get(resource, 0) + amount


def _kept(elapsed_ms: int, half_life_ms: int) -> float:
    """Return the fraction of old usage that is left."""
    return 0.0 if half_life_ms <= 0 else 0.5 ** (elapsed_ms / half_life_ms)


def _decay(old: int, current: int, kept: float) -> int:
    """Mix old usage with current usage. The one place where a float becomes an integer."""
    return round(old * kept + current * (1.0 - kept))
