"""Gangs for which counting is enough: equal pods that may go to any node that takes them.

Most gangs are of this kind. Whether one of them fits is a question of numbers only: so much quota
in accounts that nobody else lends to, and so many pods on nodes. No order of nodes has to be tried,
so that hundreds who wait can be told from those who fit in no time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import msgspec
import numpy as np

from unisono.engine.backfill.need import Counted, Known
from unisono.engine.backfill.pod_room import PodRoom
from unisono.engine.model.queue import PreemptionRules
from unisono.engine.model.resources import Amounts
from unisono.engine.model.workload import PodSet
from unisono.engine.placement.demand import Constraint, constraint_for
from unisono.engine.placement.packing import fill
from unisono.engine.placement.placement import placement_of
from unisono.engine.quota.flavors import eligible_flavors_of
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.equivalence import Shape
from unisono.engine.state.node_table import Integers, NodeTable, Rows
from unisono.engine.state.pending_queue import Waiting
from unisono.engine.state.queue_book import QueueBook
from unisono.engine.state.quota_tree import Cell, potential
from unisono.engine.state.tenancy import give_back, parts_of
from unisono.engine.state.tenant import Tenant
from unisono.engine.state.timeline import Group
from unisono.engine.state.transaction import Booked

_NO_RULES = PreemptionRules()
RoomKey = tuple[Constraint, Amounts, tuple[str, ...]]
COUNTS_KEPT = 1024
ROOMS_KEPT = 256


class _Counts:
    """What gangs of one queue need, by equivalence class, and what one pod of each kind needs."""

    __slots__ = ("of_pod", "of_shape")

    def __init__(self) -> None:
        self.of_shape: dict[int, Known] = {}
        self.of_pod: dict[PodSet, Known] = {}


class _Rooms:
    """Room for pods of one kind (constraint, request, order of nodes), and for which nodes."""

    __slots__ = ("of_pod",)

    def __init__(self) -> None:
        self.of_pod: dict[RoomKey, tuple[tuple[int, int], PodRoom]] = {}


def _counts_of(book: QueueBook) -> _Counts:
    known = book.derived.get(_Counts)
    if known is None:
        known = book.derived[_Counts] = _Counts()
    return cast("_Counts", known)


def counted(state: ClusterState, group: Group, waiting: Waiting) -> Counted | None:
    """Return what a group's gangs need, if counting is enough for them."""
    if state.config.policy.reservations and state.reserved.concern(waiting.workload, state.now):
        return None  # which nodes there are is a question of when
    stamp = stamp_of(state)
    if group.stamp == stamp:
        return cast("Counted | None", group.counted)
    of_shape = _counts_of(group.book).of_shape
    known = of_shape.get(waiting.shape.number)
    if known is None or known.stamp != stamp or waiting.alone:
        known = Known(stamp, _count(state, group, waiting, stamp))
        if len(of_shape) >= COUNTS_KEPT:
            of_shape.clear()
        of_shape[waiting.shape.number] = known
    group.stamp, group.counted = stamp, known.counted
    return known.counted


def stamp_of(state: ClusterState) -> int:
    """Return which picture of nodes and queues there is now: all of these only ever grow."""
    table = state.nodes.table
    return state.config.edition + table.layout + table.traits.version


def _count(state: ClusterState, group: Group, waiting: Waiting, stamp: int) -> Counted | None:
    book, shape, workload = group.book, waiting.shape, waiting.workload
    nodes, table = state.nodes, state.nodes.table
    if len(shape.pod_sets) != 1 or shape.counts != shape.minimums or not nodes.has_nodes:
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
        or nodes.tenancy.pod_index.has_rules
    ):
        return None
    # Gangs of many sizes are of the same pods: all but the number is found out once.
    alike = msgspec.structs.replace(pod_set, count=1, min_count=None)
    of_pod = _counts_of(book).of_pod
    one = of_pod.get(alike)
    if one is None or one.stamp != stamp:
        one = Known(stamp, _count_one(state, book, shape))
        if len(of_pod) >= COUNTS_KEPT:
            of_pod.clear()
        of_pod[alike] = one
    found = one.counted
    if found is None:
        return None
    pods = shape.counts[0]
    cells = tuple((cell, amount * pods) for cell, amount in found.cells if amount * pods)
    if any(amount > potential(cell) for cell, amount in cells):
        return None  # it never fits; that is explained elsewhere
    return Counted(
        pods=pods,
        named=pod_set.count,
        flavor=found.flavor,
        flavors=found.flavors,
        pod_set=found.pod_set,
        levels=found.levels,
        fills_holes=found.fills_holes and pods > 0,
        cells=cells,
        charges=tuple((cell.account, amount) for cell, amount in cells),
        columns=found.columns,
        requests=found.requests,
        allowed=found.allowed,
        room=found.room,
    )


def _count_one(state: ClusterState, book: QueueBook, shape: Shape) -> Counted | None:
    """Return what one pod of a shape that has one pod set needs."""
    table, placement, pod_set = state.nodes.table, placement_of(state), shape.pod_sets[0]
    eligible = eligible_flavors_of(book, shape, state.config)
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
        return None  # no node has that; it is explained elsewhere
    constraint = constraint_for(pod_set, flavors)
    levels = placement.default_levels()
    room = _room(state, constraint, requests, levels)
    scoring = state.policy.placement.scoring
    rules = state.policy.pods_ready
    return Counted(
        pods=1,
        named=1,
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
        fills_holes=(
            not book.spec.checks
            and not table.gpu_columns()
            and scoring in ("auto", "leftover", "spare", "none")
            and not any(flavor.topology for flavor in flavors)
            and placement.preference(constraint) is None
            and (rules is None or not rules.block_admission)
        ),
        cells=cells,
        charges=(),
        columns=table.columns_of(requests),
        requests=room.requests,  # the very same for gangs of all sizes
        allowed=placement.allowed(constraint),
        room=room,
    )


def _room(
    state: ClusterState, constraint: Constraint, requests: Amounts, levels: tuple[str, ...]
) -> PodRoom:
    """Return the room for such pods; gangs of any size share it."""
    table, kept = state.nodes.table, state.derived.get(_Rooms)
    if kept is None:
        kept = state.derived[_Rooms] = _Rooms()
    rooms = cast("_Rooms", kept).of_pod
    stamp = (table.layout, table.traits.version)
    known = rooms.get((constraint, requests, levels))
    if known is None or known[0] != stamp:
        if len(rooms) >= ROOMS_KEPT:
            rooms.clear()
        at = placement_of(state)
        made = PodRoom(table, requests, at.allowed(constraint), at.in_order(levels))
        known = rooms[constraint, requests, levels] = (stamp, made)
    return known[1]


def fill_holes(caps: Integers, pods: int) -> tuple[Rows, Integers] | None:
    """Fill holes, as the placer does for pods that no score tells apart; in order of nodes."""
    if int(caps.max(initial=0)) == 1:  # no hole is smaller than another
        chosen = caps.nonzero()[0][:pods]
        return (chosen, np.ones(pods, np.int64)) if chosen.shape[0] == pods else None
    if int(caps.sum()) < pods:
        return None
    chosen, counts = fill(caps, pods)
    order = np.argsort(chosen)
    return chosen[order], counts[order]


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
        for column, amount in table.columns_of(requests):
            np.add.at(after[column], rows, pods * amount)
        for tenant in tenants:
            if (parts := parts_of(table, tenant)) is not None:
                give_back(table, parts, after)
    return after
