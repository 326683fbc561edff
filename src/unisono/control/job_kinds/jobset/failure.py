"""What a JobSet does about Jobs that failed: its own rules first, then those of gangs (§7.3)."""

from __future__ import annotations

from dataclasses import dataclass

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.conditions import find, seconds
from unisono.control.gangs.recovery import (
    COUNTED,
    Budget,
    GiveUp,
    Incident,
    Record,
    decide,
    first_cause,
    first_delay_of,
    limit_of,
    record_of,
    starts_again,
    without_limit,
)
from unisono.control.job_kinds.jobset.child_jobs import runs_at_once
from unisono.control.job_kinds.jobset.rules import (
    Jobs,
    Ruling,
    failed_at,
    failure_of,
    is_gang,
    replicated_of,
    restarts_of,
    ruling,
)
from unisono.control.view import View

# Failures of a Job that one of its pods is the cause of.
_BY_PODS = ("BackoffLimitExceeded", "PodFailurePolicy")


@dataclass(frozen=True, slots=True)
class Failed:
    """The JobSet has failed."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Restarted:
    """All of it starts over."""

    reason: str
    message: str
    counts: bool
    record: Record


@dataclass(frozen=True, slots=True)
class Redone:
    """One Job starts over, and the others run on."""

    job: Json
    reason: str
    message: str
    counts: bool
    record: Record


def answer_to(job_set: Json, jobs: Jobs, view: View, now: float) -> Failed | Restarted | Redone:
    """Say what follows from the Jobs that failed."""
    has_policy = job_set["spec"].get("failurePolicy") is not None
    ruled = ruling(job_set, jobs.failed)
    name = ruled.job["metadata"]["name"]
    if ruled.action == "FailJobSet":
        message = f"jobset failed: job {name} matched failure policy rule {ruled.rule}"
        return Failed("FailJobSetFailurePolicyAction", message)
    if ruled.action in ("RestartJob", "RestartJobAndIgnoreMaxRestarts"):
        return _alone(job_set, ruled, now)
    if is_gang(job_set):
        return _gang(job_set, jobs, ruled, view, now)
    if not has_policy:
        return Failed("FailedJobs", f"jobset failed due to one or more job failures: job {name}")
    counts = not ruled.action.endswith("IgnoreMaxRestarts")
    status = job_set.get("status") or {}
    most = int(job_set["spec"]["failurePolicy"].get("maxRestarts") or 0)
    if counts and int(status.get("restartsCountTowardsMax") or 0) >= most:
        message = f"jobset failed due to reaching max number of restarts ({most}): job {name}"
        return Failed("ReachedMaxRestarts", message)
    record = _record(job_set, ruled, restarts_of(job_set) + 1, f"job {name} failed", now)
    message = f"restarting because {record.message}{_waiting(record, now)}"
    return Restarted(_reason(ruled), message, counts, record)


def _alone(job_set: Json, ruled: Ruling, now: float) -> Failed | Redone:
    """A rule says that the others need not know."""
    metadata = ruled.job["metadata"]
    counts = not ruled.action.endswith("IgnoreMaxRestarts")
    used = int((job_set.get("status") or {}).get("restartsCountTowardsMax") or 0)
    most = int((job_set["spec"].get("failurePolicy") or {}).get("maxRestarts") or 0)
    # The uid tells whether this very failure was counted already.
    message = f"job {metadata['name']} ({metadata['uid']}) failed and restarts alone"
    is_counted = _last_message(job_set).startswith(message)
    if counts and not is_counted and used >= most:
        reached = f"jobset failed due to reaching max number of restarts ({most})"
        return Failed("ReachedMaxRestarts", f"{reached}: job {metadata['name']}")
    record = _record(job_set, ruled, restarts_of(job_set), message, now)
    text = _last_message(job_set) if is_counted else message + _waiting(record, now)
    return Redone(ruled.job, _reason(ruled), text, counts and not is_counted, record)


def _record(job_set: Json, ruled: Ruling, attempt: int, message: str, now: float) -> Record:
    """Return the incident to write down before a restart that is not a gang's.

    If it was written down and the process died before the restart, that one holds.
    """
    annotations = job_set["metadata"].get("annotations")
    written = Record.of(annotations)
    if written is not None and (written.attempt, written.message) == (attempt, message):
        return written
    reason = (failure_of(ruled.job) or {}).get("reason", "Failed")
    incident = Incident("app", reason, message, at=failed_at(ruled.job) or now)
    ready_at = _ready_at(job_set.get("status") or {})
    restart = without_limit(
        incident, written, first_delay_of(annotations), ready_at=ready_at, now=now
    )
    return record_of(incident, restart, attempt)


def _waiting(record: Record, now: float) -> str:
    return starts_again(seconds(record.restart_at), record.row, now)


def _last_message(job_set: Json) -> str:
    conditions = (job_set.get("status") or {}).get("conditions")
    restarting = find(conditions, "RestartingJobSet")
    return str(restarting["message"]) if restarting is not None else ""


def _reason(ruled: Ruling) -> str:
    return f"FailurePolicy_{ruled.rule}" if ruled.rule else "DefaultFailurePolicy"


def _gang(job_set: Json, jobs: Jobs, ruled: Ruling, view: View, now: float) -> Failed | Restarted:
    """One incident, one restart of everything, one count."""
    annotations = job_set["metadata"].get("annotations")
    status = job_set.get("status") or {}
    ignores = ruled.action.endswith("IgnoreMaxRestarts")
    following = restarts_of(job_set) + 1
    written = Record.of(annotations)
    budget = Budget(
        limit=_limit(job_set, ruled.job),
        used=int(status.get("restartsCountTowardsMax") or 0),
        first_delay=first_delay_of(annotations),
    )
    if written is not None and written.attempt == following:
        # The decision was made and the process died before the restart was counted.
        counts = written.cause in COUNTED and not ignores
        message = _sentence(written, budget, now, counts=counts)
        return Restarted(_reason(ruled), message, counts, written)
    incident = _incident(jobs, ruled, view, now)
    decision = (
        without_limit(incident, written, budget.first_delay, ready_at=_ready_at(status), now=now)
        if ignores
        else decide(incident, budget, written, ready_at=_ready_at(status), now=now)
    )
    if isinstance(decision, GiveUp):
        return Failed(decision.reason, decision.message)
    record = record_of(incident, decision, following)
    message = _sentence(record, budget, now, counts=decision.counts)
    return Restarted(_reason(ruled), message, decision.counts, record)


def _sentence(record: Record, budget: Budget, now: float, *, counts: bool) -> str:
    counted = f"{budget.used + 1} of {budget.limit} that count" if counts else "does not count"
    return f"restart {record.attempt} ({counted}): {record.message}{_waiting(record, now)}"


def _incident(jobs: Jobs, ruled: Ruling, view: View, now: float) -> Incident:
    """Return the first cause: that of a pod, unless the Job failed by a rule of its own."""
    failure = failure_of(ruled.job) or {}
    if failure.get("reason") in _BY_PODS and runs_at_once(ruled.job["spec"]):
        pods = [
            pod for job in jobs.current for pod in view.owned(names.POD, job["metadata"]["uid"])
        ]
        return first_cause(pods, lambda name: view.get(names.NODE, name), now=now)
    name, reason = ruled.job["metadata"]["name"], failure.get("reason", "Failed")
    message = f"job {name} failed: {failure.get('message') or reason}"
    return Incident("app", reason, message, at=failed_at(ruled.job) or now)


def _limit(job_set: Json, failed: Json) -> int:
    policy = job_set["spec"].get("failurePolicy")
    replicated: Json = next(
        (
            one
            for one in job_set["spec"].get("replicatedJobs") or ()
            if one["name"] == replicated_of(failed)
        ),
        {"template": {}},
    )
    return limit_of(
        job_set["metadata"].get("annotations"),
        int(policy.get("maxRestarts") or 0) if policy is not None else None,
        (replicated["template"].get("spec") or {}).get("backoffLimit"),
    )


def _ready_at(status: Json) -> float:
    """Return since when all Jobs were ready again; 0 if they were not since the last restart."""
    restarting = find(status.get("conditions"), "RestartingJobSet")
    if restarting is None or restarting["status"] == "True":
        return 0.0
    return seconds(restarting["lastTransitionTime"])
