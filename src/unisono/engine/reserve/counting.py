"""Gangs for which counting is enough: equal pods that may go to any node that takes them.

Most gangs are of this kind. Whether one of them fits is a question of numbers only: so much quota
in accounts that nobody else lends to, and so many pods on nodes. No order of nodes has to be tried,
so that hundreds who wait can be told from those who fit in no time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from unisono.engine.ledger import Booked
from unisono.engine.model.explanation import Blocker, QuotaExhausted
from unisono.engine.model.names import PODS, FlavorName
from unisono.engine.model.queue import PreemptionRules
from unisono.engine.model.resources import Amounts
from unisono.engine.nominate import menu_of
from unisono.engine.order.lines import Waiting
from unisono.engine.place.demand import constraint_for
from unisono.engine.place.feasible import Mask
from unisono.engine.quota.tree import Cell, available, potential
from unisono.engine.reserve.agenda import Group
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.node_table import Integers, NodeTable
from unisono.engine.state.tenancy import Tenant

_NO_RULES = PreemptionRules()


@dataclass(slots=True, eq=False)
class Counted:
    """What has to be there for one gang of a group."""

    pods: int
    flavor: FlavorName
    pod_set: str
    cells: tuple[tuple[Cell, int], ...]  # of quota, for all pods
    columns: tuple[tuple[int, int], ...]  # of nodes, for one pod
    allowed: Mask  # which nodes

    def has_quota(self) -> bool:
        """Say whether there is enough in every account."""
        return all(amount <= available(cell) for cell, amount in self.cells)

    def shortages(self, group: Group) -> tuple[Blocker, ...]:
        """Return which accounts have too little."""
        found = []
        for cell, amount in self.cells:
            room = max(0, available(cell))
            if amount > room:
                found.append(
                    QuotaExhausted(
                        queue=group.book.spec.name,
                        pod_set=self.pod_set,
                        flavor=self.flavor,
                        resource=cell.account.resource,
                        wanted=amount,
                        available=room,
                    )
                )
        return tuple(found)

    def fits_on(self, free: Integers) -> bool:
        """Say whether nodes with so much free take all pods."""
        rows = self.allowed.shape[0]  # arrays may have room for more nodes than there are
        caps: Integers | None = None
        for column, amount in self.columns:
            here = free[column, :rows]
            room = here if amount == 1 else here // amount
            caps = room.copy() if caps is None else np.minimum(caps, room, out=caps)
        if caps is None:
            return True
        return int(np.maximum(caps, 0, out=caps) @ self.allowed) >= self.pods


def counted(state: ClusterState, group: Group, waiting: Waiting) -> Counted | None:
    """Return what a group's gangs need, if counting is enough for them."""
    table = state.floor.table
    stamp = (state.config.edition, table.layout, table.traits.version)
    if group.stamp != stamp:
        group.stamp = stamp
        group.counted = _count(state, group, waiting)
    return group.counted if isinstance(group.counted, Counted) else None


def _count(state: ClusterState, group: Group, waiting: Waiting) -> Counted | None:
    book, shape, workload = group.book, waiting.shape, waiting.workload
    table, floor = state.floor.table, state.floor
    if len(shape.pod_sets) != 1 or shape.counts != shape.minimums or not floor.has_nodes:
        return None
    pod_set = shape.pod_sets[0]
    if (
        pod_set.topology is not None
        or pod_set.host_ports
        or pod_set.affinity_to
        or pod_set.anti_affinity
        or pod_set.spread
        or workload.replaces is not None
        or workload.min_total is not None
        or book.node.parent is not None
        or book.spec.preemption != _NO_RULES
        or table.has_held_rows
        or floor.tenancy.crowd.has_rules
    ):
        return None
    menu = menu_of(state, book, shape)
    if menu.refusals or any(len(choice.options) != 1 for choice in menu.choices):
        return None
    options = [choice.options[0] for choice in menu.choices]
    if not options or any(option.mismatch is not None for option in options):
        return None
    wanted: dict[Cell, int] = {}
    for option in options:
        for _, cell, per_pod in option.per_pod:
            wanted[cell] = wanted.get(cell, 0) + per_pod * shape.counts[0]
    cells = tuple((cell, amount) for cell, amount in wanted.items() if amount)
    if any(amount > potential(cell) for cell, amount in cells):
        return None  # it never fits; that is explained elsewhere
    flavors = tuple(state.config.flavors[option.flavor] for option in options)
    requests = pod_set.requests if pod_set.node_requests is None else pod_set.node_requests
    columns = _columns(requests, table)
    if columns is None:
        return None
    return Counted(
        pods=shape.counts[0],
        flavor=options[0].flavor,
        pod_set=pod_set.name,
        cells=cells,
        columns=columns,
        allowed=floor.allowed(constraint_for(pod_set, flavors)),
    )


def _columns(requests: Amounts, table: NodeTable) -> tuple[tuple[int, int], ...] | None:
    found = []
    for resource, amount in {PODS: 1, **dict(requests)}.items():
        column = table.column(resource)
        if amount > 0:
            if column is None:
                return None
            found.append((column, amount))
    return tuple(found)


def given_back(free: Integers, table: NodeTable, gone: Iterable[Booked]) -> Integers:
    """Return what is free once these have left their nodes."""
    after = free.copy()
    alike: dict[Amounts, list[Tenant]] = {}
    for booked in gone:
        for tenant in booked.tenants:
            alike.setdefault(tenant.requests, []).append(tenant)
    for requests, tenants in alike.items():
        rows = np.concatenate([tenant.rows for tenant in tenants])
        pods = np.concatenate([tenant.counts for tenant in tenants])
        for resource, amount in {PODS: 1, **dict(requests)}.items():
            column = table.column(resource)
            if column is not None and amount:
                np.add.at(after[column], rows, pods * amount)
    return after
