"""What a Slurm command is given (user, time, files, API client), and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from unisono.slurm.client import ApiClient
from unisono.slurm.getopt import BadOption, Given, Option, parse
from unisono.slurm.lite_typing import Any, NamedTuple
from unisono.slurm.states import read_states

# What every program takes besides its own.
COMMON = (
    Option("version", "V", "nothing"),
    Option("data-dir"),
    Option("kubeconfig"),
    Option("context"),
)


class Outcome(NamedTuple):
    """What to print, and the exit code."""

    text: str = ""
    error: str = ""  # for stderr
    code: int = 0


class PlannedStart(NamedTuple):
    """When a job would start (0: unknown), on which nodes, and why not now."""

    at: float
    nodes: tuple[str, ...] = ()
    why: str = ""


def _no_estimate(api: ApiClient, job: Mapping[str, object], now: float) -> PlannedStart:
    return PlannedStart(0.0, (), "start times cannot be estimated here")


class Context(NamedTuple):
    """The calling user, host, directory, time and environment, and how to reach the API."""

    user: str
    user_id: int
    group_id: int
    host: str
    directory: str
    environment: Mapping[str, str]
    now: float
    connect: Callable[[Mapping[str, str]], ApiClient]  # takes the options that choose a cluster
    read: Callable[[str], str]  # a file; "-" is stdin
    dry_run: Callable[[ApiClient, dict[str, Any], float], PlannedStart] = _no_estimate
    pause: Callable[[float], float] = lambda seconds: 0.0  # returns the time afterwards
    save: Callable[[str, str], None] = lambda path, text: None
    say: Callable[[str], None] = lambda text: None  # at once, where there is more to come


class PrintAndEnd(Exception):
    """The call needs no cluster: print the message and end with 0."""


# The Slurm whose options, columns and words these programs have.
VERSION = "slurm 22.05.8"


class Refused(Exception):
    """The answer is no; the message is what the program says."""

    def __init__(self, message: str, code: int = 1) -> None:
        """Take the words after `program: error: `, and the exit code."""
        super().__init__(message)
        self.code = code


def path_of(namespace: str, name: str) -> str:
    """Return where a job is."""
    return f"/apis/unisono.dev/v1/namespaces/{namespace}/slurmjobs/{name}"


def parse_arguments(program: str, arguments: Sequence[str], known: Mapping[str, Option]) -> Given:
    """Read arguments; refuse in the words of Slurm's programs."""
    try:
        given = parse(arguments, known)
    except BadOption as error:
        raise Refused(f'{error}\nTry "{program} --help" for more information') from None
    if "version" in given.options:
        raise PrintAndEnd(VERSION)
    return given


def states_wanted(text: str, refusal: str) -> set[str] | None:
    """Return the states of a list, None for all; refuse words that are none."""
    try:
        return read_states(text) if text else None
    except ValueError as word:
        raise Refused(refusal.format(word)) from None
