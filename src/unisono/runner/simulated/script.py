"""What a simulated pod does: how long its containers run, how they end, and where they are now.

| annotation of the pod       | meaning                                        | else      |
| --------------------------- | ---------------------------------------------- | --------- |
| `unisono.dev/run-seconds`   | how long its containers run, or `forever`      | see below |
| `unisono.dev/exit-code`     | how they end                                   | 0         |
| `unisono.dev/fail-after`    | they fail after so many seconds instead        | never     |
| `unisono.dev/fail-times`    | only the first so many attempts fail           | all       |
| `unisono.dev/fail-index`    | only pods of these indexes fail (`1`, `0,3`)   | all       |
| `unisono.dev/start-seconds` | how long it takes until they run               | 0         |
| `unisono.dev/ready-seconds` | how long it then takes until they are ready    | 0         |
| `unisono.dev/stop-seconds`  | how long they take to stop when told to        | 0         |

A node may have `start-seconds`, `ready-seconds` and `stop-seconds`, too: they hold for pods on it
that say nothing, as nodes of a real cluster pull images and wait for processes to stop.

An attempt is a restart inside the pod, or an earlier pod of the same owner and index that failed,
or a restart of the whole job that the pod's labels count. `NAME.CONTAINER` means one container only
(`unisono.dev/run-seconds.proxy`), which is the only way to speak of an init container.

Without `run-seconds`, a container runs as long as the sleeps in its command (`sleep 5`, `sh -c
"sleep 2; sleep 3; exit 1"` with its exit code); servers (`sleep infinity`, `tail -f`, `sshd -D`,
`ray start --block`, an image such as nginx without a command) and pods that are always restarted
run until they are deleted; init containers take no time, and all others ten seconds. What busybox
and alpine do not have cannot be called there (`images`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from unisono.control.actions import Json
from unisono.kinds.digits import whole_number
from unisono.runner.containers import Container, Containers, Running, Waiting
from unisono.runner.lifecycle import is_sidecar, next_actions, phase_of, restart_policy
from unisono.runner.simulated.images import failure_of, is_server
from unisono.runner.status import Failure

PREFIX = "unisono.dev/"
_FAIL_TIMES = "unisono.dev/fail-times"
DEFAULT_RUN_SECONDS = 10.0
# What a node may say for the pods on it.
_OF_NODES = tuple(f"{PREFIX}{name}-seconds" for name in ("start", "ready", "stop"))
_NOTHING: Mapping[str, str] = {}
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SLEEP = re.compile(r"\bsleep\s+(\d+(?:\.\d+)?|infinity|inf)([smhd]?)\b")
_EXIT = re.compile(r"\bexit\s+(\d{1,3})\s*;?\s*$")
_SERVER = re.compile(
    r"\btail\s+-[fF]|\bsshd\b[^;&|\n]*\s-\w*D|\bray\s+start\b.*--block|\bsleep\s+inf|\bpause$"
)
_INDEXES = (
    "batch.kubernetes.io/job-completion-index",
    "volcano.sh/task-index",
    "training.kubeflow.org/replica-index",
)
_ATTEMPTS = (
    "jobset.sigs.k8s.io/restart-attempt",
    "volcano.sh/job-retry-count",
    "unisono.dev/attempt",
)


@dataclass(frozen=True, slots=True)
class Script:
    """How one run of a container goes; durations in seconds of the pod's own time."""

    run_s: float
    exit_code: int
    ready_s: float = 0.0
    stop_s: float = 0.0


def script_of(
    pod: Json,
    container: Json,
    attempt: int,
    *,
    is_init: bool = False,
    node: Mapping[str, str] = _NOTHING,
) -> Script:
    """Return how a run of a container goes; attempts count from 0.

    `node` holds the annotations of the pod's node.
    """
    annotations = _Annotations(pod, container["name"], is_init=is_init, node=node)
    run_s, exit_code = _of_command(pod, container, is_init=is_init)
    run_s = annotations.seconds("run-seconds", run_s)
    exit_code = annotations.whole("exit-code", exit_code)
    fail_after = annotations.seconds("fail-after", math.inf)
    if not _fails(pod, annotations, attempt):
        exit_code = 0
    elif fail_after < run_s:
        run_s, exit_code = fail_after, exit_code or 1
    return Script(
        run_s,
        exit_code,
        annotations.seconds("ready-seconds", 0.0),
        annotations.seconds("stop-seconds", 0.0),
    )


def start_seconds(pod: Json, node: Mapping[str, str] = _NOTHING) -> float:
    """Return how long a pod takes until its first container runs."""
    return _Annotations(pod, "", node=node).seconds("start-seconds", 0.0)


def counts_attempts(pod: Json) -> bool:
    """Say whether it matters how often a pod was tried before."""
    return any(key.startswith(_FAIL_TIMES) for key in pod["metadata"].get("annotations") or ())


def attempts_before(pod: Json, siblings: Sequence[Json]) -> int:
    """Return how often a pod's place was tried before the pod was made.

    `siblings` are the pods of the same owner: one of the same index that had failed when this pod
    was made is an attempt. Jobs that start over as a whole count in a label.
    """
    texts = _texts(pod)
    counted = max(whole_number(texts.get(key)) or 0 for key in _ATTEMPTS)
    made = pod["metadata"].get("creationTimestamp", "")
    index = index_of(pod)
    failed = sum(
        1
        for other in siblings
        if (other.get("status") or {}).get("phase") == "Failed"
        and index_of(other) == index
        and _ended_at(other) <= made
        and other["metadata"]["uid"] != pod["metadata"]["uid"]
    )
    return max(counted, failed)


def index_of(pod: Json) -> str:
    """Return a pod's number within its job; empty if it has none."""
    texts = _texts(pod)
    return next((texts[key] for key in _INDEXES if key in texts), "")


def _texts(pod: Json) -> dict[str, str]:
    metadata = pod["metadata"]
    return {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}


def _ended_at(pod: Json) -> str:
    """Return when the last container ended; times of one form compare as texts."""
    ends = [
        ended.get("finishedAt") or ""
        for one in pod["status"].get("containerStatuses") or ()
        if (ended := (one.get("state") or {}).get("terminated"))
    ]
    return max(ends, default="~")


def _fails(pod: Json, annotations: _Annotations, attempt: int) -> bool:
    times = annotations.seconds("fail-times", math.inf)
    only = annotations.text("fail-index")
    return attempt < times and (only is None or index_of(pod) in re.split(r"[,\s]+", only))


class _Annotations:
    """The annotations of a pod as they concern one container."""

    def __init__(
        self,
        pod: Json,
        container: str,
        *,
        is_init: bool = False,
        node: Mapping[str, str] = _NOTHING,
    ) -> None:
        own = pod["metadata"].get("annotations") or {}
        said = {name: node[name] for name in _OF_NODES if name in node} if node else {}
        self._annotations = {**said, **own}
        self._container = container
        self._is_init = is_init

    def text(self, name: str) -> str | None:
        found = self._annotations.get(f"{PREFIX}{name}.{self._container}")
        if found is None and not self._is_init:
            found = self._annotations.get(PREFIX + name)
        return str(found) if found is not None else None

    def seconds(self, name: str, default: float) -> float:
        """Return a duration; what is none counts as not said."""
        text = self.text(name)
        if text is None:
            return default
        if text in ("forever", "never", "infinity"):
            return math.inf
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text.strip())
        return float(found[1]) * _UNITS[found[2]] if found else default

    def whole(self, name: str, default: int) -> int:
        number = whole_number((self.text(name) or "").strip(), 255)
        return default if number is None else number


def _of_command(pod: Json, container: Json, *, is_init: bool) -> tuple[float, int]:
    """Return how long a command runs and how it ends, as far as one can tell."""
    line = " ".join(map(str, (*(container.get("command") or ()), *(container.get("args") or ()))))
    code = int(found[1]) if (found := _EXIT.search(line)) else failure_of(container)
    if not line and is_server(str(container.get("image") or "")):
        return math.inf, code
    if _SERVER.search(line):
        return math.inf, code
    sleeps = [float(number) * _UNITS[unit] for number, unit in _SLEEP.findall(line)]
    if sleeps:
        return sum(sleeps), code
    if is_init:
        return (math.inf if is_sidecar(container) else 0.0), code
    if restart_policy(pod) == "Always":
        return math.inf, code
    return (0.0 if code or found else DEFAULT_RUN_SECONDS), code


# ---- lifecycle -----------------------------------------------------------------------------------
#
# The lifecycle of a simulated pod: its containers' states now, and when to look again.
#
#     bound ──start-seconds──▶ Running ──ready-seconds──▶ Ready ──run-seconds──▶ Succeeded | Failed
#                                 ▲   containers that ended   │
#                                 └── back-off (CrashLoop…)  ◀┘
#
# Pure: the same pod at the same time gives the same answer. One step goes as far as the phase stays
# what it is, so that watchers see every phase, and no phase takes more than one write.

_KILLED = 137
_TERMINATED = 143


@dataclass(frozen=True, slots=True)
class NextStatus:
    """The containers' states now, and when they may change."""

    containers: Containers
    again_at: float | None = None
    failure: Failure | None = None
    is_over: bool = False  # stopped for good


@dataclass(frozen=True, slots=True)
class PodLifecycle:
    """One pod, and the scripts of its containers."""

    pod: Json
    attempts: int  # how often its place was tried before
    speed: float  # so many seconds of the pod pass in one of ours
    node: Mapping[str, str] = field(default_factory=dict)  # annotations of its node

    def script(self, container: Container) -> Script:
        """Return how the present run of a container goes."""
        spec, is_init = _specs(self.pod)[container.name]
        attempt = self.attempts + container.restarts
        return script_of(self.pod, spec, attempt, is_init=is_init, node=self.node)

    def live(self, containers: Containers, seen_at: float, now: float) -> NextStatus:
        """Return the state of a pod that is not deleted; it was first seen at a time."""
        begins = seen_at + start_seconds(self.pod, self.node) / self.speed
        if now < begins and not any(_has_run(one) for one in containers):
            return NextStatus(containers, _finite(begins))
        expires = self._expires(seen_at)
        if now >= expires:
            return self._expired(containers, expires)
        phase = (self.pod.get("status") or {}).get("phase", "Pending")
        again: float | None = None
        while True:
            before = containers
            containers, again = self._step(containers, now)
            if containers is before or phase_of(self.pod, containers) != phase:
                break
        if containers is not before:  # the phase changed: the next is another write
            containers = self._without_sidecars(containers, now)
            _, again = self._step(containers, now)
        return NextStatus(
            containers, _finite(min(again if again is not None else math.inf, expires))
        )

    def stop(self, containers: Containers, told_at: float, now: float) -> NextStatus:
        """Return the state of a pod that was deleted at a time."""
        grace = float(self.pod["metadata"].get("deletionGracePeriodSeconds") or 0)
        running = [one for one in containers if isinstance(one.state, Running)]
        ends = {
            one.name: told_at + min(self.script(one).stop_s / self.speed, grace) for one in running
        }
        last = max(ends.values(), default=told_at)
        if now < last:
            return NextStatus(containers, last)
        stopped = []
        for one in running:
            is_killed = self.script(one).stop_s / self.speed > grace
            stopped.append(one.ended(max(ends[one.name], _since(one)), _code(is_killed=is_killed)))
        return NextStatus(containers.put(*stopped), is_over=True)

    # ---- one step ----------------------------------------------------------------------------

    def _step(self, containers: Containers, now: float) -> tuple[Containers, float | None]:
        """Take containers as far as one round of rules does."""
        changed: list[Container] = []
        times: list[float] = []
        for one in containers:
            if isinstance(one.state, Running):
                then, due = self._run(one, one.state, now)
                if then is not one:
                    changed.append(then)
                times.append(due)
        if changed:
            return containers.put(*changed), now
        found = next_actions(self.pod, containers, now, speed=self.speed)
        if found.again_at is not None:
            times.append(found.again_at)
        changed = [*found.waits]
        changed += [self._started(containers.get(name), now) for name in found.start]
        if changed:
            return containers.put(*changed), now
        return containers, min(times, default=None)

    def _without_sidecars(self, containers: Containers, now: float) -> Containers:
        """Return them with the sidecars of a pod that is through stopped."""
        stopped = next_actions(self.pod, containers, now).stop
        return containers.put(*(containers.get(name).ended(now, 0) for name in stopped))

    def _run(self, one: Container, state: Running, now: float) -> tuple[Container, float]:
        """Return a running container as it is now, and when that changes."""
        script = self.script(one)
        ends = state.since + script.run_s / self.speed
        if ends <= now:
            return one.ended(ends, script.exit_code), ends
        ready_at = state.since + script.ready_s / self.speed
        if not state.is_ready and ready_at <= now:
            return replace(one, state=Running(state.since)), ends
        return one, ends if state.is_ready else min(ends, ready_at)

    def _started(self, one: Container, now: float) -> Container:
        then = one.started(now)
        return one.started(now, is_ready=False) if self.script(then).ready_s > 0 else then

    # ---- the whole pod -----------------------------------------------------------------------

    def _expires(self, seen_at: float) -> float:
        deadline = self.pod["spec"].get("activeDeadlineSeconds")
        return math.inf if deadline is None else seen_at + float(deadline) / self.speed

    def _expired(self, containers: Containers, at: float) -> NextStatus:
        message = "Pod was active on the node longer than the specified deadline"
        ended = [
            one.ended(max(at, _since(one)), _TERMINATED)
            for one in containers
            if isinstance(one.state, Running)
        ]
        return NextStatus(containers.put(*ended), failure=Failure("DeadlineExceeded", message))


def _specs(pod: Json) -> Mapping[str, tuple[Json, bool]]:
    spec = pod["spec"]
    return {
        **{one["name"]: (one, True) for one in spec.get("initContainers") or ()},
        **{one["name"]: (one, False) for one in spec["containers"]},
    }


def _has_run(container: Container) -> bool:
    return container.last is not None or not isinstance(container.state, Waiting)


def _since(container: Container) -> float:
    return container.state.since if isinstance(container.state, Running) else 0.0


def _code(*, is_killed: bool) -> int:
    return _KILLED if is_killed else _TERMINATED


def _finite(time: float) -> float | None:
    return time if time < math.inf else None
