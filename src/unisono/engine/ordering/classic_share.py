"""Classic fair share: the usage of a user relative to its part of the shares (spec priority §4).

    S     product of shares / shares of all siblings, from the association up to the root
    U     its usage over the root's
    UE    just below the root U; further down U + (UE of the parent - U) * shares / all shares
    fs    2 ** (-(UE / S) / dampening); one half means exactly the part that was due

The depth-oblivious form replaces UE, so that users deep in the tree are not at a disadvantage.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unisono.engine.model.multifactor import MultifactorRules
from unisono.engine.ordering.accounts import Accounts
from unisono.engine.ordering.fair_tree import Floats


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
