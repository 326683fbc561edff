"""Workloads: what is refused, and what the engine is told about one that waits or holds quota.

Conditions that are read (spec quota §11):

    Finished=True                 it is over; there is no workload any more
    Evicted=True                  while quota is held: it is leaving
                                  afterwards, if by PodsReadyTimeout or AdmissionCheck: its new
                                  place in the queue counts from then on
    Requeued=False                on hold until it is requeued
    QuotaReserved, Admitted, PodsReady     since when it holds quota, and how far it is
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import msgspec

from unisono.engine.model import workload as engine
from unisono.engine.model.names import (
    PODS,
    FlavorName,
    Instant,
    LocalQueueKey,
    QueueName,
    ResourceName,
    WorkloadKey,
)
from unisono.engine.model.policy import Policy, preemption_backoff_ms
from unisono.engine.model.resources import Amounts, amounts, bounded
from unisono.engine.model.workload import Result
from unisono.kinds.core.pod_sets import TemplateSet, check_template_sets, empty_sets, pod_sets
from unisono.kinds.core.topology import SEVERAL_LAYERS
from unisono.kinds.decode import decode
from unisono.kinds.digits import whole_number
from unisono.kinds.job_annotations import read_job_annotations
from unisono.kinds.kueue.queue_order import moves_back
from unisono.kinds.kueue.topology_assignment import is_sound
from unisono.kinds.kueue.unsupported import PRIORITY_BOOST, without_effect, wrong_with_boost
from unisono.kinds.kueue.workloads import (
    Admission,
    PodSet,
    PodSetAssignment,
    PodSetTopologyRequest,
    Workload,
)
from unisono.kinds.meta import Condition, condition
from unisono.kinds.notes import Notes
from unisono.kinds.registry import Context
from unisono.kinds.scalar import seconds_ms
from unisono.kinds.times import ACTIVE_DEADLINE

GATED_BY = "kueue.x-k8s.io/admission-gated-by"
WAIT_FOR_RECOVERY = "WaitForRecovery"  # of PodsReady=False: the pods were ready before
CAN_SHRINK = "unisono.dev/can-shrink"  # "true": pods above the minimum may go while it runs
REPLACES = "kueue.x-k8s.io/workload-slice-replacement-for"


def check_workload(workload: Workload, notes: Notes) -> None:
    """Report everything about a Workload that can be seen without the others."""
    sets = workload.spec.pod_sets
    if not sets:
        notes.problem("spec.podSets", "is required: a workload needs at least one pod set")
    check_template_sets(_templates(workload), notes)
    for index, one in enumerate(sets):
        if one.min_count is not None and one.min_count > one.count:
            message = f"is {one.min_count}; the pod set has only {one.count} pods"
            notes.problem(f"spec.podSets[{index}].minCount", message)
        _check_topology(one.topology_request, f"spec.podSets[{index}].topologyRequest", notes)
    reference = workload.spec.priority_class_ref
    if reference is not None and (reference.kind == "PriorityClass") != (
        reference.group == "scheduling.k8s.io"
    ):
        message = f"group {reference.group} has no kind {reference.kind}"
        notes.problem("spec.priorityClassRef.kind", message)
    if workload.spec.preemption_gates:
        message = "has no effect here: it may preempt at once"
        notes.warn("FieldIgnored", "spec.preemptionGates", message)
    for word in without_effect(workload.metadata):
        notes.warn("FieldIgnored", word.path, word.message)
    if wrong := wrong_with_boost(workload.metadata.annotations):
        notes.problem(f"metadata.annotations[{PRIORITY_BOOST}]", wrong)
    check_status(workload, {one.name for one in sets}, notes)


def _check_topology(request: PodSetTopologyRequest | None, path: str, notes: Notes) -> None:
    if request is None:
        return
    constraints = [request.required, request.preferred, request.unconstrained]
    if sum(constraint is not None for constraint in constraints) > 1:
        notes.problem(path, "can have only one of required, preferred and unconstrained")
    if (request.pod_set_slice_size is None) != (request.pod_set_slice_required_topology is None):
        message = "needs podSetSliceRequiredTopology and podSetSliceSize together"
        notes.problem(path, message)


def check_status(workload: Workload, names: Container[str], notes: Notes) -> None:
    """Report what is wrong with what others wrote about a Workload, given the names of its sets."""
    admission = workload.status.admission
    for index, assignment in enumerate(admission.pod_set_assignments if admission else ()):
        if assignment.name not in names:
            path = f"status.admission.podSetAssignments[{index}].name"
            notes.problem(path, f'there is no pod set "{assignment.name}"')
        for resource, amount in assignment.resource_usage.items():
            if amount.nano < 0:
                path = f"status.admission.podSetAssignments[{index}].resourceUsage[{resource}]"
                notes.problem(path, f"is {amount.text}; it must not be negative")
        placed = assignment.topology_assignment
        if placed is not None and not is_sound(placed):
            path = f"status.admission.podSetAssignments[{index}].topologyAssignment"
            notes.problem(
                path, "must have levels, and for every domain a value of each and a count"
            )
    for index, reclaimable in enumerate(workload.status.reclaimable_pods):
        if reclaimable.name not in names:
            path = f"status.reclaimablePods[{index}].name"
            notes.problem(path, f'there is no pod set "{reclaimable.name}"')


def _templates(workload: Workload) -> tuple[TemplateSet, ...]:
    return tuple(
        TemplateSet(
            name=one.name,
            count=one.count,
            min_count=one.min_count,
            template=one.template,
            path=f"spec.podSets[{index}].template",
        )
        for index, one in enumerate(workload.spec.pod_sets)
    )


# ---- engine values -------------------------------------------------------------------------------


def is_finished(workload: Workload) -> bool:
    """Say whether the workload is over."""
    return _holds(workload, "Finished")


def run_of(workload: Workload) -> tuple[Instant, int] | None:
    """Return when a workload succeeded, and for how many milliseconds it ran, all at once.

    None if it did not, or with interruptions: those may have cost anything.
    """
    conditions = workload.status.conditions
    finished, admitted = condition(conditions, "Finished"), condition(conditions, "Admitted")
    if finished is None or not finished.is_true or finished.reason == "Failed":
        return None
    since, until = _since(admitted), finished.since
    if since is None or until is None or workload.status.accumulated_past_execution_time_seconds:
        return None
    return (until, until - since) if until > since else None


def result_of(workload: Workload, namespace: str) -> Result | None:
    """Return what became of the job behind a Workload that is over; None if it is not."""
    conditions = workload.status.conditions
    finished, admitted = condition(conditions, "Finished"), condition(conditions, "Admitted")
    if finished is None or not finished.is_true or finished.since is None:
        return None
    return Result(
        job=f"{namespace}/{owner_of(workload)}",
        succeeded=finished.reason != "Failed",
        ended_at=finished.since,
        started_at=_since(admitted),
    )


def owner_of(workload: Workload) -> str:
    """Return the name of the job that a Workload stands for; its own without an owner."""
    owners = workload.metadata.owner_references
    return owners[0].name if owners else workload.metadata.name


def workload_of(
    workload: Workload,
    context: Context,
    *,
    uid: str,
    priority: int,
    created_at: Instant,
    policy: Policy,
) -> engine.Workload:
    """Return what a Workload asks for, and its history; never what it holds."""
    status, annotations = workload.status, workload.metadata.annotations
    requeue = status.requeue_state
    replaces = annotations.get(REPLACES, "")
    longest = workload.spec.maximum_execution_time_seconds
    preemptions, may_preempt_at = _preemptions(workload, policy)
    from_annotations = read_job_annotations(
        workload.metadata,
        context.namespace,
        context.notes,
        created_at=created_at,
        active_s=_active_seconds(annotations),
    )
    made = engine.Workload(
        key=WorkloadKey(f"{context.namespace}/{workload.metadata.name}"),
        uid=uid,
        queue=LocalQueueKey(f"{context.namespace}/{workload.spec.queue_name}"),
        pod_sets=_pod_sets(workload, context),
        priority=priority,
        created_at=created_at,
        queued_at=_queued_at(workload, policy),
        active=workload.spec.active,
        gated_by=annotations.get(GATED_BY, ""),
        requeue_at=requeue.requeue_at.instant if requeue and requeue.requeue_at else None,
        on_hold=_is_false(workload, "Requeued"),
        checks=tuple(engine.CheckState(one.name, one.state) for one in status.admission_checks),
        reclaimable=tuple((one.name, one.count) for one in status.reclaimable_pods),
        replaces=WorkloadKey(_qualified(replaces, context.namespace)) if replaces else None,
        preemptions=preemptions,
        may_preempt_at=may_preempt_at,
        requeues=(requeue.count or 0) if requeue else 0,
        max_execution_ms=None if longest is None else seconds_ms(longest),
        past_execution_ms=seconds_ms(status.accumulated_past_execution_time_seconds or 0),
        misconfigured="; ".join(context.notes.faults),
        can_shrink=annotations.get(CAN_SHRINK) == "true",
        empty_sets=empty_sets(_templates(workload), context),
        # Without an owner its own name is what others call it, and that is its key.
        job=f"{context.namespace}/{owner_of(workload)}"
        if workload.metadata.owner_references
        else "",
    )
    return from_annotations.applied_to(made)


def _active_seconds(annotations: Mapping[str, str]) -> int | None:
    return whole_number(annotations.get(ACTIVE_DEADLINE)) or None


def admitted_workload_of(
    workload: Workload, made: engine.Workload
) -> engine.AdmittedWorkload | None:
    """Return the quota that a Workload holds, given its engine form; None if it waits."""
    admission = workload.status.admission
    if admission is None or _is_false(workload, "QuotaReserved"):
        return None
    conditions = workload.status.conditions
    ready = condition(conditions, "PodsReady")
    lost = ready is not None and ready.status == "False" and ready.reason == WAIT_FOR_RECOVERY
    return engine.AdmittedWorkload(
        workload=_with_recorded_usage(made, admission),
        admission=_admission(admission, made),
        reserved_at=_since(condition(conditions, "QuotaReserved")) or made.created_at,
        evicting=_holds(workload, "Evicted"),
        may_start=not _is_false(workload, "Admitted"),
        admitted_at=_since(condition(conditions, "Admitted")),
        ready=not _is_false(workload, "PodsReady"),
        unready_since=_since(ready) if lost else None,
    )


def recorded_admitted_workload(
    obj: Mapping[str, Any], key: WorkloadKey
) -> engine.AdmittedWorkload | None:
    """Return the quota that the status of an unreadable Workload says it holds; None for none.

    Only what was written when it was admitted is looked at: queue, flavors and usage. It is on no
    node: pods that are there count by themselves.
    """
    status = obj.get("status")
    raw = status.get("admission") if isinstance(status, Mapping) else None
    admission, _ = decode(Admission, raw, path="status.admission", ignore_unknown=True)
    if admission is None:
        return None
    sets = tuple(
        engine.PodSet(name=one.name, count=one.count, requests=_per_pod(one, one.count))
        for one in admission.pod_set_assignments
        if one.count
    )
    namespace, spec = key.partition("/")[0], obj.get("spec")
    local_queue = spec.get("queueName") if isinstance(spec, Mapping) else ""
    made = engine.Workload(
        key=key,
        uid=str(obj["metadata"].get("uid", "")),
        queue=LocalQueueKey(f"{namespace}/{local_queue}"),
        pod_sets=sets,
    )
    return engine.AdmittedWorkload(workload=made, admission=_admission(admission, made))


def _admission(admission: Admission, made: engine.Workload) -> engine.Admission:
    """Return what was assigned, for the pod sets that have pods at all."""
    given = {one.name: one for one in admission.pod_set_assignments}
    done = dict(made.reclaimable)
    return engine.Admission(
        queue=QueueName(admission.cluster_queue),
        pod_sets=tuple(
            _assignment(
                given.get(one.name, PodSetAssignment(name=one.name)), one, done.get(one.name, 0)
            )
            for one in made.pod_sets
        ),
    )


def _assignment(
    assignment: PodSetAssignment, asked: engine.PodSet, done: int
) -> engine.PodSetAssignment:
    """Return what was assigned to a set; its count includes pods that are done.

    Those that were done before it was admitted are not in what is written. A set that was made
    smaller since has no more pods than it asks for (spec quota §15).
    """
    count = asked.count if assignment.count is None else min(assignment.count, asked.count)
    if asked.min_count is None:
        count = max(count, min(count + done, asked.count))
    return engine.PodSetAssignment(
        name=assignment.name,
        count=count,
        flavors=tuple(
            sorted(
                (ResourceName(resource), FlavorName(flavor))
                for resource, flavor in assignment.flavors.items()
            )
        ),
    )


def _with_recorded_usage(made: engine.Workload, admission: Admission) -> engine.Workload:
    """Let a workload be charged what was written when it was admitted.

    Its template may mean something else by now: a LimitRange, a RuntimeClass or the operator's
    rules about resources may have changed. What it takes of nodes is what its pods ask for.
    """
    given = {one.name: one for one in admission.pod_set_assignments}
    filled = tuple(
        one if one.name not in given else _charged(one, given[one.name]) for one in made.pod_sets
    )
    if all(new is old for new, old in zip(filled, made.pod_sets, strict=True)):
        return made
    return msgspec.structs.replace(made, pod_sets=filled)


def _charged(one: engine.PodSet, assignment: PodSetAssignment) -> engine.PodSet:
    recorded = _per_pod(assignment, one.count)
    if not recorded:
        return one
    asked = dict(one.requests)
    # Resources without quota are not recorded; what they are asked for decides nothing any more.
    if all(asked.get(name) == amount for name, amount in recorded):
        return one
    on_nodes = one.requests if one.node_requests is None else one.node_requests
    return msgspec.structs.replace(
        one,
        requests=amounts(asked | dict(recorded)),
        node_requests=(on_nodes or None) if one.requests else one.node_requests,
    )


def _per_pod(assignment: PodSetAssignment, count: int) -> Amounts:
    """Return the recorded usage of one pod; `pods` is no request of theirs."""
    pods = assignment.count or count
    return amounts(
        {
            name: bounded(name, -(-quantity.amount(name) // pods))
            for name, quantity in assignment.resource_usage.items()
            if name != PODS
        }
    )


def _pod_sets(workload: Workload, context: Context) -> tuple[engine.PodSet, ...]:
    constraints = {one.name: one for one in workload.spec.pod_sets}
    for one in workload.spec.pod_sets:
        request = one.topology_request
        if request is not None and len(request.podset_slice_required_topology_constraints) > 1:
            context.notes.misconfigured(f"pod set {one.name}: {SEVERAL_LAYERS}")
    return tuple(
        _with_topology(made, constraints[made.name])
        for made in pod_sets(_templates(workload), context)
    )


def _with_topology(made: engine.PodSet, written: PodSet) -> engine.PodSet:
    """Let the pod set's own topology request win over annotations of its template."""
    request = written.topology_request
    if request is None:
        return made
    level, size = request.pod_set_slice_required_topology or "", request.pod_set_slice_size or 0
    layers = request.podset_slice_required_topology_constraints
    if not level and len(layers) == 1:
        level, size = layers[0].topology, layers[0].size
    if request.required is not None:
        topology = engine.TopologyRequest("required", request.required, level, size)
    elif request.preferred is not None or not request.unconstrained:
        topology = engine.TopologyRequest("preferred", request.preferred or "", level, size)
    else:
        topology = engine.TopologyRequest("unconstrained", "", level, size)
    group = request.pod_set_group_name or made.group
    return msgspec.structs.replace(made, topology=topology, group=group)


def _queued_at(workload: Workload, policy: Policy) -> Instant | None:
    """Return its place in the queue, if an eviction moved it (§5)."""
    evicted = condition(workload.status.conditions, "Evicted")
    if evicted is None or not evicted.is_true:
        return None
    by_timeout = policy.pods_ready is None or policy.pods_ready.requeue_by == "Eviction"
    return evicted.since if moves_back(evicted.reason, by_timeout=by_timeout) else None


def _preemptions(workload: Workload, policy: Policy) -> tuple[int, Instant | None]:
    """Return how often it was preempted, and until when it may not preempt others (§18.2b)."""
    stats = workload.status.scheduling_stats
    times = sum(
        one.count for one in (stats.evictions if stats else ()) if one.reason == "Preempted"
    )
    preempted = condition(workload.status.conditions, "Preempted")
    if preempted is None or not preempted.is_true:
        return times, None
    times, since = max(times, 1), preempted.since
    if since is None or not policy.anti_thrash:
        return times, None
    return times, Instant(since + preemption_backoff_ms(times))


def _holds(workload: Workload, type_: str) -> bool:
    found = condition(workload.status.conditions, type_)
    return found is not None and found.is_true


def _is_false(workload: Workload, type_: str) -> bool:
    found = condition(workload.status.conditions, type_)
    return found is not None and found.status == "False"


def _since(found: Condition | None) -> Instant | None:
    return found.since if found is not None else None


def _qualified(name: str, namespace: str) -> str:
    return name if "/" in name else f"{namespace}/{name}"
