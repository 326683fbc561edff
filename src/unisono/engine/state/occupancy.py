"""Occupancy: the pods of workloads, and of others, on nodes.

Occupying and vacating are exact inverses, so that a cycle can take pods off and put them back as it
tries things. Nodes may come and go under their pods: what is placed on a node that is not there is
remembered, and counted again when the node returns. `PodIndex` says which pods are on which node,
for the rules that pods have about each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from unisono.engine.model.names import NodeName, ResourceName
from unisono.engine.model.node import HostPort, Node, PodRule, PodSelector
from unisono.engine.model.resources import Amounts, share_in
from unisono.engine.model.selection import selects
from unisono.engine.state.change_journal import Integers, Move, Rows
from unisono.engine.state.devices import free_by_device, fullest_first, share
from unisono.engine.state.node_table import NodeTable

# --- placed pods: those of one template that one owner has on nodes -------------------------------


NO_ROWS: Rows = np.zeros(0, np.intp)
NO_PODS: Integers = np.zeros(0, np.int64)
_UNLABELLED: dict[str, str] = {}  # the labels of placed pods are never changed


class Shared(NamedTuple):
    """Parts of devices: of which resource, how large, and the row and device of every pod."""

    share: ResourceName
    milli: int
    rows: list[int]
    devices: list[int]


class PlacedPods:
    """Pods of one template, and the nodes they are on."""

    __slots__ = (
        "anti_affinity",
        "came",
        "counts",
        "devices",
        "host_ports",
        "labels",
        "layout",
        "namespace",
        "nodes",
        "pods",
        "requests",
        "rows",
        "shared",
    )

    def __init__(
        self,
        nodes: tuple[tuple[NodeName, int], ...],
        requests: Amounts,
        namespace: str = "",
        labels: dict[str, str] | None = None,
        host_ports: tuple[HostPort, ...] = (),
        anti_affinity: tuple[PodRule, ...] = (),
        devices: tuple[int, ...] = (),
        rows: Rows = NO_ROWS,
        counts: Integers = NO_PODS,
        pods: int = 0,
        layout: int = -1,
    ) -> None:
        """Take nodes by name or by row; what is left out does not concern these pods.

        One flat object: one is made for every pod set that starts, and a part for the template
        (namespace, labels, ports, anti-affinity) would be one more for most gangs, empty.
        """
        self.nodes = nodes
        self.requests = requests
        self.namespace = namespace
        self.labels: dict[str, str] = _UNLABELLED if labels is None else labels
        self.host_ports = host_ports
        self.anti_affinity = anti_affinity
        self.devices = devices  # of pods that share GPUs, in the order of nodes
        self.rows = rows
        self.counts = counts
        self.came: Move | None = None  # how it is counted in the node table
        self.shared: Shared | None = None  # the parts of devices that its pods have now
        self.pods = pods  # on those rows
        self.layout = layout  # of the node table, for which the rows are right


# --- pods by node, for rules between pods ---------------------------------------------------------

# Only labels, ports and anti-affinity of pods are kept here, grouped by template: a gang of a
# thousand equal pods is one entry. What pods use of nodes is in the node table.


@dataclass(slots=True)
class Members:
    """Pods of one template, and how many of them are on which node."""

    namespace: str
    labels: dict[str, str]
    host_ports: tuple[HostPort, ...]
    anti_affinity: tuple[PodRule, ...]
    pods_on: dict[NodeName, int] = field(default_factory=dict)


@dataclass(slots=True)
class PodIndex:
    """All pods on nodes that rules may be about, by what placed them."""

    groups: dict[object, Members] = field(default_factory=dict)
    # Pods without labels, ports and rules are most pods there are, and are not kept here. Selectors
    # that ask for the absence of a label, or for nothing, match them all the same, so they are read
    # from the occupancy when such a selector turns up.
    unlabelled: Callable[[], Iterable[Members]] = tuple
    _repelling: int = 0  # groups with anti-affinity rules

    @property
    def has_rules(self) -> bool:
        """Say whether some pod on a node keeps others away."""
        return self._repelling > 0

    def add(self, key: object, members: Members) -> None:
        """Add pods."""
        self.groups[key] = members
        self._repelling += bool(members.anti_affinity)

    def remove(self, key: object) -> None:
        """Forget pods."""
        members = self.groups.pop(key, None)
        if members is not None:
            self._repelling -= bool(members.anti_affinity)

    def matching(self, selector: PodSelector, namespace: str) -> Iterator[Members]:
        """Yield groups that a selector of a pod in `namespace` matches."""
        for members in self.groups.values():
            if selects_pod(selector, namespace, members.namespace, members.labels):
                yield members
        if selects(selector.labels, {}):
            for members in self.unlabelled():
                if selects_pod(selector, namespace, members.namespace, members.labels):
                    yield members

    def repelling(
        self, namespace: str, labels: dict[str, str]
    ) -> Iterator[tuple[PodRule, Members]]:
        """Yield anti-affinity rules of pods on nodes that a new pod would violate."""
        for members in self.groups.values():
            for rule in members.anti_affinity:
                if selects_pod(rule.selector, members.namespace, namespace, labels):
                    yield rule, members

    def with_ports(self) -> Iterator[Members]:
        """Yield groups that take ports of their nodes."""
        return (members for members in self.groups.values() if members.host_ports)


def selects_pod(
    selector: PodSelector, own_namespace: str, namespace: str, labels: dict[str, str]
) -> bool:
    """Say whether a rule of a pod in `own_namespace` speaks of a pod with these labels."""
    spoken_of = selector.namespaces or (own_namespace,)
    if not selector.every_namespace and namespace not in spoken_of:
        return False
    return selects(selector.labels, labels)


def conflict(one: HostPort, other: HostPort) -> bool:
    """Say whether two ports cannot be on one node; an empty address means all of them."""
    if one.port != other.port or one.protocol != other.protocol:
        return False
    anywhere = ("", "0.0.0.0")
    return one.address == other.address or one.address in anywhere or other.address in anywhere


# --- pods on nodes --------------------------------------------------------------------------------


_Nodes = tuple[tuple[NodeName, int], ...]
_Located = tuple[_Nodes, Rows, Integers, int]
# A cycle tries few places at a time.
LOCATED_KEPT = 512


class Cleared(NamedTuple):
    """Pods of one request that are counted as gone, by row."""

    requests: Amounts
    rows: Rows
    counts: Integers


class Occupancy:
    """All placed pods, kept in step with the node table."""

    def __init__(self, table: NodeTable, pod_index: PodIndex) -> None:
        self.table = table
        self.pod_index = pod_index
        pod_index.unlabelled = self._unlabelled
        self.sharing = 0  # how many have parts of GPUs
        self.moves = 0  # grows when pods come or go, or a node changes
        self._placed: dict[PlacedPods, None] = {}
        self._cleared: frozenset[PlacedPods] = frozenset()
        self._without_node: dict[NodeName, dict[PlacedPods, None]] = {}
        # Rows by the identity of the list of nodes, which is kept so that it stays what it is.
        self._located: dict[int, _Located] = {}
        self._layout = -1

    def occupy(self, placed: PlacedPods, *, fits: bool = False) -> None:
        """Count pods on their nodes; `fits` says that there is room for them."""
        self.moves += 1
        self._placed[placed] = None
        self._count(placed, fits=fits)
        if placed.labels or placed.host_ports or placed.anti_affinity:  # others: see `_unlabelled`
            members = Members(
                placed.namespace,
                placed.labels,
                placed.host_ports,
                placed.anti_affinity,
                dict(placed.nodes),
            )
            self.pod_index.add(placed, members)

    def vacate(self, placed: PlacedPods) -> None:
        """Take pods off their nodes."""
        self.moves += 1
        del self._placed[placed]
        self._uncount(placed)
        if placed.labels or placed.host_ports or placed.anti_affinity:
            self.pod_index.remove(placed)
        for name, _ in placed.nodes if self._without_node else ():
            waiting = self._without_node.get(name)
            if waiting is not None:
                waiting.pop(placed, None)
                if not waiting:
                    del self._without_node[name]

    def clear(self, placed_pods: Sequence[PlacedPods]) -> list[Cleared]:
        """Count many as gone from their nodes at once; `fill` counts them as there again.

        Nodes are read in between; the pods stay placed. Only for those of which nothing but their
        requests matters (`is_plain`).
        """
        self.moves += 1
        self._cleared = frozenset(placed_pods)
        by_requests: dict[Amounts, list[PlacedPods]] = {}
        for placed in placed_pods:
            by_requests.setdefault(placed.requests, []).append(placed)
        cleared: list[Cleared] = []
        for requests, alike in by_requests.items():
            on_rows = np.zeros(len(self.table), np.int64)
            np.add.at(
                on_rows,
                np.concatenate([one.rows for one in alike]),
                np.concatenate([one.counts for one in alike]),
            )
            rows = np.flatnonzero(on_rows)
            cleared.append(Cleared(requests, rows, on_rows[rows]))
            self.table.give_back(rows, cleared[-1].counts, requests)
        return cleared

    def fill(self, cleared: list[Cleared]) -> None:
        """Undo `clear`."""
        self.moves += 1
        self._cleared = frozenset()
        for requests, rows, counts in cleared:
            self.table.take(rows, counts, requests)

    def _unlabelled(self) -> Iterator[Members]:
        """Yield the pods that the index does not keep."""
        for placed in self._placed:
            is_kept = placed.labels or placed.host_ports or placed.anti_affinity
            if not is_kept and placed not in self._cleared:
                yield Members(placed.namespace, {}, (), (), dict(placed.nodes))

    def is_plain(self, placed: PlacedPods) -> bool:
        """Say whether pods have no labels, ports, rules or devices: only requests count."""
        return not (
            self.table.devices or placed.labels or placed.host_ports or placed.anti_affinity
        )

    def put_node(self, node: Node) -> None:
        """Add or change a node; pods that are placed on it are counted."""
        self.moves += 1
        self.table.put(node)
        for placed in self._without_node.pop(node.name, {}):
            if placed in self._placed:
                self._uncount(placed)
                self._count(placed)

    def drop_node(self, name: NodeName) -> None:
        """Forget a node; the pods on it are remembered."""
        if name not in self.table.row_of:
            return
        self.moves += 1
        here = [t for t in self._placed if any(node == name for node, _ in t.nodes)]
        for placed in here:
            self._uncount(placed)
        self.table.drop(name)
        for placed in here:
            self._count(placed)

    def locate(self, placed: PlacedPods) -> None:
        """Find the rows of the nodes of placed pods."""
        if placed.layout == self.table.layout and placed.rows is not NO_ROWS:
            return  # known since they were placed
        known = self._located.get(id(placed.nodes))
        if known is None or self._layout != self.table.layout:
            known = self._look_up(placed.nodes)
        _, placed.rows, placed.counts, placed.pods = known
        placed.layout = self.table.layout

    def remember(self, nodes: _Nodes, rows: Rows, counts: Integers, pods: int) -> _Located:
        """Remember the rows of nodes: they are asked for several times in a row."""
        if self._layout != self.table.layout or len(self._located) >= LOCATED_KEPT:
            self._layout = self.table.layout
            self._located.clear()
        known = self._located[id(nodes)] = (nodes, rows, counts, pods)
        return known

    def _look_up(self, nodes: _Nodes) -> _Located:
        """Find the rows of nodes."""
        row_of = self.table.row_of
        there = [(row_of[name], count) for name, count in nodes if name in row_of]
        rows = np.array([row for row, _ in there], np.intp)
        counts = np.array([count for _, count in there], np.int64)
        return self.remember(nodes, rows, counts, sum(count for _, count in there))

    def _count(self, placed: PlacedPods, *, fits: bool = False) -> None:
        self.locate(placed)
        if len(placed.rows) < len(placed.nodes):
            for name, _ in placed.nodes:
                if name not in self.table.row_of:
                    self._without_node.setdefault(name, {})[placed] = None
        placed.came = self.table.take(
            placed.rows, placed.counts, placed.requests, pods=placed.pods, fits=fits
        )
        if self.table.devices:
            self._share(placed)

    def _uncount(self, placed: PlacedPods) -> None:
        self.table.give_back(
            placed.rows, placed.counts, placed.requests, pods=placed.pods, came=placed.came
        )
        placed.came = None
        placed.rows, placed.counts = NO_ROWS, NO_PODS
        if placed.shared is not None:
            give_back(self.table, placed.shared, self.table.free)
            placed.shared = None
            self.sharing -= 1

    def _share(self, placed: PlacedPods) -> None:
        """Let pods take their parts of devices."""
        placed.shared = parts_of(self.table, placed)
        if placed.shared is not None:
            take(self.table, placed.shared, self.table.free)
            self.sharing += 1


def parts_of(table: NodeTable, placed: PlacedPods) -> Shared | None:
    """Return the parts of devices of placed pods whose rows are known; None without any."""
    if placed.shared is not None or not table.devices:
        return placed.shared
    wanted = share_in(placed.requests)
    if wanted is None:
        return None
    rows = np.repeat(placed.rows, placed.counts).tolist()
    if not placed.devices:
        return Shared(*wanted, rows, _anywhere(table, placed, *wanted))
    table.open_devices(wanted[0], 1 + max(placed.devices))
    before = 0
    devices: list[int] = []
    for name, count in placed.nodes:
        if name in table.row_of:
            devices += placed.devices[before : before + count]
        before += count
    return Shared(*wanted, rows, devices)


def _anywhere(
    table: NodeTable, placed: PlacedPods, resource: ResourceName, milli: int
) -> list[int]:
    """Choose devices for pods whose devices are unknown: those of others, mostly."""
    chosen: list[int] = []
    device_free = free_by_device(table.free, table.devices[resource], placed.rows).tolist()
    for free, pods in zip(device_free, placed.counts.tolist(), strict=True):
        found = fullest_first(free, milli, pods)
        # Too many for the devices that there are, but they run there all the same.
        chosen += [*found, *[0] * (pods - len(found))]
    return chosen


def take(table: NodeTable, parts: Shared, free: Integers) -> None:
    """Take parts of devices, given what is free."""
    share(free, table.devices[parts.share], parts.rows, parts.devices, parts.milli)


def give_back(table: NodeTable, parts: Shared, free: Integers) -> None:
    """Undo `take`."""
    share(free, table.devices[parts.share], parts.rows, parts.devices, -parts.milli)
