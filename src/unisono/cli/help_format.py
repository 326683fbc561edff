"""How `--help` looks: short usage, wrapped paragraphs, options aligned in groups, examples last."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections.abc import Iterable

from unisono.kinds.overriding import override

# What argparse has no public type for: a parser, or a group of its options.
Options = argparse._ActionsContainer

_MOST_COLUMNS = 100
_OPTION_COLUMNS = 28
# Of more options than these, a usage line lists none: they stand below, with what they do.
_MOST_IN_USAGE = 4


def described(text: str) -> str:
    """Return what stands before the options.

    >>> described("Do it.\\n\\nexamples:\\n  unisono do")
    'Do it.'
    """
    return text.partition("examples:\n")[0].strip()


def examples_of(text: str) -> str:
    """Return the examples, which stand behind the options, and what follows them.

    >>> examples_of("Do it.\\n\\nexamples:\\n  unisono do")
    'examples:\\n  unisono do'
    """
    _, heading, after = text.partition("examples:\n")
    return f"{heading}{after}"


class HelpFormat(argparse.HelpFormatter):
    """Keeps indented lines as they are, and wraps everything else to the terminal."""

    def __init__(self, prog: str) -> None:
        """Take the name of the command."""
        columns = min(shutil.get_terminal_size((_MOST_COLUMNS, 0)).columns, _MOST_COLUMNS)
        super().__init__(prog, max_help_position=_OPTION_COLUMNS, width=columns)

    @override
    def add_usage(
        self,
        usage: str | None,
        actions: Iterable[argparse.Action],
        groups: Iterable[argparse._MutuallyExclusiveGroup],
        prefix: str | None = None,
    ) -> None:
        """Name the options that are required, and the others together."""
        listed = list(actions)
        free = [one for one in listed if one.option_strings and not one.required]
        if usage is None and len(free) > _MOST_IN_USAGE:
            stands_for = argparse.Action([], dest="options", nargs="?", metavar="OPTIONS")
            listed = [stands_for, *(one for one in listed if one not in free)]
            groups = []
        super().add_usage(usage, listed, groups, prefix)

    @override
    def start_section(self, heading: str | None) -> None:
        """Begin a group of options."""
        super().start_section("arguments" if heading == "positional arguments" else heading)

    @override
    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Wrap paragraphs; lines that are set in, or follow a heading, are kept."""
        return "\n\n".join(_filled(part, width) for part in text.strip("\n").split("\n\n"))


def _filled(paragraph: str, width: int) -> str:
    lines = paragraph.splitlines()
    if any(line.startswith(" ") for line in lines):
        return paragraph
    return textwrap.fill(" ".join(lines), width, break_on_hyphens=False, break_long_words=False)
