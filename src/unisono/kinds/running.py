"""Jobs that run already although no Workload says so: their pods are bound to nodes.

Somebody who shows us a cluster in which Kueue never ran has jobs and pods, but no reservations. A
job with bound pods holds the quota of its queue, with the flavors of the nodes that its pods are
on: the first of a group whose node labels the node has, or the pod selects; else the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from unisono.engine.model.names import FlavorName, Instant, QueueName, ResourceName
from unisono.engine.model.queue import ClusterQueue, Flavor, ResourceGroup
from unisono.engine.model.resources import Amounts
from unisono.engine.model.workload import Admission, Holding, PodSet, PodSetAssignment, Workload
from unisono.kinds.core.pod_sets import costing_of
from unisono.kinds.core.requests import pod_cost
from unisono.kinds.core.schema import Pod
from unisono.kinds.objects import Entry, Objects
from unisono.kinds.registry import Context

# Labels by which pods name the job at the top, for when the objects between them are not given.
_OWNER_LABELS = (
    ("jobset.sigs.k8s.io/jobset-name", ("TrainJob", "JobSet")),
    ("ray.io/cluster", ("RayCluster",)),
    ("volcano.sh/job-name", ("Job",)),
    ("batch.kubernetes.io/job-name", ("Job",)),
    ("job-name", ("Job",)),
)
_MAX_OWNERS = 8  # a pod, a Job, a JobSet, a TrainJob: nobody nests deeper


def bound_pods(objects: Objects) -> dict[int, list[Pod]]:
    """Return the bound pods of every job, by the index of the job's document."""
    found: dict[int, list[Pod]] = {}
    for entry in objects.entries("Pod"):
        pod: Pod = entry.manifest
        if pod.spec.node_name and pod.status.phase not in ("Succeeded", "Failed"):
            job = _job_of(entry, objects)
            if job is not None:
                found.setdefault(job.index, []).append(pod)
    return found


def _job_of(entry: Entry, objects: Objects) -> Entry | None:
    """Follow owners upwards as far as they were given; return the last job on the way."""
    job: Entry | None = None
    at: Entry | None = entry
    for _ in range(_MAX_OWNERS):
        at = _owner(at, objects) if at is not None else None
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


def _owner(entry: Entry, objects: Objects) -> Entry | None:
    for owner in entry.metadata.owner_references:
        group = owner.api_version.rpartition("/")[0]
        found = objects.find(owner.kind, owner.name, namespace=entry.namespace, group=group)
        if found is not None:
            return found
    return None


def holding_of_job(
    workload: Workload,
    pods: list[Pod],
    queue: ClusterQueue,
    *,
    flavors: Mapping[FlavorName, Flavor],
    context: Context,
) -> Holding:
    """Return what a job with bound pods holds."""
    starts = [pod.status.start_time.instant for pod in pods if pod.status.start_time]
    assignments = tuple(
        _assignment(one, pods, queue, flavors=flavors, context=context) for one in workload.pod_sets
    )
    return Holding(
        workload=workload,
        admission=Admission(queue=QueueName(queue.name), pod_sets=assignments),
        reserved_at=min(starts, default=Instant(workload.created_at)),
        evicting=all(pod.metadata.deletion_timestamp is not None for pod in pods),
    )


def _assignment(
    pod_set: PodSet,
    pods: list[Pod],
    queue: ClusterQueue,
    *,
    flavors: Mapping[FlavorName, Flavor],
    context: Context,
) -> PodSetAssignment:
    labels = _node_labels(_pod_like(pod_set.requests, pods, context), context)
    chosen: dict[ResourceName, FlavorName] = {}
    for resource, _ in pod_set.requests:
        group = next((group for group in queue.groups if resource in group.covered), None)
        if group is not None:
            chosen[resource] = _flavor(group, labels, flavors)
    return PodSetAssignment(
        name=pod_set.name, count=pod_set.count, flavors=tuple(sorted(chosen.items()))
    )


def _pod_like(requests: Amounts, pods: list[Pod], context: Context) -> Pod:
    """Return a pod that asks for the same as those of a set; the first if there is none."""
    costing = costing_of(context)
    alike = (pod for pod in pods if pod_cost(pod.spec, costing).charged == requests)
    return next(alike, pods[0])


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
