"""Recent usage of local queues within the state: when to sample it, and whom it ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import msgspec

from unisono.engine.model.names import Instant, LocalQueueKey, ResourceName
from unisono.engine.model.queue import ClusterQueue, LocalQueue
from unisono.engine.model.resources import amounts, is_gpu
from unisono.engine.ordering.local_usage import LocalUsage
from unisono.engine.state.config import Config
from unisono.engine.state.doors import Door


class RecentUsage:
    """Admission fair sharing, if the policy asks for it (spec quota §10)."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self.usage: LocalUsage | None = None
        self.use_policy()

    def use_policy(self) -> None:
        """Start, restart or end the accounting after the policy changed."""
        rules = self._config.policy.admission_fair_sharing
        if rules is None:
            self.usage = None
        elif self.usage is None or self.usage.rules != rules:
            self.usage = LocalUsage(rules)
            for local_queue in self._config.local_queues.values():
                self.note(local_queue)

    def note(self, local_queue: LocalQueue) -> None:
        """Take a local queue's weight, and what was written down about it."""
        if self.usage is not None:
            self.usage.weights_milli[local_queue.key] = local_queue.weight_milli
            consumed = dict(local_queue.consumed_micro)
            self.usage.remember(local_queue.key, consumed, local_queue.consumed_at)
            if local_queue.penalty_micro:
                self.usage.penalties.setdefault(local_queue.key, dict(local_queue.penalty_micro))

    def written_down(self, local_queue: LocalQueue) -> LocalQueue:
        """Return a local queue with what is known about its usage now."""
        if self.usage is None:
            return local_queue
        entry = self.usage.consumed.get(local_queue.key)
        penalty = self.usage.penalties.get(local_queue.key, {})
        return msgspec.structs.replace(
            local_queue,
            consumed_micro=amounts(entry.micro) if entry else (),
            consumed_at=entry.since if entry else Instant(0),
            penalty_micro=amounts(penalty),
        )

    def ranking(self, queue: ClusterQueue) -> Callable[[LocalQueueKey], int] | None:
        """Return how local queues of a ClusterQueue are ranked, if recent usage counts there."""
        if self.usage is None or not queue.usage_based_admission:
            return None
        covered = (resource for group in queue.groups for resource in group.covered)
        return partial(self.usage.of, gpus_only=any(is_gpu(resource) for resource in covered))

    def penalise(self, queue: ClusterQueue, key: LocalQueueKey, door: Door, now: Instant) -> None:
        """Count the newest reservation of a local queue at once."""
        if self.ranking(queue) is not None and self.usage is not None and door.running:
            newest = next(reversed(door.running.values()))
            totals: dict[ResourceName, int] = {}
            for cell, amount in newest.charges:
                resource = cell.account.resource
                totals[resource] = totals.get(resource, 0) + amount
            self.usage.penalise(key, totals, now)

    def sample(self, now: Instant, doors: Mapping[LocalQueueKey, Door]) -> Iterator[LocalQueueKey]:
        """Let consumption decay where the interval is over; yield local queues that changed."""
        if self.usage is None:
            return
        for key in self._config.local_queues:
            entry = self.usage.consumed.get(key)
            if entry is not None and 0 <= now - entry.since < self.usage.rules.sampling_ms:
                continue
            door = doors.get(key)
            used: dict[ResourceName, int] = {}
            for running in door.running.values() if door else ():
                for cell, amount in running.charges:
                    resource = cell.account.resource
                    used[resource] = used.get(resource, 0) + amount
            self.usage.sample(key, used, now)
            if door is not None:
                yield key
