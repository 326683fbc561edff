"""Pages of the documentation, cut into the blocks that can be run.

    ```console            commands after `$ `, and below each what it prints (if that is shown)
    ```yaml queue.yaml    a manifest; with a name it becomes a file for the commands that follow

A comment before a block says that it is not run, and why: `<!-- not run: needs a real cluster -->`.
A comment anywhere says that the whole page takes its time: `<!-- slow -->`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^( *)(```+)(\S*)[ \t]*(.*)$")
_NOT_RUN = re.compile(r"<!-- not run: (.+?) -->")


@dataclass(frozen=True, slots=True)
class Block:
    """The text between two fences."""

    line: int
    language: str
    name: str
    text: str
    not_run: str  # why not; empty if it is run


@dataclass(slots=True)
class Command:
    """One command of a console block and its expected output."""

    line: int
    text: str
    shown: list[str] = field(default_factory=list)


def pages() -> list[Path]:
    """Return every page that people read."""
    patterns = ("*.md", "docs/**/*.md", "examples/**/*.md", "deploy/*.md")
    found = {path for pattern in patterns for path in ROOT.glob(pattern)}
    return sorted(found - {ROOT / "CHANGELOG.md"})


def name_of(path: Path) -> str:
    """Return the path of a page in the project."""
    return str(path.relative_to(ROOT))


def blocks(text: str) -> Iterator[Block]:
    """Return the fenced blocks of a page."""
    opened: re.Match[str] | None = None
    start, lines, why = 0, list[str](), ""
    for number, line in enumerate(text.splitlines(), start=1):
        if opened is not None:
            if line.strip() == opened[2]:
                yield Block(start, opened[3], opened[4].strip(), "\n".join(lines) + "\n", why)
                opened, why = None, ""
            else:
                lines.append(line.removeprefix(opened[1]))
        elif (fence := _FENCE.match(line)) is not None:
            opened, start, lines = fence, number, []
        elif (told := _NOT_RUN.search(line)) is not None:
            why = told[1]
        elif line.strip():
            why = ""


def commands(block: Block) -> list[Command]:
    """Return the commands of a console block."""
    found: list[Command] = []
    goes_on = False
    for number, line in enumerate(block.text.splitlines(), start=block.line + 1):
        if goes_on:
            found[-1].text += "\n" + line.removeprefix("> ")
        elif line.startswith("$ "):
            found.append(Command(number, line[2:]))
        elif found:
            found[-1].shown.append(line)
        goes_on = line.endswith("\\") and (goes_on or line.startswith("$ "))
    for one in found:
        one.text = one.text.replace("\\\n", " ")
        while one.shown and not one.shown[-1].strip():
            one.shown.pop()
    return found
