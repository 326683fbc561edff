"""A pod-by-pod placer as schedulers commonly have it, written plainly: filter, score, bind.

For every pod of a gang, one after the other: look at every node, keep those that pass all filters,
score each of them, and bind the pod to the best. A gang of which one pod finds no node is undone.
It reads the same nodes and demands as the engine's placer and shares nothing else with it, so that
the two can be compared: in what they find feasible, and in what they cost.

Not here, as in most such schedulers: looking ahead, topology, rules between pods. Nor is there
sampling: every node is examined, as the engine does.
"""

from __future__ import annotations

from collections.abc import Iterable

from unisono.engine.model.names import PODS, NodeName, ResourceName
from unisono.engine.model.node import Node
from unisono.engine.model.selection import AffinityTerm, Taint, Toleration, meets, tolerates
from unisono.engine.placement.demand import Demand

BEST = 100  # the score of a node that would be full
DEFAULT_PODS = 110

Bound = list[tuple[str, NodeName]]  # demand and node of every pod, in the order of binding


class PlainNode:
    """A node with what is free on it."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.labels = dict(node.labels)
        self.allocatable = {PODS: DEFAULT_PODS, **dict(node.allocatable)}
        self.free = dict(self.allocatable)

    def passes(self, demand: Demand) -> bool:
        """Filter: readiness, resources, labels, taints."""
        if self.node.unschedulable or not self.node.ready:
            return False
        if self.free[PODS] < 1:
            return False
        for resource, amount in demand.requests:
            if amount > self.free.get(resource, 0):
                return False
        wanted = demand.constraint
        for key, value in wanted.selector:
            if self.labels.get(key) != value:
                return False
        if wanted.affinity and not any(self._matches(term) for term in wanted.affinity):
            return False
        return all(_is_tolerated(taint, wanted.tolerations) for taint in self.node.taints)

    def _matches(self, term: AffinityTerm) -> bool:
        return bool(term) and all(meets(requirement, self.labels) for requirement in term)

    def score(self, demand: Demand) -> int:
        """Score: how full the node would be of what the pod asks for (most allocated)."""
        total = wanted = 0
        for resource, amount in demand.requests:
            if amount:
                whole = self.allocatable[resource]
                total += BEST * (whole - self.free[resource] + amount) // whole
                wanted += 1
        return total // max(1, wanted)

    def add(self, requests: Iterable[tuple[ResourceName, int]], sign: int) -> None:
        """Let a pod take (or give back) what it asks for."""
        self.free[PODS] -= sign
        for resource, amount in requests:
            self.free[resource] = self.free.get(resource, 0) - sign * amount


class PodByPod:
    """Places gangs on nodes, one pod at a time."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.nodes = [PlainNode(node) for node in nodes]
        self._by_name = {plain.node.name: plain for plain in self.nodes}

    def place(self, demands: Iterable[Demand]) -> Bound | None:
        """Bind every pod, or none."""
        bound: Bound = []
        requests = {demand.name: demand.requests for demand in demands}
        for demand in demands:
            for _ in range(demand.least):
                best = self._best(demand)
                if best is None:
                    self.release(bound, requests)
                    return None
                best.add(demand.requests, 1)
                bound.append((demand.name, best.node.name))
        return bound

    def release(
        self, bound: Bound, requests: dict[str, tuple[tuple[ResourceName, int], ...]]
    ) -> None:
        """Take pods off their nodes."""
        for name, node in bound:
            self._by_name[node].add(requests[name], -1)

    def _best(self, demand: Demand) -> PlainNode | None:
        """Return the node with the highest score, of equal ones the first."""
        best: PlainNode | None = None
        highest = -1
        for plain in self.nodes:
            if plain.passes(demand):
                score = plain.score(demand)
                if score > highest:
                    best, highest = plain, score
        return best


def _is_tolerated(taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
    return taint.effect == "PreferNoSchedule" or any(
        tolerates(toleration, taint) for toleration in tolerations
    )
