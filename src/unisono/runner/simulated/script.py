"""What a simulated container does: how long it runs and how it ends.

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

An attempt is a restart inside the pod, or an earlier pod of the same owner and index that failed,
or a restart of the whole job that the pod's labels count. `NAME.CONTAINER` means one container only
(`unisono.dev/run-seconds.proxy`), which is the only way to speak of an init container.

Without `run-seconds`, a container runs as long as the sleeps in its command (`sleep 5`, `sh -c
"sleep 2; sleep 3; exit 1"` with its exit code); servers (`sleep infinity`, `tail -f`,
`sshd`, `ray start --block`) and pods that are always restarted run until they are deleted; init
containers take no time, and all others ten seconds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from unisono.control.actions import Json
from unisono.kinds.digits import whole_number
from unisono.runner.lifecycle import is_sidecar, restart_policy

PREFIX = "unisono.dev/"
_FAIL_TIMES = "unisono.dev/fail-times"
DEFAULT_RUN_SECONDS = 10.0
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SLEEP = re.compile(r"\bsleep\s+(\d+(?:\.\d+)?|infinity|inf)([smhd]?)\b")
_EXIT = re.compile(r"\bexit\s+(\d{1,3})\s*;?\s*$")
_SERVER = re.compile(r"\btail\s+-[fF]|\bsshd\b|\bray\s+start\b.*--block|\bsleep\s+inf|\bpause$")
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


def script_of(pod: Json, container: Json, attempt: int, *, is_init: bool = False) -> Script:
    """Return how a run of a container goes; attempts count from 0."""
    annotations = _Annotations(pod, container["name"], is_init=is_init)
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


def start_seconds(pod: Json) -> float:
    """Return how long a pod takes until its first container runs."""
    return _Annotations(pod, "").seconds("start-seconds", 0.0)


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

    def __init__(self, pod: Json, container: str, *, is_init: bool = False) -> None:
        self._annotations = pod["metadata"].get("annotations") or {}
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
    code = int(found[1]) if (found := _EXIT.search(line)) else 0
    if _SERVER.search(line):
        return math.inf, code
    sleeps = [float(number) * _UNITS[unit] for number, unit in _SLEEP.findall(line)]
    if sleeps:
        return sum(sleeps), code
    if is_init:
        return (math.inf if is_sidecar(container) else 0.0), code
    if restart_policy(pod) == "Always":
        return math.inf, code
    return (0.0 if found else DEFAULT_RUN_SECONDS), code
