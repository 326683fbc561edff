"""Which pods are on which nodes once a plan has been carried out.

Two moments are checked, as for quota:

    after admissions    all pods of the snapshot are still there, evicted ones included, and the
                        admitted workloads have been placed
    after preemptions   the victims' pods are gone, and all workloads that the plan starts have
                        been placed
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from unisono.engine.audit.pods_on_nodes import (
    PlacedPods,
    PodsOnNodes,
    add_usage,
    owner_of_pod,
    placed_pods_of,
)
from unisono.engine.audit.snapshot_index import Decided, SnapshotIndex, started_by
from unisono.engine.model.names import PODS, NodeName, WorkloadKey
from unisono.engine.model.node import (
    HOSTNAME,
    Node,
    PodRule,
    PodSelector,
    SpreadRule,
)
from unisono.engine.model.plan import Plan
from unisono.engine.model.selection import selects
from unisono.engine.model.workload import Admission, AdmittedWorkload

# How many pods a node takes if its manifest does not say: the kubelet's default.
PODS_PER_NODE = 110
NAME_FIELD = "metadata.name"  # node affinity may ask for it as if it were a label


class NodeOccupancy:
    """The nodes and the pods on them: those of the snapshot, less some, plus some."""

    def __init__(
        self,
        nodes: Mapping[NodeName, Node],
        snapshot_pods: PodsOnNodes,
        *,
        removed: Collection[str] = (),
        added: Iterable[PlacedPods] = (),
    ) -> None:
        """Remove all pods of some owners, and add placements."""
        self.nodes = nodes
        self._snapshot_pods = snapshot_pods
        self._removed = removed
        self._added = tuple(added)
        self.added: dict[str, list[PlacedPods]] = {}
        self._labels: dict[NodeName, dict[str, str]] = {}
        self._difference: dict[NodeName, dict[str, int]] = {}  # to what the snapshot uses
        for placement in self._added:
            self.added.setdefault(placement.owner, []).append(placement)
            add_usage(self._difference, placement, 1)
        for owner in removed:
            for placement in snapshot_pods.placements.get(owner, ()):
                add_usage(self._difference, placement, -1)

    @property
    def placements(self) -> Iterator[PlacedPods]:
        """All placements."""
        yield from _except(self._snapshot_pods.placements, self._removed)
        yield from self._added

    @property
    def with_anti_affinity(self) -> list[PlacedPods]:
        """All placements with anti-affinity."""
        there = _except(self._snapshot_pods.with_anti_affinity, self._removed)
        return [*there, *(placement for placement in self._added if placement.anti_affinity)]

    def with_ports(self, name: NodeName) -> list[PlacedPods]:
        """Return the placements that use host ports of a node."""
        there = self._not_removed(self._snapshot_pods.with_ports.get(name, ()))
        return there + [
            placement
            for placement in self._added
            if placement.host_ports and name in placement.nodes
        ]

    def sharing_gpus(self, name: NodeName) -> list[PlacedPods]:
        """Return the placements that share GPUs of a node."""
        there = self._not_removed(self._snapshot_pods.sharing_gpus.get(name, ()))
        return there + [placement for placement in self._added if name in placement.devices]

    def _not_removed(self, placements: Iterable[PlacedPods]) -> list[PlacedPods]:
        return [
            placement
            for placement in placements
            # A placement without a pod set is a pod of its own.
            if (placement.owner if placement.pod_set else owner_of_pod(placement.owner))
            not in self._removed
        ]

    def labels(self, name: NodeName) -> dict[str, str]:
        """Return a node's labels, with its name as the two that every node has."""
        if name not in self._labels:
            node = self.nodes[name]
            self._labels[name] = {HOSTNAME: name, **dict(node.labels), NAME_FIELD: name}
        return self._labels[name]

    def free(self, name: NodeName, resource: str) -> int:
        """Return how much is free; negative if a node is overcommitted."""
        has: dict[str, int] = {PODS: PODS_PER_NODE, **dict(self.nodes[name].allocatable)}
        used = self._snapshot_pods.used.get(name, {}).get(resource, 0)
        return has.get(resource, 0) - used - self._difference.get(name, {}).get(resource, 0)

    def count_by_domain(
        self,
        rule: PodRule | SpreadRule,
        namespace: str,
        among: Iterable[PlacedPods] | None = None,
    ) -> dict[str, int]:
        """Count the pods that a rule selects, by the value of its topology key."""
        counts: dict[str, int] = {}
        key = rule.topology_key
        for placement in self.placements if among is None else among:
            if not matches(rule.selector, namespace, placement):
                continue
            for name, pods in placement.nodes.items():
                if name in self.nodes and key in self.labels(name):
                    value = self.labels(name)[key]
                    counts[value] = counts.get(value, 0) + pods
        return counts


def matches(selector: PodSelector, namespace: str, placement: PlacedPods) -> bool:
    """Say whether the selector of a pod in `namespace` matches these pods."""
    if not selector.every_namespace and placement.namespace not in (
        selector.namespaces or (namespace,)
    ):
        return False
    return selects(selector.labels, dict(placement.labels))


def after_admissions(
    index: SnapshotIndex, plan: Plan, *, opportunistic_on: Collection[WorkloadKey] = ()
) -> NodeOccupancy:
    """Add the admitted workloads to the snapshot; the pods of `opportunistic_on` do not count."""
    replaced = {admit.replaces for admit in plan.admissions if admit.replaces is not None}
    return _occupancy(index, removed={*replaced, *opportunistic_on}, added=plan.admissions)


def after_preemptions(
    index: SnapshotIndex, plan: Plan, *, opportunistic_on: Collection[WorkloadKey] = ()
) -> NodeOccupancy:
    """Add all workloads that the plan starts; its victims and the pods it waits for are gone."""
    decided = started_by(plan)
    starting = [index.waiting[each.workload] for each in decided if each.workload in index.waiting]
    replaced = {workload.replaces for workload in starting if workload.replaces is not None}
    evicted = index.victims(plan.preemptions)
    terminated = {owner_of_pod(pod) for each in plan.awaits for pod in each.pods}
    return _occupancy(
        index, removed={*replaced, *terminated, *opportunistic_on}, evicted=evicted, added=decided
    )


def with_only(
    index: SnapshotIndex, decided: Decided, evicted: Mapping[WorkloadKey, AdmittedWorkload]
) -> NodeOccupancy:
    """Add one workload to the snapshot, with these victims gone and nothing else started."""
    workload = index.waiting[decided.workload]
    removed = [workload.replaces] if workload.replaces is not None else []
    return _occupancy(index, removed=removed, evicted=evicted, added=(decided,))


def _occupancy(
    index: SnapshotIndex,
    *,
    removed: Collection[str],
    added: Iterable[Decided],
    evicted: Mapping[WorkloadKey, AdmittedWorkload] | None = None,
) -> NodeOccupancy:
    """Remove owners, take from the evicted what they release, and place what is added."""
    victims = evicted or {}
    remainders = [
        _remainder(placement, victims[key].admission)
        for key in victims
        if key not in removed
        for placement in index.pods_on_nodes.placements.get(key, ())
    ]
    shrunk = [placement for placement in remainders if placement.nodes]
    return NodeOccupancy(
        index.nodes,
        index.pods_on_nodes,
        removed={*removed, *victims},
        added=(*shrunk, *_placements_by(index, added)),
    )


def _except(
    placements: Mapping[str, tuple[PlacedPods, ...]], removed: Collection[str]
) -> Iterator[PlacedPods]:
    return (
        placement
        for owner, some in placements.items()
        if owner not in removed
        for placement in some
    )


def _remainder(placement: PlacedPods, released: Admission) -> PlacedPods:
    """Return what stays of a placement whose workload shrinks."""
    evicted = {
        name: pods
        for each in released.pod_sets
        if each.name == placement.pod_set
        for name, pods in each.nodes
    }
    left = {name: pods - evicted.get(name, 0) for name, pods in placement.nodes.items()}
    left = {name: pods for name, pods in left.items() if pods > 0}
    devices = {
        name: placement.devices[name][: left[name]] for name in left if name in placement.devices
    }
    return replace(placement, nodes=left, devices=devices)


def _placements_by(index: SnapshotIndex, decided: Iterable[Decided]) -> Iterator[PlacedPods]:
    for each in decided:
        if each.workload in index.waiting:
            yield from placed_pods_of(index.waiting[each.workload], each.admission, is_new=True)
