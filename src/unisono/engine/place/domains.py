"""Which domains of a level could hold a group of demands, and in which order to try them.

Preferred nodes first, then (for elastic demands) where most pods find room, then the domain with
the least to spare; every tie ends at the domain's position. Spec placement §8.4.
"""

from __future__ import annotations

import numpy as np

from unisono.engine.model.names import ResourceName
from unisono.engine.place.demand import Demand
from unisono.engine.place.feasible import Capacity
from unisono.engine.place.packing import Score
from unisono.engine.place.slices import whole_slices
from unisono.engine.state.node_table import Integers, NodeTable, Rows

# Domains that are tried at each level before going up. With one demand the first always succeeds;
# with several, the sixteen tightest cover practically every case (spec placement §8.6).
MOST_DOMAINS = 16


def candidate_domains(
    group: tuple[Demand, ...],
    capacities: list[Capacity],
    level: int,
    table: NodeTable,
    bonus: Integers | None,
    score: Score | None,
) -> list[tuple[int, int]]:
    """Return slices of positions, best first. `level` beyond the last one means single nodes."""
    view = capacities[0].view
    at_node = level >= len(view.levels)
    room = [
        whole_slices(capacity, demand, level)
        for demand, capacity in zip(group, capacities, strict=True)
    ]
    open_ = np.ones(room[0].shape[0], np.bool_)
    useful = np.zeros(room[0].shape[0], np.bool_)
    for demand, sums in zip(group, room, strict=True):
        open_ &= sums >= demand.needed
        useful |= sums > 0
    open_ &= useful
    if not at_node:
        open_ &= view.levels[level].labelled
    candidates = np.flatnonzero(open_)
    if len(group) > 1 and candidates.shape[0]:
        candidates = _jointly(group, capacities[0], level, table, candidates)
    if not candidates.shape[0]:
        return []
    order = candidates[np.lexsort(_keys(group, capacities[0], room, level, candidates, bonus))]
    if at_node and score is not None and len(group) == 1:
        order = _by_score(order, room[0], group[0], bonus, capacities[0], score)
    chosen = order[:MOST_DOMAINS].tolist()
    if at_node:
        return [(position, position + 1) for position in chosen]
    here = view.levels[level]
    return [(int(here.starts[domain]), int(here.ends[domain])) for domain in chosen]


def _keys(
    group: tuple[Demand, ...],
    capacity: Capacity,
    room: list[Integers],
    level: int,
    candidates: Rows,
    bonus: Integers | None,
) -> tuple[Integers | Rows, ...]:
    """Return sort keys, the least important first (as lexsort wants them)."""
    keys: list[Integers | Rows] = [candidates, room[0][candidates] - group[0].needed]
    if any(demand.most > demand.least for demand in group):
        reachable = sum(
            np.minimum(sums[candidates], demand.most)
            for demand, sums in zip(group, room, strict=True)
        )
        keys.append(-np.asarray(reachable))
    if bonus is not None:
        keys.append(-_domain_bonus(capacity, level, bonus)[candidates])
    return tuple(keys)


def _by_score(
    order: Rows,
    room: Integers,
    demand: Demand,
    bonus: Integers | None,
    capacity: Capacity,
    score: Score,
) -> Rows:
    """Let the score decide among single nodes that are equally tight (and equally preferred)."""
    if demand.most > demand.least:
        return order
    best = order[0]
    equal = room[order] == room[best]
    if bonus is not None:
        liked = bonus[capacity.view.rows]
        equal &= liked[order] == liked[best]
    rivals = order[equal]
    ranked: Rows = rivals[np.lexsort((rivals, score(rivals)))]
    return ranked


def _domain_bonus(capacity: Capacity, level: int, bonus: Integers) -> Integers:
    """Return how much a domain is preferred: the mean over the pods it could take."""
    liked = bonus[capacity.view.rows]
    if level >= len(capacity.view.levels):
        return liked
    starts = capacity.view.levels[level].starts
    total: Integers = np.add.reduceat(liked * capacity.caps, starts)
    mean: Integers = total // np.maximum(capacity.sums[level], 1)
    return mean


def _jointly(
    group: tuple[Demand, ...],
    capacity: Capacity,
    level: int,
    table: NodeTable,
    candidates: Rows,
) -> Rows:
    """Drop domains that hold each demand alone, but not even the sum of what all ask for."""
    view = capacity.view
    totals: dict[ResourceName, int] = {}
    for demand in group:
        for resource, amount in demand.requests:
            totals[resource] = totals.get(resource, 0) + amount * demand.least
    for resource, total in totals.items():
        column = table.column(resource)
        if column is None or not total:
            continue
        free = np.maximum(table.free[column, view.rows], 0)
        if level < len(view.levels):
            free = np.add.reduceat(free, view.levels[level].starts)
        candidates = candidates[free[candidates] >= total]
    return candidates
