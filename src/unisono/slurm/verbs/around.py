"""What a program of Slurm knows of its surroundings, and what becomes of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from unisono.slurm.quick import Quick

JOBS = "/apis/unisono.dev/v1/slurmjobs"


class Outcome(NamedTuple):
    """What to print, and the exit code."""

    text: str = ""
    trouble: str = ""  # for stderr
    code: int = 0


class Around(NamedTuple):
    """Who calls, from where, when; and how to reach the API."""

    user: str
    user_id: int
    group_id: int
    host: str
    directory: str
    environment: Mapping[str, str]
    now: float
    connect: Callable[[Mapping[str, str]], Quick]  # takes the options that choose a cluster
    read: Callable[[str], str]  # a file; "-" is stdin
    pause: Callable[[float], float] = lambda seconds: 0.0  # returns the time afterwards


class Refused(Exception):
    """The answer is no; the message is what the program says."""

    def __init__(self, message: str, code: int = 1) -> None:
        """Take the words after `program: error: `, and the exit code."""
        super().__init__(message)
        self.code = code


def path_of(namespace: str, name: str) -> str:
    """Return where a job is."""
    return f"/apis/unisono.dev/v1/namespaces/{namespace}/slurmjobs/{name}"
