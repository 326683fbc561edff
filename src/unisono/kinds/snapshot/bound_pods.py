"""Bound pods: the workload and the pod set of each, and the nodes they are on.

A pod is bound if it has a node and is not over; one that is being deleted still takes its place. A
pod of a workload belongs to the set that its labels name, else to one that asks for the same, else
to the only one. A set has no more pods than it counts; one too many (a replacement while the old
pod still ends) is a pod of others, so that nothing on a node is ever overlooked.

A Workload may also say itself where its pods go (`topologyAssignment`). What is bound already is
where it is; the rest goes where it was assigned.

A cluster in which Kueue never ran has jobs and pods, but no quota reservations. A job with bound
pods holds the quota of its queue, with the flavors of the nodes that its pods are on: the first of
a group whose node labels the node has, or the pod selects; else the first. Spec placement §5.2, §9.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from unisono.engine.model.names import FlavorName, Instant, NodeName, QueueName, ResourceName
from unisono.engine.model.node import HOSTNAME, NodePod
from unisono.engine.model.queue import ClusterQueue, Flavor, ResourceGroup
from unisono.engine.model.resources import Amounts
from unisono.engine.model.workload import (
    Admission,
    AdmittedWorkload,
    PodSet,
    PodSetAssignment,
    Workload,
)
from unisono.kinds.core.gpu_parts import device_of
from unisono.kinds.core.pod_groups import GROUP_NAME
from unisono.kinds.core.pod_rules import pod_rules
from unisono.kinds.core.pod_sets import costing_of
from unisono.kinds.core.requests import pod_cost
from unisono.kinds.core.schema import Pod
from unisono.kinds.core.selection import labels_of
from unisono.kinds.kueue import workloads
from unisono.kinds.kueue.topology_assignment import pods_per_host
from unisono.kinds.objects import Entry, Objects
from unisono.kinds.registry import Context

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
    _accounted: set[int] = field(default_factory=set)

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

    def account_for(self, pods: Iterable[Entry]) -> None:
        """Remember pods that an admitted workload accounts for."""
        self._accounted.update(pod.index for pod in pods)

    def others(self) -> Iterator[Entry]:
        """Yield the bound pods that no admitted workload accounts for."""
        return (pod for pod in self._bound if pod.index not in self._accounted)


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


# ---- pods of pod sets ----------------------------------------------------------------------------

Nodes = tuple[tuple[NodeName, int], ...]

# Labels that name a pod's part in its workload, as the sets of a kind are named (in lower case).
_SET_LABELS = (
    "kueue.x-k8s.io/podset",
    "jobset.sigs.k8s.io/replicatedjob-name",
    "training.kubeflow.org/replica-type",
    "volcano.sh/task-spec",
    "ray.io/group",
    "ray.io/node-type",
)


@dataclass(slots=True)
class PodsBySet:
    """The bound pods of a workload, by pod set."""

    pods: Sequence[Entry]
    _by_set: dict[str, list[Entry]] = field(default_factory=dict)

    def of(self, name: str) -> Sequence[Entry]:
        """Return the pods of a set."""
        return self._by_set.get(name, ())

    def every(self) -> Iterable[Entry]:
        """Yield the pods that are part of a set."""
        return (pod for pods in self._by_set.values() for pod in pods)

    def add(self, name: str, pod: Entry) -> None:
        """Make a pod part of a set."""
        self._by_set.setdefault(name, []).append(pod)


def pods_by_set(
    pods: Sequence[Entry], pod_sets: Sequence[PodSet], counts: Mapping[str, int], context: Context
) -> PodsBySet:
    """Share bound pods out to the sets of their workload; `counts` is how many each may have."""
    by_set = PodsBySet(pods)
    costing = costing_of(context) if pods else None
    # Pods that stay come first.
    for pod in sorted(pods, key=lambda pod: pod.metadata.deletion_timestamp is not None):
        free = [one for one in pod_sets if len(by_set.of(one.name)) < counts.get(one.name, 0)]
        assert costing is not None, "there are pods"
        cost = pod_cost(pod.manifest.spec, costing, pod.metadata.annotations)
        name = _set_of(pod, pod_sets, free, cost.requests)
        if name:
            by_set.add(name, pod)
    return by_set


def _set_of(
    pod: Entry, pod_sets: Sequence[PodSet], free: Sequence[PodSet], requests: Amounts
) -> str:
    """Return the set that a pod is of and that lacks one; empty if there is none."""
    open_ = {one.name for one in free}
    every = {one.name for one in pod_sets}
    for label in _SET_LABELS:
        named = pod.metadata.labels.get(label, "").lower()
        if named in every:
            return named if named in open_ else ""
    for one in free:
        if requests == (one.requests if one.node_requests is None else one.node_requests):
            return one.name
    return free[0].name if free and len(pod_sets) == 1 else ""


def nodes_of(pods: Iterable[Entry]) -> Nodes:
    """Return how many of the pods are on each node, by the nodes' names."""
    found: dict[NodeName, int] = {}
    for pod in pods:
        node = NodeName(pod.manifest.spec.node_name)
        found[node] = found.get(node, 0) + 1
    return tuple(sorted(found.items()))


def devices_of(pods: Iterable[Entry], nodes: Mapping[NodeName, int]) -> tuple[int, ...]:
    """Return the GPUs that pods share, in the order of nodes; none unless all of them say so."""
    by_node: dict[NodeName, list[int]] = {}
    for pod in pods:
        device = device_of(pod.metadata.annotations)
        if device is not None:
            by_node.setdefault(NodeName(pod.manifest.spec.node_name), []).append(device)
    if any(len(by_node.get(node, ())) != count for node, count in nodes.items()):
        return ()
    return tuple(device for node in sorted(nodes) for device in by_node[node])


def with_nodes(
    admitted: AdmittedWorkload,
    by_set: PodsBySet,
    written: workloads.Workload,
    hosts: Mapping[str, NodeName],
) -> AdmittedWorkload:
    """Return an admitted workload with the nodes that its pods are on, or are assigned to."""
    admission = written.status.admission
    assigned = {
        one.name: one.topology_assignment
        for one in (admission.pod_set_assignments if admission is not None else ())
    }
    pod_sets = tuple(
        _with_nodes(one, by_set, pods_per_host(assigned.get(one.name)), hosts)
        for one in admitted.admission.pod_sets
    )
    changed = msgspec.structs.replace(admitted.admission, pod_sets=pod_sets)
    return msgspec.structs.replace(admitted, admission=changed)


def hosts_of(objects: Objects) -> dict[str, NodeName]:
    """Return the node of every host name; a topology assignment knows nodes by that label."""
    return {
        entry.metadata.labels.get(HOSTNAME, entry.name): NodeName(entry.name)
        for entry in objects.entries("Node")
    }


def _with_nodes(
    one: PodSetAssignment,
    by_set: PodsBySet,
    assigned: Sequence[tuple[str, int]],
    hosts: Mapping[str, NodeName],
) -> PodSetAssignment:
    bound = dict(nodes_of(by_set.of(one.name)))
    nodes = dict(bound)
    missing = one.count - sum(bound.values())
    for host, pods in assigned:
        node = hosts.get(host, NodeName(host))
        there = min(bound.get(node, 0), pods)
        bound[node] = bound.get(node, 0) - there
        more = min(pods - there, missing)
        if more > 0:
            nodes[node] = nodes.get(node, 0) + more
            missing -= more
    return msgspec.structs.replace(
        one, nodes=tuple(sorted(nodes.items())), devices=devices_of(by_set.of(one.name), nodes)
    )


def pod_of_others(entry: Entry, context: Context) -> NodePod:
    """Return a bound pod that is none of a workload that holds quota here."""
    pod: Pod = entry.manifest
    ends = pod.metadata.deletion_timestamp
    near = pod_rules(pod.spec, pod.metadata.labels, context)
    return NodePod(
        key=f"{entry.namespace}/{entry.name}",
        node=NodeName(pod.spec.node_name),
        requests=pod_cost(pod.spec, costing_of(context), pod.metadata.annotations).requests,
        device=device_of(pod.metadata.annotations),
        labels=labels_of(pod.metadata.labels),
        host_ports=near.host_ports,
        anti_affinity=near.anti_affinity,
        leaves_at=ends.instant if ends is not None else None,
    )


# ---- jobs that run without a Workload ------------------------------------------------------------


def admitted_workload_of_job(
    workload: Workload,
    by_set: PodsBySet,
    queue: ClusterQueue,
    *,
    flavors: Mapping[FlavorName, Flavor],
    context: Context,
) -> AdmittedWorkload:
    """Return what a job with bound pods holds."""
    pods: list[Pod] = [pod.manifest for pod in by_set.pods]
    starts = [pod.status.start_time.instant for pod in pods if pod.status.start_time]
    counts = _counts(workload, by_set)
    assignments = tuple(
        _assignment(one, counts[one.name], by_set, queue, flavors=flavors, context=context)
        for one in workload.pod_sets
    )
    return AdmittedWorkload(
        workload=workload,
        admission=Admission(queue=QueueName(queue.name), pod_sets=assignments),
        reserved_at=min(starts, default=Instant(workload.created_at)),
        evicting=all(pod.metadata.deletion_timestamp is not None for pod in pods),
    )


def _counts(workload: Workload, by_set: PodsBySet) -> dict[str, int]:
    """Return how many pods of each set hold quota.

    That is all of them, even while the last ones start. A gang that may run with fewer and has
    enough of them runs with those it has.
    """
    bound = {one.name: len(by_set.of(one.name)) for one in workload.pod_sets}
    if workload.min_total is not None and sum(bound.values()) >= workload.min_total:
        return bound
    return {one.name: one.count for one in workload.pod_sets}


def _assignment(
    pod_set: PodSet,
    count: int,
    by_set: PodsBySet,
    queue: ClusterQueue,
    *,
    flavors: Mapping[FlavorName, Flavor],
    context: Context,
) -> PodSetAssignment:
    own: Sequence[Entry] = by_set.of(pod_set.name)
    labels = _node_labels((own or by_set.pods)[0].manifest, context)
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
