"""Colours for people at a terminal: never in a pipe, never with NO_COLOR, never the only sign."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import TextIO

BOLD, FAINT, RED, GREEN, YELLOW, BLUE = "1", "2", "31", "32", "33", "34"
_END = "\x1b[0m"

# Words of tables that say how something stands, and nothing else.
_STANDING = {
    GREEN: ("running", "Ready", "Running", "Succeeded"),
    BLUE: ("starting", "buying", "checked"),
    YELLOW: ("waiting", "repairing", "leaving", "Pending", "Suspect"),
    RED: ("NotReady", "Failed", "Quarantine", "Stopped"),
    FAINT: ("finished", "deactivated"),
}
_COLOURS = {word: colour for colour, words in _STANDING.items() for word in words}
_WORD = re.compile(
    r"(?<=\s)(" + "|".join(sorted(_COLOURS, key=len, reverse=True)) + r")(?=[\s:,]|$)"
)


def is_colourful(stream: TextIO | None = None, environment: Mapping[str, str] = os.environ) -> bool:
    """Say whether to use colours: at a terminal that has them, without NO_COLOR."""
    there = sys.stdout if stream is None else stream
    if there is None or environment.get("NO_COLOR") or environment.get("TERM") == "dumb":
        return False
    return there.isatty()


def paint(text: str, colour: str, *, on: bool) -> str:
    """Return text in a colour.

    >>> paint("n1", RED, on=False)
    'n1'
    """
    return f"\x1b[{colour}m{text}{_END}" if on and text else text


def paint_table(text: str, *, on: bool, with_head: bool = True) -> str:
    """Return a table with its headings bold, and words in colour that say how something stands."""
    if not on or not text:
        return text
    lines = text.split("\n")
    first = 1 if with_head else 0
    body = [
        _WORD.sub(lambda found: paint(found[1], _COLOURS[found[1]], on=True), line)
        for line in lines[first:]
    ]
    return "\n".join([*(paint(line, BOLD, on=True) for line in lines[:first]), *body])


def paint_answer(text: str, *, on: bool) -> str:
    """Return an answer in words with its first line and its titles bold."""
    if not on:
        return text
    lines = text.split("\n")
    return "\n".join(
        paint(line, BOLD, on=True) if number == 0 or re.fullmatch(r"[a-z ]+:", line) else line
        for number, line in enumerate(lines)
    )
