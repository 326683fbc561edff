"""Deployments and their kin: how many replicas are wanted, there, ready; and their pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from unisono.apiserver.tables.printer import (
    AGE,
    AGE_HEADING,
    NAME,
    NAME_HEADING,
    NONE,
    Cell,
    Content,
    Heading,
    Printed,
    Printer,
    age_of,
    column,
    container_columns,
    count_of,
    inside,
    labels_cell,
    of,
    printer,
    selector_cell,
    wide,
)
from unisono.apiserver.times import age, duration, seconds


def _replicas(obj: Mapping[str, Any]) -> int:
    wanted = inside(obj, "spec", "replicas")
    return 1 if wanted is None else int(wanted)


def _wanted(obj: Mapping[str, Any], now: float) -> Content:
    return _replicas(obj)


def _ready(obj: Mapping[str, Any], now: float) -> Content:
    return f"{inside(obj, 'status', 'readyReplicas') or 0}/{_replicas(obj)}"


def _number(name: str, field: str, description: str, *, type: str = "integer") -> Printed:
    return column(name, of("status", field, absent=0), description, type=type)


_READY = column("Ready", _ready, "How many replicas are ready, out of how many wanted.")
_DESIRED = column("Desired", _wanted, "How many replicas are wanted.", type="integer")


def _selector(cell: Cell) -> Printed:
    return wide("Selector", cell, "Which pods are its own.")


DEPLOYMENTS = printer(
    NAME,
    _READY,
    # Kubernetes declares these two as text and sends numbers; clients are used to it.
    _number("Up-to-date", "updatedReplicas", "How many run the newest template.", type="string"),
    _number("Available", "availableReplicas", "How many have been ready for long.", type="string"),
    AGE,
    *container_columns("spec", "template"),
    _selector(selector_cell("spec", "selector")),
)

REPLICA_SETS = printer(
    NAME,
    _DESIRED,
    _number("Current", "replicas", "How many replicas there are."),
    _number("Ready", "readyReplicas", "How many of them are ready."),
    AGE,
    *container_columns("spec", "template"),
    _selector(selector_cell("spec", "selector")),
)

REPLICATION_CONTROLLERS = printer(
    NAME,
    _DESIRED,
    _number("Current", "replicas", "How many replicas there are."),
    _number("Ready", "readyReplicas", "How many of them are ready."),
    AGE,
    *container_columns("spec", "template"),
    _selector(labels_cell("spec", "selector")),
)

STATEFUL_SETS = printer(NAME, _READY, AGE, *container_columns("spec", "template"))

DAEMON_SETS = printer(
    NAME,
    _number("Desired", "desiredNumberScheduled", "How many nodes should run a pod."),
    _number("Current", "currentNumberScheduled", "How many nodes run one."),
    _number("Ready", "numberReady", "How many of those pods are ready."),
    _number("Up-to-date", "updatedNumberScheduled", "How many run the newest template."),
    _number("Available", "numberAvailable", "How many have been ready for long."),
    column(
        "Node Selector",
        labels_cell("spec", "template", "spec", "nodeSelector"),
        "On which nodes its pods run.",
    ),
    AGE,
    *container_columns("spec", "template"),
    _selector(selector_cell("spec", "selector")),
)


# ---- jobs ----------------------------------------------------------------------------------------


# The first that holds is shown; a job that is being deleted stands between the ends and the rest.
_ENDS = ("Complete", "Failed")
_STATES = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def _status(job: Mapping[str, Any], now: float) -> Content:
    true = {
        condition.get("type")
        for condition in inside(job, "status", "conditions") or ()
        if condition.get("status") == "True"
    }
    ends = [end for end in _ENDS if end in true]
    if job["metadata"].get("deletionTimestamp"):
        ends.append("Terminating")
    states = [state for state in _STATES if state in true]
    return [*ends, *states, "Running"][0]


def _completions(job: Mapping[str, Any], now: float) -> Content:
    succeeded = inside(job, "status", "succeeded") or 0
    wanted = inside(job, "spec", "completions")
    if wanted is not None:
        return f"{succeeded}/{wanted}"
    # One success completes the job, however many pods try.
    parallelism = inside(job, "spec", "parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _duration(job: Mapping[str, Any], now: float) -> Content:
    started = seconds(inside(job, "status", "startTime") or "")
    if started is None:
        return ""
    ended = seconds(inside(job, "status", "completionTime") or "")
    return duration((now if ended is None else ended) - started)


def _suspended(cron_job: Mapping[str, Any], now: float) -> Content:
    suspend = inside(cron_job, "spec", "suspend")
    return "<unset>" if suspend is None else ("True" if suspend else "False")


JOBS = printer(
    NAME,
    column("Status", _status, "One word for how the job is."),
    column("Completions", _completions, "How many pods succeeded, out of how many wanted."),
    column("Duration", _duration, "How long it ran, or has been running."),
    AGE,
    *container_columns("spec", "template"),
    wide("Selector", selector_cell("spec", "selector"), "Which pods are its own."),
)

CRON_JOBS = printer(
    NAME,
    column("Schedule", of("spec", "schedule"), "When jobs are made, as cron writes it."),
    column("Timezone", of("spec", "timeZone", absent=NONE), "In which time zone that is meant."),
    column("Suspend", _suspended, "Whether it pauses.", type="boolean"),
    column("Active", count_of("status", "active"), "How many jobs run.", type="integer"),
    column(
        "Last Schedule",
        age_of("status", "lastScheduleTime", absent=NONE),
        "How long ago the last job was made.",
    ),
    AGE,
    *container_columns("spec", "jobTemplate", "spec", "template"),
    wide("Selector", selector_cell("spec", "jobTemplate", "spec", "selector"), "Which pods."),
)


# ---- pods ----------------------------------------------------------------------------------------
#
# Pods: how many containers are ready, one word for how the pod is, and how often it restarted.
#
# The word is the most telling of what is known, later ones winning:
#
#     phase                Pending, Running, Succeeded, …       or status.reason, such as Evicted
#     SchedulingGated      the pod waits for a gate to be removed
#     Init:…               the first init container that is not through: its reason, exit code or
#                          signal, or how many of them are done, as in Init:1/3
#     the containers'      last to first: why one waits or how it ended, as in CrashLoopBackOff,
#                          Error, ExitCode:3; Completed gives way to what the others do
#     Terminating          it is being deleted and has not ended

_NOTHING: Mapping[str, Any] = {}
_ENDED = ("Succeeded", "Failed")


@dataclass(slots=True)
class _Tally:
    """What is counted over the containers of a pod."""

    ready: int = 0
    restarts: int = 0
    last_end: str = ""  # RFC 3339 in UTC, so the later text is the later time

    def restarted(self, container: Mapping[str, Any]) -> None:
        """Count how often a container was started again, and remember when it last ended."""
        self.restarts += container.get("restartCount", 0)
        ended = (container.get("lastState") or _NOTHING).get("terminated")
        if ended is not None:
            self.last_end = max(self.last_end, ended.get("finishedAt") or "")


def _cells(pod: Mapping[str, Any], now: float) -> list[Content]:
    metadata, spec = pod["metadata"], pod.get("spec") or _NOTHING
    status = pod.get("status") or _NOTHING
    conditions = status.get("conditions") or ()
    phase = status.get("phase", "")
    word = status.get("reason") or phase
    if _has(conditions, "PodScheduled", "reason", "SchedulingGated"):
        word = "SchedulingGated"

    containers = len(spec.get("containers") or ())
    tally = _Tally()
    waits_for_init = ""
    init_containers = spec.get("initContainers") or ()
    if init_containers:
        sidecars = {
            container.get("name")
            for container in init_containers
            if container.get("restartPolicy") == "Always"
        }
        containers += len(sidecars)
        waits_for_init = _init_word(status, sidecars, len(init_containers), tally)
        word = waits_for_init or word
    if not waits_for_init or _has(conditions, "Initialized", "status", "True"):
        word = _main_word(status, word, tally)
    if metadata.get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            word = "Unknown"
        elif phase not in _ENDED:
            word = "Terminating"

    restarts = str(tally.restarts)
    if tally.restarts and tally.last_end:
        restarts = f"{restarts} ({age(tally.last_end, now)} ago)"
    addresses = status.get("podIPs")
    return [
        metadata.get("name", ""),
        f"{tally.ready}/{containers}",
        word,
        restarts,
        age(metadata.get("creationTimestamp"), now),
        (addresses[0].get("ip") if addresses else status.get("podIP")) or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(spec, conditions),
    ]


def _init_word(
    status: Mapping[str, Any], sidecars: set[Any], containers: int, tally: _Tally
) -> str:
    """Return what the first unfinished init container waits for; empty if all are through.

    Restarts count for all of them while they run, and afterwards only those of sidecars: init
    containers that go on beside the others.
    """
    of_all = _Tally()
    word = ""
    for done, container in enumerate(status.get("initContainerStatuses") or ()):
        of_all.restarted(container)
        is_sidecar = container.get("name") in sidecars
        if is_sidecar:
            tally.restarted(container)
        state = container.get("state") or _NOTHING
        ended = state.get("terminated")
        if ended is not None and not ended.get("exitCode"):
            continue
        if is_sidecar and container.get("started"):
            tally.ready += bool(container.get("ready"))
            continue
        waiting = (state.get("waiting") or _NOTHING).get("reason")
        if ended is not None:
            word = f"Init:{_end(ended)}"
        elif waiting and waiting != "PodInitializing":
            word = f"Init:{waiting}"
        else:
            word = f"Init:{done}/{containers}"
        break
    # A pod that was initialised once counts as such; then only the sidecars' restarts matter.
    if word and not _has(status.get("conditions") or (), "Initialized", "status", "True"):
        tally.restarts, tally.last_end = of_all.restarts, of_all.last_end
    return word


def _main_word(status: Mapping[str, Any], word: str, tally: _Tally) -> str:
    """Return why the first container that is not running waits or how it ended."""
    is_any_running = False
    error = ""
    for container in reversed(status.get("containerStatuses") or ()):
        tally.restarted(container)
        state = container.get("state") or _NOTHING
        waiting = (state.get("waiting") or _NOTHING).get("reason")
        ended = state.get("terminated")
        if waiting:
            word = waiting
        elif ended is not None:
            word = _end(ended)
            if ended.get("exitCode"):
                error = word
        elif container.get("ready") and state.get("running") is not None:
            is_any_running = True
            tally.ready += 1
    if word != "Completed":
        return word
    if is_any_running and _has(status.get("conditions") or (), "Ready", "status", "True"):
        return "Running"
    return error or ("NotReady" if is_any_running else word)


def _end(ended: Mapping[str, Any]) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    signal = ended.get("signal")
    return f"Signal:{signal}" if signal else f"ExitCode:{ended.get('exitCode', 0)}"


def _gates(spec: Mapping[str, Any], conditions: Iterable[Mapping[str, Any]]) -> str:
    gates = spec.get("readinessGates")
    if not gates:
        return NONE
    wanted = [gate.get("conditionType", "") for gate in gates]
    met = sum(_has(conditions, condition, "status", "True") for condition in wanted)
    return f"{met}/{len(gates)}"


def _has(conditions: Iterable[Mapping[str, Any]], name: str, field: str, value: str) -> bool:
    for condition in conditions:
        if condition.get("type") == name and condition.get(field) == value:
            return True
    return False


PODS = Printer(
    headings=(
        NAME_HEADING,
        Heading("Ready", "How many containers are ready, out of how many."),
        Heading("Status", "One word for how the pod is."),
        Heading("Restarts", "How often containers started again, and how long ago the last did."),
        AGE_HEADING,
        Heading("IP", "The address of the pod.", priority=1),
        Heading("Node", "The node that the pod is bound to.", priority=1),
        Heading("Nominated Node", "The node on which room is being made for it.", priority=1),
        Heading("Readiness Gates", "How many of the pod's own gates are passed.", priority=1),
    ),
    cells=_cells,
)
