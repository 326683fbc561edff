"""Where recorded cases are kept: one line of JSON each, in one compressed file an area.

A case is its input and what the engine decided on it:

    name      area/number or area/story
    policy    what the operator chose, and `now`, when it begins
    steps     what happens and what is asked, one list each: [verb, value, ...]
    decided   one answer for every step that asks something, in their order
"""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from tests.decisions.adapter import World

Json = Any
DATA = Path(__file__).parent / "data"
# Steps that ask for a decision; all others only tell what happened.
ASKS = frozenset({"cycle", "settle", "repair", "replace", "place", "estimate", "limit"})


class Case(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One recorded case."""

    name: str
    policy: Json = msgspec.field(default_factory=dict)
    now: int = 0
    steps: list[list[Json]]
    decided: list[Json] = []

    @property
    def area(self) -> str:
        """The file that it is kept in."""
        return self.name.partition("/")[0]


def areas() -> list[str]:
    """Return the areas that have cases."""
    return sorted(path.name.removesuffix(".jsonl.xz") for path in DATA.glob("*.jsonl.xz"))


def lines(area: str) -> list[bytes]:
    """Return the cases of an area, not read yet."""
    return lzma.decompress((DATA / f"{area}.jsonl.xz").read_bytes()).splitlines()


def read(line: bytes) -> Case:
    """Read one case."""
    return msgspec.json.decode(line, type=Case)


def cases(area: str) -> list[Case]:
    """Return all cases of an area, in order of name."""
    return [read(line) for line in lines(area)]


def write(area: str, found: Iterable[Case]) -> None:
    """Write all cases of an area, in order of name; none: the area goes."""
    path = DATA / f"{area}.jsonl.xz"
    kept = sorted(found, key=lambda case: case.name)
    if not kept:
        path.unlink(missing_ok=True)
        return
    DATA.mkdir(exist_ok=True)
    text = b"\n".join(msgspec.json.encode(case) for case in kept)
    # The same bytes from the same cases; no check sum, git has its own.
    path.write_bytes(lzma.compress(text, check=lzma.CHECK_NONE, preset=9 | lzma.PRESET_EXTREME))


def answers(case: Case) -> Iterator[Json]:
    """Take the steps of a case and yield what is decided now, one answer for every question."""
    world = World(case.policy, case.now)
    for step in case.steps:
        answer = world.take(step)
        if step[0] in ASKS:
            yield plain(answer)


def plain(answer: Json) -> Json:
    """Return an answer as it is read from a file."""
    return msgspec.json.decode(msgspec.json.encode(answer))
