"""How containers stand, from what a status says and what the machine sees.

The machine is right about runs that it knows; a status is all there is about earlier ones. A run
that a status does not know of was started just before a crash, and is not started again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from unisono.runner.containers import Container, Containers, Ended, Running, Waiting

_KILLED = 137


@dataclass(frozen=True, slots=True)
class Up:
    """A run that goes on."""

    run: int
    since: float


@dataclass(frozen=True, slots=True)
class Down:
    """A run that has ended."""

    run: int
    since: float
    at: float
    code: int
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Starting:
    """A run of an earlier life of ours of which nobody knows yet whether it began."""

    run: int


Seen = Up | Down | Starting


def observed(containers: Containers, look: Callable[[str], Seen | None], now: float) -> Containers:
    """Return how the containers stand now."""
    found = [_observed(one, look(one.name), now) for one in containers]
    return containers.put(*(new for new, old in zip(found, containers, strict=True) if new != old))


def run_of(container: Container) -> int:
    """Return the number of a container's last run; -1 if it has not run yet."""
    if isinstance(container.state, Waiting) and container.last is None:
        return -1
    return container.restarts


def next_run(container: Container) -> int:
    """Return the number of the run that a start would begin."""
    return run_of(container) + 1


def _observed(one: Container, seen: Seen | None, now: float) -> Container:
    if isinstance(seen, Starting):
        return one
    if seen is None:
        if isinstance(one.state, Running):
            return one.ended(now, _KILLED, "ContainerStatusUnknown", "nothing is known of it here")
        return one
    known = run_of(one)
    if seen.run < known:
        return one
    is_new = seen.run > known
    before = one.last_end if is_new else one.last
    match seen:
        case Up(run, since):
            if not is_new and isinstance(one.state, Running):
                return one
            return replace(one, state=Running(since), restarts=run, last=before)
        case Down(run, since, at, code, reason, message):
            if not is_new and not isinstance(one.state, Running):
                return one
            ended = Ended(since, at, code, reason, message)
            return replace(one, state=ended, restarts=run, last=before)
