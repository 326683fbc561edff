"""What a gang needs for which counting is enough: so much quota, and so many pods on nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unisono.engine.backfill.pod_room import PodRoom
from unisono.engine.model.explanation import Blocker, QuotaExhausted
from unisono.engine.model.names import FlavorName, QueueName, ResourceName
from unisono.engine.model.resources import Amounts, Usage
from unisono.engine.model.workload import Admission
from unisono.engine.placement.feasibility import Mask
from unisono.engine.state.node_table import Integers
from unisono.engine.state.quota_tree import Cell, available

Columns = tuple[tuple[int, int], ...]  # of the node table, and how much of each


@dataclass(slots=True, eq=False)
class Counted:
    """What has to be there for one gang of a group."""

    pods: int
    named: int  # pods that the admission names: those that are done stay in the count
    flavor: FlavorName
    flavors: tuple[tuple[ResourceName, FlavorName], ...]
    pod_set: str
    levels: tuple[str, ...]  # in whose order nodes are
    # Nothing tells one node from another but the room on it, and no check has to agree first.
    fills_holes: bool
    cells: tuple[tuple[Cell, int], ...]  # of quota, for all pods
    charges: Usage  # the same by account
    columns: Columns  # of nodes, for one pod
    requests: Amounts  # the same by name
    allowed: Mask  # which nodes
    room: PodRoom  # for such pods, on these nodes
    # How it is written down where there is one node: gangs of one kind share it.
    alone: Admission | None = None

    def has_quota(self) -> bool:
        """Say whether there is enough in every account."""
        for cell, amount in self.cells:  # noqa: SIM110  # asked of everybody who waits
            if amount > available(cell):
                return False
        return True

    def shortages(self, queue: QueueName) -> tuple[Blocker, ...]:
        """Return which accounts have too little."""
        return self.shortages_of(queue, {cell: available(cell) for cell, _ in self.cells})

    def shortages_of(self, queue: QueueName, left: dict[Cell, int]) -> tuple[Blocker, ...]:
        """Return which accounts have too little, if so much is left of them (or of the first)."""
        found = []
        for cell, amount in self.cells:
            room = max(0, left[cell] if cell in left else available(cell))
            if amount > room:
                found.append(
                    QuotaExhausted(
                        queue=queue,
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
        return int(self.capacities(free).sum()) >= self.pods

    def capacities(self, free: Integers) -> Integers:
        """Return how many pods each node takes, given what is free."""
        rows = self.allowed.shape[0]  # arrays may have room for more nodes than there are
        caps = capacities(free[:, :rows], self.columns)
        caps *= self.allowed
        return caps


def capacities(free: Integers | list[Integers], columns: Columns) -> Integers:
    """Return how many pods fit, given what is free of each resource."""
    (column, amount), *others = columns  # every pod takes at least its place
    caps: Integers = free[column] // amount
    for column, amount in others:
        np.minimum(caps, free[column] // amount, out=caps)
    np.maximum(caps, 0, out=caps)
    return caps


@dataclass(slots=True, frozen=True)
class Known:
    """What was found out about a shape, and about which picture of nodes and queues."""

    stamp: int
    counted: Counted | None
