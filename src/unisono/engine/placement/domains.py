"""Which domains of a level could hold a group of demands, and in which order to try them.

Preferred nodes first, then (for elastic demands) where most pods find room, then the domain with
the least to spare; every tie ends at the domain's position. Spec placement §8.4.

A domain may hold each of several demands alone and yet not all of them: `Together` compares the sum
of what they ask for, without placing anything. Pods that come in blocks need each block inside one
narrow domain (spec quota §14): `whole_slices` counts and `place_slices` places them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unisono.engine.model.names import ResourceName
from unisono.engine.model.node import HOSTNAME
from unisono.engine.model.resources import is_gpu
from unisono.engine.placement.demand import Demand
from unisono.engine.placement.feasibility import Capacity, Feasibility, Mask
from unisono.engine.placement.packing import Score, Taken, descend, pack
from unisono.engine.placement.topology import View
from unisono.engine.state.node_table import Integers, Rows

# Domains that are tried at each level before going up. With one demand the first always succeeds;
# with several, the sixteen tightest cover practically every case (spec placement §8.6).
MOST_DOMAINS = 16


def candidate_domains(
    group: tuple[Demand, ...],
    capacities: list[Capacity],
    level: int,
    bonus: Integers | None,
    score: Score | None,
    together: Together | None,
) -> Iterator[tuple[int, int]]:
    """Yield slices of positions, best first. `level` beyond the last one means single nodes.

    Between two of them nodes may be taken, but have to be given back.
    """
    view = capacities[0].view
    if level >= len(view.levels):
        for node in _nodes(group, capacities, bonus, score, together):
            yield node, node + 1
        return
    here = view.levels[level]
    held_by_domain = _capacity_by_domain(group, capacities, level)
    domains = _that_hold_each(group, held_by_domain)
    domains = domains[here.labelled[domains]]
    if together is not None and domains.shape[0]:
        domains = domains[together.gpus_in(domains, level)]
    if not domains.shape[0]:
        return
    keys = _keys(group, capacities[0], held_by_domain, level, domains, bonus)
    best: list[int] = domains[_best(keys)].tolist()
    passed_over = 0
    for domain in best:
        low, high = int(here.starts[domain]), int(here.ends[domain])
        if together is None or together.others_within(low, high):
            yield low, high
        else:
            passed_over += 1
    if together is not None and passed_over and len(best) < domains.shape[0]:
        # Those that never had a chance do not count among the few: others come instead.
        able = together.others_in(domains, level)
        instead = domains[able][_best([key[able] for key in keys])]
        for domain in instead[~np.isin(instead, best)].tolist():
            yield int(here.starts[domain]), int(here.ends[domain])


def _nodes(
    group: tuple[Demand, ...],
    capacities: list[Capacity],
    bonus: Integers | None,
    score: Score | None,
    together: Together | None,
) -> list[int]:
    """Return the positions of the best single nodes."""
    lead, capacity = group[0], capacities[0]
    if not _some_node_holds_each(group, capacities):
        return []
    is_fixed = len(group) == 1 and lead.most == lead.least
    if is_fixed and lead.slice_size <= 1 and bonus is None and capacity.histogram is not None:
        return _tightest_node(capacity, capacity.histogram, max(1, lead.least), score)
    level = len(capacity.view.levels)
    held_by_domain = _capacity_by_domain(group, capacities, level)
    nodes = _that_hold_each(group, held_by_domain)
    if together is not None:
        nodes = nodes[together.on_nodes(nodes)]
    if not nodes.shape[0]:
        return []
    keys = _keys(group, capacity, held_by_domain, level, nodes, bonus)
    if is_fixed and score is not None:
        # It decides among nodes that are equally tight and equally preferred.
        nodes = nodes[_equally_good(keys)]
        keys = [score(nodes)]
    found: list[int] = nodes[_best(keys)].tolist()
    return found


def _some_node_holds_each(group: tuple[Demand, ...], capacities: list[Capacity]) -> bool:
    """Say, without looking at nodes, whether for each demand there may be one that holds it."""
    return all(
        held.histogram is None or bool(held.histogram[demand.needed :].any())
        for demand, held in zip(group, capacities, strict=True)
    )


def _tightest_node(
    capacity: Capacity, histogram: Integers, need: int, score: Score | None
) -> list[int]:
    """Return the best node for one plain demand of fixed size: it fits into whatever holds it.

    The histogram says how much the tightest node holds, so that only its equals are looked at.
    """
    sizes = histogram[need:].nonzero()[0]
    if not sizes.shape[0]:
        return []
    nodes = (capacity.caps == need + int(sizes[0])).nonzero()[0]
    return [int(nodes[0] if score is None else nodes[score(nodes).argmin()])]


def _capacity_by_domain(
    group: tuple[Demand, ...], capacities: list[Capacity], level: int
) -> list[Integers]:
    """Return for each demand how many pods the domains of a level hold."""
    return [
        whole_slices(held, demand, level) for demand, held in zip(group, capacities, strict=True)
    ]


def _that_hold_each(group: tuple[Demand, ...], held_by_domain: list[Integers]) -> Rows:
    """Return the domains that hold each demand; those that hold no pod at all are of no use."""
    needed = [(demand.needed, held) for demand, held in zip(group, held_by_domain, strict=True)]
    wanting = [(need, held) for need, held in needed if need]
    if not wanting:
        useful: Rows = np.any([held > 0 for held in held_by_domain], axis=0).nonzero()[0]
        return useful
    need, held = wanting[0]
    domains = (held >= need).nonzero()[0]
    for need, held in wanting[1:]:
        domains = domains[held[domains] >= need]
    return domains


def _keys(
    group: tuple[Demand, ...],
    capacity: Capacity,
    held_by_domain: list[Integers],
    level: int,
    domains: Rows,
    bonus: Integers | None,
) -> list[Integers]:
    """Return sort keys, the least important first (as lexsort wants them)."""
    keys: list[Integers] = [held_by_domain[0][domains] - group[0].needed]
    if any(demand.most > demand.least for demand in group):
        reachable = sum(
            np.minimum(held[domains], demand.most)
            for demand, held in zip(group, held_by_domain, strict=True)
        )
        keys.append(-np.asarray(reachable))
    if bonus is not None:
        keys.append(-_domain_bonus(capacity, level, bonus)[domains])
    return keys


def _equally_good(keys: list[Integers]) -> Rows:
    """Return the indices of those that no key tells from the best."""
    near = np.arange(keys[0].shape[0])
    for key in reversed(keys):
        near = near[key[near] == key[near].min()]
    return near


def _best(keys: list[Integers]) -> Rows:
    """Return the indices of the few smallest, in order; what is left of a tie goes by index."""
    near = np.arange(keys[0].shape[0])
    if near.shape[0] > MOST_DOMAINS:  # to find the few is cheaper than to sort all
        limit = np.partition(keys[-1], MOST_DOMAINS - 1)[MOST_DOMAINS - 1]
        near = (keys[-1] <= limit).nonzero()[0]
    ranked: Rows = near[np.lexsort([key[near] for key in keys])[:MOST_DOMAINS]]
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


# --- several demands -----------------------------------------------------------------------------


class Together:
    """The sum of what a group of demands needs, resource by resource."""

    def __init__(self, group: tuple[Demand, ...], feasibility: Feasibility, view: View) -> None:
        self._feasibility = feasibility
        self._view = view
        self._gpus: dict[ResourceName, int] = {}
        self._others: dict[ResourceName, int] = {}
        for demand in group:
            for resource, amount in demand.requests:
                # What no node has is left to the demand that wants it.
                if amount and demand.least and feasibility.table.column(resource) is not None:
                    totals = self._gpus if is_gpu(resource) else self._others
                    totals[resource] = totals.get(resource, 0) + amount * demand.least

    def on_nodes(self, nodes: Rows) -> Mask:
        """Say for single nodes (by position) whether they have enough of everything."""
        table, rows = self._feasibility.table, self._view.rows[nodes]
        enough = np.ones(nodes.shape[0], np.bool_)
        for resource, total in (*self._gpus.items(), *self._others.items()):
            enough &= table.free_of(table.resources[resource])[rows] >= total
        return enough

    def gpus_in(self, domains: Rows, level: int) -> Mask:
        """Say for domains whether they have enough GPUs."""
        return self._enough(self._gpus, domains, level)

    def others_in(self, domains: Rows, level: int) -> Mask:
        """Say for domains whether they have enough of everything else."""
        return self._enough(self._others, domains, level)

    def others_within(self, low: int, high: int) -> bool:
        """Say whether positions [low, high) have enough of everything else."""
        table, rows = self._feasibility.table, self._view.rows[low:high]
        return all(
            int(np.maximum(table.free_of(table.resources[resource])[rows], 0).sum()) >= total
            for resource, total in self._others.items()
        )

    def _enough(self, totals: dict[ResourceName, int], domains: Rows, level: int) -> Mask:
        enough = np.ones(domains.shape[0], np.bool_)
        for resource, total in totals.items():
            free = self._feasibility.free(resource, self._view.keys)
            enough &= free.sums[level][domains] >= total
        return enough


# --- pods in blocks ------------------------------------------------------------------------------


def whole_slices(capacity: Capacity, demand: Demand, level: int) -> Integers:
    """Return how many pods each domain of a level holds, in whole blocks if the demand has any."""
    at_node = level >= len(capacity.view.levels)
    if demand.slice_size <= 1:
        return capacity.caps if at_node else capacity.sums[level]
    inner = _slice_level(capacity, demand)
    if inner is None:
        blocks = capacity.caps // demand.slice_size * demand.slice_size
        if at_node:
            return blocks
        return np.add.reduceat(blocks, capacity.view.levels[level].starts)
    narrow = capacity.view.levels[inner]
    blocks = capacity.sums[inner] // demand.slice_size * demand.slice_size
    blocks = np.where(narrow.labelled, blocks, 0)
    if at_node or level > inner:  # a block does not fit into less than its own domain
        return np.zeros_like(capacity.caps if at_node else capacity.sums[level])
    outer = capacity.view.levels[level]
    parents = outer.domain_of[narrow.starts]
    held = np.bincount(parents, weights=blocks, minlength=outer.starts.shape[0])
    return held.astype(np.int64)


def place_slices(capacity: Capacity, demand: Demand, low: int, high: int) -> Taken | None:
    """Place a demand inside [low, high) so that each block of pods stays in one slice domain."""
    size = demand.slice_size
    blocks = demand.needed // size
    if demand.needed > demand.most:
        return None  # a block is whole or it is none
    if low == high:
        return None  # there is no node yet: all of them have to be bought
    inner = _slice_level(capacity, demand)
    if inner is None:
        slots = capacity.caps[low:high] // size
        if int(slots.sum()) < blocks:
            return None
        chosen, shares = pack(slots, blocks)
        return chosen + low, shares * size
    narrow = capacity.view.levels[inner]
    first, last = int(narrow.domain_of[low]), int(narrow.domain_of[high - 1]) + 1
    slots = np.where(narrow.labelled, capacity.sums[inner], 0)[first:last] // size
    if int(slots.sum()) < blocks:
        return None
    chosen, shares = pack(slots, blocks)
    parts = []
    for child, share in zip((chosen + first).tolist(), shares.tolist(), strict=True):
        start, end = int(narrow.starts[child]), int(narrow.ends[child])
        parts.append(descend(capacity, start, end, inner + 1, share * size, None))
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def _slice_level(capacity: Capacity, demand: Demand) -> int | None:
    """Return the level whose domains hold one block each; None means single nodes."""
    if demand.slice_level in ("", HOSTNAME):
        return None
    return capacity.view.keys.index(demand.slice_level)
