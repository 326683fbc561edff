"""Distributing pods over siblings: the few vector steps that every placement is made of.

*pack* keeps pods together: whole siblings, largest first, and for the rest the smallest one that
still holds it. *fill* uses up small holes first. Both take capacities in position order and break
every tie by a score (lower is better) and then by position. Spec placement §8.5.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unisono.engine.place.feasible import Capacity
from unisono.engine.state.node_table import Integers, Rows

Taken = tuple[Rows, Integers]  # positions, and how many pods on each
# Scores of positions, worked out only for those that are compared.
Score = Callable[[Rows], Integers]


def pack(caps: Integers, need: int, score: Score | None = None, offset: int = 0) -> Taken:
    """Choose as few siblings as possible for `need` pods (there is room for that many).

    >>> pack(np.array([3, 8, 5]), 10)
    (array([1, 0]), array([8, 2]))
    """
    positions = np.arange(caps.shape[0])
    tie = positions if score is None else score(positions + offset)
    order = np.lexsort((positions, tie, -caps))
    reach = np.cumsum(caps[order])
    whole = int(np.searchsorted(reach, need))
    rest = need - (int(reach[whole - 1]) if whole else 0)
    left = order[whole:]
    holding = left[caps[left] >= rest]
    tightest = holding[caps[holding] == caps[holding].min()]
    tail = tightest[np.lexsort((tightest, tie[tightest]))[0]]
    chosen = np.append(order[:whole], tail)
    counts = np.append(caps[order[:whole]], rest)
    return chosen, counts


def fill(caps: Integers, need: int, score: Score | None = None) -> Taken:
    """Choose siblings with the least room first, until `need` pods have a place.

    >>> fill(np.array([2, 1, 0, 1]), 3)
    (array([1, 3, 0]), array([1, 1, 1]))
    """
    there = np.flatnonzero(caps)
    room = caps[there]
    if there.shape[0] > need:
        # Every sibling takes at least one pod, so no more than `need` of them can be wanted.
        limit = np.partition(room, need - 1)[need - 1]
        near = room <= limit
        there, room = there[near], room[near]
    tie = there if score is None else score(there)
    order = np.lexsort((there, tie, room))
    reach = np.cumsum(room[order])
    last = int(np.searchsorted(reach, need))
    chosen = there[order[: last + 1]]
    counts = room[order[: last + 1]].copy()
    counts[last] -= int(reach[last]) - need
    return chosen, counts


def descend(
    capacity: Capacity, low: int, high: int, level: int, need: int, score: Score | None
) -> Taken:
    """Pack `need` pods into positions [low, high), level by level: few domains, then few nodes."""
    levels = capacity.view.levels
    if level >= len(levels):
        chosen, counts = pack(capacity.caps[low:high], need, score, low)
        return chosen + low, counts
    here = levels[level]
    first = int(here.domain_of[low])
    last = int(here.domain_of[high - 1]) + 1
    if last - first == 1:
        return descend(capacity, low, high, level + 1, need, score)
    children, shares = pack(capacity.sums[level][first:last], need)
    parts = []
    for child, share in zip((children + first).tolist(), shares.tolist(), strict=True):
        start, end = int(here.starts[child]), int(here.ends[child])
        if share == int(capacity.sums[level][child]):
            taken = np.flatnonzero(capacity.caps[start:end]) + start
            parts.append((taken, capacity.caps[taken]))
        else:
            parts.append(descend(capacity, start, end, level + 1, share, score))
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
