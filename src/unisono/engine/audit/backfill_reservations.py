"""Can every backfill reservation be kept, if all workloads keep their limits? (backfill §4, §5)

Added up over all nodes together, resource by resource: what the nodes have, less what is still in
use when the reservation starts, must be enough for the reservation and for all that overlap it
there. The nodes of a reservation are not part of a plan, so one that cannot be kept because of
fragmentation is not found here; the property tests of backfill check that.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.audit.node_occupancy import PODS_PER_NODE
from unisono.engine.audit.snapshot_index import SnapshotIndex
from unisono.engine.audit.violation import Violation
from unisono.engine.model.names import PODS, Instant, ResourceName
from unisono.engine.model.plan import Plan
from unisono.engine.model.workload import Admission, Workload

_Amounts = dict[ResourceName, int]


def check_backfill_reservations(index: SnapshotIndex, plan: Plan) -> Iterator[Violation]:
    """Check every reservation against what runs, what starts now, and other reservations."""
    rules = index.policy.backfill
    if rules is None or not index.nodes:
        return
    there: _Amounts = {}
    for node in index.nodes.values():
        if node.ready:
            for resource, amount in {PODS: PODS_PER_NODE, **dict(node.allocatable)}.items():
                there[resource] = there.get(resource, 0) + amount
    there = _with_gpu_milli(there)
    spans: list[tuple[Instant, Instant, _Amounts]] = []
    leaving = {victim.workload: victim.keeps for one in plan.preemptions for victim in one.victims}
    for key, admitted in index.admitted_workloads.items():
        stays = leaving.get(key) if key in leaving else admitted.admission
        if stays is None:
            continue  # it is evicted now, before any reservation starts
        end = admitted.running_since + _limit(index, admitted.workload)
        end = Instant(max(end, plan.now + 1))
        spans.append((plan.now, end, _requests_of(index, admitted.workload, stays)))
    for admit in plan.admissions:
        workload = index.waiting[admit.workload]
        if (fault := _granted_fault(workload, admit.limit_ms)) is not None:
            yield Violation(rule="date", workload=workload.key, message=fault)
        limit = _limit(index, workload) if admit.limit_ms is None else admit.limit_ms
        end = Instant(plan.now + limit)
        spans.append((plan.now, end, _requests_of(index, workload, admit.admission)))
    reservations = [each for each in plan.dates if each.workload in index.waiting]
    needs = {
        each.workload: _with_gpu_milli(minimum_requests(index.waiting[each.workload]))
        for each in reservations
    }
    spans += [(each.start, each.end, needs[each.workload]) for each in reservations]
    for each in reservations:
        if each.start <= plan.now:
            message = "its reservation is in the past"
            yield Violation(rule="date", workload=each.workload, message=message)
        for resource, amount in needs[each.workload].items():
            used = sum(
                span.get(resource, 0) for start, end, span in spans if start <= each.start < end
            )
            if amount and used > there.get(resource, 0):
                message = f"at {each.start} {used} of {there.get(resource, 0)} {resource} are taken"
                yield Violation(rule="date", workload=each.workload, message=message)


def _granted_fault(workload: Workload, limit: int | None) -> str | None:
    """Say what is wrong with the time limit that a workload is started with, or None."""
    least, most = workload.least_limit_ms, workload.time_limit_ms
    if least is None or limit is None:
        return (
            None if least is None and limit is None else "it has a limit that it left open, or not"
        )
    if limit < least or (most is not None and limit > most):
        return f"it is started with a limit of {limit}, and asked for {least} to {most}"
    return None


def _limit(index: SnapshotIndex, workload: Workload) -> int:
    assert index.policy.backfill is not None, "there are reservations only with backfill"
    limits = []
    if workload.time_limit_ms is not None:
        limits.append(workload.time_limit_ms)
    if workload.max_execution_ms is not None:
        limits.append(max(0, workload.max_execution_ms - workload.past_execution_ms))
    return min(limits, default=index.policy.backfill.default_limit_ms)


def _requests_of(index: SnapshotIndex, workload: Workload, admission: Admission) -> _Amounts:
    """Return what the pods of an admission use of ready nodes."""
    ready = {name for name, node in index.nodes.items() if node.ready}
    pod_sets = {pod_set.name: pod_set for pod_set in workload.pod_sets}
    total: _Amounts = {}
    for assigned in admission.pod_sets:
        pod_set = pod_sets.get(assigned.name)
        if pod_set is None:
            continue
        count = sum(pods for name, pods in assigned.nodes if name in ready)
        wanted = pod_set.requests if pod_set.node_requests is None else pod_set.node_requests
        for resource, amount in {PODS: 1, **dict(wanted)}.items():
            total[resource] = total.get(resource, 0) + amount * count
    return _with_gpu_milli(total)


def minimum_requests(workload: Workload) -> _Amounts:
    """Return what the pods request that have to start together."""
    done = dict(workload.reclaimable)
    total: _Amounts = {}
    for pod_set in workload.pod_sets:
        count = max(0, pod_set.count - done.get(pod_set.name, 0))
        if pod_set.min_count is not None:
            count = min(count, pod_set.min_count)
        wanted = pod_set.requests if pod_set.node_requests is None else pod_set.node_requests
        for resource, amount in {PODS: 1, **dict(wanted)}.items():
            total[resource] = total.get(resource, 0) + amount * count
    return total


def _with_gpu_milli(total: _Amounts) -> _Amounts:
    """Count GPUs in thousandths, too: shared and whole GPUs come from the same devices."""
    both = dict(total)
    for name, amount in total.items():
        if name.endswith("/gpu"):
            part = ResourceName(f"{name}-milli")
            both[part] = both.get(part, 0) + 1000 * amount
    return both
