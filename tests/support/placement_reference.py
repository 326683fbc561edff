"""Which nodes a set of pods takes: the algorithm of spec placement §8.4 to §8.8, in plain loops.

Written from the spec, sharing no code with `engine/placement`; random clusters must give the same
choice. It knows capacities only: sets with slices or with rules between pods are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tests.support.placement_oracle import (
    Cluster,
    Where,
    allows,
    fitting,
    labels_of,
    liking,
    wanted_of,
)
from unisono.engine.model.names import PODS, NodeName
from unisono.engine.model.node import HOSTNAME, Node
from unisono.engine.model.policy import Placement
from unisono.engine.placement.demand import Demand

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
