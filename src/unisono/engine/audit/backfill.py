"""Can backfill reservations be kept, and are advance reservations respected? (backfill §4, §5, §8)

A backfill reservation must hold if all workloads keep their limits. Added up over all nodes
together, resource by resource: what the nodes have, less what is still in use when the reservation
starts, must be enough for the reservation and for all that overlap it there. The nodes of a
reservation are not part of a plan, so one that cannot be kept because of fragmentation is not found
here; the property tests of backfill check that.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.audit.node_occupancy import PODS_PER_NODE
from unisono.engine.audit.snapshot_index import SnapshotIndex, started_by
from unisono.engine.audit.violation import Violation
from unisono.engine.model.explanation import Reserved
from unisono.engine.model.names import PODS, Instant, NodeName, ResourceName
from unisono.engine.model.node import Node
from unisono.engine.model.plan import Plan
from unisono.engine.model.policy import AdvanceReservation
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
            yield Violation(rule="reservation", workload=workload.key, message=fault)
        limit = _limit(index, workload) if admit.limit_ms is None else admit.limit_ms
        end = Instant(plan.now + limit)
        spans.append((plan.now, end, _requests_of(index, workload, admit.admission)))
    reservations = [each for each in plan.reservations if each.workload in index.waiting]
    needs = {
        each.workload: _with_gpu_milli(minimum_requests(index.waiting[each.workload]))
        for each in reservations
    }
    spans += [(each.start, each.end, needs[each.workload]) for each in reservations]
    for each in reservations:
        if each.start <= plan.now:
            message = "its reservation is in the past"
            yield Violation(rule="reservation", workload=each.workload, message=message)
        for resource, amount in needs[each.workload].items():
            used = sum(
                span.get(resource, 0) for start, end, span in spans if start <= each.start < end
            )
            if amount and used > there.get(resource, 0):
                message = f"at {each.start} {used} of {there.get(resource, 0)} {resource} are taken"
                yield Violation(rule="reservation", workload=each.workload, message=message)


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


# --- advance reservations -------------------------------------------------------------------------

# Checked for every workload that the plan starts, for backfill reservations (do enough nodes remain
# for them?), and for the facts that name an advance reservation.


_DAY_MS = 24 * 3600 * 1000
_PERIODS_MS = {"daily": _DAY_MS, "weekly": 7 * _DAY_MS}
_UNKNOWN_MS = 365 * _DAY_MS  # the limit of a workload that has none, without backfill


def check_advance_reservations(index: SnapshotIndex, plan: Plan) -> Iterator[Violation]:
    """Check started workloads, backfill reservations, and facts about advance reservations."""
    if not index.policy.reservations or not index.has_nodes:
        return
    for decided in started_by(plan):
        workload = index.waiting.get(decided.workload)
        if workload is None:
            continue
        old = index.admitted_workloads.get(workload.replaces) if workload.replaces else None
        there = {
            node for one in (old.admission.pod_sets if old else ()) for node, _ in one.nodes
        }  # an elastic slice stays on its nodes
        for each in _against(index, workload, plan.now):
            for one in decided.admission.pod_sets:
                for node, _ in one.nodes:
                    if node not in there and _has(each, node):
                        message = f"{node} is reserved as {each.name}"
                        yield Violation(rule="reserved", workload=workload.key, message=message)
    yield from _check_backfill(index, plan)
    yield from _check_facts(index, plan)


def _check_backfill(index: SnapshotIndex, plan: Plan) -> Iterator[Violation]:
    for planned in plan.reservations:
        workload = index.waiting.get(planned.workload)
        if workload is None:
            continue
        excluding = _against(index, workload, planned.start)
        for resource, wanted in minimum_requests(workload).items():
            has = sum(
                _has_of(node, resource)
                for node in index.nodes.values()
                if node.ready and not any(_has(each, node.name) for each in excluding)
            )
            if wanted > has:
                message = f"its start needs {wanted} {resource}; {has} are not reserved then"
                yield Violation(rule="reserved", workload=workload.key, message=message)


def _has_of(node: Node, resource: ResourceName) -> int:
    has = {PODS: PODS_PER_NODE, **dict(node.allocatable)}
    if resource.endswith("/gpu-milli"):  # thousandths of GPUs
        return 1000 * has.get(ResourceName(resource.removesuffix("-milli")), 0)
    return has.get(resource, 0)


def _check_facts(index: SnapshotIndex, plan: Plan) -> Iterator[Violation]:
    for wait in plan.waits:
        workload = index.waiting.get(wait.explanation.workload)
        for fact in wait.explanation.blockers:
            if workload is None or not isinstance(fact, Reserved):
                continue
            if fact.name not in [each.name for each in _against(index, workload, plan.now)]:
                message = f"{fact.name} is not reserved against it"
                yield Violation(rule="explanation", workload=workload.key, message=message)


def _against(index: SnapshotIndex, workload: Workload, start: Instant) -> list[AdvanceReservation]:
    """List the advance reservations that exclude a workload while it would run."""
    end = start + _limit_ms(index, workload)
    return [
        each
        for each in index.policy.reservations
        if not _may_use(each, workload) and _overlaps(each, start, end)
    ]


def _overlaps(each: AdvanceReservation, start: int, end: int) -> bool:
    if each.repeat == "":
        return each.start < end and start < each.end
    period = _PERIODS_MS[each.repeat]
    # The last occurrence that starts before the end; never before the first one.
    occurrence = (end - 1 - each.start) // period
    return occurrence >= 0 and start < each.end + occurrence * period


def _may_use(each: AdvanceReservation, workload: Workload) -> bool:
    namespace = workload.key.split("/")[0]
    account, user = workload.submit_options.account, workload.submit_options.user
    return (
        workload.queue in each.local_queues
        or namespace in each.namespaces
        or (bool(account) and account in each.accounts)
        or (bool(user) and user in each.users)
    )


def _has(each: AdvanceReservation, node: NodeName) -> bool:
    return not each.nodes or node in each.nodes


def _limit_ms(index: SnapshotIndex, workload: Workload) -> int:
    limits = [one for one in (workload.time_limit_ms, workload.least_limit_ms) if one is not None]
    if workload.max_execution_ms is not None:
        limits.append(max(0, workload.max_execution_ms - workload.past_execution_ms))
    rules = index.policy.backfill
    unknown = _UNKNOWN_MS if rules is None else rules.default_limit_ms
    return min(limits, default=unknown)
