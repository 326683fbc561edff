"""A ledger: bookings that can be taken back, so that a cycle may try things on the real tree.

Integer arithmetic makes `rollback` exact: afterwards every cell holds what it held at the mark.
"""

from __future__ import annotations

from collections.abc import Iterable

from unisono.engine.quota.tree import Cell, charge

Charges = tuple[tuple[Cell, int], ...]


class Ledger:
    """An undo log over the quota tree."""

    __slots__ = ("_log",)

    def __init__(self) -> None:
        self._log: list[tuple[Cell, int]] = []

    def mark(self) -> int:
        """Return a place to roll back to."""
        return len(self._log)

    def add(self, charges: Iterable[tuple[Cell, int]]) -> None:
        """Book usage."""
        for cell, amount in charges:
            charge(cell, amount)
            self._log.append((cell, amount))

    def remove(self, charges: Iterable[tuple[Cell, int]]) -> None:
        """Take usage off, as if its holder had left."""
        for cell, amount in charges:
            charge(cell, -amount)
            self._log.append((cell, -amount))

    def rollback(self, mark: int = 0) -> None:
        """Undo everything since the mark."""
        while len(self._log) > mark:
            cell, amount = self._log.pop()
            charge(cell, -amount)
