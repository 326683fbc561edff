"""The state of a pod's containers as values: the present state and how the last run ended.

    Waiting ──▶ Running ──▶ Terminated ──▶ Running …      (restarts + 1 each time)

`read` takes it from a pod's status, `written` puts it there. Statuses hold whole seconds only, so a
kubelet that has seen the exact times keeps its own value (`matches_status`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from unisono.control.actions import Json
from unisono.control.conditions import seconds, timestamp

CREATING = "ContainerCreating"
INITIALIZING = "PodInitializing"
CRASH_LOOP = "CrashLoopBackOff"


@dataclass(frozen=True, slots=True)
class Waiting:
    """It does not run yet, or not again yet."""

    reason: str = CREATING
    message: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    """It runs."""

    since: float
    is_ready: bool = True


@dataclass(frozen=True, slots=True)
class Terminated:
    """It has run."""

    since: float
    at: float
    code: int
    reason: str = ""
    message: str = ""

    @property
    def word(self) -> str:
        """The reason of its end, in one word."""
        return self.reason or ("Completed" if self.code == 0 else "Error")


State = Waiting | Running | Terminated


@dataclass(frozen=True, slots=True)
class Container:
    """One container of a pod: its name, its state, and how its last run ended."""

    name: str
    state: State = Waiting()
    restarts: int = 0
    last: Terminated | None = None

    def started(self, now: float, *, is_ready: bool = True) -> Container:
        """Return it running; a second start is a restart, and what ended is remembered."""
        ended = self.state if isinstance(self.state, Terminated) else self.last
        again = self.restarts + 1 if ended is not None else 0
        return replace(self, state=Running(now, is_ready), restarts=again, last=ended)

    def ended(self, at: float, code: int, reason: str = "", message: str = "") -> Container:
        """Return it ended."""
        since = self.state.since if isinstance(self.state, Running) else at
        return replace(self, state=Terminated(since, at, code, reason, message))

    def waiting(self, reason: str, message: str) -> Container:
        """Return it waiting; the end of its last run is kept."""
        last = self.state if isinstance(self.state, Terminated) else self.last
        return replace(self, state=Waiting(reason, message), last=last)

    @property
    def last_end(self) -> Terminated | None:
        """How it ended the last time, if it does not run now."""
        if isinstance(self.state, Terminated):
            return self.state
        return self.last if isinstance(self.state, Waiting) else None


@dataclass(frozen=True, slots=True)
class Containers:
    """All containers of a pod, by name, in the order in which the spec has them."""

    init: Mapping[str, Container]
    main: Mapping[str, Container]

    def __iter__(self) -> Iterator[Container]:
        """Every container, init containers first."""
        yield from self.init.values()
        yield from self.main.values()

    def get(self, name: str) -> Container:
        """Return a container by name."""
        return self.init[name] if name in self.init else self.main[name]

    def put(self, *changed: Container) -> Containers:
        """Return them with some replaced."""
        if not changed:
            return self
        new = {one.name: one for one in changed}
        return Containers(
            {name: new.get(name, old) for name, old in self.init.items()},
            {name: new.get(name, old) for name, old in self.main.items()},
        )


def read(pod: Json) -> Containers:
    """Return what the status of a pod says of its containers; unknown ones wait."""
    spec, status = pod["spec"], pod.get("status") or {}
    first = INITIALIZING if spec.get("initContainers") else CREATING
    return Containers(
        _read(spec.get("initContainers") or (), status.get("initContainerStatuses"), INITIALIZING),
        _read(spec["containers"], status.get("containerStatuses"), first),
    )


def _read(
    specs: Sequence[Json], statuses: Sequence[Json] | None, first: str
) -> dict[str, Container]:
    found = {one["name"]: one for one in statuses or ()}
    return {
        spec["name"]: _container(found[spec["name"]])
        if spec["name"] in found
        else Container(spec["name"], Waiting(first))
        for spec in specs
    }


def _container(status: Json) -> Container:
    before = (status.get("lastState") or {}).get("terminated")
    return Container(
        status["name"],
        _state(status),
        int(status.get("restartCount", 0)),
        _ended(before) if before is not None else None,
    )


def _state(status: Json) -> State:
    state = status.get("state") or {}
    if "running" in state:
        return Running(
            seconds(state["running"].get("startedAt") or ""), bool(status.get("ready", True))
        )
    if "terminated" in state:
        return _ended(state["terminated"])
    waiting = state.get("waiting") or {}
    return Waiting(waiting.get("reason", CREATING), waiting.get("message", ""))


def _ended(raw: Json) -> Terminated:
    return Terminated(
        seconds(raw.get("startedAt") or ""),
        seconds(raw.get("finishedAt") or ""),
        int(raw.get("exitCode", 0)),
        raw.get("reason", ""),
        raw.get("message", ""),
    )


def written(containers: Mapping[str, Container], specs: Sequence[Json]) -> list[Json]:
    """Return the container statuses of a pod."""
    return [_written(containers[spec["name"]], spec) for spec in specs]


def _written(container: Container, spec: Json) -> Json:
    state = container.state
    image = spec.get("image", "")
    status: Json = {
        "name": container.name,
        "image": image,
        "imageID": f"unisono://{image}",
        "restartCount": container.restarts,
        "ready": isinstance(state, Running) and state.is_ready,
        "started": isinstance(state, Running),
        "state": {},
    }
    match state:
        case Running(since):
            status["state"] = {"running": {"startedAt": timestamp(since)}}
        case Terminated():
            status["state"] = {"terminated": _end(state)}
        case Waiting(reason, message):
            waiting = {"reason": reason}
            if message:
                waiting["message"] = message
            status["state"] = {"waiting": waiting}
    if container.last is not None:
        status["lastState"] = {"terminated": _end(container.last)}
    return status


def _end(ended: Terminated) -> Json:
    found: Json = {
        "exitCode": ended.code,
        "reason": ended.word,
        "startedAt": timestamp(ended.since),
        "finishedAt": timestamp(ended.at),
    }
    if ended.message:
        found["message"] = ended.message
    return found


def matches_status(exact: Containers, stored: Containers) -> bool:
    """Say whether exact times agree with the whole seconds of a status."""
    return [_rounded(one) for one in exact] == [_rounded(one) for one in stored]


def _rounded(container: Container) -> tuple[object, ...]:
    return (
        container.name,
        container.restarts,
        _rounded_state(container.state),
        _rounded_state(container.last) if container.last is not None else None,
    )


def _rounded_state(state: State) -> tuple[object, ...]:
    match state:
        case Running(since, is_ready):
            return ("running", int(since), is_ready)
        case Terminated(since, at, code):
            return ("ended", int(since), int(at), code, state.word)
        case Waiting(reason, message):
            return ("waiting", reason, message)


# ---- runs of process pods ------------------------------------------------------------------------
#
# Containers' states from the pod's status and the runs that the machine knows.
#
# The machine is right about runs that it knows; a status is all there is about earlier ones. A run
# that a status does not know of was started just before a crash, and is not started again.

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


def _run_of(container: Container) -> int:
    """Return the number of a container's last run; -1 if it has not run yet."""
    if isinstance(container.state, Waiting) and container.last is None:
        return -1
    return container.restarts


def next_run(container: Container) -> int:
    """Return the number of the run that a start would begin."""
    return _run_of(container) + 1


def _with_run(one: Container, seen: RunState | None, now: float) -> Container:
    if isinstance(seen, UnknownRun):
        return one
    if seen is None:
        if isinstance(one.state, Running):
            return one.ended(
                now, _KILLED, "ContainerStatusUnknown", "the machine does not know this run"
            )
        return one
    known = _run_of(one)
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
