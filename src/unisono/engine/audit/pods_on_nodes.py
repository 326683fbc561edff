"""Pods on nodes: the pods of one template, where they run, and what all of them use of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from unisono.engine.model.names import PODS, NodeName, namespace_of
from unisono.engine.model.node import HostPort, NodePod, PodRule
from unisono.engine.model.workload import Admission, Workload


@dataclass(frozen=True, slots=True)
class PlacedPods:
    """Pods of one template, and how many of them are on which node."""

    owner: str  # the workload, or the pod if it belongs to no workload of the snapshot
    pod_set: str
    namespace: str
    labels: Mapping[str, str]
    requests: Mapping[str, int]
    host_ports: tuple[HostPort, ...]
    anti_affinity: tuple[PodRule, ...]
    nodes: Mapping[NodeName, int]  # pods per node
    is_new: bool  # placed by the plan, not in the snapshot
    devices: Mapping[NodeName, tuple[int, ...]]  # of pods that share GPUs, where that is known


class PodsOnNodes:
    """All placements, and the sums of what they use."""

    def __init__(self) -> None:
        """Begin with empty nodes."""
        self.placements: dict[str, tuple[PlacedPods, ...]] = {}  # by owner
        self.used: dict[NodeName, dict[str, int]] = {}
        self.with_ports: dict[NodeName, list[PlacedPods]] = {}
        self.sharing_gpus: dict[NodeName, list[PlacedPods]] = {}
        self.with_anti_affinity: dict[str, tuple[PlacedPods, ...]] = {}

    def add(self, owner: str, placements: Iterable[PlacedPods]) -> None:
        """Add the placements of an owner, in place of those that it had."""
        self.remove(owner)
        self.placements[owner] = tuple(placements)
        repelling = tuple(
            placement for placement in self.placements[owner] if placement.anti_affinity
        )
        if repelling:
            self.with_anti_affinity[owner] = repelling
        for placement in self.placements[owner]:
            add_usage(self.used, placement, 1)
            if placement.host_ports:
                for name in placement.nodes:
                    self.with_ports.setdefault(name, []).append(placement)
            for name in placement.devices:
                self.sharing_gpus.setdefault(name, []).append(placement)

    def remove(self, owner: str) -> None:
        """Remove the placements of an owner."""
        self.with_anti_affinity.pop(owner, None)
        for placement in self.placements.pop(owner, ()):
            add_usage(self.used, placement, -1)
            if placement.host_ports:
                for name in placement.nodes:
                    self.with_ports[name].remove(placement)
            for name in placement.devices:
                self.sharing_gpus[name].remove(placement)


def add_usage(used: dict[NodeName, dict[str, int]], placement: PlacedPods, sign: int) -> None:
    """Add what a placement uses of its nodes, or subtract it."""
    for name, pods in placement.nodes.items():
        sums = used.setdefault(name, {})
        for resource, amount in placement.requests.items():
            sums[resource] = sums.get(resource, 0) + sign * pods * amount


def placed_pods_of(
    workload: Workload, admission: Admission, *, is_new: bool
) -> Iterator[PlacedPods]:
    """Yield the pods of a workload that an admission puts on nodes."""
    pod_sets = {pod_set.name: pod_set for pod_set in workload.pod_sets}
    for assigned in admission.pod_sets:
        pod_set = pod_sets.get(assigned.name)
        if pod_set is None or not assigned.nodes:
            continue
        requests = pod_set.requests if pod_set.node_requests is None else pod_set.node_requests
        nodes: dict[NodeName, int] = {}
        devices: dict[NodeName, tuple[int, ...]] = {}
        before = 0
        for name, pods in assigned.nodes:
            nodes[name] = nodes.get(name, 0) + pods
            if assigned.devices:
                devices[name] = devices.get(name, ()) + assigned.devices[before : before + pods]
                before += pods
        yield PlacedPods(
            owner=workload.key,
            pod_set=pod_set.name,
            namespace=namespace_of(workload.key),
            labels=dict(pod_set.labels),
            requests={PODS: 1, **dict(requests)},
            host_ports=pod_set.host_ports,
            anti_affinity=pod_set.anti_affinity,
            nodes=nodes,
            is_new=is_new,
            devices=devices,
        )


def placed_pod(pod: NodePod) -> PlacedPods:
    """Return the placement of a pod that belongs to no workload of the snapshot."""
    return PlacedPods(
        owner=pod.key,
        pod_set="",
        namespace=namespace_of(pod.key),
        labels=dict(pod.labels),
        requests={PODS: 1, **dict(pod.requests)},
        host_ports=pod.host_ports,
        anti_affinity=pod.anti_affinity,
        nodes={pod.node: 1},
        is_new=False,
        devices={} if pod.device is None else {pod.node: (pod.device,)},
    )


def owner_of_pod(pod: str) -> str:
    """Return the owner that a pod is listed under: a workload may have the same name."""
    return f"pod {pod}"
