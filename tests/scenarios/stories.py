"""Which stories there are, and which number of the specification each of them tells.

A file is named after its number: `015-…` or, when a number has several stories, `015a-…`, `015b-…`.
Numbers that cannot be told yet stand with their reason in `out-of-reach.yaml`; a reason may also be
given for the part of a number that its stories leave out. Numbers that a test of another kind tells
(one with a real Slurm, say), or a story of another area, stand in `elsewhere.yaml`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.scenarios.reading import BadScenario, Part, read_yaml

HERE = Path(__file__).parent


class Area(NamedTuple):
    """Stories of one specification: its document in `docs/semantics`, and its numbers."""

    document: str
    numbers: range


AREAS = {
    "quota": Area("quota.md", range(1, 81)),
    "gang": Area("placement.md", range(1, 31)),
    "priority": Area("priority.md", range(1, 10)),
    "backfill": Area("backfill.md", range(1, 6)),
    "provisioning": Area("provisioning.md", range(1, 33)),
    "slurm": Area("slurm.md", range(1, 23)),
    "monitoring": Area("monitoring.md", range(1, 29)),
}

_OUT_OF_REACH = "out-of-reach.yaml"
# Numbers that are told by another area's story, or by a test that needs more than the engine.
_ELSEWHERE = "elsewhere.yaml"
_NAME = re.compile(r"(?P<number>[0-9]{3})[a-z]?-[a-z0-9-]+")


def files(area: str) -> list[Path]:
    """List the stories of an area, in the order of their numbers."""
    found = sorted((HERE / area).glob("*.yaml"))
    return [path for path in found if path.name not in (_OUT_OF_REACH, _ELSEWHERE)]


@dataclass(slots=True)
class Numbers:
    """The numbers of one specification, with what there is for each."""

    known: range
    stories: dict[int, list[Path]] = field(default_factory=dict)
    out_of_reach: dict[int, str] = field(default_factory=dict)
    left_out: dict[int, str] = field(default_factory=dict)  # a part that the stories do not tell
    elsewhere: dict[int, str] = field(default_factory=dict)  # where they are told

    def missing(self) -> list[int]:
        """List the numbers that have neither a story nor a reason."""
        told = {*self.stories, *self.out_of_reach, *self.elsewhere}
        return [number for number in self.known if number not in told]


def numbers_of(area: str) -> Numbers:
    """Sort an area's stories by number; raise BadScenario where a file says two things."""
    numbers = Numbers(AREAS[area].numbers)
    for path in files(area):
        numbers.stories.setdefault(number_of(path), []).append(path)
    for text, reason in read_yaml(HERE / area / _OUT_OF_REACH).entries():
        number, _, part = text.partition(" ")
        if not number.isdigit() or int(number) not in numbers.known or part not in ("", "in part"):
            reason.fail("must be the number of a scenario, or a number and `in part`")
        if (int(number) in numbers.stories) != bool(part):
            reason.fail("has stories, so say `in part`" if not part else "has no story")
        (numbers.left_out if part else numbers.out_of_reach)[int(number)] = reason.text()
    if (HERE / area / _ELSEWHERE).exists():
        for text, where in read_yaml(HERE / area / _ELSEWHERE).entries():
            if not text.isdigit() or int(text) not in numbers.known:
                where.fail("must be the number of a scenario")
            numbers.elsewhere[int(text)] = _found(where)
    return numbers


def _found(where: Part) -> str:
    """Return where a scenario is told: a story, or `path::test`; it has to be there."""
    text = where.text()
    path, _, test = text.partition("::")
    file = HERE.parents[1] / path
    if not file.is_file() or (test and f"def {test}(" not in file.read_text(encoding="utf-8")):
        where.fail("is not there")
    return text


def story_of(path: Path) -> str:
    """Return the sentence that a file tells."""
    return " ".join(read_yaml(path)["story"].text().split())


def number_of(path: Path) -> int:
    """Return a file's number; its name and its `spec` line must agree."""
    shape = _NAME.fullmatch(path.stem)
    if shape is None:
        raise BadScenario(f"{path.name}: must be named like 015-what-happens or 015a-what-happens")
    number = int(shape["number"])
    wanted = f"{AREAS[path.parent.name].document}, scenario {number}"
    given = read_yaml(path)["spec"].text()
    if given != wanted:
        raise BadScenario(f"{path.name}: spec must be `{wanted}`, not `{given}`")
    return number
