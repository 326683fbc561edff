"""Everything that can be typed after `unisono`: commands, their verbs, options and choices.

Read from the parsers themselves, so completions and the reference cannot fall behind them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from unisono.cli.commands import BY_NAME, COMMANDS, Command, module_of


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a command: how it is spelled, what it takes, what it is for."""

    names: tuple[str, ...]
    takes: str  # what stands after it; empty if nothing
    choices: tuple[str, ...]
    help: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A command or a verb of one, with all that may follow it."""

    path: tuple[str, ...]
    help: str
    parser: argparse.ArgumentParser | None  # None: a program of Slurm, which reads for itself
    verbs: tuple[str, ...] = ()

    @property
    def options(self) -> tuple[Option, ...]:
        """Return its options, in the order of its help."""
        return tuple(_options(self.parser)) if self.parser is not None else ()

    @property
    def words(self) -> tuple[str, ...]:
        """Return the words that may stand in its places."""
        if self.parser is None:
            return ()
        places = [one for one in self.parser._actions if not one.option_strings]
        return self.verbs or tuple(str(word) for one in places for word in one.choices or ())


def surface(commands: Sequence[Command] = COMMANDS) -> Iterator[Entry]:
    """Return every command and verb, in the order of the help."""
    for command in commands:
        if command.module == BY_NAME:
            yield Entry((command.name,), command.help, None)
            continue
        parser = module_of(command).parser()
        parser.prog = f"unisono {command.name}"
        yield from _entries((command.name,), command.help, parser)


def _entries(path: tuple[str, ...], told: str, parser: argparse.ArgumentParser) -> Iterator[Entry]:
    below: dict[str, argparse.ArgumentParser] = {}
    helps: dict[str, str] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            below = dict(action.choices)
            helps = {one.dest: one.help or "" for one in action._choices_actions}
    yield Entry(path, told, parser, tuple(below))
    for name, one in below.items():
        one.prog = f"unisono {' '.join(path)} {name}"
        yield from _entries((*path, name), helps.get(name, ""), one)


def _options(parser: argparse.ArgumentParser) -> Iterator[Option]:
    for action in parser._actions:
        if not action.option_strings:
            continue
        choices = tuple(str(one) for one in action.choices or ())
        takes = ""
        if action.nargs != 0:
            metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
            takes = "|".join(choices) or metavar
        told = (action.help or "").replace("%(default)s", str(action.default))
        yield Option(tuple(action.option_strings), takes, choices, told.replace("%%", "%"))
