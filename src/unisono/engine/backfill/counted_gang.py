"""Counted gangs: equal pods that may go to any node that takes them, so that counting is enough.

Most gangs are of this kind. Whether one fits is a question of numbers only: so much quota in cells
of a queue outside any cohort, and so many pods on nodes. No order of nodes has to be tried, so that
a cycle tells at little cost which of hundreds of pending gangs fit.

Where a gang's pods also go best fit (smallest hole first), even its admission is written without a
nomination: a busy batch queue starts so many of them that flavors, topologies, victims and scores
would be most of the work. tests/engine/backfill/test_fast_path.py compares both ways.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import msgspec
import numpy as np

from unisono.engine.backfill.pod_capacity import Chosen, PodCapacity
from unisono.engine.model.explanation import Blocker, QuotaExhausted
from unisono.engine.model.names import (
    FlavorName,
    NodeName,
    QueueName,
    ResourceName,
    namespace_of,
)
from unisono.engine.model.queue import PreemptionRules
from unisono.engine.model.resources import Amounts, Usage
from unisono.engine.model.selection import label_map
from unisono.engine.model.workload import Admission, PodSet, PodSetAssignment
from unisono.engine.placement.demand import Constraint, constraint_for
from unisono.engine.placement.feasibility import Mask
from unisono.engine.placement.placement import placement_of
from unisono.engine.quota.flavors import eligible_flavors_of
from unisono.engine.state.change_journal import Columns
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.cluster_queue import ClusterQueueState
from unisono.engine.state.gang_request import GangRequest
from unisono.engine.state.node_table import Integers
from unisono.engine.state.nodes import NodeState
from unisono.engine.state.occupancy import PlacedPods
from unisono.engine.state.pending_queue import PendingWorkload
from unisono.engine.state.quota_tree import Cell, available, potential
from unisono.engine.state.timeline import Group
from unisono.engine.state.transaction import Starting

# An admission that was not booked yet, and what it will cq.
Offer = tuple[Admission, Starting]

_NO_RULES = PreemptionRules()
_CapacityKey = tuple[Constraint, Amounts, tuple[str, ...]]
# Sizes and requests of gangs come again and again; a bound all the same.
GANGS_KEPT = 1024
CAPACITIES_KEPT = 256


@dataclass(slots=True, eq=False)
class CountedGang:
    """What one gang of a group needs: so much quota, and so many pods on nodes.

    Flat, because a cycle reads it once for every pending group.
    """

    pods: int
    admission_count: int  # pods that the admission names: completed ones stay in the count
    flavor: FlavorName
    flavors: tuple[tuple[ResourceName, FlavorName], ...]
    pod_set: str
    levels: tuple[str, ...]  # of the topology that orders nodes
    # Nodes differ in nothing but free capacity, and no admission check has to agree first.
    is_best_fit: bool
    cells: tuple[tuple[Cell, int], ...]  # quota for all pods
    charges: Usage  # the same by flavor and resource
    columns: Columns  # of the node table, for one pod
    requests: Amounts  # the same by name
    allowed: Mask  # eligible nodes
    capacity: PodCapacity  # for such pods, on these nodes
    # The admission where the cluster has one node: gangs of one kind share it.
    single_node_admission: Admission | None = None

    def has_quota(self) -> bool:
        """Say whether every quota cell has enough left."""
        for cell, amount in self.cells:  # noqa: SIM110  # asked of every pending group
            if amount > available(cell):
                return False
        return True

    def shortages(self, queue: QueueName) -> tuple[Blocker, ...]:
        """Return which quota cells have too little left."""
        return self.shortages_of(queue, {cell: available(cell) for cell, _ in self.cells})

    def shortages_of(self, queue: QueueName, left: dict[Cell, int]) -> tuple[Blocker, ...]:
        """Return which quota cells have too little; `left` overrides what some have left."""
        found = []
        for cell, amount in self.cells:
            remaining = max(0, left[cell] if cell in left else available(cell))
            if amount > remaining:
                found.append(
                    QuotaExhausted(
                        queue=queue,
                        pod_set=self.pod_set,
                        flavor=self.flavor,
                        resource=cell.flavor_resource.resource,
                        wanted=amount,
                        available=remaining,
                    )
                )
        return tuple(found)

    def fits_on(self, free: Integers) -> bool:
        """Say whether nodes with so much free take all pods."""
        return int(self.pods_per_node(free).sum()) >= self.pods

    def pods_per_node(self, free: Integers) -> Integers:
        """Return how many pods each node takes, given what is free."""
        rows = self.allowed.shape[0]  # the table's arrays may be longer than it has nodes
        caps = pods_per_node(free[:, :rows], self.columns)
        caps *= self.allowed
        return caps


def pods_per_node(free: Integers | list[Integers], columns: Columns) -> Integers:
    """Return how many pods fit on each node, given what is free of each resource."""
    (column, amount), *others = columns  # never empty: every pod takes one of `pods`
    caps: Integers = free[column] // amount
    for column, amount in others:
        np.minimum(caps, free[column] // amount, out=caps)
    np.maximum(caps, 0, out=caps)
    return caps


# --- which gangs are counted ----------------------------------------------------------------------


@dataclass(slots=True, frozen=True)
class _Memo:
    """A counted gang, or that there is none, and the edition of nodes and queues it is true of."""

    stamp: int
    counted: CountedGang | None


class _CountedGangs:
    """Counted gangs of one queue by equivalence class, and one pod of each by pod set."""

    __slots__ = ("by_class", "by_pod_set")

    def __init__(self) -> None:
        self.by_class: dict[int, _Memo] = {}
        self.by_pod_set: dict[PodSet, _Memo] = {}


class _PodCapacities:
    """Capacity for pods of one kind, with the edition of the nodes that it is for."""

    __slots__ = ("by_pods",)

    def __init__(self) -> None:
        self.by_pods: dict[_CapacityKey, tuple[tuple[int, int], PodCapacity]] = {}


def _counted_gangs_of(cq: ClusterQueueState) -> _CountedGangs:
    memo = cq.derived.get(_CountedGangs)
    if memo is None:
        memo = cq.derived[_CountedGangs] = _CountedGangs()
    return memo  # type: ignore[return-value]  # derived values are kept by their type


def counted_gang(state: ClusterState, group: Group, waiting: PendingWorkload) -> CountedGang | None:
    """Return what a group's gangs need, if counting is enough for them."""
    if state.config.policy.reservations and state.reserved.concern(waiting.workload, state.now):
        return None  # which nodes it may use depends on when it starts
    stamp = stamp_of(state)
    if group.stamp == stamp:
        return group.counted  # type: ignore[return-value]  # as this function left it
    by_class = _counted_gangs_of(group.cq).by_class
    memo = by_class.get(waiting.request.number)
    if memo is None or memo.stamp != stamp or waiting.alone:
        memo = _Memo(stamp, _count(state, group, waiting, stamp))
        if len(by_class) >= GANGS_KEPT:
            by_class.clear()
        by_class[waiting.request.number] = memo
    group.stamp, group.counted = stamp, memo.counted
    return memo.counted


def stamp_of(state: ClusterState) -> int:
    """Return the edition of nodes and queues; each addend only ever grows, so the sum does."""
    table = state.nodes.table
    return state.config.edition + table.layout + table.traits.version


def _count(
    state: ClusterState, group: Group, waiting: PendingWorkload, stamp: int
) -> CountedGang | None:
    cq, request, workload = group.cq, waiting.request, waiting.workload
    nodes, table = state.nodes, state.nodes.table
    if len(request.pod_sets) != 1 or request.counts != request.minimums or not nodes.has_nodes:
        return None
    pod_set = request.pod_sets[0]
    if (
        pod_set.topology is not None
        or pod_set.host_ports
        or pod_set.affinity_to
        or pod_set.anti_affinity
        or pod_set.spread
        or workload.replaces is not None
        or workload.min_total is not None
        or cq.node.parent is not None
        or cq.spec.preemption != _NO_RULES
        or table.has_held_rows
        or nodes.occupancy.pod_index.has_rules
    ):
        return None
    # Gangs of many sizes have the same pods: all but the number is found out once.
    one_pod = msgspec.structs.replace(pod_set, count=1, min_count=None)
    by_pod_set = _counted_gangs_of(cq).by_pod_set
    memo = by_pod_set.get(one_pod)
    if memo is None or memo.stamp != stamp:
        memo = _Memo(stamp, _count_one(state, cq, request))
        if len(by_pod_set) >= GANGS_KEPT:
            by_pod_set.clear()
        by_pod_set[one_pod] = memo
    found = memo.counted
    if found is None:
        return None
    pods = request.counts[0]
    cells = tuple((cell, amount * pods) for cell, amount in found.cells if amount * pods)
    if any(amount > potential(cell) for cell, amount in cells):
        return None  # it never fits; a nomination explains that
    return CountedGang(
        pods=pods,
        admission_count=pod_set.count,
        flavor=found.flavor,
        flavors=found.flavors,
        pod_set=found.pod_set,
        levels=found.levels,
        is_best_fit=found.is_best_fit and pods > 0,
        cells=cells,
        charges=tuple((cell.flavor_resource, amount) for cell, amount in cells),
        columns=found.columns,
        requests=found.requests,
        allowed=found.allowed,
        capacity=found.capacity,
    )


def _count_one(
    state: ClusterState, cq: ClusterQueueState, request: GangRequest
) -> CountedGang | None:
    """Return what one pod needs of an equivalence class that has one pod set."""
    table, placement, pod_set = state.nodes.table, placement_of(state), request.pod_sets[0]
    eligible = eligible_flavors_of(cq, request, state.config)
    if eligible.refusals or any(len(choice.options) != 1 for choice in eligible.choices):
        return None
    options = [choice.options[0] for choice in eligible.choices]
    if not options or any(option.mismatch is not None for option in options):
        return None
    wanted: dict[Cell, int] = {}
    for option in options:
        for _, cell, per_pod in option.per_pod:
            wanted[cell] = wanted.get(cell, 0) + per_pod
    cells = tuple(wanted.items())
    flavors = tuple(state.config.flavors[option.flavor] for option in options)
    requests = pod_set.requests if pod_set.node_requests is None else pod_set.node_requests
    if any(amount and table.column(resource) is None for resource, amount in requests):
        return None  # no node has that resource; a nomination explains that
    constraint = constraint_for(pod_set, flavors)
    levels = placement.default_levels()
    capacity = _pod_capacity(state, constraint, requests, levels)
    scoring = state.policy.placement.scoring
    rules = state.policy.pods_ready
    return CountedGang(
        pods=1,
        admission_count=1,
        flavor=options[0].flavor,
        flavors=tuple(
            sorted(
                (resource, choice.options[0].flavor)
                for choice in eligible.choices
                for _, resource in choice.resources
            )
        ),
        pod_set=pod_set.name,
        levels=levels,
        is_best_fit=(
            not cq.spec.checks
            and not table.gpu_columns()
            and scoring in ("auto", "leftover", "spare", "none")
            and not any(flavor.topology for flavor in flavors)
            and placement.preference(constraint) is None
            and (rules is None or not rules.block_admission)
        ),
        cells=cells,
        charges=(),
        columns=table.columns_of(requests),
        requests=capacity.requests,  # one object for gangs of all sizes: compared by identity first
        allowed=placement.allowed(constraint),
        capacity=capacity,
    )


def _pod_capacity(
    state: ClusterState, constraint: Constraint, requests: Amounts, levels: tuple[str, ...]
) -> PodCapacity:
    """Return the capacity for such pods; gangs of any size share it."""
    table, memo = state.nodes.table, state.derived.get(_PodCapacities)
    if memo is None:
        memo = state.derived[_PodCapacities] = _PodCapacities()
    by_pods = cast("_PodCapacities", memo).by_pods
    stamp = (table.layout, table.traits.version)
    found = by_pods.get((constraint, requests, levels))
    if found is None or found[0] != stamp:
        if len(by_pods) >= CAPACITIES_KEPT:
            by_pods.clear()
        placement = placement_of(state)
        made = PodCapacity(
            table, requests, placement.allowed(constraint), placement.in_order(levels)
        )
        found = by_pods[constraint, requests, levels] = (stamp, made)
    return found[1]


# --- the admission of a counted gang --------------------------------------------------------------


def offer_on(
    nodes: NodeState,
    chosen: Chosen,
    waiting: PendingWorkload,
    cq: ClusterQueueState,
    counted: CountedGang,
) -> tuple[Admission, tuple[PlacedPods, ...]]:
    """Return the admission of a gang to nodes that were chosen for it, and its pods there."""
    rows, counts = chosen
    admission = counted.single_node_admission
    if admission is None:
        assigned = _assignment_of(nodes, chosen, counted)
        admission = Admission(queue=cq.spec.name, pod_sets=(assigned,))
        if counted.capacity.is_single:
            counted.single_node_admission = admission
    labels = waiting.workload.pod_sets[0].labels
    placed = PlacedPods(
        nodes=admission.pod_sets[0].nodes,
        requests=counted.requests,
        # Without labels no pod rule asks for the namespace.
        namespace=namespace_of(waiting.key) if labels else "",
        labels=label_map(labels) if labels else None,
        rows=rows,
        counts=counts,
        pods=counted.pods,
        layout=nodes.table.layout,
    )
    nodes.expect(waiting.key, admission, (placed,))
    return admission, (placed,)


def _assignment_of(nodes: NodeState, chosen: Chosen, counted: CountedGang) -> PodSetAssignment:
    rows, counts = chosen
    named: tuple[tuple[NodeName, int], ...]
    if counted.capacity.is_even:
        named = tuple(nodes.table.singles(rows))
    else:
        named = tuple(zip(nodes.table.names(rows), counts.tolist(), strict=True))
    return PodSetAssignment(
        name=counted.pod_set, count=counted.admission_count, flavors=counted.flavors, nodes=named
    )
