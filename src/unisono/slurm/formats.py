"""Slurm's tables: `%.18i %.9P %R` and `JobID:20,State:.8` (spec slurm §7).

`%.18i` is right-justified in 18 columns, `%18i` left; values are cut to the width. `%#P` is as wide
as its widest value. A format without a number is as wide as its value. sacct, sshare and sreport
rule a line of dashes under their headings.

These are apart from `cli.tables`, whose columns are as wide as their widest value and never cut:
scripts read Slurm's tables by their columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from unisono.kinds.digits import whole_number

# Of a column: no terminal is wider, and a padded line costs as many bytes.
_WIDEST = 10_000

_FIELD = re.compile(r"%(\.?)(#|\d*)([A-Za-z])")

_LEAST = 9  # of a column that is as wide as its widest value

# What a column shows of a row.
Shows = Callable[[Any], str]


class BadFormat(ValueError):
    """The text is no format."""


class Column(NamedTuple):
    """A column: its heading, what it shows, and how."""

    heading: str
    shows: Shows
    width: int = 0  # 0: as wide as the value; -1: as wide as the widest
    is_right: bool = False
    before: str = ""  # what stands between it and the one before


class Known(NamedTuple):
    """What a letter or a name stands for."""

    heading: str
    shows: Shows


def read_format(text: str, letters: Mapping[str, Known]) -> tuple[list[Column], str]:
    """Return the columns of a `-o` format, and what stands behind the last one."""
    made: list[Column] = []
    place = 0
    for found in _FIELD.finditer(text):
        known = letters.get(found[3])
        if known is None:
            raise BadFormat(f"Invalid job format specification: {found[3]}")
        width = -1 if found[2] == "#" else whole_number(found[2], _WIDEST) or 0
        before = text[place : found.start()]
        made.append(Column(known.heading, known.shows, width, bool(found[1]), before))
        place = found.end()
    return made, text[place:]


def long_names(letters: Mapping[str, Known], pairs: str) -> dict[str, Known]:
    """Return what the names of a long format stand for: the same as a letter, as in `jobid=A`."""
    named = (one.partition("=") for one in pairs.split())
    return {name: letters[letter] for name, _, letter in named}


def read_long_format(
    text: str, names: Mapping[str, Known], width: int = 20
) -> tuple[list[Column], str]:
    """Return the columns of a `-O`/`--Format` list: `JobID:20,State:.8`, 20 wide if not said."""
    made: list[Column] = []
    for part in filter(None, text.split(",")):
        name, _colon, size = part.strip().partition(":")
        known = names.get(name.strip().lower())
        if known is None:
            raise BadFormat(f"Invalid job format specification: {name}")
        wanted = whole_number(size.lstrip("."), _WIDEST)
        number = width if wanted is None else wanted
        made.append(Column(known.heading, known.shows, number, size.startswith(".")))
    return made, ""


def table(
    columns: Sequence[Column], rows: Sequence[Any], *, heads: bool = True, after: str = ""
) -> str:
    """Return a table; every line is as wide as its columns, as those of Slurm are."""
    widths = [
        max([_LEAST, len(one.heading), *(len(one.shows(row)) for row in rows)])
        if one.width < 0
        else one.width
        for one in columns
    ]
    lines: list[str] = []
    if heads:
        lines.append("".join(_heads(columns, widths)) + after)
    # One format for the whole line: thousands of lines are printed at a time.
    whole = "".join(
        _literal(one.before) + _slot(width, is_right=one.is_right)
        for one, width in zip(columns, widths, strict=True)
    ) + _literal(after)
    shows = [one.shows for one in columns]
    lines += [whole.format(*[show(row) for show in shows]) for row in rows]
    return "\n".join(lines) + "\n" if lines else ""


def ruled_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    widths: Sequence[int],
    *,
    heads: bool = True,
    mark: str = "",
) -> str:
    """Return a table as sacct, sshare and sreport have it: dashes under every heading.

    A negative width is left-justified; `mark` ends what is cut.
    """
    lines = [
        [_justified(text, width, mark) for text, width in zip(row, widths, strict=True)]
        for row in rows
    ]
    if heads:
        titles = [
            _justified(text, width, mark) for text, width in zip(headings, widths, strict=True)
        ]
        lines = [titles, ["-" * abs(width) for width in widths], *lines]
    return "".join(" ".join(line) + " \n" for line in lines)


def _justified(text: str, width: int, mark: str = "") -> str:
    """Return a value in its width.

    >>> _justified("COMPLETED", 5, "+"), _justified("PARTITION", 5), _justified("R", -3)
    ('COMP+', 'PARTI', 'R  ')
    """
    size = abs(width)
    cut = text if len(text) <= size else text[: size - len(mark)] + mark
    return cut.ljust(size) if width < 0 else cut.rjust(size)


def parsable(rows: Iterable[Sequence[str]], *, between: str = "|", after: str = "") -> str:
    """Return rows for programs, as the options parsable and parsable2 of these programs ask."""
    return "".join(between.join(row) + after + "\n" for row in rows)


def _slot(width: int, *, is_right: bool) -> str:
    return f"{{:{'>' if is_right else '<'}{width}.{width}}}" if width else "{}"


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _heads(columns: Sequence[Column], widths: Sequence[int]) -> list[str]:
    return [
        one.before
        + (_justified(one.heading, width if one.is_right else -width) if width else one.heading)
        for one, width in zip(columns, widths, strict=True)
    ]


def elapsed(seconds: float) -> str:
    """Return a time as squeue has it: no leading groups of zeros.

    >>> elapsed(8), elapsed(3605), elapsed(90061)
    ('0:08', '1:00:05', '1-01:01:01')
    """
    whole = max(0, int(seconds))
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02}"
    days, rest = divmod(whole, 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, second = divmod(rest, 60)
    if days:
        return f"{days}-{hours:02}:{minutes:02}:{second:02}"
    return f"{hours}:{minutes:02}:{second:02}"


def clock(seconds: float) -> str:
    """Return a time as scontrol has it: always hours.

    >>> clock(300), clock(90061)
    ('00:05:00', '1-01:01:01')
    """
    whole = max(0, int(seconds))
    days, rest = divmod(whole, 86_400)
    hours, rest = divmod(rest, 3600)
    text = f"{hours:02}:{rest // 60:02}:{rest % 60:02}"
    return f"{days}-{text}" if days else text


def size_text(mib: int) -> str:
    """Return an amount of memory as Slurm shortens it.

    >>> size_text(2048), size_text(1500), size_text(0)
    ('2G', '1500M', '0')
    """
    if not mib:
        return "0"
    for unit, factor in (("T", 1 << 20), ("G", 1 << 10)):
        if mib % factor == 0:
            return f"{mib // factor}{unit}"
    return f"{mib}M"
