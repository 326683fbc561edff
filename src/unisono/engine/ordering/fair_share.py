"""Fair share: Fair Tree's ranks of users, and the classic formula (spec priority §4).

Fair Tree ranks users by how far they are below their share, level by level. At each level siblings
are compared by *level fair share*: their part of the shares over their part of the usage. All users
below the better sibling rank before all below the worse one. Sibling accounts that are equal are
one account as far as their children are concerned; sibling users that are equal share a rank, and
so do a user and the best of an account that is equal to it.

A user's place is therefore the list of its ancestors' places. The places of one level are found by
one sort, and all users are ordered by one more, so thousands of users cost a few sorts.
`slurm_ranks` walks the tree as Slurm really does, which never merges equal accounts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unisono.engine.model.multifactor import MultifactorRules
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


# --- classic fair share ---------------------------------------------------------------------------

# The usage of a user relative to its part of the shares.
#
#     S     product of shares / shares of all siblings, from the association up to the root
#     U     its usage over the root's
#     UE    just below the root U; further down U + (UE of the parent - U) * shares / all shares
#     fs    2 ** (-(UE / S) / dampening); one half means exactly the part that was due
#
# The depth-oblivious form replaces UE, so that users deep in the tree are not at a disadvantage.


class Norms(NamedTuple):
    """Per association: its part of the shares, of the usage, and the usage that counts."""

    shares: Floats
    usage: Floats
    effective: Floats


def classic_shares(accounts: Accounts, usage: Sequence[float], rules: MultifactorRules) -> Floats:
    """Return each association's fair share."""
    norms = norms_of(accounts, usage, depth_oblivious=rules.fair_share == "depth-oblivious")
    result = np.zeros(len(accounts.specs), dtype=np.float64)
    for number in range(1, len(accounts.specs)):
        part = norms.shares[number]
        if part > 0:
            result[number] = 2.0 ** (-(norms.effective[number] / part) / max(1, rules.dampening))
    return result


def norms_of(accounts: Accounts, usage: Sequence[float], *, depth_oblivious: bool = False) -> Norms:
    """Return the parts of shares and usage; parents come before their children."""
    count = len(accounts.specs)
    parents = accounts.fair_parents
    siblings = [0.0] * count
    below = [0.0] * count
    for number in range(1, count):
        siblings[parents[number]] += accounts.specs[number].shares or 0
        if accounts.specs[number].shares is not None:
            below[parents[number]] += usage[number]
    shares = np.ones(count, dtype=np.float64)
    used = np.zeros(count, dtype=np.float64)
    effective = np.ones(count, dtype=np.float64)
    for number in range(1, count):
        parent = parents[number]
        own = accounts.specs[number].shares
        used[number] = min(1.0, usage[number] / usage[0]) if usage[0] else 0.0
        if own is None:  # everything is its parent's
            shares[number], effective[number] = shares[parent], effective[parent]
            continue
        part = own / siblings[parent] if siblings[parent] else 0.0
        shares[number] = shares[parent] * part
        if parent == 0:
            effective[number] = used[number]
        elif depth_oblivious:
            around = min(1.0, below[parent] / usage[0]) if usage[0] else 0.0
            ratio = _ratio(effective[parent], shares[parent], used[number], shares[number], around)
            effective[number] = ratio * shares[number]
        else:
            effective[number] = used[number] + (effective[parent] - used[number]) * part
    return Norms(shares, used, effective)


def _ratio(
    parent_effective: float, parent_shares: float, used: float, shares: float, siblings: float
) -> float:
    """Return usage over shares: the parent's ratio, bent by the own one among siblings."""
    if not parent_shares or not shares or not siblings:
        return 0.0
    above = parent_effective / parent_shares
    local = (used / shares) / (siblings / parent_shares)
    if not above or not local:
        return above * local
    # A heavy user of a light account, or the other way round: the account counts less.
    opposed = math.log(above) * math.log(local) < 0
    bend = 1.0 / (1.0 + (5.0 * math.log(above)) ** 2) if opposed else 1.0
    return float(above * local**bend)
