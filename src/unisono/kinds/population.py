"""The workloads of a world: who waits, who holds quota, who is none of our business."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from unisono.engine.model.names import FlavorName, Instant, LocalQueueKey, QueueName, WorkloadKey
from unisono.engine.model.queue import ClusterQueue, Flavor, LocalQueue
from unisono.engine.model.snapshot import Namespace
from unisono.engine.model.workload import Holding, Workload
from unisono.kinds.candidates import Candidate, candidates
from unisono.kinds.core.schema import Pod
from unisono.kinds.kueue.workload_rules import GATED_BY, holding_of, is_finished, workload_of
from unisono.kinds.managing import QUEUE_LABEL_PATH, is_managed, queue_name
from unisono.kinds.notes import Notes
from unisono.kinds.objects import Entry, Objects
from unisono.kinds.priorities import class_priority, job_priority
from unisono.kinds.registry import Registry
from unisono.kinds.resource_rules import ResourceRules
from unisono.kinds.running import bound_pods, holding_of_job
from unisono.kinds.settings import Settings

MAX_EXECUTION_LABEL = "kueue.x-k8s.io/max-exec-time-seconds"
_SECONDS = re.compile(r"[1-9][0-9]{0,9}")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The configuration that workloads are read against, by name."""

    objects: Objects
    registry: Registry
    settings: Settings
    now: Instant
    namespaces: Mapping[str, Namespace]
    queues: Mapping[QueueName, ClusterQueue]
    local_queues: Mapping[LocalQueueKey, LocalQueue]
    flavors: Mapping[FlavorName, Flavor]
    is_complete: bool = True  # False: some file could not be read, so references may be right


@dataclass(slots=True)
class Population:
    """All workloads, in document order."""

    waiting: list[Workload] = field(default_factory=list)
    holdings: list[Holding] = field(default_factory=list)
    unmanaged: list[WorkloadKey] = field(default_factory=list)


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
    found: list[tuple[int, Workload | Holding]] = []
    unmanaged: list[WorkloadKey] = []
    for entry in around.objects.entries("Workload"):
        if not is_finished(entry.manifest):
            found.append((entry.index, _from_workload(entry, around)))
    pods = bound_pods(around.objects)
    for candidate in candidates(around.objects, around.registry):
        entry = candidate.entry
        queue = queue_name(entry, candidate.own_queue, around.objects)
        if not is_managed(entry, queue, around.namespaces[entry.namespace], around.settings):
            unmanaged.append(_key(candidate))
            continue
        made = _from_candidate(candidate, queue, pods.get(entry.index, []), around)
        if made is not None:
            found.append((entry.index, made))
    result = Population(unmanaged=unmanaged)
    for _, made in sorted(found, key=lambda pair: pair[0]):
        if isinstance(made, Holding):
            result.holdings.append(made)
        else:
            result.waiting.append(made)
    return result


def _key(candidate: Candidate) -> WorkloadKey:
    return WorkloadKey(f"{candidate.entry.namespace}/{candidate.name}")


def _reading(entry: Entry, around: Surroundings) -> _Reading:
    return _Reading(entry.namespace, entry.notes, around.settings.rules, around.objects)


def _check_queue(queue: str, path: str, entry: Entry, around: Surroundings) -> None:
    """Report a queue name that leads nowhere."""
    namespace = entry.namespace
    if around.is_complete and not around.objects.exists("LocalQueue", queue, namespace=namespace):
        entry.notes.problem(path, f'there is no LocalQueue "{queue}" in namespace {namespace}')


def _uid(entry: Entry) -> str:
    """Return the uid, or the document's place, which keeps the order of documents in ties."""
    return entry.metadata.uid or f"{entry.index:08d}"


def _created_at(entry: Entry, around: Surroundings) -> Instant:
    created = entry.metadata.creation_timestamp
    return created.instant if created is not None else around.now


# ---- Workloads ---------------------------------------------------------------------------------


def _from_workload(entry: Entry, around: Surroundings) -> Workload | Holding:
    written = entry.manifest
    made = workload_of(
        written,
        _reading(entry, around),
        uid=_uid(entry),
        priority=_priority(entry, around.objects),
        created_at=_created_at(entry, around),
        policy=around.settings.policy,
    )
    holding = holding_of(written, made)
    if holding is None:
        _check_queue(written.spec.queue_name, "spec.queueName", entry, around)
        return made
    queue = holding.admission.queue
    if around.is_complete and not around.objects.exists("ClusterQueue", queue):
        path = "status.admission.clusterQueue"
        entry.notes.problem(path, f'there is no ClusterQueue "{queue}"')
    return holding


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
    candidate: Candidate, queue: str, pods: list[Pod], around: Surroundings
) -> Workload | Holding | None:
    """Return the workload of a managed job; None if there is nothing to run."""
    entry, context = candidate.entry, _reading(candidate.entry, around)
    pod_sets = candidate.pod_sets(context)
    if not pod_sets:
        return None
    if queue:
        _check_queue(queue, QUEUE_LABEL_PATH, entry, around)
    priority = job_priority(entry, candidate.own_class, around.objects)
    local_queue = LocalQueueKey(f"{entry.namespace}/{queue}")
    made = Workload(
        key=_key(candidate),
        uid=_uid(entry),
        queue=local_queue,
        pod_sets=pod_sets,
        priority=priority,
        created_at=_created_at(entry, around),
        gated_by=entry.metadata.annotations.get(GATED_BY, ""),
        reclaimable=candidate.reclaimable,
        max_execution_ms=_max_execution_ms(entry),
        misconfigured="; ".join(entry.notes.faults),
    )
    behind = _queue_behind(local_queue, around)
    bound = list(_bound(candidate, pods))
    if not bound or behind is None:
        return made
    return holding_of_job(made, bound, behind, flavors=around.flavors, context=context)


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


def _bound(candidate: Candidate, pods: list[Pod]) -> Iterator[Pod]:
    """Yield the pods that show that it runs: a job's, or those of the group itself."""
    yield from pods
    if isinstance(candidate.subject, tuple):
        for pod in candidate.subject:
            if pod.spec.node_name and pod.status.phase not in ("Succeeded", "Failed"):
                yield pod


def _queue_behind(key: LocalQueueKey, around: Surroundings) -> ClusterQueue | None:
    local_queue = around.local_queues.get(key)
    return around.queues.get(local_queue.queue) if local_queue is not None else None
