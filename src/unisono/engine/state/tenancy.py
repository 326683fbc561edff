"""Who sits where: pods of workloads (and of others) on nodes.

A tenant is the pods of one template that one workload (or somebody else) has on nodes. Occupying
and vacating are exact inverses, so a cycle can let tenants leave and come back as it tries things.
Nodes may come and go under their tenants: what sits on a node that is not there is remembered and
counted again when the node returns.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from unisono.engine.model.names import NodeName
from unisono.engine.model.node import HostPort, Node, PodRule
from unisono.engine.model.resources import Amounts
from unisono.engine.place.crowd import Crowd, Members
from unisono.engine.state.node_table import Integers, NodeTable, Rows


@dataclass(slots=True, eq=False)
class Tenant:
    """Pods of one template, and the nodes they are on."""

    nodes: tuple[tuple[NodeName, int], ...]
    requests: Amounts
    namespace: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    host_ports: tuple[HostPort, ...] = ()
    anti_affinity: tuple[PodRule, ...] = ()
    rows: Rows = field(default_factory=lambda: np.zeros(0, np.intp))
    counts: Integers = field(default_factory=lambda: np.zeros(0, np.int64))


class Tenancy:
    """All tenants, kept in step with the node table."""

    def __init__(self, table: NodeTable, crowd: Crowd) -> None:
        self.table = table
        self.crowd = crowd
        self.moves = 0  # grows when somebody comes or goes, or a node changes
        self._tenants: dict[Tenant, None] = {}
        self._homeless: dict[NodeName, dict[Tenant, None]] = {}

    def occupy(self, tenant: Tenant) -> None:
        """Let pods sit on their nodes."""
        self.moves += 1
        self._tenants[tenant] = None
        self._seat(tenant)
        self.crowd.join(
            tenant,
            Members(
                tenant.namespace,
                tenant.labels,
                tenant.host_ports,
                tenant.anti_affinity,
                dict(tenant.nodes),
            ),
        )

    def vacate(self, tenant: Tenant) -> None:
        """Take pods off their nodes."""
        self.moves += 1
        del self._tenants[tenant]
        self._unseat(tenant)
        self.crowd.leave(tenant)
        for name, _ in tenant.nodes:
            waiting = self._homeless.get(name)
            if waiting is not None:
                waiting.pop(tenant, None)
                if not waiting:
                    del self._homeless[name]

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
        row_of = self.table.row_of
        there = [(row_of[name], count) for name, count in tenant.nodes if name in row_of]
        tenant.rows = np.array([row for row, _ in there], np.intp)
        tenant.counts = np.array([count for _, count in there], np.int64)

    def _seat(self, tenant: Tenant) -> None:
        self.locate(tenant)
        if tenant.rows.shape[0] < len(tenant.nodes):
            for name, _ in tenant.nodes:
                if name not in self.table.row_of:
                    self._homeless.setdefault(name, {})[tenant] = None
        self.table.take(tenant.rows, tenant.counts, tenant.requests)

    def _unseat(self, tenant: Tenant) -> None:
        self.table.give_back(tenant.rows, tenant.counts, tenant.requests)
        tenant.rows = np.zeros(0, np.intp)
        tenant.counts = np.zeros(0, np.int64)
