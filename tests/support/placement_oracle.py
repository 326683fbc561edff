"""Where pods may go, told plainly: one pod, one node, one question at a time.

The engine works on vectors; this is the same in loops, written from spec placement and sharing no
code with `engine/placement`, so that the two can be compared on random clusters.

    allows, fitting, may_join   the filters of §5: of a node, of its room, of the pods around
    is_possible                 whether there is any way to place a gang, found by trying all

Which of several ways to take is in `placement_reference`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from unisono.engine.model.names import PODS, NodeName
from unisono.engine.model.node import (
    HOSTNAME,
    HostPort,
    Node,
    NodePod,
    PodRule,
    PodSelector,
    SpreadRule,
)
from unisono.engine.model.selection import AffinityTerm, Taint, Toleration, meets, selects
from unisono.engine.placement.demand import Constraint, Demand
from unisono.engine.placement.gang import Gang

Where = dict[str, int]  # how many pods are on which node


@dataclass(frozen=True)
class Pod:
    """One pod on a node, as far as others care."""

    namespace: str
    labels: Mapping[str, str]
    ports: tuple[HostPort, ...]
    anti_affinity: tuple[PodRule, ...]
    node: str


@dataclass
class Cluster:
    """Nodes and the pods on them."""

    nodes: list[Node]
    pods: list[NodePod] = field(default_factory=list)

    def used(self, name: NodeName, resource: str) -> int:
        """Add up what pods on a node ask for."""
        return sum(_asked(pod).get(resource, 0) for pod in self.pods if pod.node == name)

    def free(self, node: Node) -> dict[str, int]:
        """Return what is left of everything that a node has, or should have."""
        has: dict[str, int] = {PODS: 110, **{str(key): n for key, n in node.allocatable}}
        asked = {str(key) for pod in self.pods for key, _ in pod.requests}
        return {key: has.get(key, 0) - self.used(node.name, key) for key in has.keys() | asked}

    def everybody(self) -> list[Pod]:
        """List the pods that rules may speak of."""
        there = {node.name for node in self.nodes}
        return [
            Pod(
                pod.key.partition("/")[0],
                dict(pod.labels),
                pod.host_ports,
                pod.anti_affinity,
                pod.node,
            )
            for pod in self.pods
            if pod.node in there
        ]


def _asked(pod: NodePod) -> dict[str, int]:
    return {PODS: 1, **{str(key): amount for key, amount in pod.requests}}


# --- may a pod use a node? ------------------------------------------------------------------------


def labels_of(node: Node) -> dict[str, str]:
    """Return a node's labels; every node is also known by its name."""
    return {HOSTNAME: node.name, **dict(node.labels), "metadata.name": node.name}


def allows(node: Node, constraint: Constraint, key: str = "") -> bool:
    """Say whether a node would take a pod with these wishes if it were empty (§5.3, §5.4)."""
    if not node.ready:
        return False
    if node.held_for and node.held_for != key:
        return False
    if not is_selected(node, constraint):
        return False
    cordon = (Taint("node.kubernetes.io/unschedulable"),) if node.unschedulable else ()
    return all(
        taint.effect == "PreferNoSchedule" or _is_tolerated(taint, constraint.tolerations)
        for taint in (*node.taints, *cordon)
    )


def is_selected(node: Node, constraint: Constraint) -> bool:
    """Say whether selector and required affinity want a node."""
    labels = labels_of(node)
    for key, value in constraint.selector:
        if labels.get(key) != value:
            return False
    if not constraint.affinity:
        return True
    return any(_term_matches(term, labels) for term in constraint.affinity)


def _term_matches(term: AffinityTerm, labels: dict[str, str]) -> bool:
    return len(term) > 0 and all(meets(requirement, labels) for requirement in term)


def _is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    for toleration in tolerations:
        if toleration.effect not in ("", taint.effect):
            continue
        if toleration.key == "":
            if toleration.operator == "Exists":
                return True
            continue
        if toleration.key != taint.key:
            continue
        if toleration.operator == "Exists" or toleration.value == taint.value:
            return True
    return False


def liking(node: Node, constraint: Constraint) -> int:
    """Return how much a pod would like a node: preferred terms, less 1000 a bare soft taint."""
    labels = labels_of(node)
    liked = sum(each.weight for each in constraint.preferred if _term_matches(each.term, labels))
    bare = [
        taint
        for taint in node.taints
        if taint.effect == "PreferNoSchedule" and not _is_tolerated(taint, constraint.tolerations)
    ]
    return liked - 1000 * len(bare)


def fitting(free: Mapping[str, int], demand: Demand) -> int:
    """Count pods onto a node until one does not fit."""
    left = dict(free)
    pods = 0
    while fits_one(left, demand):
        pods += 1
        for resource, amount in wanted_of(demand).items():
            left[resource] -= amount
    return pods


def fits_one(free: Mapping[str, int], demand: Demand) -> bool:
    """Say whether there is room for one pod; what it does not ask for is not looked at (§5.2)."""
    return all(amount <= free.get(resource, 0) for resource, amount in wanted_of(demand).items())


def wanted_of(demand: Demand) -> dict[str, int]:
    """Return what one pod asks for, where it asks for something."""
    every: dict[str, int] = {PODS: 1, **{str(key): amount for key, amount in demand.requests}}
    return {resource: amount for resource, amount in every.items() if amount > 0}


def capacities(cluster: Cluster, demand: Demand, key: str = "") -> Where:
    """Return how many pods of a demand each node could take."""
    return {
        node.name: fitting(cluster.free(node), demand)
        if allows(node, demand.constraint, key)
        else 0
        for node in cluster.nodes
    }


# --- may a pod join others? -----------------------------------------------------------------------


def may_join(nodes: list[Node], there: list[Pod], demand: Demand, node: Node) -> bool:
    """Say whether a pod may come to a node, given who is where (§5.2, §5.5, §5.6)."""
    own = Pod(
        demand.namespace, dict(demand.labels), demand.host_ports, demand.anti_affinity, node.name
    )
    where = {each.name: labels_of(each) for each in nodes}
    return (
        not any(_ports_clash(own, pod) for pod in there if pod.node == node.name)
        and not any(_repels(own, pod, where) or _repels(pod, own, where) for pod in there)
        and _has_company(own, there, demand.affinity_to, where)
        and all(_keeps_skew(nodes, there, own, demand, rule, where) for rule in demand.spread)
    )


def _ports_clash(one: Pod, other: Pod) -> bool:
    for mine in one.ports:
        for theirs in other.ports:
            if (mine.port, mine.protocol) != (theirs.port, theirs.protocol):
                continue
            anywhere = {mine.address, theirs.address} & {"", "0.0.0.0"}
            if anywhere or mine.address == theirs.address:
                return True
    return False


def _speaks_of(selector: PodSelector, namespace: str, pod: Pod) -> bool:
    if not selector.every_namespace:
        if pod.namespace not in (selector.namespaces or (namespace,)):
            return False
    return selects(selector.labels, dict(pod.labels))


def _same_domain(key: str, one: Pod, other: Pod, where: dict[NodeName, dict[str, str]]) -> bool:
    mine, theirs = where[NodeName(one.node)].get(key), where[NodeName(other.node)].get(key)
    return mine is not None and mine == theirs


def _repels(owner: Pod, other: Pod, where: dict[NodeName, dict[str, str]]) -> bool:
    return any(
        _speaks_of(rule.selector, owner.namespace, other)
        and _same_domain(rule.topology_key, owner, other, where)
        for rule in owner.anti_affinity
    )


def _has_company(
    own: Pod, there: list[Pod], rules: tuple[PodRule, ...], where: dict[NodeName, dict[str, str]]
) -> bool:
    if not all(rule.topology_key in where[NodeName(own.node)] for rule in rules):
        return False
    missing = [
        rule
        for rule in rules
        if not any(
            _speaks_of(rule.selector, own.namespace, pod)
            and _same_domain(rule.topology_key, own, pod, where)
            for pod in there
        )
    ]
    if not missing:
        return True
    # The first of its kind: nobody matches any rule anywhere, and it would match them itself.
    return not any(
        _speaks_of(rule.selector, own.namespace, pod)
        and rule.topology_key in where[NodeName(pod.node)]
        for rule in rules
        for pod in there
    ) and all(_speaks_of(rule.selector, own.namespace, own) for rule in rules)


def _keeps_skew(
    nodes: list[Node],
    there: list[Pod],
    own: Pod,
    demand: Demand,
    rule: SpreadRule,
    where: dict[NodeName, dict[str, str]],
) -> bool:
    keys = [each.topology_key for each in demand.spread]
    counted = {
        node.name
        for node in nodes
        if is_selected(node, demand.constraint) and all(key in where[node.name] for key in keys)
    }
    key = rule.topology_key
    if key not in where[NodeName(own.node)]:
        return False
    counts = {where[name][key]: 0 for name in sorted(counted)}
    for pod in there:
        if pod.node in counted and _speaks_of(rule.selector, own.namespace, pod):
            counts[where[NodeName(pod.node)][key]] += 1
    lowest = 0 if len(counts) < rule.min_domains else min(counts.values(), default=0)
    itself = 1 if _speaks_of(rule.selector, own.namespace, own) else 0
    return counts.get(where[NodeName(own.node)][key], 0) + itself - lowest <= rule.max_skew


# --- is there any way at all? ---------------------------------------------------------------------


def is_possible(cluster: Cluster, gang: Gang) -> bool:
    """Try every way to place a gang pod by pod. Only for a handful of nodes and pods."""
    return _Search(cluster, gang, None).found(((),) * len(gang.demands))


def reaches(cluster: Cluster, gang: Gang, goal: Mapping[str, Where]) -> bool:
    """Say whether pods can come one by one, in some order, until they are as the goal says."""
    return _Search(cluster, gang, goal).found(((),) * len(gang.demands))


# How many pods of each demand are on which node; a state of the search.
State = tuple[tuple[tuple[str, int], ...], ...]


class _Search:
    def __init__(self, cluster: Cluster, gang: Gang, goal: Mapping[str, Where] | None) -> None:
        self.cluster = cluster
        self.gang = gang
        self.goal = goal
        self.seen: set[State] = set()
        self.free = {node.name: cluster.free(node) for node in cluster.nodes}
        self.others = cluster.everybody()

    def found(self, state: State) -> bool:
        if state in self.seen:
            return False
        self.seen.add(state)
        if self._is_goal(state):
            return True
        for index, demand in enumerate(self.gang.demands):
            if sum(pods for _, pods in state[index]) >= demand.most:
                continue
            for node in self.cluster.nodes:
                placed = dict(state[index])
                most = (
                    demand.most if self.goal is None else self.goal[demand.name].get(node.name, 0)
                )
                if placed.get(node.name, 0) < most and self._may_add(state, demand, node):
                    placed[node.name] = placed.get(node.name, 0) + 1
                    after = (*state[:index], tuple(sorted(placed.items())), *state[index + 1 :])
                    if self.found(after):
                        return True
        return False

    def _is_goal(self, state: State) -> bool:
        pods = [sum(count for _, count in places) for places in state]
        enough = all(n >= d.least for n, d in zip(pods, self.gang.demands, strict=True))
        return (
            enough
            and sum(pods) >= (self.gang.min_total or 0)
            and all(
                keeps_slices(self.cluster.nodes, demand, dict(places))
                for demand, places in zip(self.gang.demands, state, strict=True)
            )
        )

    def _may_add(self, state: State, demand: Demand, node: Node) -> bool:
        if not allows(node, demand.constraint, self.gang.key):
            return False
        left = dict(self.free[node.name])
        placed: list[Pod] = []
        for other, places in zip(self.gang.demands, state, strict=True):
            for name, count in places:
                for _ in range(count):
                    placed.append(
                        Pod(
                            other.namespace,
                            dict(other.labels),
                            other.host_ports,
                            other.anti_affinity,
                            name,
                        )
                    )
                if name == node.name:
                    for resource, amount in wanted_of(other).items():
                        left[resource] = left.get(resource, 0) - count * amount
            if _share_domain(demand, other):
                mine = domain_of(node, demand)
                for name, _ in places:
                    if mine is None or domain_of(self._node(name), demand) != mine:
                        return False
        if demand.mode == "required" and domain_of(node, demand) is None:
            return False
        return fits_one(left, demand) and may_join(
            self.cluster.nodes, self.others + placed, demand, node
        )

    def _node(self, name: str) -> Node:
        return next(node for node in self.cluster.nodes if node.name == name)


def _share_domain(one: Demand, other: Demand) -> bool:
    if one.mode != "required":
        return False
    return one.name == other.name or (one.group != "" and one.group == other.group)


def domain_of(node: Node, demand: Demand) -> tuple[str, ...] | None:
    """Return the domain of a demand's level that a node is in."""
    return _path(node, demand.levels, demand.level)


def _path(node: Node, levels: tuple[str, ...], level: str) -> tuple[str, ...] | None:
    if level in ("", HOSTNAME):
        return ("node", node.name)
    labels = labels_of(node)
    if level not in labels:
        return None
    return tuple(labels.get(key, "") for key in levels[: levels.index(level) + 1])


def keeps_slices(nodes: list[Node], demand: Demand, places: Where) -> bool:
    """Say whether every domain of the slice level holds whole slices."""
    if demand.slice_size <= 1:
        return True
    level = demand.slice_level or HOSTNAME
    pods: dict[tuple[str, ...] | None, int] = {}
    for node in nodes:
        if node.name in places:
            domain = _path(node, demand.levels, level)
            pods[domain] = pods.get(domain, 0) + places[node.name]
    return None not in pods and all(count % demand.slice_size == 0 for count in pods.values())
