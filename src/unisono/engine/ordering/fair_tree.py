"""Fair Tree: users ranked by how far they are below their share, level by level (spec priority §4).

At each level siblings are compared by *level fair share*: their part of the shares over their part
of the usage. All users below the better sibling rank before all below the worse one. Sibling
accounts that are equal are one account as far as their children are concerned; sibling users that
are equal share a rank, and so do a user and the best of an account that is equal to it.

A user's place is therefore the list of its ancestors' places. The places of one level are found by
one sort, and all users are ordered by one more, so thousands of users cost a few sorts.
`slurm_ranks` walks the tree as Slurm really does, which never merges equal accounts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from unisono.engine.ordering.accounts import Accounts

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_HERE = -1  # fills the levels below a user: it ranks before all below its equals


def level_shares(accounts: Accounts, usage: Sequence[float]) -> Floats:
    """Return the level fair share of each association: above 1 it used less than its part."""
    used = np.asarray(usage, dtype=np.float64)
    parents = np.asarray(accounts.fair_parents, dtype=np.int64)
    shares = np.array(
        [np.nan if one.shares is None else one.shares for one in accounts.specs], dtype=np.float64
    )
    siblings = np.zeros(len(used), dtype=np.float64)
    counts = np.nan_to_num(shares[1:])
    # An account that takes its parent's shares has none of its own: its children count instead.
    np.add.at(siblings, parents[1:], counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        part = shares / siblings[parents]
        level = part / (used / used[parents])
    idle = (used == 0) | (used[parents] == 0)
    level = np.where(idle, np.inf, level)
    level = np.where((shares == 0) | (siblings[parents] == 0), 0.0, level)
    level = np.where(np.isnan(shares), np.inf, level)
    level[0] = np.nan  # the root has no siblings
    return level


def ranks(accounts: Accounts, level: Floats) -> Floats:
    """Return each user's fair share: its rank from the end over the number of users."""
    count = len(accounts.specs)
    users = np.array([accounts.is_user(number) for number in range(count)], dtype=bool)
    numbers = np.flatnonzero(users)
    places = _places(accounts, level, users)[numbers]
    order = np.lexsort(places.T[::-1])
    result = np.zeros(count, dtype=np.float64)
    if len(order):
        ordered = places[order]
        first = np.ones(len(order), dtype=bool)
        first[1:] = ~_tied(ordered)
        position = np.arange(len(order))
        leader = np.maximum.accumulate(np.where(first, position, 0))
        result[numbers[order]] = (len(order) - leader) / len(order)
    return result


def _places(accounts: Accounts, level: Floats, users: npt.NDArray[np.bool_]) -> Ints:
    """Return every association's place at each level on its way down, filled up with `_HERE`."""
    depths = np.asarray(accounts.depths, dtype=np.int64)
    parents = np.asarray(accounts.fair_parents, dtype=np.int64)
    deepest = int(depths.max(initial=0))
    places = np.full((len(depths), max(1, deepest)), _HERE, dtype=np.int64)
    groups = np.zeros(len(depths), dtype=np.int64)  # accounts that are equal are one group
    for depth in range(1, deepest + 1):
        here = np.flatnonzero(depths == depth)
        places[here] = places[parents[here]]
        keys = np.stack([groups[parents[here]].astype(np.float64), -level[here]])
        order = np.lexsort(keys[::-1])
        sorted_keys = keys[:, order]
        new = np.ones(len(here), dtype=bool)
        new[1:] = (sorted_keys[:, 1:] != sorted_keys[:, :-1]).any(axis=0)
        number = np.empty(len(here), dtype=np.int64)
        number[order] = np.cumsum(new)
        places[here, depth - 1] = number
        groups[here] = number
    return places


def _tied(ordered: Ints) -> npt.NDArray[np.bool_]:
    """Return which users share the rank of the one before: equal, or best of an equal account."""
    before, here = ordered[:-1], ordered[1:]
    tied: npt.NDArray[np.bool_] = ((before == here) | (before == _HERE)).all(axis=1)
    return tied


def slurm_ranks(accounts: Accounts, level: Floats) -> Floats:
    """Rank as Slurm does: equal accounts one after another, not as one."""
    children: dict[int, list[int]] = {}
    for number in range(1, len(accounts.specs)):
        # An account without shares of its own is passed over: its children hang further up.
        if accounts.is_user(number) or accounts.specs[number].shares is not None:
            children.setdefault(accounts.fair_parents[number], []).append(number)
    total = sum(accounts.is_user(number) for number in range(len(accounts.specs)))
    result = np.zeros(len(accounts.specs), dtype=np.float64)
    walk = _Walk(total, total)
    _descend(accounts, level, children, 0, walk, result, tied=False)
    return result


class _Walk:
    """Where the walk through the tree has got to."""

    def __init__(self, total: int, left: int) -> None:
        self.total, self.left, self.rank = total, left, total


def _descend(
    accounts: Accounts,
    level: Floats,
    children: dict[int, list[int]],
    parent: int,
    walk: _Walk,
    result: Floats,
    *,
    tied: bool,
) -> None:
    below = children.get(parent, [])
    below.sort(key=lambda number: (-level[number], not accounts.is_user(number), number))
    for index, number in enumerate(below):
        same = tied if index == 0 else bool(level[number] == level[below[index - 1]])
        if accounts.is_user(number):
            if not same:
                walk.rank = walk.left
            result[number] = walk.rank / walk.total
            walk.left -= 1
        else:
            _descend(accounts, level, children, number, walk, result, tied=same)
