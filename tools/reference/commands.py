"""The page of all commands, from their parsers."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

from unisono.cli.completion import Entry, Option, surface
from unisono.cli.slurm_programs import EXAMPLES

_HEAD = """\
# Every command

<!-- written by `make reference`; edit the parsers instead -->

One program, `unisono`. Exit codes: 0 done, 1 refused or negative (and the output says why), 2 the
input is wrong, 3 something outside failed, 130 interrupted. Only the result goes to stdout.
`NO_COLOR` and pipes switch colours off. `unisono completion bash|zsh|fish` prints completions.

The benchmarks are no command: they need the tests' worlds and public traces, which are not
installed with the program. In a clone, `make bench` runs them all at small sizes and
`make bench ARGS=NAME` some at the sizes of our promises.

| command | does |
| --- | --- |
"""


def page() -> str:
    """Return the page."""
    entries = list(surface())
    rows = [
        f"| [`unisono {' '.join(one.path)}`](#{_anchor(one)}) | {_cell(one.help)} |"
        for one in entries
    ]
    return _HEAD + "\n".join(rows) + "\n\n" + "\n".join(map(_section, entries))


def _anchor(entry: Entry) -> str:
    return "unisono-" + "-".join(entry.path)


def _section(entry: Entry) -> str:
    name = " ".join(entry.path)
    parts = [f"## `unisono {name}`\n"]
    if entry.parser is None:
        told = f"`unisono {name} --help` lists the options, which are [Slurm's](slurm.md)."
        parts.append(f"{_sentence(entry.help)} {told}\n")
        parts.append(_code(EXAMPLES[name]))
        return "\n".join(parts)
    description, examples = _told(entry.parser)
    parts.append(description + "\n")
    rows = [*_places(entry.parser), *_options(entry.options)]
    if rows:
        parts.append("| argument | meaning |\n| --- | --- |\n" + "\n".join(rows) + "\n")
    if examples:
        parts.append(_code(examples))
    return "\n".join(parts)


def _told(parser: argparse.ArgumentParser) -> tuple[str, list[str]]:
    """Return what a parser says about itself, and its examples."""
    before, _, after = (parser.description or "").partition("examples:\n")
    text = f"{parser.epilog or ''}\n{after}"
    examples = re.findall(r"^  (\S.*)$", text.partition("examples:\n")[2] or after, re.MULTILINE)
    paragraphs = [_paragraph(one) for one in before.split("\n\n") if one.strip()]
    return "\n\n".join(paragraphs), examples


def _paragraph(text: str) -> str:
    """Return a paragraph; lines that are set in stay as they are."""
    lines = text.splitlines()
    told = " ".join(" ".join(line.split()) for line in lines if not line.startswith("  "))
    shown = [line[2:] for line in lines if line.startswith("  ")]
    parts = ([_plain(told)] if told else []) + ([_code(shown).rstrip()] if shown else [])
    return "\n\n".join(parts)


def _plain(text: str) -> str:
    """Return a sentence in which nothing looks like a tag."""
    return text.replace("<", "&lt;")


def _places(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if action.option_strings or isinstance(action, argparse._SubParsersAction):
            continue
        metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
        name = "|".join(map(str, action.choices)) if action.choices else metavar
        more = " …" if action.nargs in ("+", "*") else ""
        yield f"| `{_cell(name)}{more}` | {_cell(action.help or '')} |"


def _options(options: tuple[Option, ...]) -> Iterator[str]:
    for one in options:
        if "--help" in one.names:
            continue
        takes = f" {one.takes}" if one.takes else ""
        yield f"| `{_cell(', '.join(one.names) + takes)}` | {_cell(one.help)} |"


def _cell(text: str) -> str:
    return " ".join(_plain(text).split()).replace("|", "\\|")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _code(lines: tuple[str, ...] | list[str]) -> str:
    return "```text\n" + "\n".join(lines) + "\n```\n"
