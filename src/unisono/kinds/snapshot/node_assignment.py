"""Which pods are on which node: bound pods as parts of pod sets, or of other schedulers.

A pod of a workload belongs to the set that its labels name, else to one that asks for the same,
else to the only one. A set has as many seats as pods; a pod without one (a replacement while the
old pod still ends) counts as a stranger, so that nothing on a node is ever overlooked.

A Workload may also say itself where its pods go (`topologyAssignment`). What is bound already is
where it is; the rest goes where it was assigned. Spec placement §5.2 and §9.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from unisono.engine.model.names import NodeName
from unisono.engine.model.node import HOSTNAME, NodePod
from unisono.engine.model.resources import Amounts
from unisono.engine.model.workload import AdmittedWorkload, PodSet, PodSetAssignment
from unisono.kinds.core.gpu_parts import device_of
from unisono.kinds.core.neighbours import neighbourhood
from unisono.kinds.core.pod_sets import costing_of
from unisono.kinds.core.requests import pod_cost
from unisono.kinds.core.schema import Pod
from unisono.kinds.core.selection import labels_of
from unisono.kinds.kueue.topology_assignment import pods_per_host
from unisono.kinds.kueue.workloads import Workload
from unisono.kinds.objects import Entry, Objects
from unisono.kinds.registry import Context

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
class Seats:
    """The bound pods of a workload, by pod set."""

    pods: Sequence[Entry]
    _by_set: dict[str, list[Entry]] = field(default_factory=dict)

    def of(self, name: str) -> Sequence[Entry]:
        """Return the pods of a set."""
        return self._by_set.get(name, ())

    def seated(self) -> Iterable[Entry]:
        """Yield the pods that found a seat."""
        return (pod for pods in self._by_set.values() for pod in pods)

    def give(self, name: str, pod: Entry) -> None:
        """Let a pod be one of a set."""
        self._by_set.setdefault(name, []).append(pod)


def seats_for(
    pods: Sequence[Entry], pod_sets: Sequence[PodSet], counts: Mapping[str, int], context: Context
) -> Seats:
    """Share bound pods out to the sets of their workload; `counts` is how many each may have."""
    seats = Seats(pods)
    costing = costing_of(context) if pods else None
    # Pods that stay come first.
    for pod in sorted(pods, key=lambda pod: pod.metadata.deletion_timestamp is not None):
        free = [one for one in pod_sets if len(seats.of(one.name)) < counts.get(one.name, 0)]
        assert costing is not None, "there are pods"
        cost = pod_cost(pod.manifest.spec, costing, pod.metadata.annotations)
        name = _set_of(pod, pod_sets, free, cost.requests)
        if name:
            seats.give(name, pod)
    return seats


def _set_of(
    pod: Entry, pod_sets: Sequence[PodSet], free: Sequence[PodSet], requests: Amounts
) -> str:
    """Return the set with a free seat that a pod is of; empty if there is none."""
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


# ---- Workloads ---------------------------------------------------------------------------------


def seated(
    admitted: AdmittedWorkload, seats: Seats, written: Workload, hosts: Mapping[str, NodeName]
) -> AdmittedWorkload:
    """Return an admitted workload with the nodes that its pods are on, or are assigned to."""
    admission = written.status.admission
    assigned = {
        one.name: one.topology_assignment
        for one in (admission.pod_set_assignments if admission is not None else ())
    }
    pod_sets = tuple(
        _with_nodes(one, seats, pods_per_host(assigned.get(one.name)), hosts)
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
    seats: Seats,
    assigned: Sequence[tuple[str, int]],
    hosts: Mapping[str, NodeName],
) -> PodSetAssignment:
    bound = dict(nodes_of(seats.of(one.name)))
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
        one, nodes=tuple(sorted(nodes.items())), devices=devices_of(seats.of(one.name), nodes)
    )


# ---- strangers ---------------------------------------------------------------------------------


def stranger(entry: Entry, context: Context) -> NodePod:
    """Return a bound pod that is none of a workload that holds quota here."""
    pod: Pod = entry.manifest
    ends = pod.metadata.deletion_timestamp
    near = neighbourhood(pod.spec, pod.metadata.labels, context)
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
