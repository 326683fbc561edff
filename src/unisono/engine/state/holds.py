"""What about a workload itself keeps it out of its pending queue."""

from __future__ import annotations

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
from unisono.engine.model.names import Instant
from unisono.engine.model.workload import Workload


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
        and not workload.turn.hold
    )


def own_blocker(workload: Workload, now: Instant) -> Blocker | None:
    """Return the first thing that has to change about the workload before it may be queued."""
    if not workload.active:
        return Deactivated()
    if workload.misconfigured:
        return Misconfigured(problem=workload.misconfigured)
    if workload.gated_by:
        return Gated(by=workload.gated_by)
    if workload.turn.hold:
        return Held(by=workload.turn.hold)
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
    """Return the instants at which a waiting workload has to be looked at again."""
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
