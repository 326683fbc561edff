"""Which nodes a demand may use, and how many of its pods fit on each: vectors, cached.

A mask is worked out by looking each requirement up in a table of label values (one small integer a
node), never node by node. A capacity is one vector expression over the free columns:

    cap = min over requested resources of floor(max(free, 0) / request), where the mask allows

Both are kept in the order of a topology view, with the sum of every domain, and brought up to date
for the rows that changed since they were last used. Spec placement §8.2, §8.3 and §8.9.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from unisono.engine.model.names import PODS
from unisono.engine.model.resources import Amounts
from unisono.engine.model.selection import AffinityTerm, Taint, Toleration, meets, tolerates
from unisono.engine.place.demand import Constraint
from unisono.engine.place.views import View, make_view
from unisono.engine.state.node_table import ABSENT, Integers, NodeTable, Rows

Mask = NDArray[np.bool_]
K = TypeVar("K")
V = TypeVar("V")

# How many constraints, capacities and views are remembered. A cluster has few shapes at a time;
# one capacity of 100,000 nodes takes 800 kB.
MASKS_KEPT = 256
CAPACITIES_KEPT = 256
VIEWS_KEPT = 16
# Above this share of changed rows a whole vector is cheaper than its parts.
REREAD_SHARE = 4


@dataclass(slots=True)
class Capacity:
    """How many pods of one request fit on each node, in the order of a view."""

    view: View
    caps: Integers
    sums: list[Integers]  # per level, one number a domain
    version: int
    total: int


@dataclass(slots=True)
class _Mask:
    allowed: Mask  # by row
    bonus: Integers  # by row: preferred affinity minus what untolerated soft taints cost
    version: int
    has_bonus: bool


@dataclass(slots=True)
class Feasibility:
    """Masks and capacities over one node table."""

    table: NodeTable
    _masks: OrderedDict[Constraint, _Mask] = field(default_factory=OrderedDict)
    _views: OrderedDict[tuple[str, ...], View] = field(default_factory=OrderedDict)
    _capacities: OrderedDict[tuple[Constraint, Amounts, tuple[str, ...]], Capacity] = field(
        default_factory=OrderedDict
    )

    def view(self, keys: tuple[str, ...]) -> View:
        """Return the nodes in the order of these levels."""
        known = self._views.get(keys)
        if known is None or known.layout != self.table.layout:
            known = self._views[keys] = make_view(self.table, keys)
            _trim(self._views, VIEWS_KEPT)
        return known

    def allowed(self, constraint: Constraint) -> Mask:
        """Say for every row whether the constraint lets pods go there."""
        return self._mask(constraint).allowed

    def bonus(self, constraint: Constraint) -> Integers:
        """Return how much every row is preferred."""
        return self._mask(constraint).bonus

    def preference(self, constraint: Constraint) -> Integers | None:
        """Return the bonus, or None where nothing is preferred: then nobody has to look at it."""
        mask = self._mask(constraint)
        return mask.bonus if mask.has_bonus else None

    def capacity(
        self, constraint: Constraint, requests: Amounts, keys: tuple[str, ...]
    ) -> Capacity:
        """Return how many pods fit where, up to date."""
        view = self.view(keys)
        cache_key = (constraint, requests, keys)
        known = self._capacities.get(cache_key)
        if known is None or known.view is not view:
            known = self._capacities[cache_key] = self._fresh(constraint, requests, view)
            _trim(self._capacities, CAPACITIES_KEPT)
            return known
        self._capacities.move_to_end(cache_key)
        changed = self.table.usage.since(known.version)
        if changed is None or changed.shape[0] * REREAD_SHARE > view.rows.shape[0]:
            self._capacities[cache_key] = known = self._fresh(constraint, requests, view)
        elif changed.shape[0]:
            self._update(known, constraint, requests, changed)
        return known

    def _fresh(self, constraint: Constraint, requests: Amounts, view: View) -> Capacity:
        # In row order, so that whole columns are read as they lie; one gather at the end.
        count = len(self.table)
        by_row = self._fitting(requests, slice(0, count), count)
        by_row *= self._mask(constraint).allowed
        caps = by_row[view.rows]
        sums = [_segment_sums(caps, level.starts) for level in view.levels]
        return Capacity(view, caps, sums, self.table.usage.version, int(caps.sum()))

    def _update(
        self, known: Capacity, constraint: Constraint, requests: Amounts, changed: Rows
    ) -> None:
        positions = known.view.position_of[changed]
        there = positions >= 0
        changed, positions = changed[there], positions[there]
        caps = self._fitting(requests, changed, changed.shape[0])
        caps[~self._mask(constraint).allowed[changed]] = 0
        difference = caps - known.caps[positions]
        known.caps[positions] = caps
        for level, sums in zip(known.view.levels, known.sums, strict=True):
            np.add.at(sums, level.domain_of[positions], difference)
        known.total += int(difference.sum())
        known.version = self.table.usage.version

    def _fitting(self, requests: Amounts, rows: Rows | slice, count: int) -> Integers:
        """Return how many pods fit on so many rows by resources alone."""
        table = self.table
        caps = np.full(count, np.iinfo(np.int64).max, np.int64)
        for resource, amount in {PODS: 1, **dict(requests)}.items():
            if amount <= 0:
                continue
            column = table.column(resource)
            if column is None:
                return np.zeros(count, np.int64)
            room = table.free[column, rows]
            if amount != 1:
                room = room // amount
            np.minimum(caps, room, out=caps)
        return np.maximum(caps, 0, out=caps)

    # --- masks -----------------------------------------------------------------------------------

    def _mask(self, constraint: Constraint) -> _Mask:
        known, table = self._masks.get(constraint), self.table
        if known is not None and known.allowed.shape[0] == len(table):
            changed = table.traits.since(known.version)
            if changed is not None and changed.shape[0] * REREAD_SHARE <= len(table):
                if changed.shape[0]:
                    known.allowed[changed] = self._allows(constraint, changed)
                    known.bonus[changed] = self._prefers(constraint, changed)
                    known.version = table.traits.version
                    known.has_bonus = bool(known.bonus.any())
                return known
        rows = np.arange(len(table))
        bonus = self._prefers(constraint, rows)
        known = self._masks[constraint] = _Mask(
            self._allows(constraint, rows), bonus, table.traits.version, bool(bonus.any())
        )
        _trim(self._masks, MASKS_KEPT)
        return known

    def _allows(self, constraint: Constraint, rows: Rows) -> Mask:
        """Evaluate a constraint on rows."""
        allowed: Mask = self.table.usable[rows] & self.labels_allow(constraint, rows)
        codes, meaning_of_taints = self.table.taint_codes()
        tolerated = np.array(
            [_tolerates_all(taints, constraint.tolerations) for taints in meaning_of_taints],
            np.bool_,
        )
        allowed &= tolerated[codes[rows]]
        return allowed

    def labels_allow(self, constraint: Constraint, rows: Rows) -> Mask:
        """Say for rows whether selector and affinity alone would allow them, ready or not."""
        allowed = np.ones(rows.shape[0], np.bool_)
        for key, value in constraint.selector:
            codes, meaning = self.table.label_codes(key)
            allowed &= codes[rows] == meaning.get(value, -1)
        if constraint.affinity:
            fitting = np.zeros(rows.shape[0], np.bool_)
            for term in constraint.affinity:
                fitting |= self._term(term, rows)
            allowed &= fitting
        return allowed

    def _term(self, term: AffinityTerm, rows: Rows) -> Mask:
        """Evaluate one affinity term: all of its requirements; an empty one matches nothing."""
        fitting = np.full(rows.shape[0], bool(term), np.bool_)
        for requirement in term:
            codes, meaning = self.table.label_codes(requirement.key)
            verdicts = np.zeros(len(meaning) + 1, np.bool_)
            verdicts[ABSENT] = meets(requirement, {})
            for value, code in meaning.items():
                verdicts[code] = meets(requirement, {requirement.key: value})
            fitting &= verdicts[codes[rows]]
        return fitting

    def _prefers(self, constraint: Constraint, rows: Rows) -> Integers:
        """Sum the weights of preferred terms; an untolerated soft taint counts against a node."""
        bonus = np.zeros(rows.shape[0], np.int64)
        for weighted in constraint.preferred:
            bonus += weighted.weight * self._term(weighted.term, rows)
        codes, meaning = self.table.taint_codes()
        costs = np.array([_soft_cost(taints, constraint.tolerations) for taints in meaning])
        if costs.any():
            bonus -= costs[codes[rows]]
        return bonus


def _tolerates_all(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> bool:
    return all(
        taint.effect == "PreferNoSchedule"
        or any(tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
    )


def _soft_cost(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> int:
    """Count soft taints that are not tolerated; each outweighs any preferred affinity."""
    bare = [
        taint
        for taint in taints
        if taint.effect == "PreferNoSchedule"
        and not any(tolerates(toleration, taint) for toleration in tolerations)
    ]
    return 1000 * len(bare)


def _segment_sums(values: Integers, starts: Rows) -> Integers:
    if not starts.shape[0]:
        return np.zeros(0, np.int64)
    return np.add.reduceat(values, starts)


def _trim(cache: OrderedDict[K, V], most: int) -> None:
    while len(cache) > most:
        cache.popitem(last=False)
