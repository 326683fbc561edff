"""Do pods avoid nodes with an advance reservation for others while they would run? (backfill §8)

Checked for every workload that the plan starts, for backfill reservations (do enough nodes remain
for them?), and for the facts that name an advance reservation.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.audit.backfill_reservations import minimum_requests
from unisono.engine.audit.snapshot_index import SnapshotIndex, started_by
from unisono.engine.audit.violation import Violation
from unisono.engine.model.explanation import Reserved
from unisono.engine.model.names import PODS, Instant, NodeName, ResourceName
from unisono.engine.model.node import Node
from unisono.engine.model.plan import Plan
from unisono.engine.model.policy import AdvanceReservation
from unisono.engine.model.workload import Workload

_DAY_MS = 24 * 3600 * 1000
_PERIODS_MS = {"daily": _DAY_MS, "weekly": 7 * _DAY_MS}
_UNKNOWN_MS = 365 * _DAY_MS  # the limit of a workload that has none, without backfill
# Kubernetes' default, for nodes whose manifest does not say how many pods they take.
_DEFAULT_PODS = 110


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
    for planned in plan.dates:
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
    has = {PODS: _DEFAULT_PODS, **dict(node.allocatable)}
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
    account, user = workload.turn.account, workload.turn.user
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
