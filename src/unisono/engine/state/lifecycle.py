"""Rules over one workload: what holds it back, and what may end it besides preemption.

A pending workload is held by what it says itself: inactive, gated, on hold, not before, checks. An
admitted one may have to be evicted, and become pending again (spec quota §11, §13, §15 and §18.2):
readiness time-outs with growing back-off, execution limits, admission checks that failed,
deactivation, and the back-off that keeps a preempted workload from preempting right away.
`EvictionTriggers` keeps which admitted workloads a cycle has to judge by them.
"""

from __future__ import annotations

import msgspec

from unisono.engine.model.explanation import (
    Blocker,
    CheckFailed,
    Deactivated,
    DeadlineMissed,
    Gated,
    Held,
    Misconfigured,
    NotBefore,
    OnHold,
)
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import DueEviction
from unisono.engine.model.policy import LONGEST_BACKOFF_MS, PodsReady, Policy, preemption_backoff_ms
from unisono.engine.model.workload import AdmittedWorkload, Workload
from unisono.engine.state.cluster_queue import Running
from unisono.engine.state.config import Config
from unisono.engine.state.timers import Timers

# --- what holds a pending workload ----------------------------------------------------------------


def is_plain(workload: Workload) -> bool:
    """Say whether nothing about a workload itself keeps it out of its queue, as with most."""
    return (
        workload.active
        and workload.requeue_at is None
        and workload.may_preempt_at is None
        and workload.begin_at is None
        and workload.deadline is None
        and not workload.on_hold
        and not workload.checks
        and not workload.depends
        and not workload.array
        and not workload.misconfigured
        and not workload.gated_by
        and not workload.submit_options.hold
    )


def own_blocker(workload: Workload, now: Instant) -> Blocker | None:
    """Return the first thing that has to change about the workload before it may be queued."""
    if not workload.active:
        return Deactivated()
    if workload.misconfigured:
        return Misconfigured(problem=workload.misconfigured)
    if workload.gated_by:
        return Gated(by=workload.gated_by)
    if workload.submit_options.hold:
        return Held(by=workload.submit_options.hold)
    if workload.requeue_at is not None and workload.requeue_at > now:
        return OnHold(until=workload.requeue_at)
    if workload.on_hold:
        return OnHold()
    if workload.begin_at is not None and workload.begin_at > now:
        return NotBefore(begin=workload.begin_at)
    limit = workload.longest_ms or 0
    if workload.deadline is not None and now + limit > workload.deadline:
        return DeadlineMissed(deadline=workload.deadline, limit_ms=limit)
    for check in workload.checks:
        if check.state in ("Retry", "Rejected"):
            return CheckFailed(check=check.name, state=check.state)
    return None


def reminders(workload: Workload) -> tuple[Instant, ...]:
    """Return the instants at which a waiting workload has to be evaluated again."""
    if (
        workload.requeue_at is None
        and workload.may_preempt_at is None
        and workload.begin_at is None
        and workload.deadline is None
    ):
        return ()
    instants = [workload.requeue_at, workload.may_preempt_at, workload.begin_at]
    if workload.deadline is not None:
        last = workload.deadline - (workload.longest_ms or 0)
        instants.append(Instant(last + 1))
    return tuple(instant for instant in instants if instant is not None)


# --- what ends an admitted workload ---------------------------------------------------------------


def is_suspect(admitted: AdmittedWorkload, policy: Policy, now: Instant) -> bool:
    """Say whether something about the admitted workload itself may require its eviction."""
    return not admitted.evicting and eviction_for(admitted, policy, now) is not None


def eviction_for(admitted: AdmittedWorkload, policy: Policy, now: Instant) -> DueEviction | None:
    """Return the eviction that is due, if any; the most final reason wins."""
    workload = admitted.workload
    if not workload.active:
        return DueEviction(workload=workload.key, reason="Deactivated", deactivate=True)
    for state in ("Rejected", "Retry") if workload.checks else ():
        if any(check.state == state for check in workload.checks):
            final = state == "Rejected"
            return DueEviction(workload=workload.key, reason="AdmissionCheck", deactivate=final)
    limit = _execution_ends(admitted)
    if limit is not None and limit <= now:
        return DueEviction(
            workload=workload.key, reason="MaximumExecutionTimeExceeded", deactivate=True
        )
    rules = policy.pods_ready
    timeout = _must_be_ready(admitted, rules)
    if rules is not None and timeout is not None and timeout <= now:
        return _readiness_eviction(workload, rules, now)
    return None


def next_deadline(admitted: AdmittedWorkload, policy: Policy) -> Instant | None:
    """Return the first instant at which the admitted workload has to be evaluated again."""
    ends, ready = _execution_ends(admitted), _must_be_ready(admitted, policy.pods_ready)
    if ends is None or ready is None:
        return ready if ends is None else ends
    return min(ends, ready)


def _execution_ends(admitted: AdmittedWorkload) -> Instant | None:
    workload = admitted.workload
    if workload.max_execution_ms is None or not admitted.may_start:
        return None
    left_ms = workload.max_execution_ms - workload.past_execution_ms
    return Instant(admitted.running_since + left_ms)


def _must_be_ready(admitted: AdmittedWorkload, rules: PodsReady | None) -> Instant | None:
    """Return when its pods have to be ready: at first, or again after they were."""
    if rules is None or admitted.ready or not admitted.may_start:
        return None
    if admitted.unready_since is None:
        return Instant(admitted.running_since + rules.timeout_ms)
    recovery_ms = rules.recovery_timeout_ms
    if recovery_ms == 0:
        return None
    return Instant(
        admitted.unready_since + (rules.timeout_ms if recovery_ms is None else recovery_ms)
    )


def _readiness_eviction(workload: Workload, rules: PodsReady, now: Instant) -> DueEviction:
    times = workload.requeues + 1
    if rules.backoff_limit is not None and times > rules.backoff_limit:
        return DueEviction(workload=workload.key, reason="PodsReadyTimeout", deactivate=True)
    backoff = min(rules.backoff_base_ms << min(workload.requeues, 32), rules.backoff_max_ms)
    return DueEviction(
        workload=workload.key, reason="PodsReadyTimeout", requeue_at=Instant(now + backoff)
    )


def after_preemption(admitted: AdmittedWorkload, now: Instant, *, calm_ms: int = 0) -> Workload:
    """Return a preempted workload as it queues again, at its old place.

    Having run for `calm_ms` undisturbed (an hour unless its queue says otherwise) starts the count
    of preemptions anew.
    """
    workload = admitted.workload
    calm = now - admitted.reserved_at >= (calm_ms or LONGEST_BACKOFF_MS)
    times = 1 if calm else workload.preemptions + 1
    return msgspec.structs.replace(
        workload,
        preemptions=times,
        may_preempt_at=Instant(now + preemption_backoff_ms(times)),
        past_execution_ms=_executed(admitted, now),
    )


def after_eviction(
    admitted: AdmittedWorkload, eviction: DueEviction, policy: Policy, now: Instant
) -> Workload:
    """Return a stopped workload as it waits again, perhaps on hold or for good."""
    workload = admitted.workload
    rules = policy.pods_ready
    by_timeout = eviction.reason == "PodsReadyTimeout"
    moved = eviction.reason == "AdmissionCheck" or (
        by_timeout and rules is not None and rules.requeue_by == "Eviction"
    )
    return msgspec.structs.replace(
        workload,
        active=workload.active and not eviction.deactivate,
        requeue_at=eviction.requeue_at,
        requeues=workload.requeues + 1 if by_timeout else workload.requeues,
        queued_at=now if moved else workload.queued_at,
        checks=(),  # they start over with the next reservation
        past_execution_ms=_executed(admitted, now),
    )


def _executed(admitted: AdmittedWorkload, now: Instant) -> int:
    """Return the admitted time so far, this admission included."""
    past = admitted.workload.past_execution_ms
    return past + max(0, now - admitted.running_since) if admitted.may_start else past


class EvictionTriggers:
    """Admitted workloads that have to be checked, now or at an instant to come."""

    __slots__ = ("_config", "_timers", "not_ready", "suspects")

    def __init__(self, config: Config, timers: Timers) -> None:
        self._config = config
        self._timers = timers
        self.not_ready: dict[WorkloadKey, None] = {}  # admitted, pods not ready yet
        # Admitted workloads for which something came due: a deadline, a check, a deactivation.
        self.suspects: dict[WorkloadKey, None] = {}

    def note(self, running: Running, now: Instant) -> None:
        """Keep track of what may end an admitted workload: its state now, or an instant to come."""
        admitted, policy, key = running.admitted, self._config.policy, running.key
        protected_ms = running.cq.spec.preemption.min_runtime_ms
        protected_until = Instant(admitted.running_since + protected_ms) if protected_ms else now
        if _has_no_trigger(running, policy):
            if self.suspects:
                self.suspects.pop(key, None)
            if protected_until > now:
                self._timers.remind(protected_until, key)
            return
        for instant in (next_deadline(admitted, policy), protected_until):
            if instant is not None and instant > now:
                self._timers.remind(instant, key)
        self.check(running, now)

    def check(self, running: Running, now: Instant) -> None:
        """Suspect an admitted workload if something about it may require its eviction."""
        if is_suspect(running.admitted, self._config.policy, now):
            self.suspects[running.admitted.workload.key] = None
        else:
            self.suspects.pop(running.admitted.workload.key, None)

    def note_readiness(self, running: Running) -> bool:
        """Keep track of pods that are waited for; say whether admission may go on.

        A workload that is told to leave has its quota and its pods still, so it counts, as in
        Kueue, until it has left.
        """
        admitted = running.admitted
        if not admitted.ready:
            self.not_ready[admitted.workload.key] = None
            return False
        return self.no_longer_unready(admitted.workload.key)

    def no_longer_unready(self, key: WorkloadKey) -> bool:
        """Stop waiting for a workload's pods; say whether admission may go on because of that."""
        if key not in self.not_ready:
            return False
        del self.not_ready[key]
        rules = self._config.policy.pods_ready
        return rules is not None and rules.block_admission and not self.not_ready

    def forget(self, key: WorkloadKey) -> None:
        """Let an admitted workload be gone."""
        if self.suspects:
            self.suspects.pop(key, None)


def _has_no_trigger(running: Running, policy: Policy) -> bool:
    """Say whether nothing about an admitted workload itself can ever end it; most are like that."""
    if policy.pods_ready is not None and not running.admitted.ready:
        return False
    workload = running.admitted.workload
    return running.is_plain or (
        workload.active and not workload.checks and workload.max_execution_ms is None
    )


def as_candidate(admitted: AdmittedWorkload) -> tuple[int, Instant, Instant, bool, bool]:
    """Return what decides whether, and when, others may displace an admitted workload."""
    workload = admitted.workload
    leaving = (admitted.evicting, admitted.keeps is not None)
    return workload.priority, workload.position_time, admitted.running_since, *leaving
