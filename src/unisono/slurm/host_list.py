"""Host lists as Slurm writes them: `gpu[1-3,7],x[1-2]-[1-2],login` (spec slurm §2).

A name is text with brackets of numbers in it; several brackets mean every combination, in the order
written. Zeros in front of a number are part of it: `gpu[08-10]` is gpu08, gpu09, gpu10.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

# No list of a real cluster is longer; a typing error such as [1-999999999] must not fill memory.
MOST_HOSTS = 100_000
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_LONGEST_NUMBER = 9


class BadHostList(ValueError):
    """The text is not a host list; the message says why."""


def expand(text: str) -> list[str]:
    """Return the names of a host list, in the order written.

    >>> expand("n[1-3,7],gpu[08-10],login")
    ['n1', 'n2', 'n3', 'n7', 'gpu08', 'gpu09', 'gpu10', 'login']
    >>> expand("x[1-2]-[1-2]")
    ['x1-1', 'x1-2', 'x2-1', 'x2-2']
    """
    found: list[str] = []
    for part in split(text):
        found += _names(part, MOST_HOSTS - len(found))
    return found


def split(text: str) -> Iterator[str]:
    """Yield the entries of a list: commas inside brackets do not part them.

    >>> list(split("n[1,3],login"))
    ['n[1,3]', 'login']
    """
    start = depth = 0
    for place, letter in enumerate(text):
        if letter == "[":
            depth += 1
        elif letter == "]":
            depth -= 1
        elif letter in ", \t\n" and depth == 0:
            if start < place:
                yield text[start:place]
            start = place + 1
        if depth not in (0, 1):
            raise BadHostList(f"brackets of {text!r} do not match")
    if depth:
        raise BadHostList(f"brackets of {text!r} do not match")
    if start < len(text):
        yield text[start:]


def fold(names: Iterable[str]) -> str:
    """Return a short host list of names: those with the same text before a number share brackets.

    >>> fold(["gpu8", "gpu9", "gpu10", "gpu11", "gpu010"])
    'gpu[8-11,010]'
    >>> fold(["gpu1"]), fold(["login", "b2", "b1"]), fold([])
    ('gpu1', 'login,b[1-2]', '')
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in dict.fromkeys(names):
        prefix, number = _cut(name)
        groups.setdefault((prefix,) if number else (prefix, "whole"), []).append(number)
    return ",".join(_group(key[0], numbers) for key, numbers in groups.items())


def _names(entry: str, most: int) -> list[str]:
    pieces = re.split(r"\[([^\]]*)\]", entry)
    if any("[" in piece or "]" in piece for piece in pieces):
        raise BadHostList(f"brackets of {entry!r} do not match")
    made = [pieces[0]]
    for inside, after in zip(pieces[1::2], pieces[2::2], strict=True):
        numbers = list(_numbers(inside, entry, most))
        if len(made) * len(numbers) > most:
            raise BadHostList(f"{entry!r} is more than {MOST_HOSTS} hosts")
        made = [f"{before}{number}{after}" for before in made for number in numbers]
    return made


def _numbers(inside: str, entry: str, most: int) -> Iterator[str]:
    for part in inside.split(","):
        found = _RANGE.fullmatch(part.strip())
        if found is None:
            raise BadHostList(f"{part!r} in {entry!r} is neither a number nor a range")
        first, last = found[1], found[2] or found[1]
        low, high = int(first), int(last)
        if high < low:
            raise BadHostList(f"{part!r} in {entry!r} runs backwards")
        if high - low >= most:
            raise BadHostList(f"{entry!r} is more than {MOST_HOSTS} hosts")
        for number in range(low, high + 1):
            yield str(number).zfill(len(first))


def _cut(name: str) -> tuple[str, str]:
    """Return a name without the number at its end, and that number."""
    digits = len(name) - len(name.rstrip("0123456789"))
    digits = min(digits, _LONGEST_NUMBER)
    return (name[: len(name) - digits], name[len(name) - digits :]) if digits else (name, "")


def _group(prefix: str, numbers: list[str]) -> str:
    if numbers == [""]:
        return prefix
    if len(numbers) == 1:
        return prefix + numbers[0]
    # Where zeros fill numbers up to a width, those that need none of that width run on with them.
    padded = {len(one) for one in numbers if one.startswith("0") and one != "0"}

    def width(number: str) -> int:
        return len(number) if len(number) in padded else 0

    ordered = sorted(numbers, key=lambda one: (width(one), int(one), one))
    runs: list[list[str]] = []
    for number in ordered:
        last = runs[-1][-1] if runs else None
        if last is not None and width(last) == width(number) and int(last) + 1 == int(number):
            runs[-1].append(number)
        else:
            runs.append([number])
    texts = [run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return f"{prefix}[{','.join(texts)}]"
