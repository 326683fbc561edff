"""Which containers of a pod are to start, to wait and to stop: the rules of a kubelet.

    init containers     one after another, each to a good end
      with Always       (sidecars) start in order, keep running, stop when the others have ended
    containers          all at once, when the init containers are done
    restartPolicy       Always, OnFailure or Never: which containers restart, after which back-off

The back-off begins with the second restart: none, 10 s, 20 s … five minutes, and starts over after
a run of ten minutes. Pure, and the same for simulated pods and for processes. Spec jobs §8.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from unisono.control.actions import Json
from unisono.runner.containers import (
    CRASH_LOOP,
    Container,
    Containers,
    Running,
    Terminated,
    Waiting,
)

FIRST_BACK_OFF_SECONDS = 10.0
LONGEST_BACK_OFF_SECONDS = 300.0
# A run of this length was a good one: the next back-off is as short as the first.
GOOD_RUN_SECONDS = 600.0

Phase = Literal["Pending", "Running", "Succeeded", "Failed"]


@dataclass(slots=True)
class NextActions:
    """The next actions on the containers of a pod."""

    start: list[str] = field(default_factory=list)
    stop: list[str] = field(default_factory=list)  # sidecars of a pod whose containers are done
    waits: list[Container] = field(default_factory=list)  # with the reason why they wait
    again_at: float | None = None  # when the next back-off is over


def next_actions(
    pod: Json, containers: Containers, now: float, *, speed: float = 1.0
) -> NextActions:
    """Return what to start and stop of a pod that is not deleted."""
    found = NextActions()
    policy = restart_policy(pod)
    if phase_of(pod, containers) in ("Succeeded", "Failed"):
        found.stop = [one.name for one in containers if isinstance(one.state, Running)]
        return found
    for spec in pod["spec"].get("initContainers") or ():
        container = containers.init[spec["name"]]
        sidecar = is_sidecar(spec)
        if isinstance(container.state, Terminated) and container.state.code == 0 and not sidecar:
            continue
        _run(container, "Always" if sidecar else _of_init(policy), found, now, pod, speed)
        if not (sidecar and _has_begun(container)):
            return found
    for container in containers.main.values():
        _run(container, policy, found, now, pod, speed)
    return found


def phase_of(pod: Json, containers: Containers) -> Phase:
    """Return the phase that follows from the containers' states."""
    policy = restart_policy(pod)
    for spec in pod["spec"].get("initContainers") or ():
        container = containers.init[spec["name"]]
        if is_sidecar(spec):
            if not _has_begun(container):
                return "Pending"
        elif not isinstance(container.state, Terminated) or container.state.code != 0:
            has_failed = isinstance(container.state, Terminated) and policy == "Never"
            return "Failed" if has_failed else "Pending"
    main = list(containers.main.values())
    if any(isinstance(one.state, Waiting) and one.last is None for one in main):
        return "Pending"
    if policy == "Always" or any(not isinstance(one.state, Terminated) for one in main):
        return "Running"
    has_failed = any(isinstance(one.state, Terminated) and one.state.code != 0 for one in main)
    if not has_failed:
        return "Succeeded"
    return "Failed" if policy == "Never" else "Running"


def is_initialized(pod: Json, containers: Containers) -> bool:
    """Say whether the init containers are done."""
    for spec in pod["spec"].get("initContainers") or ():
        container = containers.init[spec["name"]]
        if is_sidecar(spec):
            if not _has_begun(container):
                return False
        elif not isinstance(container.state, Terminated) or container.state.code != 0:
            return False
    return True


def restart_policy(pod: Json) -> str:
    """Return the pod's rule for containers that ended."""
    return str(pod["spec"].get("restartPolicy") or "Always")


def is_sidecar(spec: Json) -> bool:
    """Say whether an init container keeps running beside the others."""
    return spec.get("restartPolicy") == "Always"


def sidecars(pod: Json) -> Iterator[str]:
    """Yield the names of init containers that keep running."""
    for spec in pod["spec"].get("initContainers") or ():
        if is_sidecar(spec):
            yield str(spec["name"])


def back_off(container: Container, *, speed: float = 1.0) -> float:
    """Return how long a container that ended waits before it starts again, in seconds.

    >>> from unisono.runner.containers import Container, Terminated
    >>> [back_off(Container("c", Terminated(0, 1, 1), restarts)) for restarts in (0, 1, 2, 9)]
    [0.0, 10.0, 20.0, 300.0]
    """
    ended = container.last_end
    if ended is None or container.restarts == 0:
        return 0.0
    if (ended.at - ended.since) * speed >= GOOD_RUN_SECONDS:
        return 0.0
    doubled = FIRST_BACK_OFF_SECONDS * (1 << min(container.restarts - 1, 10))
    return float(min(doubled, LONGEST_BACK_OFF_SECONDS) / speed)


def _run(
    container: Container, policy: str, found: NextActions, now: float, pod: Json, speed: float
) -> None:
    """Start a container if it is to run; let it wait if its back-off is not over."""
    ended = container.last_end
    if isinstance(container.state, Running) or (
        isinstance(container.state, Terminated) and not _starts_again(container.state, policy)
    ):
        return
    if ended is None:
        found.start.append(container.name)
        return
    wait = back_off(container, speed=speed)
    due = ended.at + wait
    if due <= now:
        found.start.append(container.name)
        return
    found.again_at = due if found.again_at is None else min(due, found.again_at)
    if isinstance(container.state, Terminated):
        name = f"{container.name} pod={pod['metadata']['name']}"
        message = f"back-off {wait:g}s restarting failed container={name}"
        found.waits.append(container.waiting(CRASH_LOOP, message))


def _starts_again(ended: Terminated, policy: str) -> bool:
    return policy == "Always" or (policy == "OnFailure" and ended.code != 0)


def _of_init(policy: str) -> str:
    """An init container that ended well is through, whatever the pod's rule is."""
    return "OnFailure" if policy == "Always" else policy


def _has_begun(container: Container) -> bool:
    return container.last is not None or not isinstance(container.state, Waiting)
