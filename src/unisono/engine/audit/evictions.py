"""Was there a reason for an eviction that is no preemption? (spec quota §11–§13, §15)"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.audit.snapshot_index import SnapshotIndex, admitted_at
from unisono.engine.audit.violation import Violation
from unisono.engine.model.names import Instant
from unisono.engine.model.plan import DueEviction, Plan
from unisono.engine.model.queue import StopPolicy
from unisono.engine.model.workload import AdmittedWorkload


def check_evictions(index: SnapshotIndex, plan: Plan) -> Iterator[Violation]:
    """Check every workload that loses its quota without a preemptor."""
    for eviction in plan.evictions_due:
        admitted = index.admitted_workloads.get(eviction.workload)
        if admitted is None:
            continue
        if why := _why_groundless(index, plan.now, eviction, admitted):
            yield Violation(
                rule="eviction",
                workload=eviction.workload,
                queue=admitted.admission.queue,
                message=f"{eviction.reason}: {why}",
            )


def _why_groundless(
    index: SnapshotIndex, now: Instant, eviction: DueEviction, admitted: AdmittedWorkload
) -> str:
    match eviction.reason:
        case "ClusterQueueStopped":
            queue = index.queues.get(admitted.admission.queue)
            return _why_not_stopped("None" if queue is None else queue.stop, admitted)
        case "LocalQueueStopped":
            local_queue = index.local_queues.get(admitted.workload.queue)
            return _why_not_stopped("None" if local_queue is None else local_queue.stop, admitted)
        case "PodsReadyTimeout":
            return _why_not_overdue(index, now, admitted)
        case "AdmissionCheck":
            states = {check.state for check in admitted.workload.checks}
            return "" if states & {"Retry", "Rejected"} else "no check says Retry or Rejected"
        case "MaximumExecutionTimeExceeded":
            return _why_has_time_left(now, admitted)
        case "Deactivated":
            return "it is active" if admitted.workload.active else ""


def _why_not_stopped(policy: StopPolicy, admitted: AdmittedWorkload) -> str:
    if policy == "None":
        return "the queue is not stopped"
    if policy == "Hold" and admitted.may_start:
        return "Hold lets admitted workloads run on"
    return ""


def _why_not_overdue(index: SnapshotIndex, now: Instant, admitted: AdmittedWorkload) -> str:
    policy = index.policy.pods_ready
    if policy is None:
        return "waitForPodsReady is off"
    if admitted.ready or not admitted.may_start:
        return "its pods are ready" if admitted.ready else "its pods may not run yet"
    allowed_ms, since = policy.timeout_ms, admitted_at(admitted)
    if admitted.unready_since is not None:
        since = admitted.unready_since
        if policy.recovery_timeout_ms is not None:
            allowed_ms = policy.recovery_timeout_ms
        if allowed_ms == 0:
            return "a recovery may take for ever"
    if now - since < allowed_ms:
        return f"not ready for {now - since} ms, allowed are {allowed_ms} ms"
    return ""


def _why_has_time_left(now: Instant, admitted: AdmittedWorkload) -> str:
    limit_ms = admitted.workload.max_execution_ms
    if limit_ms is None:
        return "it has no limit"
    if not admitted.may_start:
        return "it does not run"
    ran_ms = admitted.workload.past_execution_ms + now - admitted_at(admitted)
    return "" if ran_ms >= limit_ms else f"it ran {ran_ms} ms of {limit_ms} ms"
