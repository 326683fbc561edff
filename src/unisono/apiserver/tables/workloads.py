"""Deployments and their kin: how many replicas are wanted, there, ready."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unisono.apiserver.tables.age import duration
from unisono.apiserver.tables.printer import (
    AGE,
    NAME,
    NONE,
    Cell,
    Content,
    Printed,
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
from unisono.apiserver.times import seconds


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
