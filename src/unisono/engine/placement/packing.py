"""Distributing pods over siblings: the few vector steps that every placement is made of.

*pack* keeps pods together: whole siblings, largest first, and for the rest the smallest one that
still holds it. *fill* uses up small holes first. Both take capacities in position order and break
every tie by a score (lower is better) and then by position. Spec placement §8.5.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unisono.engine.placement.feasibility import Capacity
from unisono.engine.state.node_table import Integers, Rows

Taken = tuple[Rows, Integers]  # positions, and how many pods on each
# Scores of positions, worked out only for those that are compared.
Score = Callable[[Rows], Integers]


def pack(caps: Integers, need: int, score: Score | None = None, offset: int = 0) -> Taken:
    """Choose as few siblings as possible for `need` pods (there is room for that many).

    >>> pack(np.array([3, 8, 5]), 10)
    (array([1, 0]), array([8, 2]))
    """
    most = int(np.maximum.reduce(caps, initial=0))
    if score is None and need <= most:
        return _tightest(caps, need, most), np.array([need], caps.dtype)
    if score is None and most:
        taken = _pack_full(caps, need, most)
        if taken is not None:
            return taken
    falling = -caps
    if score is None:
        order = falling.argsort(kind="stable")
    else:  # both sorts are stable: what is left of a tie stays in position order
        order = np.lexsort((score(np.arange(offset, offset + caps.shape[0])), falling))
    ordered = caps[order]
    reach = ordered.cumsum()
    whole = int(reach.searchsorted(need))
    rest = need - (int(reach[whole - 1]) if whole else 0)
    # Capacity falls along the order, and among equals the best comes first. So the rest goes to the
    # first, not taken yet, of those that hold as many as the last one that still holds it.
    falling = falling[order]
    tightest = falling[int(falling.searchsorted(-rest, side="right")) - 1]
    tail = max(whole, int(falling.searchsorted(tightest)))
    chosen, counts = order[: whole + 1].copy(), ordered[: whole + 1]
    chosen[whole], counts[whole] = order[tail], rest
    return chosen, counts


def _tightest(caps: Integers, need: int, most: int) -> Rows:
    """Return the first of those with the least room that hold all."""
    if need == most:
        return np.array([caps.argmax()], np.intp)
    return np.array([np.where(caps >= need, caps, most + 1).argmin()], np.intp)


def _pack_full(caps: Integers, need: int, most: int) -> Taken | None:
    """Take siblings that all have the most room, and one for the rest; None: there are too few.

    What `pack` does then, without having to put all of them in order.
    """
    whole, rest = divmod(need - 1, most)
    rest += 1  # so that there always is one
    full = (caps == most).nonzero()[0][: whole + 1]
    if full.shape[0] < whole:
        return None
    tail = _tightest(caps, rest, most)
    if caps[tail[0]] == most:
        if full.shape[0] == whole:
            return None
    else:
        full = np.concatenate([full[:whole], tail])
    counts = np.full(whole + 1, most, caps.dtype)
    counts[whole] = rest
    return full, counts


def fill(caps: Integers, need: int, score: Score | None = None) -> Taken:
    """Choose siblings with the least room first, until `need` pods have a place.

    >>> fill(np.array([2, 1, 0, 1]), 3)
    (array([1, 3, 0]), array([1, 1, 1]))
    """
    there = caps.nonzero()[0]
    ordered = caps[there]
    if there.shape[0] > need:
        # Every sibling takes at least one pod, so no more than `need` of them can be wanted.
        limit = np.partition(ordered, need - 1)[need - 1]
        near = ordered <= limit
        there, ordered = there[near], ordered[near]
    tie = there if score is None else score(there)
    order = np.lexsort((there, tie, ordered))
    reach = np.cumsum(ordered[order])
    last = int(np.searchsorted(reach, need))
    chosen = there[order[: last + 1]]
    counts = ordered[order[: last + 1]].copy()
    counts[last] -= int(reach[last]) - need
    return chosen, counts


def descend(
    capacity: Capacity, low: int, high: int, level: int, need: int, score: Score | None
) -> Taken:
    """Pack `need` pods into positions [low, high), level by level: few domains, then few nodes."""
    levels = capacity.view.levels
    if high - low == 1:  # there is nothing to choose
        return np.array([low], np.intp), np.array([need], np.int64)
    if level >= len(levels):
        chosen, counts = pack(capacity.caps[low:high], need, score, low)
        return chosen + low, counts
    here = levels[level]
    first = int(here.domain_of[low])
    last = int(here.domain_of[high - 1]) + 1
    if last - first == 1:
        return descend(capacity, low, high, level + 1, need, score)
    sums = capacity.sums[level]
    children, shares = pack(sums[first:last], need)
    children += first
    tail, rest = int(children[-1]), int(shares[-1])
    if rest == int(sums[tail]):
        return _all_of(capacity, here.starts[children], here.ends[children])
    start, end = int(here.starts[tail]), int(here.ends[tail])
    chosen, counts = descend(capacity, start, end, level + 1, rest, score)
    if children.shape[0] == 1:
        return chosen, counts
    whole = _all_of(capacity, here.starts[children[:-1]], here.ends[children[:-1]])
    return np.concatenate([whole[0], chosen]), np.concatenate([whole[1], counts])


def _all_of(capacity: Capacity, starts: Rows, ends: Rows) -> Taken:
    """Take everything that there is in slices of positions."""
    lengths = ends - starts
    ahead = lengths.cumsum()
    positions = np.repeat(ends - ahead, lengths) + np.arange(int(ahead[-1]))
    counts = capacity.caps[positions]
    used = counts.nonzero()[0]
    return positions[used], counts[used]
