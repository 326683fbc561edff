"""Sets of numbers as Jobs write them: "0,2-4".

Few characters name many numbers (`0-2147483646`), in a success policy just as in a status, so the
numbers are kept as spans and never listed: everything here costs as much as the text is long.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from unisono.kinds.digits import whole_number

Span = tuple[int, int]  # first and last


class Indexes:
    """A set of numbers from 0 on, as spans that neither touch nor overlap, in order."""

    __slots__ = ("_spans",)

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        """Take spans in any order; they may overlap."""
        self._spans: list[Span] = []
        for first, last in sorted(spans):
            if self._spans and first <= self._spans[-1][1] + 1:
                before = self._spans[-1]
                self._spans[-1] = (before[0], max(before[1], last))
            elif first <= last:
                self._spans.append((first, last))

    def __len__(self) -> int:
        """Return how many numbers there are."""
        return sum(last - first + 1 for first, last in self._spans)

    def __contains__(self, number: int) -> bool:
        """Say whether a number is one of them."""
        place = bisect_left(self._spans, (number + 1,)) - 1
        return place >= 0 and number <= self._spans[place][1]

    def add(self, number: int) -> None:
        """Take in one more; what has no number is none of them."""
        if number >= 0 and number not in self:
            self._spans = Indexes([*self._spans, (number, number)])._spans

    def __or__(self, other: Indexes) -> Indexes:
        """Return the numbers of both."""
        return Indexes([*self._spans, *other._spans])

    def __and__(self, other: Indexes) -> Indexes:
        """Return the numbers that both have."""
        found: list[Span] = []
        mine, theirs = iter(self._spans), iter(other._spans)
        one, two = next(mine, None), next(theirs, None)
        while one is not None and two is not None:
            first, last = max(one[0], two[0]), min(one[1], two[1])
            if first <= last:
                found.append((first, last))
            if one[1] <= two[1]:
                one = next(mine, None)
            else:
                two = next(theirs, None)
        return Indexes(found)

    def left_out(self, end: int) -> Iterator[int]:
        """Yield the numbers below `end` that are not among them, lowest first.

        >>> list(Indexes([(0, 0), (2, 3)]).left_out(6))
        [1, 4, 5]
        """
        start = 0
        for first, last in self._spans:
            yield from range(start, min(first, end))
            start = last + 1
        yield from range(start, end)

    def text(self) -> str:
        """Write them with ranges where three or more follow each other.

        >>> parse_indexes("0,2,3,4,6,7").text()
        '0,2-4,6,7'
        """
        return ",".join(_written(*span) for span in self._spans)


def parse_indexes(text: str) -> Indexes:
    """Read a list of numbers and ranges.

    >>> found = parse_indexes("0,2-4")
    >>> len(found), 3 in found, 1 in found, list(found.left_out(7))
    (4, True, False, [1, 5, 6])
    """
    return Indexes(filter(None, map(_span, text.split(","))))


def _span(text: str) -> tuple[int, int] | None:
    """Read one number or range; None for what is neither."""
    first, _, last = text.partition("-")
    low, high = whole_number(first), whole_number(last or first)
    return (low, high) if low is not None and high is not None and low <= high else None


def _written(first: int, last: int) -> str:
    if last - first > 1:
        return f"{first}-{last}"
    return str(first) if first == last else f"{first},{last}"
