"""What about a workload itself keeps it out of every line."""

from __future__ import annotations

from unisono.engine.model.explanation import (
    Blocker,
    CheckFailed,
    Deactivated,
    Gated,
    Misconfigured,
    OnHold,
)
from unisono.engine.model.names import Instant
from unisono.engine.model.workload import Workload


def own_blocker(workload: Workload, now: Instant) -> Blocker | None:
    """Return the first thing that has to change about the workload before it may stand in line."""
    if not workload.active:
        return Deactivated()
    if workload.misconfigured:
        return Misconfigured(problem=workload.misconfigured)
    if workload.gated_by:
        return Gated(by=workload.gated_by)
    if workload.requeue_at is not None and workload.requeue_at > now:
        return OnHold(until=workload.requeue_at)
    if workload.on_hold:
        return OnHold()
    for check in workload.checks:
        if check.state in ("Retry", "Rejected"):
            return CheckFailed(check=check.name, state=check.state)
    return None
