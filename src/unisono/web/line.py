"""Records in an order that is kept while they come and go, one at a time."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Generic, TypeVar

R = TypeVar("R")
# What it is sorted by; the last part is unique.
Rank = tuple[float, float, str]


class Line(Generic[R]):
    """A sorted line; entering, leaving and finding a place take a moment even among thousands."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._ranks: list[Rank] = []
        self._members: dict[Rank, R] = {}

    def __len__(self) -> int:
        """How many there are."""
        return len(self._ranks)

    def __iter__(self) -> Iterator[R]:
        """All of them, in order."""
        return map(self._members.__getitem__, self._ranks)

    def put(self, rank: Rank, member: R) -> None:
        """Let somebody in, or take the newer version of who is there."""
        if rank not in self._members:
            insort(self._ranks, rank)
        self._members[rank] = member

    def drop(self, rank: Rank) -> None:
        """Let somebody go; nothing happens if they are not there."""
        if self._members.pop(rank, None) is not None:
            del self._ranks[bisect_left(self._ranks, rank)]

    def place(self, rank: Rank) -> int:
        """Return somebody's number, from 1 on; 0 if they are not there."""
        return bisect_left(self._ranks, rank) + 1 if rank in self._members else 0

    def first(self) -> R | None:
        """Return who is first."""
        return self._members[self._ranks[0]] if self._ranks else None

    def part(self, since: int, count: int) -> list[R]:
        """Return a few of them."""
        return list(map(self._members.__getitem__, self._ranks[since : since + count]))
