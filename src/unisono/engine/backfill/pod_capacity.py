"""Free capacity for one kind of pod: how many fit, in total and on each node, kept by bookings.

Pods of the very same request take from a node's capacity exactly their number, and give back as
much:

    min over resources of floor((free - n * request) / request) = the same before, minus n

so that where nothing else comes and goes (and no node is overcommitted) a number and a few rows are
all that has to change. Otherwise nodes are counted again on demand.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from unisono.engine.model.resources import Amounts
from unisono.engine.placement.feasibility import Mask
from unisono.engine.placement.packing import fill
from unisono.engine.state.change_journal import Columns, Integers, Move, Rows
from unisono.engine.state.node_table import NodeTable
from unisono.engine.state.transaction import Transaction

# Arrays of so many sizes of gangs are kept.
AMOUNTS_KEPT = 1024
# How many pods fit on each node; or whether one does, where no node takes more.
Caps = Integers | Mask
Chosen = tuple[Rows, Integers]  # rows of the node table, and how many pods go there


class PodCapacity:
    """How many pods of one request fit on nodes."""

    __slots__ = (
        "_amounts",
        "_caps",
        "_is_exact",
        "_ones",
        "_position_of",
        "_rows",
        "_seen",
        "_table",
        "_total",
        "_zeros",
        "allowed",
        "columns",
        "is_even",
        "is_single",
        "requests",
    )

    def __init__(self, table: NodeTable, requests: Amounts, allowed: Mask, rows: Rows) -> None:
        """`rows` are those of nodes, in the order in which they are chosen."""
        self.requests = requests
        self.columns: Columns = table.columns_of(requests)
        self.allowed = allowed
        self._table = table
        self._rows = rows
        count = allowed.shape[0]
        self._position_of: Rows | None = None  # None: positions are rows
        if not np.array_equal(rows, np.arange(count)):
            self._position_of = np.full(count, -1, np.intp)
            self._position_of[rows] = np.arange(rows.shape[0])
        # No node ever takes more than one: then the first free nodes are as good as any.
        self.is_even = int(self._fitting(table.allocatable).max(initial=0)) <= 1
        self.is_single = len(rows) == 1 == len(table.row_of)  # there is nothing to choose
        self._is_exact = False
        self._seen = -1
        self._total = 0
        self._caps: Caps = np.zeros(0, np.int64)
        self._zeros: Caps = np.zeros(1, np.bool_)  # what is left where a pod was put, then
        self._ones: dict[int, Integers] = {}  # by length; shared, so never changed
        self._amounts: dict[int, Integers] = {}  # the same: one number each, for the only node

    @property
    def free(self) -> int:
        """How many pods fit on all nodes together."""
        if self._seen != self._table.usage.version:
            self._catch_up()
        return self._total

    @property
    def caps(self) -> Caps:
        """How many pods fit on each node, by position: to be read, or copied."""
        if self._seen != self._table.usage.version:
            self._catch_up()
        if self.is_single:
            self._caps[0] = self._total
        return self._caps

    def total(self, transaction: Transaction) -> int:
        """Return how many pods fit beside what is booked on the transaction."""
        total = self.free
        for placed in transaction.later:
            if placed.requests != self.requests or not self._is_exact:
                transaction.settle()
                self._catch_up()
                return self._total
            total -= placed.pods
        return total

    @property
    def is_exact(self) -> bool:
        """Whether pods of the same request take exactly their number: bookings can be added up."""
        return self._is_exact

    def choose(self, pods: int, transaction: Transaction) -> Chosen | None:
        """Choose nodes best fit, as the placer does where no score tells nodes apart."""
        transaction.settle()
        return self.pick(self.caps, pods)

    def only(self, pods: int) -> Chosen:
        """Put all pods on the only node."""
        return self._rows, self._amount(pods)

    def pick(self, caps: Caps, pods: int) -> Chosen | None:
        """Choose nodes best fit, given how many pods fit on each, by position."""
        if self.is_even:  # all holes are of one pod
            places = caps.nonzero()[0][:pods]
            if len(places) < pods:
                return None
            rows = places if self._position_of is None else self._rows[places]
            return rows, self._one_each(pods)
        if self.is_single:
            return self.only(pods) if caps.item() >= pods else None
        if int(caps.sum()) < pods:
            return None
        places, counts = fill(cast(Integers, caps), pods)
        order = places.argsort()
        return self._rows[places[order]], counts[order]

    def _one_each(self, pods: int) -> Integers:
        """Return an array of ones, which gangs of one size share."""
        found = self._ones.get(pods)
        if found is None:
            if len(self._ones) >= AMOUNTS_KEPT:
                self._ones.clear()
            found = self._ones[pods] = np.ones(pods, np.int64)
        return found

    def _amount(self, pods: int) -> Integers:
        """Return an array of one number, which gangs of one size share."""
        found = self._amounts.get(pods)
        if found is None:
            if len(self._amounts) >= AMOUNTS_KEPT:
                self._amounts.clear()
            found = self._amounts[pods] = np.array((pods,), np.int64)
        return found

    def _catch_up(self) -> None:
        """Take in what changed on nodes since the last call."""
        usage = self._table.usage
        moves = usage.moves_since(self._seen, self.columns) if self._is_exact else None
        if moves is None:
            self._count()
            return
        self._seen = usage.version
        moves.reverse()  # the oldest first
        for move in moves:
            self._total += move.pods
            if not self.is_single:  # NumPy is slow for one number
                self._move(move)

    def _move(self, move: Move) -> None:
        """Take in pods that were added or removed, node by node."""
        caps = self._caps
        places = move.rows if self._position_of is None else self._position_of[move.rows]
        if not self.is_even:
            caps[places] += move.counts if move.pods > 0 else -move.counts
        elif len(places) == 1:  # NumPy is slow for one number
            caps[places.item()] = move.pods > 0
        elif move.pods > 0:  # removed pods leave one slot each
            caps[places] = True
        else:
            caps.put(places, self._zeros)

    def _count(self) -> None:
        """Count all nodes."""
        table = self._table
        by_row = self._fitting(table.free)
        self._is_exact = int(by_row.min(initial=0)) >= 0 and int(
            np.count_nonzero(self.allowed)
        ) == len(table.row_of)
        if not self._is_exact:
            np.maximum(by_row, 0, out=by_row)
            by_row *= self.allowed
        self._caps = by_row if self._position_of is None else by_row[self._rows]
        if self.is_even:
            self._caps = self._caps.astype(np.bool_)  # NumPy finds the free nodes faster
        self._total = int(by_row.sum())
        self._seen = table.usage.version

    def take(self, caps: Caps, chosen: Chosen) -> None:
        """Take pods that fit off the capacity of nodes."""
        rows, counts = chosen
        places = rows if self._position_of is None else self._position_of[rows]
        if self.is_even:
            caps.put(places, self._zeros)
        else:
            caps[places] -= counts

    def _fitting(self, amounts: Integers) -> Integers:
        """Return how many pods fit into these amounts, by row; negative where overcommitted."""
        rows = self.allowed.shape[0]  # the table's arrays may be longer than it has nodes
        (column, amount), *others = self.columns  # never empty: every pod takes one of `pods`
        fitting: Integers = amounts[column, :rows] // amount
        for column, amount in others:
            np.minimum(fitting, amounts[column, :rows] // amount, out=fitting)
        return fitting
