"""What may end a holding, or hold others up: deadlines, failed checks, pods that are not ready."""

from __future__ import annotations

from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.policy import Policy
from unisono.engine.model.workload import Holding
from unisono.engine.state.cluster_queue import Running
from unisono.engine.state.config import Config
from unisono.engine.state.lifecycle import is_suspect, next_deadline
from unisono.engine.state.timers import Timers


class EvictionTriggers:
    """Holdings that have to be looked at, now or at an instant to come."""

    __slots__ = ("_config", "_timers", "not_ready", "suspects")

    def __init__(self, config: Config, timers: Timers) -> None:
        self._config = config
        self._timers = timers
        self.not_ready: dict[WorkloadKey, None] = {}  # admitted, pods not ready yet
        # Holdings for which something came due: a deadline, a check, a deactivation.
        self.suspects: dict[WorkloadKey, None] = {}

    def note(self, running: Running, now: Instant) -> None:
        """Keep track of what may end a holding: its own state now, or an instant to come."""
        holding, policy, key = running.holding, self._config.policy, running.key
        protected_ms = running.cq.spec.preemption.min_runtime_ms
        protected_until = Instant(holding.running_since + protected_ms) if protected_ms else now
        if _has_no_trigger(running, policy):
            if self.suspects:
                self.suspects.pop(key, None)
            if protected_until > now:
                self._timers.remind(protected_until, key)
            return
        for instant in (next_deadline(holding, policy), protected_until):
            if instant is not None and instant > now:
                self._timers.remind(instant, key)
        self.look(running, now)

    def look(self, running: Running, now: Instant) -> None:
        """Suspect a holding if something about it may require it to stop."""
        if is_suspect(running.holding, self._config.policy, now):
            self.suspects[running.holding.workload.key] = None
        else:
            self.suspects.pop(running.holding.workload.key, None)

    def note_readiness(self, running: Running) -> bool:
        """Keep track of pods that are waited for; say whether admission may go on."""
        holding = running.holding
        if not holding.ready and not holding.evicting:
            self.not_ready[holding.workload.key] = None
            return False
        return self.no_longer_unready(holding.workload.key)

    def no_longer_unready(self, key: WorkloadKey) -> bool:
        """Stop waiting for a workload's pods; say whether admission may go on because of that."""
        if key not in self.not_ready:
            return False
        del self.not_ready[key]
        rules = self._config.policy.pods_ready
        return rules is not None and rules.block_admission and not self.not_ready

    def forget(self, key: WorkloadKey) -> None:
        """Let a holding be gone."""
        if self.suspects:
            self.suspects.pop(key, None)


def _has_no_trigger(running: Running, policy: Policy) -> bool:
    """Say whether nothing about a holding itself can ever end it; most are like that."""
    if policy.pods_ready is not None and not running.holding.ready:
        return False
    workload = running.holding.workload
    return running.is_plain or (
        workload.active and not workload.checks and workload.max_execution_ms is None
    )


def as_candidate(holding: Holding) -> tuple[int, Instant, Instant, bool, bool]:
    """Return what decides whether, and when, others may displace a holding."""
    workload = holding.workload
    leaving = (holding.evicting, holding.keeps is not None)
    return workload.priority, workload.position_time, holding.running_since, *leaving
