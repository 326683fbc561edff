"""Who sits on which nodes: in the snapshot, and in what a plan makes of it.

A party is the pods of one template that one workload, or somebody else, has on nodes. The auditor
looks at two pictures, as it does with quota:

    started   everybody is still there, evicted ones included; those admitted have come
    kept      the plan's victims are gone; those admitted and those who preempt have come
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from unisono.engine.audit.world import World, started_by
from unisono.engine.model.names import PODS, NodeName, WorkloadKey, namespace_of
from unisono.engine.model.node import (
    HOSTNAME,
    HostPort,
    Node,
    NodePod,
    PodRule,
    PodSelector,
    SpreadRule,
)
from unisono.engine.model.plan import Admit, Plan, Preempt
from unisono.engine.model.selection import selects
from unisono.engine.model.workload import Admission, Workload

# How many pods a node takes if its manifest does not say: what the kubelet starts with.
PODS_PER_NODE = 110
NAME_FIELD = "metadata.name"  # node affinity may ask for it as if it were a label


@dataclass(frozen=True, slots=True)
class Party:
    """Pods of one template, and how many of them are on which node."""

    who: str  # the workload, or the pod of somebody else
    pod_set: str
    namespace: str
    labels: Mapping[str, str]
    requests: Mapping[str, int]
    host_ports: tuple[HostPort, ...]
    anti_affinity: tuple[PodRule, ...]
    on: Mapping[NodeName, int]
    comes: bool  # with this plan


class Floor:
    """The nodes, and everybody who is on them in one picture."""

    def __init__(self, nodes: Mapping[NodeName, Node], parties: Iterable[Party]) -> None:
        """Let the parties sit down."""
        self.nodes = nodes
        self.parties = tuple(parties)
        self.newcomers: dict[str, list[Party]] = {}
        self.with_ports: dict[NodeName, list[Party]] = {}
        self.repelling = [party for party in self.parties if party.anti_affinity]
        self._labels: dict[NodeName, dict[str, str]] = {}
        self._used: dict[NodeName, dict[str, int]] = {}
        for party in self.parties:
            if party.comes:
                self.newcomers.setdefault(party.who, []).append(party)
            for name, pods in party.on.items():
                if party.host_ports:
                    self.with_ports.setdefault(name, []).append(party)
                used = self._used.setdefault(name, {})
                for resource, amount in party.requests.items():
                    used[resource] = used.get(resource, 0) + pods * amount

    def labels(self, name: NodeName) -> dict[str, str]:
        """Return a node's labels, with its name as the two that every node has."""
        if name not in self._labels:
            node = self.nodes[name]
            self._labels[name] = {HOSTNAME: name, **dict(node.labels), NAME_FIELD: name}
        return self._labels[name]

    def free(self, name: NodeName, resource: str) -> int:
        """Return how much nobody uses; less than nothing if a node is overfull."""
        has: dict[str, int] = {PODS: PODS_PER_NODE, **dict(self.nodes[name].allocatable)}
        return has.get(resource, 0) - self._used.get(name, {}).get(resource, 0)

    def counted(
        self, rule: PodRule | SpreadRule, namespace: str, among: Iterable[Party] | None = None
    ) -> dict[str, int]:
        """Count the pods that a rule speaks of, by the value of the label that it names."""
        counts: dict[str, int] = {}
        key = rule.topology_key
        for party in self.parties if among is None else among:
            if not speaks_of(rule.selector, namespace, party):
                continue
            for name, pods in party.on.items():
                if name in self.nodes and key in self.labels(name):
                    value = self.labels(name)[key]
                    counts[value] = counts.get(value, 0) + pods
        return counts


def speaks_of(selector: PodSelector, namespace: str, party: Party) -> bool:
    """Say whether a rule of a pod in `namespace` is about these pods."""
    if not selector.every_namespace and party.namespace not in (
        selector.namespaces or (namespace,)
    ):
        return False
    return selects(selector.labels, dict(party.labels))


def started(world: World, plan: Plan) -> Floor:
    """Seat those who are admitted among everybody who is there now."""
    replaced = {admit.replaces for admit in plan.admissions if admit.replaces is not None}
    return Floor(world.nodes, (*_there(world, without=replaced), *_coming(world, plan.admissions)))


def kept(world: World, plan: Plan) -> Floor:
    """Seat everybody whom the plan starts, as if its victims had left."""
    decided = started_by(plan)
    coming = [world.waiting[each.workload] for each in decided if each.workload in world.waiting]
    replaced = {workload.replaces for workload in coming if workload.replaces is not None}
    gone = replaced | world.victims(plan.preemptions).keys()
    return Floor(world.nodes, (*_there(world, without=gone), *_coming(world, decided)))


def alone(world: World, preemption: Preempt, *, gone: Collection[WorkloadKey]) -> Floor:
    """Seat one preemptor in the snapshot as if some had left, and nobody else had come."""
    workload = world.waiting[preemption.workload]
    without = {*gone, *([workload.replaces] if workload.replaces is not None else [])}
    return Floor(world.nodes, (*_there(world, without=without), *_coming(world, (preemption,))))


def _there(world: World, *, without: Collection[WorkloadKey]) -> Iterator[Party]:
    for pod in world.pods:
        yield _somebody(pod)
    for key, holding in world.holdings.items():
        if key not in without:
            yield from _parties(holding.workload, holding.admission, comes=False)


def _coming(world: World, decided: Iterable[Admit | Preempt]) -> Iterator[Party]:
    for each in decided:
        if each.workload in world.waiting:
            yield from _parties(world.waiting[each.workload], each.admission, comes=True)


def _parties(workload: Workload, admission: Admission, *, comes: bool) -> Iterator[Party]:
    """Yield the pods of a workload that an admission puts on nodes."""
    pod_sets = {pod_set.name: pod_set for pod_set in workload.pod_sets}
    for assigned in admission.pod_sets:
        pod_set = pod_sets.get(assigned.name)
        if pod_set is None or not assigned.nodes:
            continue
        requests = pod_set.requests if pod_set.node_requests is None else pod_set.node_requests
        on: dict[NodeName, int] = {}
        for name, pods in assigned.nodes:
            on[name] = on.get(name, 0) + pods
        yield Party(
            who=workload.key,
            pod_set=pod_set.name,
            namespace=namespace_of(workload.key),
            labels=dict(pod_set.labels),
            requests={PODS: 1, **dict(requests)},
            host_ports=pod_set.host_ports,
            anti_affinity=pod_set.anti_affinity,
            on=on,
            comes=comes,
        )


def _somebody(pod: NodePod) -> Party:
    return Party(
        who=pod.key,
        pod_set="",
        namespace=namespace_of(pod.key),
        labels=dict(pod.labels),
        requests={PODS: 1, **dict(pod.requests)},
        host_ports=pod.host_ports,
        anti_affinity=pod.anti_affinity,
        on={pod.node: 1},
        comes=False,
    )
