"""Whether the nodes of a cluster could ever hold the pods of a job, at the moment it is submitted.

Only what is certain without a decision: every pod set is looked at by itself, on empty and healthy
nodes. What is refused here is refused by the engine, too; what passes may still have to wait
(topology, most rules between pods, and other pod sets are not looked at).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from unisono.engine.explain.formatting import format_amount
from unisono.engine.model.names import PODS, ResourceName
from unisono.engine.model.node import HOSTNAME, Node, repaired
from unisono.engine.model.resources import WHOLE_GPU, Amounts, is_gpu, is_share, shared_gpu
from unisono.engine.model.selection import (
    Labels,
    Taint,
    Toleration,
    label_map,
    meets,
    selects,
    tolerates,
)
from unisono.engine.model.workload import PodSet
from unisono.kinds.core.nodes import Node as NodeManifest
from unisono.kinds.core.nodes import node_of
from unisono.kinds.core.selection import tolerations_of
from unisono.kinds.decode import decode
from unisono.kinds.kueue.flavors import ResourceFlavor


class FlavorNodes(msgspec.Struct, frozen=True):
    """Which nodes belong to a flavor, and what its pods tolerate besides."""

    name: str
    labels: Labels = ()
    taints: tuple[Taint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()


def flavor_nodes(flavor: ResourceFlavor) -> FlavorNodes:
    """Return what of a flavor decides about nodes."""
    return FlavorNodes(
        flavor.metadata.name,
        tuple(sorted(flavor.spec.node_labels.items())),
        tuple(Taint(one.key, one.value, one.effect) for one in flavor.spec.node_taints),
        tolerations_of(flavor.spec.tolerations),
    )


def healthy_node(obj: Mapping[str, Any]) -> Node | None:
    """Return a stored node as it is when it is well; None if it cannot be read, or has no size."""
    manifest, _ = decode(NodeManifest, obj, ignore_unknown=True)
    if not isinstance(manifest, NodeManifest):
        return None
    node = repaired(node_of(manifest, {}))
    return node if node.allocatable else None


class Room:
    """How many pods of one pod set nodes could hold, and what the others refuse it for."""

    def __init__(self, pod_set: PodSet, groups: Sequence[Sequence[FlavorNodes]]) -> None:
        """Look at no node yet; `groups` has the flavors that each group of resources may take."""
        self.pods = 0
        self.least = pod_set.count if pod_set.min_count is None else pod_set.min_count
        self._set = pod_set
        self._wanted, self._shares = _of_a_node(pod_set)
        self._closed = ""  # flavors of which it may have none, and why
        self._groups = [self._tolerated(flavors) for flavors in groups]
        self._labelled = 0  # nodes with the labels that are asked for
        self._taints: dict[str, None] = {}
        self._largest: dict[ResourceName, int] = {}  # of nodes that could take a pod otherwise

    @property
    def is_enough(self) -> bool:
        """Whether all pods that it needs have room."""
        return self.pods >= self.least

    def add(self, node: Node) -> int:
        """Look at one more node; return how many pods it holds."""
        tolerations = self._tolerations(label_map(node.labels))
        if tolerations is None:
            return 0
        self._labelled += 1
        refused = [one for one in node.taints if _refuses(one, tolerations)]
        if refused:
            self._taints |= dict.fromkeys(map(_words, refused))
            return 0
        has = dict(node.allocatable)
        for name, _ in self._wanted:
            self._largest[name] = max(self._largest.get(name, 0), has.get(name, 0))
        counts = [
            has.get(name, 0) * WHOLE_GPU // self._shares[name]
            if name in self._shares
            else has.get(name, 0) // amount
            for name, amount in self._wanted
            if name != PODS
        ]
        if PODS in has:
            counts.append(has[PODS])
        if _is_one_per_node(self._set):
            counts.append(1)
        held = min(counts, default=self.least)
        self.pods += held
        return held

    def refusal(self) -> str:
        """Say what no node has, after all nodes; empty if there is room."""
        if self.is_enough:
            return ""
        name = f"pod set {self._set.name}"
        if self._closed:
            return f"{name} does not tolerate {self._closed}"
        if not self._labelled:
            return f"{name}: no node has the labels that it asks for{self._labels()}"
        if not self._largest:
            return f"{name} does not tolerate {', '.join(self._taints)}, which all its nodes have"
        if self.pods:
            return f"{name} has {self.least} pods, and even empty nodes hold {self.pods} of them"
        for resource, amount in self._wanted:
            most = self._largest.get(resource, 0)
            if most < amount and resource != PODS:
                wanted = format_amount(amount, resource)
                if not most:
                    return f"{name} needs {wanted} for one pod, and no node has {resource}"
                largest = format_amount(most, resource)
                return f"{name} needs {wanted} for one pod, and the largest node has {largest}"
        return f"{name}: no node has everything that one pod needs"

    def _tolerations(self, labels: dict[str, str]) -> Sequence[Toleration] | None:
        """Return what its pods tolerate on a node with these labels; None: it may not go there."""
        if any(labels.get(key) != value for key, value in self._set.node_selector):
            return None
        terms = self._set.affinity
        if terms and not any(all(meets(one, labels) for one in term) for term in terms):
            return None
        tolerations = [*self._set.tolerations]
        for flavors in self._groups:
            fitting = [one for one in flavors if _has(labels, one.labels)]
            if not fitting:
                return None
            for one in fitting:
                tolerations += one.tolerations
        return tolerations

    def _tolerated(self, flavors: Sequence[FlavorNodes]) -> Sequence[FlavorNodes]:
        """Return the flavors with no taint that its pods do not tolerate."""
        kept, refused = [], []
        for one in flavors:
            tolerations = (*self._set.tolerations, *one.tolerations)
            taints = [_words(taint) for taint in one.taints if _refuses(taint, tolerations)]
            if taints:
                refused.append(f"{', '.join(taints)} of flavor {one.name}")
            else:
                kept.append(one)
        if flavors and not kept:
            self._closed = " and ".join(refused)
        return kept

    def _labels(self) -> str:
        asked = [f"{key}={value}" for key, value in self._set.node_selector]
        return f" ({', '.join(asked)})" if asked else ""


def _is_one_per_node(pod_set: PodSet) -> bool:
    """Say whether two of its pods may not share a node."""
    own = label_map(pod_set.labels)
    return bool(pod_set.host_ports) or any(
        rule.topology_key == HOSTNAME and selects(rule.selector.labels, own)
        for rule in pod_set.anti_affinity
    )


def _has(labels: dict[str, str], wanted: Labels) -> bool:
    return all(labels.get(key) == value for key, value in wanted)


def _refuses(taint: Taint, tolerations: Sequence[Toleration]) -> bool:
    if taint.effect == "PreferNoSchedule":
        return False
    return not any(tolerates(one, taint) for one in tolerations)


def _words(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _of_a_node(pod_set: PodSet) -> tuple[Amounts, dict[ResourceName, int]]:
    """Return what one pod takes of a node, GPUs first, and which GPUs in thousandths."""
    wanted: dict[ResourceName, int] = {}
    shares: dict[ResourceName, int] = {}
    requests = pod_set.requests if pod_set.node_requests is None else pod_set.node_requests
    for resource, amount in requests:
        if is_share(resource):
            gpu = shared_gpu(resource)
            shares[gpu] = amount
            wanted[gpu] = wanted.get(gpu, 0) + -(-amount // WHOLE_GPU)
        elif amount:
            wanted[resource] = wanted.get(resource, 0) + amount
    ordered = sorted(wanted.items(), key=lambda one: (not is_gpu(one[0]), one[0]))
    return tuple(ordered), shares
