"""What a simulated container writes to its log: that it began, what it would do, how it ended.

All of it follows from its status, so it is written down only once somebody wants to read it: whole
at first (`recalled`), and then what comes (`told`).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from unisono.control.actions import Json
from unisono.runner.containers import Container, Containers, Ended, Running, Waiting
from unisono.runner.logs import stamped

# Scripts in manifests may be long, and there are thousands of pods.
_LONGEST_LINE = 200


@dataclass(frozen=True, slots=True)
class Tale:
    """Lines of one container."""

    container: str
    lines: str
    begins: bool  # a run begins
    is_restart: bool


@dataclass(frozen=True, slots=True)
class Recollection:
    """All that one container has said: in its last run that began, and in the one before."""

    container: str
    lines: str
    previous: str  # empty if there was none, or nobody knows any more


def recalled(pod: Json, containers: Containers) -> Iterator[Recollection]:
    """Yield what the containers have said until now; those that never ran said nothing."""
    for one in containers:
        if isinstance(one.state, Waiting):
            if one.last is not None:  # as a kubelet does, it answers with the last run for both
                lines = _run(pod, one.name, one.restarts, one.last)
                yield Recollection(one.name, lines, lines)
            continue
        before = _run(pod, one.name, one.restarts - 1, one.last) if one.last is not None else ""
        yield Recollection(one.name, _run(pod, one.name, one.restarts, one.state), before)


def told(pod: Json, before: Containers, after: Containers, now: float) -> Iterator[Tale]:
    """Yield what containers say about what happened to them between two moments."""
    for new in after:
        old = before.get(new.name)
        if new is old:
            continue
        begins = _run_number(new) > _run_number(old)
        lines = ""
        if begins:
            if _run_number(new) > 1 and new.last is not None and old.last != new.last:
                # It ended and began again at once; the end is the previous log's last line.
                yield Tale(new.name, _end(new.last), begins=False, is_restart=False)
            since = new.state.since if isinstance(new.state, Running | Ended) else now
            lines = _beginning(pod, new.name, new.restarts, since)
        elif isinstance(old.state, Running) and new.last_end is not None:
            lines = _end(new.last_end)
        if begins and isinstance(new.state, Ended):
            lines += _end(new.state)
        if lines:
            yield Tale(new.name, lines, begins, is_restart=new.restarts > 0)


def _run_number(container: Container) -> int:
    """Count the runs of a container, the present one included."""
    has_run = isinstance(container.state, Running | Ended) or container.last is not None
    return container.restarts + 1 if has_run else 0


def _run(pod: Json, container: str, number: int, state: Running | Ended) -> str:
    end = _end(state) if isinstance(state, Ended) else ""
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


def _end(ended: Ended) -> str:
    return stamped(
        ended.at, f"ended after {ended.at - ended.since:g} s with exit code {ended.code}"
    )
