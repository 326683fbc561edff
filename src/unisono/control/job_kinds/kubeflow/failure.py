"""What a job of kubeflow's does about pods that failed or were taken away.

    Never               a failure of its own ends the job
    ExitCode            so does a code up to 127; with a higher one it starts over
    OnFailure, Always   it starts over, as often as `backoffLimit` says (6 times by default)

What is not the job's own fault (a lost node, a deleted pod) starts it over and counts for nothing.
An MPI job starts over whatever its replicas say: its launcher has the back-off limit of a Job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.conditions import find, is_true, seconds
from unisono.control.gangs.recovery import (
    Budget,
    GiveUp,
    Incident,
    Record,
    Restart,
    decide,
    first_cause,
    first_delay_of,
    is_upstream,
    limit_of,
)
from unisono.control.job_kinds.kubeflow import api
from unisono.control.job_kinds.kubeflow.api import MPI, Sort
from unisono.control.job_kinds.kubeflow.replicas import Replicas
from unisono.control.jobs.pods import phase_of
from unisono.control.view import View
from unisono.kinds.digits import whole_number

# Codes from here on say that a signal ended the program, which may not happen again.
_FIRST_RETRYABLE = 128


@dataclass(frozen=True, slots=True)
class Failed:
    """The job has failed."""

    message: str


@dataclass(frozen=True, slots=True)
class Again:
    """The job starts over; so many restarts were its own fault by then."""

    incident: Incident
    restart: Restart
    used: int


def answer_to(
    job: Json, sort: Sort, replicas: Sequence[Replicas], view: View, now: float
) -> Failed | Again | None:
    """Say what follows from how the pods are; None if nothing does."""
    annotations = job["metadata"].get("annotations") or {}
    limit = (job["spec"].get("runPolicy") or {}).get("backoffLimit")
    if is_upstream(annotations) and limit is not None:
        restarts = sum(_restarts(one) for one in replicas)
        if restarts > limit:
            return Failed(f"its containers were restarted {restarts} times; the limit is {limit}")
    failed = [one for one in replicas if one.in_phase("Failed")]
    if not failed and not any(one.lost for one in replicas):
        return None
    pods = [pod for one in replicas for pod in one.pods.values()]
    incident = first_cause(pods, lambda name: view.get(names.NODE, name), now=now)
    if incident.counts and any(_is_final(one, sort) for one in failed):
        return Failed(incident.message)
    text = annotations.get(api.COUNTED, "0")
    used = whole_number(text) or 0
    budget = Budget(
        limit=limit_of(annotations, limit), used=used, first_delay=first_delay_of(annotations)
    )
    conditions = (job.get("status") or {}).get("conditions")
    running = find(conditions, "Running")
    ready_at = (
        seconds(running["lastTransitionTime"])
        if running is not None and is_true(conditions, "Running")
        else 0.0
    )
    decision = decide(incident, budget, Record.of(annotations), ready_at=ready_at, now=now)
    if isinstance(decision, GiveUp):
        return Failed(decision.message)
    return Again(incident, decision, used + decision.counts)


def _is_final(one: Replicas, sort: Sort) -> bool:
    """Say whether a failure of these pods is one for good."""
    if sort is MPI or one.restarts in ("OnFailure", "Always"):
        return False
    if one.restarts == "Never":
        return True
    codes = [_exit_code(pod) for pod in one.pods.values() if phase_of(pod) == "Failed"]
    return any(0 < code < _FIRST_RETRYABLE for code in codes)


def _exit_code(pod: Json) -> int:
    for one in (pod.get("status") or {}).get("containerStatuses") or ():
        ended = (one.get("state") or {}).get("terminated")
        if ended and ended.get("exitCode"):
            return int(ended["exitCode"])
    return 0


def _restarts(one: Replicas) -> int:
    return sum(
        status.get("restartCount", 0)
        for pod in one.pods.values()
        for status in (pod.get("status") or {}).get("containerStatuses") or ()
    )
