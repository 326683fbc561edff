"""The workloads of a snapshot: pending, holding quota, or not ours.

And with them, the pods on nodes: those of admitted workloads are counted there, all other bound
pods are listed one by one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from unisono.engine.model.names import (
    FlavorName,
    Instant,
    LocalQueueKey,
    NodeName,
    QueueName,
    WorkloadKey,
)
from unisono.engine.model.node import NodePod
from unisono.engine.model.queue import ClusterQueue, Flavor, LocalQueue
from unisono.engine.model.workload import AdmittedWorkload, Workload
from unisono.engine.state.run_history import History, alike, with_limit
from unisono.kinds.job_annotations import read_job_annotations
from unisono.kinds.kueue.unsupported import priority_boost, without_effect
from unisono.kinds.kueue.workload_rules import (
    CAN_SHRINK,
    GATED_BY,
    admitted_workload_of,
    is_finished,
    owner_of,
    run_of,
    workload_of,
)
from unisono.kinds.nearest import did_you_mean
from unisono.kinds.notes import Notes
from unisono.kinds.objects import Entry, Objects
from unisono.kinds.policy.settings import Settings
from unisono.kinds.priorities import class_priority, job_priority
from unisono.kinds.registry import Registry
from unisono.kinds.resource_rules import ResourceRules
from unisono.kinds.snapshot.bound_pods import (
    BoundPods,
    admitted_workload_of_job,
    is_bound,
    pod_of_others,
    pods_by_set,
    with_nodes,
)
from unisono.kinds.snapshot.candidates import (
    KUEUE_WORKLOAD,
    QUEUE_LABEL_PATH,
    Candidate,
    candidates,
)
from unisono.kinds.snapshot.local_queues import QueueChoice
from unisono.kinds.times import active_seconds

MAX_EXECUTION_LABEL = "kueue.x-k8s.io/max-exec-time-seconds"
_SECONDS = re.compile(r"[1-9][0-9]{0,9}")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The configuration that workloads are read against, by name."""

    objects: Objects
    registry: Registry
    settings: Settings
    now: Instant
    queue_choice: QueueChoice
    queues: Mapping[QueueName, ClusterQueue]
    local_queues: Mapping[LocalQueueKey, LocalQueue]
    flavors: Mapping[FlavorName, Flavor]
    hosts: Mapping[str, NodeName]  # nodes by their host names
    bound: BoundPods
    default_limits: Mapping[LocalQueueKey, int] = field(default_factory=dict)
    history: History = field(default_factory=History)  # of what is over
    is_complete: bool = True  # False: some file could not be read, so references may be right


@dataclass(slots=True)
class Population:
    """All workloads, in document order, and the pods on nodes that belong to none of them."""

    waiting: list[Workload] = field(default_factory=list)
    admitted_workloads: list[AdmittedWorkload] = field(default_factory=list)
    unmanaged: list[WorkloadKey] = field(default_factory=list)
    other_pods: list[NodePod] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a kind may look at while one of its objects is read (see `registry.Context`)."""

    namespace: str
    notes: Notes
    rules: ResourceRules
    objects: Objects

    def find(self, kind: str, name: str, *, namespace: str = "") -> Any | None:
        entry = self.objects.find(kind, name, namespace=namespace)
        return entry.manifest if entry is not None else None

    def every(self, kind: str, *, namespace: str = "") -> tuple[Any, ...]:
        entries = self.objects.entries(kind, namespace=namespace)
        return tuple(entry.manifest for entry in entries)


def populate(around: Surroundings) -> Population:
    """Read every workload and every job that is managed."""
    found: list[tuple[int, Workload | AdmittedWorkload]] = []
    unmanaged: list[WorkloadKey] = []
    written = around.objects.entries(KUEUE_WORKLOAD)
    for entry in written:
        _learn(entry, around)
    for entry in written:
        if not is_finished(entry.manifest):
            found.append((entry.index, _from_workload(entry, around)))
    for candidate in candidates(around.objects, around.registry, around.bound):
        # Without nodes there is nothing to decide about a pod that is in no queue.
        is_plain = candidate.is_plain_pod and not candidate.queue_label
        if is_plain and not around.queue_choice.has_nodes:
            continue
        local_queue = around.queue_choice.local_queue_for(candidate)
        if local_queue is not None:
            made = _from_candidate(candidate, local_queue, around)
            if made is not None:
                found.append((candidate.entry.index, made))
        elif not is_plain:
            unmanaged.append(_key(candidate))
    result = Population(unmanaged=unmanaged)
    for _, made in sorted(found, key=lambda pair: pair[0]):
        if isinstance(made, AdmittedWorkload):
            result.admitted_workloads.append(made)
        else:
            result.waiting.append(made)
    result.other_pods.extend(
        pod_of_others(pod, _reading(pod, around)) for pod in around.bound.others()
    )
    return result


def _key(candidate: Candidate) -> WorkloadKey:
    return WorkloadKey(f"{candidate.entry.namespace}/{candidate.name}")


def _reading(entry: Entry, around: Surroundings) -> _Reading:
    return _Reading(entry.namespace, entry.notes, around.settings.rules, around.objects)


def _check_queue(queue: str, path: str, entry: Entry, around: Surroundings) -> None:
    """Warn about a queue name that leads nowhere: the workload waits, and the others do not."""
    namespace = entry.namespace
    if around.is_complete and not around.objects.exists("LocalQueue", queue, namespace=namespace):
        known = [one.name for one in around.objects.entries("LocalQueue", namespace=namespace)]
        message = f'there is no LocalQueue "{queue}" in namespace {namespace}; it waits'
        entry.notes.warn("ReferenceNotFound", path, message + did_you_mean(queue, known))


def _uid(entry: Entry) -> str:
    """Return the uid, or the document's place, which keeps the order of documents in ties."""
    return entry.metadata.uid or f"{entry.index:08d}"


def _created_at(entry: Entry, around: Surroundings) -> Instant:
    created = entry.metadata.creation_timestamp
    return created.instant if created is not None else around.now


# ---- Workloads ---------------------------------------------------------------------------------


def _read(entry: Entry, around: Surroundings) -> Workload:
    return workload_of(
        entry.manifest,
        _reading(entry, around),
        uid=_uid(entry),
        priority=_priority(entry, around.objects) + priority_boost(entry.metadata.annotations),
        created_at=_created_at(entry, around),
        policy=around.settings.policy,
    )


def _learn(entry: Entry, around: Surroundings) -> None:
    """Note how long a workload ran that is over."""
    ran = run_of(entry.manifest)
    if ran is not None:
        kind = alike(_read(entry, around), owner_of(entry.manifest))
        around.history.note(kind, uid=_uid(entry), ended_at=ran[0], ran_ms=ran[1])


def _limited(made: Workload, owner: str, around: Surroundings) -> Workload:
    default = around.default_limits.get(made.queue)
    return with_limit(made, owner=owner, default_ms=default, history=around.history)


def _from_workload(entry: Entry, around: Surroundings) -> Workload | AdmittedWorkload:
    written = entry.manifest
    made = _limited(_read(entry, around), owner_of(written), around)
    admitted = admitted_workload_of(written, made)
    if admitted is None:
        _check_queue(written.spec.queue_name, "spec.queueName", entry, around)
        return made
    queue = admitted.admission.queue
    if around.is_complete and not around.objects.exists("ClusterQueue", queue):
        path = "status.admission.clusterQueue"
        message = f'there is no ClusterQueue "{queue}"; what it holds counts nowhere'
        entry.notes.warn("ReferenceNotFound", path, message)
    counts = {one.name: one.count for one in admitted.admission.pod_sets}
    pods = around.bound.of_workload(entry)
    by_set = pods_by_set(pods, made.pod_sets, counts, _reading(entry, around))
    around.bound.account_for(by_set.every())
    return with_nodes(admitted, by_set, written, around.hosts)


def _priority(entry: Entry, objects: Objects) -> int:
    """Return the priority that was written down, or that of the class that was named."""
    spec = entry.manifest.spec
    if spec.priority is not None:
        return int(spec.priority)
    reference = spec.priority_class_ref
    if reference is None:
        return 0
    path = "spec.priorityClassRef.name"
    return class_priority(reference.kind, reference.name, path, entry.notes, objects)


# ---- jobs and groups of pods -------------------------------------------------------------------


def _from_candidate(
    candidate: Candidate, local_queue: LocalQueueKey, around: Surroundings
) -> Workload | AdmittedWorkload | None:
    """Return the workload of a managed job; None if there is nothing to run."""
    entry, context = candidate.entry, _reading(candidate.entry, around)
    for word in without_effect(entry.metadata):
        entry.notes.warn("FieldIgnored", word.path, word.message)
    before = len(entry.notes.faults)  # an object may describe several gangs
    asked = candidate.read(context)
    if not asked.pod_sets:
        return None
    if candidate.queue_label:
        _check_queue(candidate.queue_label, QUEUE_LABEL_PATH, entry, around)
    from_annotations = read_job_annotations(
        entry.metadata,
        entry.namespace,
        entry.notes,
        created_at=_created_at(entry, around),
        active_s=active_seconds(entry.document.raw),
    )
    made = Workload(
        key=_key(candidate),
        uid=_uid(entry) + candidate.part,
        queue=local_queue,
        pod_sets=asked.pod_sets,
        priority=job_priority(entry, asked.priority_class, asked.priority, around.objects),
        created_at=_created_at(entry, around),
        gated_by=entry.metadata.annotations.get(GATED_BY, ""),
        reclaimable=asked.reclaimable,
        max_execution_ms=_max_execution_ms(entry),
        misconfigured="; ".join(entry.notes.faults[before:]),
        min_total=asked.min_total,
        can_shrink=entry.metadata.annotations.get(CAN_SHRINK) == "true",
        job=f"{entry.namespace}/{entry.name}",
    )
    made = _limited(from_annotations.applied_to(made), entry.name, around)
    behind = _queue_behind(local_queue, around)
    bound = around.bound.of_job(entry) or [pod for pod in candidate.pods if is_bound(pod.manifest)]
    if not bound or behind is None:
        return made
    counts = {one.name: one.count for one in made.pod_sets}
    by_set = pods_by_set(bound, made.pod_sets, counts, context)
    around.bound.account_for(by_set.every())
    return admitted_workload_of_job(made, by_set, behind, flavors=around.flavors, context=context)


def _max_execution_ms(entry: Entry) -> int | None:
    """Return how long a job may run in all, from its label."""
    label = entry.metadata.labels.get(MAX_EXECUTION_LABEL)
    if label is None:
        return None
    if _SECONDS.fullmatch(label) is None:
        path = f"metadata.labels[{MAX_EXECUTION_LABEL}]"
        entry.notes.problem(path, f'"{label}" must be a number of seconds, at least 1')
        return None
    return int(label) * 1000


def _queue_behind(key: LocalQueueKey, around: Surroundings) -> ClusterQueue | None:
    local_queue = around.queue_choice.implicit.get(key) or around.local_queues.get(key)
    return around.queues.get(local_queue.queue) if local_queue is not None else None
