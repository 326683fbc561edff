"""Containers' states from the pod's status and the runs that the machine knows.

The machine is right about runs that it knows; a status is all there is about earlier ones. A run
that a status does not know of was started just before a crash, and is not started again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from unisono.runner.containers import Container, Containers, Running, Terminated, Waiting

_KILLED = 137


@dataclass(frozen=True, slots=True)
class RunningRun:
    """A run that goes on."""

    run: int
    since: float


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run that has ended."""

    run: int
    since: float
    at: float
    code: int
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class UnknownRun:
    """A run of an earlier process that may or may not have begun."""

    run: int


RunState = RunningRun | EndedRun | UnknownRun


def with_runs(
    containers: Containers, look: Callable[[str], RunState | None], now: float
) -> Containers:
    """Return the containers with the machine's runs applied."""
    found = [_with_run(one, look(one.name), now) for one in containers]
    return containers.put(*(new for new, old in zip(found, containers, strict=True) if new != old))


def run_of(container: Container) -> int:
    """Return the number of a container's last run; -1 if it has not run yet."""
    if isinstance(container.state, Waiting) and container.last is None:
        return -1
    return container.restarts


def next_run(container: Container) -> int:
    """Return the number of the run that a start would begin."""
    return run_of(container) + 1


def _with_run(one: Container, seen: RunState | None, now: float) -> Container:
    if isinstance(seen, UnknownRun):
        return one
    if seen is None:
        if isinstance(one.state, Running):
            return one.ended(
                now, _KILLED, "ContainerStatusUnknown", "the machine does not know this run"
            )
        return one
    known = run_of(one)
    if seen.run < known:
        return one
    is_new = seen.run > known
    before = one.last_end if is_new else one.last
    match seen:
        case RunningRun(run, since):
            if not is_new and isinstance(one.state, Running):
                return one
            return replace(one, state=Running(since), restarts=run, last=before)
        case EndedRun(run, since, at, code, reason, message):
            if not is_new and not isinstance(one.state, Running):
                return one
            ended = Terminated(since, at, code, reason, message)
            return replace(one, state=ended, restarts=run, last=before)
