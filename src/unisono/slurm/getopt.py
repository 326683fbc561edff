"""Options as Slurm's programs take them: `-n4`, `-n 4`, `--ntasks=4`, `--ntasks 4`.

Read from a table of ours instead of argparse: its loading takes longer than everything else that
`sbatch` does before it has submitted a job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unisono.slurm.lite_typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Literal

    Takes = Literal["value", "optional", "nothing"]


class BadOption(Exception):
    """What was written is no option; the message is for the user."""


class Option(NamedTuple):
    """One option."""

    long: str
    short: str = ""
    takes: Takes = "value"


class Given(NamedTuple):
    """What was given: options by their long names, and the words that are none."""

    options: dict[str, str]
    words: list[str]


def table(*options: Option) -> Mapping[str, Option]:
    """Return options by what is written: `-n` and `--ntasks`."""
    found = {f"--{one.long}": one for one in options}
    return found | {f"-{one.short}": one for one in options if one.short}


def parse(
    arguments: Sequence[str], known: Mapping[str, Option], *, ends_at_word: bool = False
) -> Given:
    """Read arguments; what comes after the first word is left alone if `ends_at_word`.

    >>> size = table(Option("ntasks", "n"), Option("hold", "H", "nothing"))
    >>> parse(["-n4", "-H", "--ntasks=8", "run.sh", "-x"], size, ends_at_word=True)
    Given(options={'ntasks': '8', 'hold': ''}, words=['run.sh', '-x'])
    """
    options: dict[str, str] = {}
    words: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            words += rest
            break
        if word.startswith("--"):
            _long(word, rest, known, options)
        elif word.startswith("-") and len(word) > 1:
            _short(word, rest, known, options)
        else:
            words.append(word)
            if ends_at_word:
                words += rest
                break
    return Given(options, words)


def _long(word: str, rest: list[str], known: Mapping[str, Option], options: dict[str, str]) -> None:
    name, equals, value = word.partition("=")
    option = known.get(name) or _abbreviated(name, known)
    if option is None:
        raise BadOption(f"unrecognized option '{name}'")
    if equals:
        if option.takes == "nothing":
            raise BadOption(f"option '--{option.long}' doesn't allow an argument")
    elif option.takes == "value":
        if not rest:
            raise BadOption(f"option '--{option.long}' requires an argument")
        value = rest.pop(0)
    options[option.long] = value


def _abbreviated(name: str, known: Mapping[str, Option]) -> Option | None:
    """Return the one option that begins so, as getopt allows."""
    found = {one for text, one in known.items() if text.startswith(name) and len(name) > 2}
    return found.pop() if len(found) == 1 else None


def _short(
    word: str, rest: list[str], known: Mapping[str, Option], options: dict[str, str]
) -> None:
    letters = word[1:]
    while letters:
        option = known.get(f"-{letters[0]}")
        if option is None:
            raise BadOption(f"invalid option -- '{letters[0]}'")
        letters = letters[1:]
        if option.takes == "nothing":
            options[option.long] = ""
        elif option.takes == "optional":
            options[option.long] = letters
            return
        elif letters or rest:
            options[option.long] = letters or rest.pop(0)
            return
        else:
            raise BadOption(f"option requires an argument -- '{option.short}'")
