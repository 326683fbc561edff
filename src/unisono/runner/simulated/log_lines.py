"""The log of a simulated container: that it began, what it would do, how it ended.

All of it follows from its status, so it is written only once it is read: whole at first
(`full_logs`), then line by line (`new_lines`).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from unisono.control.actions import Json
from unisono.runner.containers import Container, Containers, Running, Terminated, Waiting
from unisono.runner.logs import stamped

# Scripts in manifests may be long, and there are thousands of pods.
_LONGEST_LINE = 200


@dataclass(frozen=True, slots=True)
class NewLines:
    """Lines of one container."""

    container: str
    lines: str
    begins: bool  # a run begins
    is_restart: bool


@dataclass(frozen=True, slots=True)
class FullLog:
    """The whole log of a container: its last run, and the one before."""

    container: str
    lines: str
    previous: str  # empty if there was none, or it is unknown


def full_logs(pod: Json, containers: Containers) -> Iterator[FullLog]:
    """Yield the logs of the containers until now; those that never ran have none."""
    for one in containers:
        if isinstance(one.state, Waiting):
            if one.last is not None:  # as a kubelet does, it answers with the last run for both
                lines = _run(pod, one.name, one.restarts, one.last)
                yield FullLog(one.name, lines, lines)
            continue
        before = _run(pod, one.name, one.restarts - 1, one.last) if one.last is not None else ""
        yield FullLog(one.name, _run(pod, one.name, one.restarts, one.state), before)


def new_lines(pod: Json, before: Containers, after: Containers, now: float) -> Iterator[NewLines]:
    """Yield the lines that containers log between two states."""
    for new in after:
        old = before.get(new.name)
        if new is old:
            continue
        begins = _run_number(new) > _run_number(old)
        lines = ""
        if begins:
            if _run_number(new) > 1 and new.last is not None and old.last != new.last:
                # It ended and began again at once; the end is the previous log's last line.
                yield NewLines(new.name, _end(new.last), begins=False, is_restart=False)
            since = new.state.since if isinstance(new.state, Running | Terminated) else now
            lines = _beginning(pod, new.name, new.restarts, since)
        elif isinstance(old.state, Running) and new.last_end is not None:
            lines = _end(new.last_end)
        if begins and isinstance(new.state, Terminated):
            lines += _end(new.state)
        if lines:
            yield NewLines(new.name, lines, begins, is_restart=new.restarts > 0)


def _run_number(container: Container) -> int:
    """Count the runs of a container, the present one included."""
    has_run = isinstance(container.state, Running | Terminated) or container.last is not None
    return container.restarts + 1 if has_run else 0


def _run(pod: Json, container: str, number: int, state: Running | Terminated) -> str:
    end = _end(state) if isinstance(state, Terminated) else ""
    return _beginning(pod, container, number, state.since) + end


def _beginning(pod: Json, container: str, restarts: int, since: float) -> str:
    specs = [*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]]
    spec = next(one for one in specs if one["name"] == container)
    words = [*(spec.get("command") or ()), *(spec.get("args") or ())]
    line = shlex.join(map(str, words)).replace("\n", " ") or f"the command of {spec.get('image')}"
    again = f", restart {restarts}" if restarts else ""
    return stamped(
        since, f"simulated on {pod['spec'].get('nodeName')}{again}: {line[:_LONGEST_LINE]}"
    )


def _end(ended: Terminated) -> str:
    return stamped(
        ended.at, f"ended after {ended.at - ended.since:g} s with exit code {ended.code}"
    )
