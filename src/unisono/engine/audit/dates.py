"""Can every date be kept, if everybody ends at their limit? (spec time §4 and §5)

Counted over all nodes together, resource by resource: what is there, less what those take who still
run at the date, must be enough for whoever has the date (and for all whose dates overlap it there).
Where each of them sits is not part of a plan, so a date that breaks on the shape of nodes is not
found here; the properties of backfill look after that.
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


def check_dates(index: SnapshotIndex, plan: Plan) -> Iterator[Violation]:
    """Check every date against those who run, start now, or have other dates."""
    rules = index.policy.backfill
    if rules is None or not index.nodes:
        return
    there: _Amounts = {}
    for node in index.nodes.values():
        if node.ready:
            for resource, amount in {PODS: PODS_PER_NODE, **dict(node.allocatable)}.items():
                there[resource] = there.get(resource, 0) + amount
    there = _in_parts(there)
    spans: list[tuple[Instant, Instant, _Amounts]] = []
    leaving = {victim.workload: victim.keeps for one in plan.preemptions for victim in one.victims}
    for key, holding in index.holdings.items():
        stays = leaving.get(key) if key in leaving else holding.admission
        if stays is None:
            continue  # it makes room for somebody long before
        end = holding.running_since + _limit(index, holding.workload)
        late = Instant(max(end, plan.now + 1))
        spans.append((plan.now, late, _of_admission(index, holding.workload, stays)))
    for admit in plan.admissions:
        workload = index.waiting[admit.workload]
        if (fault := _granted_fault(workload, admit.limit_ms)) is not None:
            yield Violation(rule="date", workload=workload.key, message=fault)
        limit = _limit(index, workload) if admit.limit_ms is None else admit.limit_ms
        end = Instant(plan.now + limit)
        spans.append((plan.now, end, _of_admission(index, workload, admit.admission)))
    dated = [date for date in plan.dates if date.workload in index.waiting]
    needs = {date.workload: _in_parts(least_of(index.waiting[date.workload])) for date in dated}
    spans += [(date.start, date.end, needs[date.workload]) for date in dated]
    for date in dated:
        if date.start <= plan.now:
            yield Violation(rule="date", workload=date.workload, message="its date is over")
        for resource, amount in needs[date.workload].items():
            used = sum(
                span.get(resource, 0) for start, end, span in spans if start <= date.start < end
            )
            if amount and used > there.get(resource, 0):
                message = f"at {date.start} {used} of {there.get(resource, 0)} {resource} are taken"
                yield Violation(rule="date", workload=date.workload, message=message)


def _granted_fault(workload: Workload, limit: int | None) -> str | None:
    """Say what is wrong with the limit that a workload is started with."""
    least, most = workload.least_limit_ms, workload.time_limit_ms
    if least is None or limit is None:
        return (
            None if least is None and limit is None else "it has a limit that it left open, or not"
        )
    if limit < least or (most is not None and limit > most):
        return f"it is started with a limit of {limit}, and asked for {least} to {most}"
    return None


def _limit(index: SnapshotIndex, workload: Workload) -> int:
    assert index.policy.backfill is not None, "only with backfill are there dates"
    said = []
    if workload.time_limit_ms is not None:
        said.append(workload.time_limit_ms)
    if workload.max_execution_ms is not None:
        said.append(max(0, workload.max_execution_ms - workload.past_execution_ms))
    return min(said, default=index.policy.backfill.default_limit_ms)


def _of_admission(index: SnapshotIndex, workload: Workload, admission: Admission) -> _Amounts:
    """Return what the pods of an admission take of nodes that are there."""
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
    return _in_parts(total)


def least_of(workload: Workload) -> _Amounts:
    """Return what the pods take that have to start together."""
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


def _in_parts(total: _Amounts) -> _Amounts:
    """Count GPUs in thousandths, too: whoever wants a part competes with who wants whole ones."""
    both = dict(total)
    for name, amount in total.items():
        if name.endswith("/gpu"):
            part = ResourceName(f"{name}-milli")
            both[part] = both.get(part, 0) + 1000 * amount
    return both
