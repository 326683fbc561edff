"""The placement oracle: where pods may run, and where the engine must put them, in plain loops.

The engine works on vectors; this is the same in loops, written from spec placement and sharing no
code with `engine/placement`, so that the two can be compared on random clusters.

    allows, fitting, may_join   the filters of §5: of a node, of its room, of the pods around
    is_possible                 whether there is any way to place a gang, found by trying all
    Reference                   which of several ways to take
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
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
from unisono.engine.model.policy import Placement
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

    def placed_pods(self) -> list[Pod]:
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
    """Say whether a pod may join a node, given the pods on all nodes (§5.2, §5.5, §5.6)."""
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
    # The first of its kind: no pod matches any rule anywhere, and it would match them itself.
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
        self.others = cluster.placed_pods()

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


Tie = tuple[int, int]  # what decides among siblings of the same size; lower is better
NO_TIE = (0, 0)


def choose(cluster: Cluster, demand: Demand, placement: Placement, key: str = "") -> Where | None:
    """Place one set; None if it does not fit."""
    chooser = _Chooser(cluster, demand, placement, key)
    found = chooser.place()
    if found is None:
        return None
    return {node: pods for node, pods in found.items() if pods}


def natural(text: str) -> tuple[list[tuple[int, int, str]], str]:
    """Return a sort key by which n2 comes before n10; equal numbers are told apart by text."""
    parts = re.split(r"([0-9]+)", text)
    key = [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]
    return key, text


class _Chooser:
    """One set, the nodes in topology order, and what is free on them."""

    def __init__(self, cluster: Cluster, demand: Demand, placement: Placement, key: str) -> None:
        self.demand = demand
        self.placement = placement
        self.nodes = sorted(cluster.nodes, key=self._order)
        self.free = [cluster.free(node) for node in self.nodes]
        self.open = [allows(node, demand.constraint, key) for node in self.nodes]
        self.likings = [liking(node, demand.constraint) for node in self.nodes]

    def _order(self, node: Node) -> tuple[object, ...]:
        labels = labels_of(node)
        # Nodes without a label come before all that have one.
        values = [
            (1, natural(labels[key])) if key in labels else (0, natural(""))
            for key in self.demand.levels
        ]
        return (*values, natural(node.name))

    def cap(self, position: int) -> int:
        return fitting(self.free[position], self.demand) if self.open[position] else 0

    def total(self, positions: Iterable[int]) -> int:
        return sum(self.cap(position) for position in positions)

    def place(self) -> Where | None:
        demand = self.demand
        everywhere = range(len(self.nodes))
        if demand.mode == "unconstrained":
            if self.total(everywhere) < demand.least:
                return None
            return self._grown(self._fill(demand.least), scope=None)
        depth = len(demand.levels)
        level = depth if demand.level in ("", HOSTNAME) else demand.levels.index(demand.level)
        while level >= 0:
            domain = self._best_domain(level)
            if domain is not None:
                return self._grown(self._take(domain, level + 1, demand.least), (level, domain))
            if demand.mode == "required":
                return {} if demand.least == 0 else None
            level -= 1
        if demand.least == 0:
            return {}
        if self.total(everywhere) < demand.least:
            return None
        scope = (-1, list(everywhere))
        return self._grown(self._take(scope[1], 0, demand.least), scope)

    def _grown(self, placed: Where, scope: tuple[int, list[int]] | None) -> Where:
        """Add pods up to the most that is wanted: in the same domain, then anywhere."""
        more = self.demand.most - self.demand.least
        if scope is not None:
            level, domain = scope
            here = min(more, self.total(domain))
            _add(placed, self._take(domain, level + 1, here))
            more -= here
            if self.demand.mode == "required":
                return placed
        rest = min(more, self.total(range(len(self.nodes))))
        _add(placed, self._fill(rest))
        return placed

    # --- domains -------------------------------------------------------------------------------

    def _domains(self, level: int, positions: Iterable[int]) -> Iterator[list[int]]:
        """Cut positions into the domains of a level; beyond the last one, into nodes."""
        if level >= len(self.demand.levels):
            yield from ([position] for position in positions)
            return
        groups: dict[tuple[str | None, ...], list[int]] = {}
        for position in positions:
            labels = labels_of(self.nodes[position])
            path = tuple(labels.get(key) for key in self.demand.levels[: level + 1])
            groups.setdefault(path, []).append(position)
        yield from groups.values()

    def _is_labelled(self, level: int, domain: list[int]) -> bool:
        if level >= len(self.demand.levels):
            return True
        return self.demand.levels[level] in labels_of(self.nodes[domain[0]])

    def _best_domain(self, level: int) -> list[int] | None:
        """Find the domain that is liked most, could take most, has least to spare."""
        demand = self.demand
        best: tuple[tuple[int, ...], list[int]] | None = None
        for domain in self._domains(level, range(len(self.nodes))):
            room = self.total(domain)
            if room < max(1, demand.least) or not self._is_labelled(level, domain):
                continue
            is_elastic = demand.most > demand.least
            liked = sum(self.likings[p] * self.cap(p) for p in domain) // max(room, 1)
            reach = min(room, demand.most) if is_elastic else 0
            # A score decides among single nodes only, and only if the set has one size.
            score = 0
            if level >= len(demand.levels) and not is_elastic:
                score = self._score(domain[0])
            rank = (-liked, -reach, room - demand.least, score, domain[0])
            if best is None or rank < best[0]:
                best = rank, domain
        return None if best is None else best[1]

    # --- inside a domain -----------------------------------------------------------------------

    def _take(self, positions: list[int], level: int, need: int) -> Where:
        """Pack pods into few domains, level by level, and then into few nodes; and count them."""
        placed = self._descend(positions, level, need)
        by_name = {node.name: position for position, node in enumerate(self.nodes)}
        for name, pods in placed.items():
            self._use(by_name[NodeName(name)], pods)
        return placed

    def _descend(self, positions: list[int], level: int, need: int) -> Where:
        if need == 0:
            return {}
        if level >= len(self.demand.levels):
            rooms = [(self.cap(p), self._tie(p), p) for p in positions]
            return {self.nodes[p].name: pods for p, pods in _pack(rooms, need)}
        children = list(self._domains(level, positions))
        placed: Where = {}
        rooms = [(self.total(child), NO_TIE, index) for index, child in enumerate(children)]
        for index, pods in _pack(rooms, need):
            _add(placed, self._descend(children[index], level + 1, pods))
        return placed

    def _fill(self, need: int) -> Where:
        """Use up small holes first; pods without GPUs begin with nodes that have none."""
        needs_gpu = self._gpu()[1] > 0
        rooms = []
        for position, node in enumerate(self.nodes):
            has_gpus = any(_is_gpu(key) and amount for key, amount in node.allocatable)
            avoided = has_gpus and not needs_gpu
            rooms.append((avoided, self.cap(position), self._tie(position), position))
        placed: Where = {}
        for _, room, _, position in sorted(rooms):
            pods = min(room, need)
            if pods:
                placed[self.nodes[position].name] = pods
                self._use(position, pods)
                need -= pods
        return placed

    def _use(self, position: int, pods: int) -> None:
        for resource, amount in wanted_of(self.demand).items():
            self.free[position][resource] -= pods * amount

    # --- scores --------------------------------------------------------------------------------

    def _tie(self, position: int) -> Tie:
        """What is liked outweighs every scoring."""
        return -self.likings[position], self._score(position)

    def _gpu(self) -> tuple[str, int]:
        for resource, amount in self.demand.requests:
            if _is_gpu(resource) and amount:
                return resource, amount
        return "", 0

    def _score(self, position: int) -> int:
        resource, amount = self._gpu()
        match self.placement.scoring:
            case "none":
                return 0
            case "binpack":
                return -self._used_share(position)
            case "spread":
                return self._used_share(position)
            case "leftover" | "auto" | "spare":
                if not amount:
                    return 0
                return self.free[position].get(resource, 0) - self.cap(position) * amount
            case "fgd":
                if not amount:
                    return 0
                free = self.free[position].get(resource, 0)
                return _fragmented(free - amount) - _fragmented(free)

    def _used_share(self, position: int) -> int:
        has = {PODS: 110, **dict(self.nodes[position].allocatable)}
        total = 0
        for resource, amount in self.demand.requests:
            if amount:
                whole = has.get(resource, 0)
                used = whole - self.free[position].get(resource, 0)
                total += used * 1_000_000 // max(whole, 1)
        return total


def _fragmented(free_gpus: int) -> int:
    """Thousandths of free GPUs that jobs of 1, 2, 4 and 8, equally likely, would leave unused."""
    free = max(free_gpus, 0)
    return sum(250 * (free % gpus) for gpus in (1, 2, 4, 8))


def _is_gpu(resource: str) -> bool:
    return resource.endswith("/gpu") or "/mig-" in resource


def _pack(rooms: list[tuple[int, Tie, int]], need: int) -> list[tuple[int, int]]:
    """Take whole siblings, largest first, and for the rest the smallest that holds it.

    Rooms are (how much, tie-break, index); the answer is (index, pods).
    """
    taken: list[tuple[int, int]] = []
    left = sorted(rooms, key=lambda room: (-room[0], room[1], room[2]))
    while left[0][0] < need:
        room, _, index = left.pop(0)
        taken.append((index, room))
        need -= room
    holding = [room for room in left if room[0] >= need]
    _, _, index = min(holding)
    return [*taken, (index, need)]


def _add(placed: Where, more: Where) -> None:
    for name, pods in more.items():
        placed[name] = placed.get(name, 0) + pods
