"""Job arrays: `0-15:4,20%2` is the tasks 0, 4, 8, 12 and 20, two of them at a time.

An array is kept as text and as ranges: a hundred thousand tasks are not listed before they start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from unisono.kinds.digits import whole_number
from unisono.slurm.lite_typing import NamedTuple

# Slurm's MaxArraySize is 1001 unless the administrator says more; we have no reason for so few.
MOST_TASKS = 4_000_001
_EACH = re.compile(r"aftercorr:([^,?]+)")
_PART = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?")


class BadArray(ValueError):
    """The text is not an array."""


class Array(NamedTuple):
    """The tasks of an array, and how many may run at a time (0: all)."""

    parts: tuple[range, ...]
    limit: int = 0

    @property
    def size(self) -> int:
        """How many tasks there are."""
        return sum(map(len, self.parts))

    @property
    def least(self) -> int:
        """The smallest number of a task."""
        return min(part[0] for part in self.parts)

    @property
    def most(self) -> int:
        """The largest number of a task."""
        return max(part[-1] for part in self.parts)

    @property
    def step(self) -> int:
        """The step, where there is one for all."""
        steps = {part.step for part in self.parts}
        return steps.pop() if len(steps) == 1 else 1

    def at(self, place: int) -> int:
        """Return the number of the task at a place, counted from 0."""
        for part in self.parts:
            if place < len(part):
                return part[place]
            place -= len(part)
        raise IndexError(place)

    def place(self, number: int) -> int | None:
        """Return the place of a task; None if there is none of that number."""
        before = 0
        for part in self.parts:
            if number in part:
                return before + part.index(number)
            before += len(part)
        return None

    def rest(self, start: int) -> Iterator[range]:
        """Yield the tasks from a place on, as ranges."""
        for part in self.parts:
            if start < len(part):
                yield part[start:]
            start = max(0, start - len(part))


def read_array(text: str, most: int = MOST_TASKS) -> Array:
    """Return an array; raise BadArray.

    >>> read_array("0-15:4,20%2")
    Array(parts=(range(0, 13, 4), range(20, 21)), limit=2)
    """
    plain, percent, limit = text.partition("%")
    at_once = whole_number(limit)
    if percent and at_once is None:
        raise BadArray("Invalid job array specification")
    parts: list[range] = []
    for part in plain.split(","):
        found = _PART.fullmatch(part.strip())
        if found is None:
            raise BadArray("Invalid job array specification")
        first, last = int(found[1]), int(found[2] or found[1])
        step = int(found[3] or 1)
        if last < first or step < 1 or last >= most:
            raise BadArray("Invalid job array specification")
        whole = range(first, last + 1, step)
        parts.append(range(whole[0], whole[-1] + 1, step))
    seen: set[int] = set()
    if sum(map(len, parts)) > 1 and len(parts) > 1:
        for one in parts:
            if not seen.isdisjoint(one):
                raise BadArray("Invalid job array specification")
            seen.update(one)
    return Array(tuple(parts), at_once or 0)


def tasks_text(ranges: Iterable[range]) -> str:
    """Return ranges as they are written.

    >>> tasks_text([range(2, 16), range(20, 21), range(30, 41, 5)])
    '2-15,20,30-40:5'
    """
    made: list[str] = []
    for one in ranges:
        if len(one) == 1:
            made.append(str(one[0]))
        elif one.step == 1:
            made.append(f"{one[0]}-{one[-1]}")
        else:
            made.append(f"{one[0]}-{one[-1]}:{one.step}")
    return ",".join(made)


def folded(numbers: Iterable[int]) -> list[range]:
    """Return sorted numbers as ranges of one step."""
    made: list[range] = []
    for number in sorted(set(numbers)):
        if made and made[-1].stop == number:
            made[-1] = range(made[-1].start, number + 1)
        else:
            made.append(range(number, number + 1))
    return made


def for_task(depends_on: str, number: int) -> str:
    """Return the dependency of one task: `aftercorr` is about the task of the same number.

    >>> for_task("afterok:a,aftercorr:b:c", 7)
    'afterok:a,afterok:b-7:c-7'
    """

    def own(found: re.Match[str]) -> str:
        return "afterok:" + ":".join(f"{name}-{number}" for name in found[1].split(":"))

    return _EACH.sub(own, depends_on)
