"""Jobs and cron jobs: how far they are and how long it took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unisono.apiserver.tables.age import duration
from unisono.apiserver.tables.printer import (
    AGE,
    NAME,
    NONE,
    Content,
    age_of,
    column,
    count_of,
    inside,
    of,
    printer,
    wide,
)
from unisono.apiserver.tables.texts import container_columns, selector_cell
from unisono.apiserver.times import seconds

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
