"""Pods that come in blocks: every block of a slice inside one narrow domain (spec quota §14)."""

from __future__ import annotations

import numpy as np

from unisono.engine.model.node import HOSTNAME
from unisono.engine.placement.demand import Demand
from unisono.engine.placement.feasible import Capacity
from unisono.engine.placement.packing import Taken, descend, pack
from unisono.engine.state.node_table import Integers


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
        holding = capacity.caps[low:high] // size
        if int(holding.sum()) < blocks:
            return None
        chosen, shares = pack(holding, blocks)
        return chosen + low, shares * size
    narrow = capacity.view.levels[inner]
    first, last = int(narrow.domain_of[low]), int(narrow.domain_of[high - 1]) + 1
    holding = np.where(narrow.labelled, capacity.sums[inner], 0)[first:last] // size
    if int(holding.sum()) < blocks:
        return None
    chosen, shares = pack(holding, blocks)
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
