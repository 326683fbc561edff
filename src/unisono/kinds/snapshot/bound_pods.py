"""Pods on nodes: their workloads, and what a job holds that runs although no Workload says so.

A cluster in which Kueue never ran has jobs and pods, but no quota reservations. A
job with bound pods holds the quota of its queue, with the flavors of the nodes that its pods are
on: the first of a group whose node labels the node has, or the pod selects; else the first.

A pod is bound if it has a node and is not over; one that is being deleted still takes its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from unisono.engine.model.names import FlavorName, Instant, QueueName, ResourceName
from unisono.engine.model.queue import ClusterQueue, Flavor, ResourceGroup
from unisono.engine.model.workload import (
    Admission,
    AdmittedWorkload,
    PodSet,
    PodSetAssignment,
    Workload,
)
from unisono.kinds.core.pod_groups import GROUP_NAME
from unisono.kinds.core.schema import Pod
from unisono.kinds.objects import Entry, Objects
from unisono.kinds.registry import Context
from unisono.kinds.snapshot.node_assignment import Seats, devices_of, nodes_of

WORKLOAD_ANNOTATION = "kueue.x-k8s.io/workload"
# Labels by which pods name the job at the top, for when the objects between them are not given.
_OWNER_LABELS = (
    ("jobset.sigs.k8s.io/jobset-name", ("TrainJob", "JobSet")),
    ("ray.io/cluster", ("RayCluster",)),
    ("volcano.sh/job-name", ("Job",)),
    ("batch.kubernetes.io/job-name", ("Job",)),
    ("job-name", ("Job",)),
)
_MAX_OWNERS = 8  # a pod, a Job, a JobSet, a TrainJob: no kind nests deeper


@dataclass(slots=True)
class BoundPods:
    """All pods that are on nodes, by the job or the Workload they belong to."""

    objects: Objects
    _of_job: dict[int, list[Entry]] = field(default_factory=dict)
    _of_workload: dict[tuple[str, str], list[Entry]] = field(default_factory=dict)
    _bound: list[Entry] = field(default_factory=list)
    _seated: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Sort the pods out."""
        self._bound = [pod for pod in self.objects.entries("Pod") if is_bound(pod.manifest)]
        for pod in self._bound:
            job = _job_of(pod, self.objects)
            if job is not None:
                self._of_job.setdefault(job.index, []).append(pod)
            for name in _workload_names(pod):
                self._of_workload.setdefault((pod.namespace, name), []).append(pod)

    def of_job(self, job: Entry) -> list[Entry]:
        """Return the bound pods of a job."""
        return self._of_job.get(job.index, [])

    def of_workload(self, workload: Entry) -> list[Entry]:
        """Return the bound pods of a Kueue Workload: those that name it, or of what owns it."""
        found = {
            pod.index: pod for pod in self._of_workload.get((workload.namespace, workload.name), [])
        }
        for owner in _owners(workload, self.objects):
            pods = [owner] if owner.kind.members is not None else self.of_job(owner)
            found.update({pod.index: pod for pod in pods if is_bound(pod.manifest)})
        return list(found.values())

    def belongs(self, pod: Entry) -> bool:
        """Say whether a pod, bound or not, is part of a job or a Workload that was given."""
        if any(
            self.objects.exists("Workload.kueue.x-k8s.io", name, namespace=pod.namespace)
            for name in _workload_names(pod)
        ):
            return True
        return _job_of(pod, self.objects) is not None

    def seat(self, pods: Iterable[Entry]) -> None:
        """Remember pods that an admitted workload accounts for."""
        self._seated.update(pod.index for pod in pods)

    def others(self) -> Iterator[Entry]:
        """Yield the bound pods that no admitted workload accounts for."""
        return (pod for pod in self._bound if pod.index not in self._seated)


def is_bound(pod: Pod) -> bool:
    """Say whether a pod takes room on a node."""
    return bool(pod.spec.node_name) and pod.status.phase not in ("Succeeded", "Failed")


def _workload_names(pod: Entry) -> set[str]:
    named = (
        pod.metadata.annotations.get(WORKLOAD_ANNOTATION, ""),
        pod.metadata.labels.get(GROUP_NAME, ""),
    )
    return {name for name in named if name}


def _job_of(entry: Entry, objects: Objects) -> Entry | None:
    """Follow owners upwards as far as they were given; return the last job on the way."""
    job: Entry | None = None
    at: Entry | None = entry
    for _ in range(_MAX_OWNERS):
        at = next(_owners(at, objects), None) if at is not None else None
        if at is not None and at.kind.job is not None:
            job = at
    if job is not None:
        return job
    for label, kinds in _OWNER_LABELS:
        name = entry.metadata.labels.get(label, "")
        for kind in kinds if name else ():
            job = objects.find(kind, name, namespace=entry.namespace)
            if job is not None:
                return job
    return None


def _owners(entry: Entry, objects: Objects) -> Iterator[Entry]:
    for owner in entry.metadata.owner_references:
        group = owner.api_version.rpartition("/")[0]
        found = objects.find(owner.kind, owner.name, namespace=entry.namespace, group=group)
        if found is not None:
            yield found


# ---- jobs without a Workload -------------------------------------------------------------------


def admitted_workload_of_job(
    workload: Workload,
    seats: Seats,
    queue: ClusterQueue,
    *,
    flavors: Mapping[FlavorName, Flavor],
    context: Context,
) -> AdmittedWorkload:
    """Return what a job with bound pods holds."""
    pods: list[Pod] = [pod.manifest for pod in seats.pods]
    starts = [pod.status.start_time.instant for pod in pods if pod.status.start_time]
    counts = _counts(workload, seats)
    assignments = tuple(
        _assignment(one, counts[one.name], seats, queue, flavors=flavors, context=context)
        for one in workload.pod_sets
    )
    return AdmittedWorkload(
        workload=workload,
        admission=Admission(queue=QueueName(queue.name), pod_sets=assignments),
        reserved_at=min(starts, default=Instant(workload.created_at)),
        evicting=all(pod.metadata.deletion_timestamp is not None for pod in pods),
    )


def _counts(workload: Workload, seats: Seats) -> dict[str, int]:
    """Return how many pods of each set hold quota.

    That is all of them, even while the last ones start. A gang that may run with fewer and has
    enough of them runs with those it has.
    """
    bound = {one.name: len(seats.of(one.name)) for one in workload.pod_sets}
    if workload.min_total is not None and sum(bound.values()) >= workload.min_total:
        return bound
    return {one.name: one.count for one in workload.pod_sets}


def _assignment(
    pod_set: PodSet,
    count: int,
    seats: Seats,
    queue: ClusterQueue,
    *,
    flavors: Mapping[FlavorName, Flavor],
    context: Context,
) -> PodSetAssignment:
    own: Sequence[Entry] = seats.of(pod_set.name)
    labels = _node_labels((own or seats.pods)[0].manifest, context)
    chosen: dict[ResourceName, FlavorName] = {}
    for resource, _ in pod_set.requests:
        group = next((group for group in queue.groups if resource in group.covered), None)
        if group is not None:
            chosen[resource] = _flavor(group, labels, flavors)
    return PodSetAssignment(
        name=pod_set.name,
        count=count,
        flavors=tuple(sorted(chosen.items())),
        nodes=nodes_of(own),
        devices=devices_of(own, dict(nodes_of(own))),
    )


def _node_labels(pod: Pod, context: Context) -> Mapping[str, str]:
    node = context.find("Node", pod.spec.node_name)
    return node.metadata.labels if node is not None else pod.spec.node_selector


def _flavor(
    group: ResourceGroup, labels: Mapping[str, str], flavors: Mapping[FlavorName, Flavor]
) -> FlavorName:
    names: Iterable[FlavorName] = (quota.flavor for quota in group.flavors)
    for name in names:
        flavor = flavors.get(name)
        if flavor is not None and all(
            labels.get(key) == value for key, value in flavor.node_labels
        ):
            return name
    return group.flavors[0].flavor
