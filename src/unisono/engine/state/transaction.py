"""A transaction: bookings that can be taken back, so that a cycle may try things on the state.

Quota and nodes are booked together: an admitted workload that leaves gives both back. Integer
arithmetic makes `rollback` exact: afterwards every cell and every node holds what it held at the
mark.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from unisono.engine.state.occupancy import Cleared, Occupancy, PlacedPods
from unisono.engine.state.quota_tree import Cell, charge

Charges = tuple[tuple[Cell, int], ...]


class Mark(NamedTuple):
    """A place in the transaction."""

    bookings: int = 0
    moves: int = 0


class Lifted(NamedTuple):
    """Everything that stood on a transaction."""

    bookings: Charges
    moves: tuple[tuple[PlacedPods, bool], ...]


class Clearing(NamedTuple):
    """Where a transaction and the nodes stood before many were counted as gone, and which were."""

    mark: Mark
    version: int
    cleared: list[Cleared]


class Booked(Protocol):
    """Something that holds quota and, perhaps, nodes."""

    @property
    def charges(self) -> Charges: ...
    @property
    def placed_pods(self) -> tuple[PlacedPods, ...]: ...


class Starting:
    """What an admission of this cycle queues."""

    __slots__ = ("charges", "placed_pods")

    def __init__(self, charges: Charges, placed_pods: tuple[PlacedPods, ...]) -> None:
        self.charges = charges
        self.placed_pods = placed_pods


class Transaction:
    """An undo log over the quota tree and the nodes; without nodes, over quota only."""

    __slots__ = ("_before", "_log", "_moves", "_occupancy", "later")

    def __init__(self, occupancy: Occupancy | None = None) -> None:
        self._log: list[tuple[Cell, int]] = []
        self._moves: list[tuple[PlacedPods, bool]] = []  # True: it came, False: it went
        self._occupancy = occupancy
        self.later: list[PlacedPods] = []  # that come, too: counted when nodes are read
        self._before = 0  # the version of the nodes before the first of them moved

    def mark(self) -> Mark:
        """Return a place to roll back to."""
        if self.later:
            self.settle()
        return Mark(len(self._log), len(self._moves))

    def add(self, charges: Iterable[tuple[Cell, int]]) -> None:
        """Book usage of quota."""
        for cell, amount in charges:
            charge(cell, amount)
            self._log.append((cell, amount))

    def remove(self, charges: Iterable[tuple[Cell, int]]) -> None:
        """Take usage of quota off."""
        for cell, amount in charges:
            charge(cell, -amount)
            self._log.append((cell, -amount))

    def let_go(self, admitted: Booked) -> None:
        """Count an admitted workload as gone."""
        self.remove(admitted.charges)
        for placed in admitted.placed_pods:
            self._move(placed, comes=False)

    def bring_back(self, admitted: Booked) -> None:
        """Count an admitted workload that was gone as there again."""
        self.add(admitted.charges)
        for placed in admitted.placed_pods:
            self._move(placed, comes=True)

    def clear_nodes(self, admitted_workloads: Iterable[Booked]) -> Clearing:
        """Count many as gone while nodes are read once; their quota stays booked.

        Nothing else may be booked before `fill_nodes` has undone it.
        """
        assert self._occupancy is not None, "only a transaction with nodes can be looked at"
        mark = self.mark()
        version = self._occupancy.table.usage.version
        plain: list[PlacedPods] = []
        for admitted in admitted_workloads:
            for placed in admitted.placed_pods:
                if self._occupancy.is_plain(placed):
                    plain.append(placed)
                else:
                    self._move(placed, comes=False)
        return Clearing(mark, version, self._occupancy.clear(plain))

    def fill_nodes(self, clearing: Clearing) -> None:
        """Count them as there again."""
        assert self._occupancy is not None, "they were cleared"
        self._occupancy.fill(clearing.cleared)
        self.rollback(clearing.mark)
        self._occupancy.table.usage.put_back(clearing.version)

    def occupy(self, placed: PlacedPods) -> None:
        """Count pods on their nodes."""
        self._move(placed, comes=True)

    def occupy_later(self, placed: PlacedPods) -> None:
        """Count pods on nodes that have room for them, once nodes are read."""
        self.later.append(placed)

    def settle(self) -> None:
        """Count the pods of `later` on their nodes; to be called before nodes are read."""
        later, self.later = self.later, []
        for placed in later:
            self._move(placed, comes=True, fits=True)

    def vacate(self, placed: PlacedPods) -> None:
        """Take pods off nodes."""
        self._move(placed, comes=False)

    @property
    def moved(self) -> int:
        """Return a number that grows when pods come to, or leave, a node."""
        return len(self._moves) + len(self.later)

    def rollback(self, mark: Mark = Mark()) -> None:  # noqa: B008  # a mark is a plain tuple
        """Undo everything since the mark."""
        if self.later:  # a mark has none of them: these came after it
            self.later.clear()
        while len(self._log) > mark.bookings:
            cell, amount = self._log.pop()
            charge(cell, -amount)
        if len(self._moves) > mark.moves:
            while len(self._moves) > mark.moves:
                placed, came = self._moves.pop()
                self._count(placed, comes=not came)
            if not self._moves and self._occupancy is not None:
                self._occupancy.table.usage.put_back(self._before)

    def lift(self) -> Lifted:
        """Take everything off, to see the picture as it is; `put_back` makes it good."""
        self.settle()
        lifted = Lifted(tuple(self._log), tuple(self._moves))
        self.rollback()
        return lifted

    def put_back(self, lifted: Lifted) -> None:
        """Book again what was lifted, in its order."""
        self.add(lifted.bookings)
        for placed, came in lifted.moves:
            self._move(placed, comes=came)

    def _move(self, placed: PlacedPods, *, comes: bool, fits: bool = False) -> None:
        if self._occupancy is None:
            return  # only quota is booked
        if not self._moves:
            self._before = self._occupancy.table.usage.version
        self._count(placed, comes=comes, fits=fits)
        self._moves.append((placed, comes))

    def _count(self, placed: PlacedPods, *, comes: bool, fits: bool = False) -> None:
        assert self._occupancy is not None, "only a transaction with nodes has placed_pods"
        if comes:
            self._occupancy.occupy(placed, fits=fits)
        else:
            self._occupancy.vacate(placed)
