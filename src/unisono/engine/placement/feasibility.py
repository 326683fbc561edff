"""Which nodes a demand may use, and how many of its pods fit on each: vectors, cached.

A mask is worked out by looking each requirement up in a table of label values (one small integer a
node), never node by node. A capacity is one vector expression over the free columns:

    cap = min over requested resources of floor(max(free, 0) / request), where the mask allows

Capacities are kept in the order of a topology view, with the sum of every domain and a histogram of
how many nodes hold how many pods. Masks and capacities are brought up to date for the rows that
changed since they were last used. Spec placement §8.2, §8.3 and §8.9.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from unisono.engine.model.names import PODS, ResourceName
from unisono.engine.model.resources import Amounts, is_share
from unisono.engine.model.selection import AffinityTerm, Taint, Toleration, meets, tolerates
from unisono.engine.placement.demand import Constraint, without_taints
from unisono.engine.placement.topology import View, make_view
from unisono.engine.state.devices import pods_that_fit
from unisono.engine.state.node_table import ABSENT, Integers, NodeTable, Rows

Mask = NDArray[np.bool_]
K = TypeVar("K")
V = TypeVar("V")

# How many constraints, capacities and views are remembered. A cluster has few requests at a time;
# one capacity of 100,000 nodes takes 800 kB.
MASKS_KEPT = 256
CAPACITIES_KEPT = 256
VIEWS_KEPT = 16
# Above this share of changed rows a whole vector is cheaper than its parts.
REREAD_SHARE = 4
# Up to so many nodes a whole vector costs less than finding out what changed.
FEW_NODES = 512
# Nodes are tallied up to this many pods each. Kubelets take 110 by default and some hundreds where
# configured to; a node that holds more (of something counted in bytes) is not worth a histogram.
MOST_TALLIED = 1023
_NO_END = np.iinfo(np.int64).max

# Every node that is usable at all, whatever it is tainted for.
_ANY_NODE = without_taints(Constraint())


@dataclass(slots=True)
class Capacity:
    """How many pods of one request fit on each node, in the order of a view."""

    view: View
    caps: Integers
    sums: list[Integers]  # per level, one number a domain
    version: int
    total: int
    # How many nodes hold 0, 1, 2, ... pods; None where rules changed the numbers, or for want of
    # an end (see MOST_TALLIED).
    histogram: Integers | None = None


@dataclass(slots=True)
class _Mask:
    allowed: Mask  # by row
    # By row: preferred affinity minus what untolerated soft taints cost. None: all are alike.
    bonus: Integers | None
    version: int


@dataclass(slots=True)
class Feasibility:
    """Masks and capacities over one node table."""

    table: NodeTable
    reread_up_to: int = 0  # nodes: up to so many are all looked at again, whatever changed
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
        bonus = self.preference(constraint)
        return np.zeros(len(self.table), np.int64) if bonus is None else bonus

    def preference(self, constraint: Constraint) -> Integers | None:
        """Return the bonus, or None where nothing is preferred, so that no vector is read."""
        return self._mask(constraint).bonus

    def free(self, resource: ResourceName, keys: tuple[str, ...]) -> Capacity:
        """Return how much of a resource is free on each node and in each domain."""
        return self.capacity(_ANY_NODE, ((PODS, 0), (resource, 1)), keys)

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
        if known.version == self.table.usage.version:
            return known
        few = view.rows.shape[0] <= self.reread_up_to
        changed = None if few else self.table.usage.since(known.version)
        if changed is None or changed.shape[0] * REREAD_SHARE > view.rows.shape[0]:
            self._capacities[cache_key] = known = self._fresh(constraint, requests, view)
        elif changed.shape[0]:
            self._update(known, constraint, requests, changed)
        known.version = self.table.usage.version
        return known

    def pods_on(self, constraint: Constraint, requests: Amounts, rows: Rows) -> Integers:
        """Return how many pods fit on some rows."""
        caps = self._fitting(requests, rows, rows.shape[0])
        caps *= self._mask(constraint).allowed[rows]
        return caps

    def _fresh(self, constraint: Constraint, requests: Amounts, view: View) -> Capacity:
        # In row order, so that whole columns are read as they lie; one gather at the end.
        count = len(self.table)
        by_row = self._fitting(requests, slice(0, count), count)
        by_row *= self._mask(constraint).allowed
        caps = by_row[view.rows]
        sums = domain_sums(caps, view)
        total = int((sums[0] if sums else caps).sum())
        return Capacity(view, caps, sums, self.table.usage.version, total, _histogram(caps))

    def _update(
        self, known: Capacity, constraint: Constraint, requests: Amounts, changed: Rows
    ) -> None:
        positions = known.view.position_of[changed]
        there = positions >= 0
        if not there.all():
            changed, positions = changed[there], positions[there]
        caps = self._fitting(requests, changed, changed.shape[0])
        caps *= self._mask(constraint).allowed[changed]
        before = known.caps[positions]
        difference = caps - before
        known.caps[positions] = caps
        if known.histogram is not None:
            known.histogram = _recounted(known.histogram, before, caps)
        for level, sums in zip(known.view.levels, known.sums, strict=True):
            np.add.at(sums, level.domain_of[positions], difference)
        known.total += int(difference.sum())

    def _fitting(self, requests: Amounts, rows: Rows | slice, count: int) -> Integers:
        """Return how many pods fit on so many rows by resources alone."""
        columns = self._columns(requests)
        if columns is None:
            return np.zeros(count, np.int64)
        caps: Integers | None = None
        for column, amount in columns:
            fitting: Integers = self.table.free[column][rows]
            if amount != 1:
                fitting = fitting // amount
            elif caps is None:
                fitting = fitting.copy()
            caps = fitting if caps is None else np.minimum(caps, fitting, out=caps)
        if caps is None:  # it asks for nothing
            caps = np.full(count, _NO_END, np.int64)
        if self.table.devices:
            self._fit_devices(requests, rows, caps)
        return np.maximum(caps, 0, out=caps)

    def _fit_devices(self, requests: Amounts, rows: Rows | slice, caps: Integers) -> None:
        """Let no more pods count than find a part of a GPU."""
        for name, milli in requests:
            columns = self.table.devices.get(name)
            if columns is not None and milli:
                np.minimum(caps, pods_that_fit(self.table.free, columns, milli, rows), out=caps)

    def _columns(self, requests: Amounts) -> list[tuple[int, int]] | None:
        """Return what one pod takes of which column; None if no node has something of it."""
        resources, found = self.table.resources, []
        takes_place = True  # of the resource that counts pods, unless it says itself
        for name, amount in requests:
            if name == PODS:
                takes_place = False
            if amount > 0:
                column = resources.get(name)
                if column is not None:
                    found.append((column, amount))
                elif is_share(name):
                    self.table.open_devices(name)
                else:
                    return None
        if takes_place:
            column = resources.get(PODS)
            if column is None:
                return None
            found.append((column, 1))
        return found

    # --- masks -----------------------------------------------------------------------------------

    def _mask(self, constraint: Constraint) -> _Mask:
        known, table = self._masks.get(constraint), self.table
        if known is not None and known.allowed.shape[0] == len(table):
            if known.version == table.traits.version:
                return known
            changed = table.traits.since(known.version)
            if changed is not None and changed.shape[0] * REREAD_SHARE <= len(table):
                known.allowed[changed] = self._allows(constraint, changed)
                known.bonus = _changed(known, changed, self._prefers(constraint, changed))
                known.version = table.traits.version
                return known
        every = slice(0, len(table))
        known = self._masks[constraint] = _Mask(
            self._allows(constraint, every),
            self._prefers(constraint, every),
            table.traits.version,
        )
        _trim(self._masks, MASKS_KEPT)
        return known

    def _allows(self, constraint: Constraint, rows: Rows | slice) -> Mask:
        """Evaluate a constraint on rows."""
        allowed = self.labels_allow(constraint, rows)
        allowed &= self.table.usable[rows]
        codes, meaning_of_taints = self.table.taint_codes()
        tolerated = np.array(
            [_tolerates_all(taints, constraint.tolerations) for taints in meaning_of_taints],
            np.bool_,
        )
        if not tolerated.all():
            allowed &= tolerated[codes[rows]]
        if constraint.excluded is not None:
            allowed &= ~constraint.excluded.rows(self.table)[rows]
        return allowed

    def labels_allow(self, constraint: Constraint, rows: Rows | slice) -> Mask:
        """Say for rows whether selector and affinity alone would allow them, ready or not."""
        allowed = np.ones_like(self.table.usable[rows])
        for key, value in constraint.selector:
            codes, meaning = self.table.label_codes(key)
            allowed &= codes[rows] == meaning.get(value, -1)
        if constraint.affinity:
            fitting = np.zeros_like(allowed)
            for term in constraint.affinity:
                fitting |= self._term(term, rows)
            allowed &= fitting
        return allowed

    def _term(self, term: AffinityTerm, rows: Rows | slice) -> Mask:
        """Evaluate one affinity term: all of its requirements; an empty one matches nothing."""
        fitting = np.full_like(self.table.usable[rows], bool(term))
        for requirement in term:
            codes, meaning = self.table.label_codes(requirement.key)
            verdicts = np.zeros(len(meaning) + 1, np.bool_)
            verdicts[ABSENT] = meets(requirement, {})
            for value, code in meaning.items():
                verdicts[code] = meets(requirement, {requirement.key: value})
            fitting &= verdicts[codes[rows]]
        return fitting

    def _prefers(self, constraint: Constraint, rows: Rows | slice) -> Integers | None:
        """Sum the weights of preferred terms; an untolerated soft taint counts against a node."""
        codes, meaning = self.table.taint_codes()
        costs = np.array([_soft_cost(taints, constraint.tolerations) for taints in meaning])
        if not constraint.preferred and not costs.any():
            return None
        bonus = -costs[codes[rows]]
        for weighted in constraint.preferred:
            bonus += weighted.weight * self._term(weighted.term, rows)
        return bonus if bonus.any() else None


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


def _changed(known: _Mask, rows: Rows, bonus: Integers | None) -> Integers | None:
    """Return the preferences of all rows after some of them changed; None if all are alike."""
    if known.bonus is None and bonus is None:
        return None
    whole = np.zeros(known.allowed.shape[0], np.int64) if known.bonus is None else known.bonus
    whole[rows] = 0 if bonus is None else bonus
    return whole if whole.any() else None


def domain_sums(caps: Integers, view: View) -> list[Integers]:
    """Sum up domains level by level, each from the narrower one below it."""
    if not caps.shape[0]:
        return [np.zeros(0, np.int64) for _ in view.levels]
    sums: list[Integers] = []
    values, below = caps, None
    for level in reversed(view.levels):
        starts = level.starts if below is None else below.domain_of[level.starts]
        values = np.add.reduceat(values, starts)
        sums.append(values)
        below = level
    return sums[::-1]


def _histogram(caps: Integers) -> Integers | None:
    """Count how many nodes hold 0, 1, 2, ... pods."""
    if int(caps.max(initial=0)) > MOST_TALLIED:
        return None
    return np.bincount(caps, minlength=1)


def _recounted(histogram: Integers, before: Integers, after: Integers) -> Integers | None:
    """Return the histogram when some nodes hold another number of pods than before."""
    most = int(after.max(initial=0))
    if most > MOST_TALLIED:
        return None
    size = max(most + 1, histogram.shape[0])
    difference = np.bincount(after, minlength=size) - np.bincount(before, minlength=size)
    difference[: histogram.shape[0]] += histogram
    return difference


def _trim(cache: OrderedDict[K, V], most: int) -> None:
    while len(cache) > most:
        cache.popitem(last=False)
