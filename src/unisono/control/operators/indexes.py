"""Sets of numbers as Jobs write them: "0,2-4"."""

from __future__ import annotations

from collections.abc import Iterable


def parse_indexes(text: str) -> set[int]:
    """Read a list of numbers and ranges.

    >>> sorted(parse_indexes("0,2-4"))
    [0, 2, 3, 4]
    """
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def format_indexes(numbers: Iterable[int]) -> str:
    """Write numbers with ranges where three or more follow each other.

    >>> format_indexes({0, 2, 3, 4, 6, 7})
    '0,2-4,6,7'
    """
    parts: list[str] = []
    run: list[int] = []
    for number in sorted(numbers):
        if run and number == run[-1] + 1:
            run.append(number)
            continue
        parts.extend(_written(run))
        run = [number]
    parts.extend(_written(run))
    return ",".join(parts)


def _written(run: list[int]) -> list[str]:
    if len(run) > 2:
        return [f"{run[0]}-{run[-1]}"]
    return [str(number) for number in run]
