"""Who sits where: pods of workloads (and of others) on nodes.

Occupying and vacating are exact inverses, so a cycle can let tenants leave and come back as it
tries things.
Nodes may come and go under their tenants: what sits on a node that is not there is remembered and
counted again when the node returns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from unisono.engine.model.names import NodeName, ResourceName
from unisono.engine.model.node import Node
from unisono.engine.model.resources import Amounts, share_in
from unisono.engine.state.devices import fullest_first, rooms, share
from unisono.engine.state.move import Integers, Rows
from unisono.engine.state.node_table import NodeTable
from unisono.engine.state.pod_index import Members, PodIndex
from unisono.engine.state.tenant import NOBODY, NOWHERE, Shared, Tenant

_Nodes = tuple[tuple[NodeName, int], ...]
_Located = tuple[_Nodes, Rows, Integers, int]
# A cycle tries few places at a time.
LOCATED_KEPT = 512


class Cleared(NamedTuple):
    """Pods of one request that are counted as gone, by row."""

    requests: Amounts
    rows: Rows
    counts: Integers


class Tenancy:
    """All tenants, kept in step with the node table."""

    def __init__(self, table: NodeTable, pod_index: PodIndex) -> None:
        self.table = table
        self.pod_index = pod_index
        self.sharing = 0  # tenants that have parts of GPUs
        self.moves = 0  # grows when somebody comes or goes, or a node changes
        self._tenants: dict[Tenant, None] = {}
        self._homeless: dict[NodeName, dict[Tenant, None]] = {}
        # Rows by the identity of the list of nodes, which is kept so that it stays what it is.
        self._located: dict[int, _Located] = {}
        self._layout = -1

    def occupy(self, tenant: Tenant, *, fits: bool = False) -> None:
        """Let pods sit on their nodes; `fits` says that there is room for them."""
        self.moves += 1
        self._tenants[tenant] = None
        self._seat(tenant, fits=fits)
        if tenant.labels or tenant.host_ports or tenant.anti_affinity:  # else nobody asks
            members = Members(
                tenant.namespace,
                tenant.labels,
                tenant.host_ports,
                tenant.anti_affinity,
                dict(tenant.nodes),
            )
            self.pod_index.add(tenant, members)

    def vacate(self, tenant: Tenant) -> None:
        """Take pods off their nodes."""
        self.moves += 1
        del self._tenants[tenant]
        self._unseat(tenant)
        if tenant.labels or tenant.host_ports or tenant.anti_affinity:
            self.pod_index.remove(tenant)
        for name, _ in tenant.nodes if self._homeless else ():
            waiting = self._homeless.get(name)
            if waiting is not None:
                waiting.pop(tenant, None)
                if not waiting:
                    del self._homeless[name]

    def clear(self, tenants: Iterable[Tenant]) -> list[Cleared]:
        """Count many as gone from their nodes at once; `fill` counts them as there again.

        For a look at nodes in between: they stay tenants. Only for those of whom nothing but their
        requests matters (`is_plain`).
        """
        self.moves += 1
        by_requests: dict[Amounts, list[Tenant]] = {}
        for tenant in tenants:
            by_requests.setdefault(tenant.requests, []).append(tenant)
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
        for requests, rows, counts in cleared:
            self.table.take(rows, counts, requests)

    def is_plain(self, tenant: Tenant) -> bool:
        """Say whether only the requests of a tenant's pods matter to others."""
        return not (
            self.table.devices or tenant.labels or tenant.host_ports or tenant.anti_affinity
        )

    def put_node(self, node: Node) -> None:
        """Add or change a node; tenants that were waiting for it are counted on it."""
        self.moves += 1
        self.table.put(node)
        for tenant in self._homeless.pop(node.name, {}):
            if tenant in self._tenants:
                self._unseat(tenant)
                self._seat(tenant)

    def drop_node(self, name: NodeName) -> None:
        """Forget a node; its tenants are remembered."""
        if name not in self.table.row_of:
            return
        self.moves += 1
        here = [t for t in self._tenants if any(node == name for node, _ in t.nodes)]
        for tenant in here:
            self._unseat(tenant)
        self.table.drop(name)
        for tenant in here:
            self._seat(tenant)

    def locate(self, tenant: Tenant) -> None:
        """Find the rows of a tenant's nodes."""
        if tenant.layout == self.table.layout and tenant.rows is not NOWHERE:
            return  # who placed it said so
        known = self._located.get(id(tenant.nodes))
        if known is None or self._layout != self.table.layout:
            known = self._look_up(tenant.nodes)
        _, tenant.rows, tenant.counts, tenant.pods = known
        tenant.layout = self.table.layout

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

    def _seat(self, tenant: Tenant, *, fits: bool = False) -> None:
        self.locate(tenant)
        if len(tenant.rows) < len(tenant.nodes):
            for name, _ in tenant.nodes:
                if name not in self.table.row_of:
                    self._homeless.setdefault(name, {})[tenant] = None
        tenant.came = self.table.take(
            tenant.rows, tenant.counts, tenant.requests, pods=tenant.pods, fits=fits
        )
        if self.table.devices:
            self._share(tenant)

    def _unseat(self, tenant: Tenant) -> None:
        self.table.give_back(
            tenant.rows, tenant.counts, tenant.requests, pods=tenant.pods, came=tenant.came
        )
        tenant.came = None
        tenant.rows, tenant.counts = NOWHERE, NOBODY
        if tenant.shared is not None:
            give_back(self.table, tenant.shared, self.table.free)
            tenant.shared = None
            self.sharing -= 1

    def _share(self, tenant: Tenant) -> None:
        """Let pods take their parts of devices."""
        tenant.shared = parts_of(self.table, tenant)
        if tenant.shared is not None:
            take(self.table, tenant.shared, self.table.free)
            self.sharing += 1


def parts_of(table: NodeTable, tenant: Tenant) -> Shared | None:
    """Return the parts of devices that a tenant, whose rows are known, has; None without any."""
    if tenant.shared is not None or not table.devices:
        return tenant.shared
    wanted = share_in(tenant.requests)
    if wanted is None:
        return None
    rows = np.repeat(tenant.rows, tenant.counts).tolist()
    if not tenant.devices:
        return Shared(*wanted, rows, _anywhere(table, tenant, *wanted))
    table.open_devices(wanted[0], 1 + max(tenant.devices))
    before = 0
    devices: list[int] = []
    for name, count in tenant.nodes:
        if name in table.row_of:
            devices += tenant.devices[before : before + count]
        before += count
    return Shared(*wanted, rows, devices)


def _anywhere(table: NodeTable, tenant: Tenant, resource: ResourceName, milli: int) -> list[int]:
    """Choose devices for pods of which nobody says where they are: those of others, mostly."""
    chosen: list[int] = []
    room = rooms(table.free, table.devices[resource], tenant.rows).tolist()
    for free, pods in zip(room, tenant.counts.tolist(), strict=True):
        found = fullest_first(free, milli, pods)
        # Too many for the devices that there are: somebody put them there all the same.
        chosen += [*found, *[0] * (pods - len(found))]
    return chosen


def take(table: NodeTable, parts: Shared, free: Integers) -> None:
    """Take parts of devices, given what is free."""
    share(free, table.devices[parts.share], parts.rows, parts.devices, parts.milli)


def give_back(table: NodeTable, parts: Shared, free: Integers) -> None:
    """Undo `take`."""
    share(free, table.devices[parts.share], parts.rows, parts.devices, -parts.milli)
