"""The operator of JobSet: makes its Jobs, starts them over together, ends it (jobs §2).

    Jobs of this attempt ──one fails──▶ restarts + 1 ──▶ Jobs of older attempts are deleted
            ▲                               │ the limit is reached: Failed
            └── made again, when all of the old ones are gone and the delay is over

The number of restarts in the status is the decision; everything else follows from it, so a crash
between any two writes is harmless. Nothing is said about quota: the JobSet stays as admitted as it
was, and so its new pods get the places of the old ones.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from itertools import islice
from typing import Any

from unisono.control import names
from unisono.control.actions import (
    Action,
    Again,
    Breathe,
    Create,
    Delete,
    Json,
    Note,
    Patch,
    Ref,
    Steps,
    Together,
)
from unisono.control.conditions import find, is_true, seconds, with_condition
from unisono.control.controller import own_key, owner_key
from unisono.control.gangs.recovery import ATTEMPT, LAST_INCIDENT, Record, recovered
from unisono.control.job_kinds.jobset.child_jobs import (
    Child,
    children_of,
    directions,
    has_names,
    runs_at_once,
    service_of,
    subdomain_of,
    weight_of,
)
from unisono.control.job_kinds.jobset.failure import Failed, Redone, Restarted, answer_to
from unisono.control.job_kinds.jobset.rules import (
    Jobs,
    are_all_started,
    counts_of,
    is_gang,
    is_in_order,
    is_successful,
    may_start,
    restarts_of,
    sorted_out,
)
from unisono.control.jobs.pods import AT_ONCE, HELD, is_deleting, most_pods, too_many
from unisono.control.jobs.queues import Queues, may_make_pods
from unisono.control.view import View
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

_OURS = ("", None, "jobset.sigs.k8s.io/jobset-controller")
RESTARTING = "RestartingJobSet"


class JobSetOperator:
    """Runs JobSets."""

    name = "jobset"
    watches: Sequence[Kind] = (names.JOB_SET, names.JOB)
    owner_kind: Kind = names.JOB_SET

    def __init__(self, queues: Queues) -> None:
        """Take what knows which JobSets wait to be admitted."""
        self._queues = queues

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A JobSet, or a Job of one."""
        return (own_key(obj),) if kind == names.JOB_SET else owner_key(obj, names.JOB_SET)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Take one JobSet a step further."""
        job_set = view.get(names.JOB_SET, key.name, key.namespace)
        if job_set is None or is_deleting(job_set) or job_set["spec"].get("managedBy") not in _OURS:
            return
        jobs = sorted_out(job_set, view.owned(names.JOB, job_set["metadata"]["uid"]))
        if (job_set.get("status") or {}).get("terminalState"):
            yield from _tidy(job_set, jobs, now)
            return
        if jobs.failed:
            yield from _fail(job_set, jobs, view, now)
            return
        if is_successful(job_set, jobs):
            yield from _end(
                job_set, jobs, "Completed", "AllJobsCompleted", "jobset completed successfully", now
            )
            return
        suspends = bool(job_set["spec"].get("suspend")) or not may_make_pods(
            job_set, names.JOB_SET, self._queues, view
        )
        job_set = yield from _tell(job_set, jobs, now, suspends=suspends)
        if jobs.previous:
            yield from _delete(jobs.previous)
            if _is_blocking(job_set):
                return  # the last of them to go brings us back
        if has_names(job_set):
            there = view.get(names.SERVICE, subdomain_of(job_set), key.namespace)
            if there is None:
                yield Create(service_of(job_set))
        weight = weight_of(job_set)
        if not suspends and weight > _most(job_set, weight, view):
            yield from too_many(job_set, weight, view, now)
            return
        yield from _make(job_set, jobs, now, suspends=suspends)


# ---- running -----------------------------------------------------------------------------------


def _make(job_set: Json, jobs: Jobs, now: float, *, suspends: bool) -> Steps:
    """Create missing Jobs, and suspend or resume existing ones."""
    restarts = restarts_of(job_set)
    last = Record.of(job_set["metadata"].get("annotations"))
    waits = last is not None and last.attempt == restarts and now < seconds(last.restart_at)
    if last is not None and waits:
        yield Again(seconds(last.restart_at))
    counts = counts_of(job_set, jobs)
    there = {job["metadata"]["name"]: job for job in (*jobs.current, *jobs.previous)}
    replicated = {one["name"]: one for one in job_set["spec"].get("replicatedJobs") or ()}
    active = {job["metadata"]["name"] for job in jobs.active}
    writes: list[Create | Patch | Delete] = []
    if suspends:
        held = [job for job in jobs.active if not job["spec"].get("suspend")]
        writes += [_held(job_set, job) for job in held]
    children = children_of(job_set, restarts, is_gang=is_gang(job_set), last=last)
    # While it is suspended they are only shown, and their number has no limit.
    for child in islice(children, HELD) if suspends else children:
        job = there.get(child.name)
        if job is None:
            if not waits and may_start(job_set, replicated[child.replicated], counts):
                child.obj["spec"]["suspend"] = suspends
                writes.append(Create(child.obj))
        elif not suspends and child.name in active and job["spec"].get("suspend"):
            if may_start(job_set, replicated[child.replicated], counts):
                writes += _resumed(job, child)
        if len(writes) >= AT_ONCE:
            yield Together(writes)
            yield Breathe()
            writes = []
    if writes:
        yield Together(writes)


def _most(job_set: Json, weight: int, view: View) -> int:
    """Return how many of so many pods there may be."""
    specs = (one["template"].get("spec") or {} for one in job_set["spec"]["replicatedJobs"])
    return most_pods(job_set, weight, (spec.get("template") or {} for spec in specs), view)


def _held(job_set: Json, job: Json) -> Patch | Delete:
    """Suspend a Job; one that some pods of a gang have left already has to begin anew."""
    if (
        is_gang(job_set)
        and runs_at_once(job["spec"])
        and (job.get("status") or {}).get("succeeded")
    ):
        return Delete(Ref.to(job), policy="Foreground")
    return Patch(Ref.to(job), {"spec": {"suspend": True}})


def _resumed(job: Json, child: Child) -> list[Create | Patch | Delete]:
    """Let a Job go with what was injected into the JobSet meanwhile."""
    changed = directions(job, child.obj)
    if changed and (job.get("status") or {}).get("startTime"):
        return []  # its operator still has to clear that; then we are called again
    spec: Json = {"suspend": False}
    if changed:
        spec["template"] = changed
    return [Patch(Ref.to(job), {"spec": spec})]


def _is_blocking(job_set: Json) -> bool:
    """Say whether nothing new is made before everything old is gone."""
    policy = job_set["spec"].get("failurePolicy") or {}
    return is_gang(job_set) or policy.get("restartStrategy") == "BlockingRecreate"


# ---- status ------------------------------------------------------------------------------------


def _tell(job_set: Json, jobs: Jobs, now: float, *, suspends: bool) -> Generator[Action, Any, Json]:
    """Write how far the Jobs are, and whether they are held back or start over."""
    status = job_set.get("status") or {}
    counts = counts_of(job_set, jobs)
    conditions = list(status.get("conditions") or ())
    was = find(conditions, "Suspended")
    is_told = was is not None and (was["status"] == "True") == suspends
    note: Note | None = None
    if (suspends or was is not None) and not is_told:
        reason, what = ("SuspendedJobs", "suspended") if suspends else ("ResumeJobs", "resumed")
        conditions = with_condition(
            conditions,
            "Suspended",
            "True" if suspends else "False",
            reason,
            f"jobset is {what}",
            now=now,
        )
        note = Note(Ref.to(job_set), reason, f"jobset is {what}")
    is_started = not suspends and not jobs.previous and are_all_started(job_set, counts)
    if is_started and is_true(conditions, RESTARTING):
        job_set = yield from _tell_recovery(job_set, now)
        conditions = with_condition(
            conditions, RESTARTING, "False", "JobsReady", "all jobs are ready again", now=now
        )
    if is_in_order(job_set) and not suspends:
        conditions = _startup(conditions, now, is_started=is_started)
    new = {**status, "replicatedJobsStatus": list(counts.values()), "conditions": conditions}
    new.setdefault("restarts", 0)
    new.setdefault("restartsCountTowardsMax", 0)
    written = yield from _write(job_set, new)
    if note is not None:
        yield note
    return written


def _startup(conditions: list[Json], now: float, *, is_started: bool) -> list[Json]:
    if is_true(conditions, "StartupPolicyCompleted"):
        return conditions
    if not is_started:
        return with_condition(
            conditions,
            "StartupPolicyInProgress",
            "True",
            "StartupPolicyInOrder",
            "jobs start one after the other",
            now=now,
        )
    done, message = "StartupPolicyCompleted", "all jobs were started in order"
    if find(conditions, "StartupPolicyInProgress") is not None:
        conditions = with_condition(
            conditions, "StartupPolicyInProgress", "False", done, message, now=now
        )
    return with_condition(conditions, done, "True", done, message, now=now)


def _tell_recovery(job_set: Json, now: float) -> Generator[Action, Any, Json]:
    """Write down how long it took to be ready again."""
    last = Record.of(job_set["metadata"].get("annotations"))
    if last is None or last.lost_seconds:
        return job_set
    text = recovered(last, now).text()
    written: Json = yield Patch(
        Ref.to(job_set), {"metadata": {"annotations": {LAST_INCIDENT: text}}}
    )
    return written


def _write(job_set: Json, status: Json) -> Generator[Action, Any, Json]:
    """Write a status if it is another one; return the JobSet as it then is."""
    if status == (job_set.get("status") or {}):
        return job_set
    written: Json = yield Patch(Ref.to(job_set), {"status": status}, "status")
    return written


# ---- starting over, and ending -----------------------------------------------------------------


def _fail(job_set: Json, jobs: Jobs, view: View, now: float) -> Steps:
    """Do what the failure policy says about the Jobs that failed."""
    answer = answer_to(job_set, jobs, view, now)
    if isinstance(answer, Failed):
        yield from _end(job_set, jobs, "Failed", answer.reason, answer.message, now)
        return
    if isinstance(answer, Redone):
        yield from _redo(job_set, jobs, answer, now)
    else:
        yield from _restart(job_set, jobs, answer, now)


def _redo(job_set: Json, jobs: Jobs, answer: Redone, now: float) -> Steps:
    """Count the restart of one Job, then delete it: a missing Job is made again, in time."""
    job_set = yield from _write_down(job_set, answer.record)
    status = job_set.get("status") or {}
    conditions = with_condition(
        status.get("conditions"), RESTARTING, "True", answer.reason, answer.message, now=now
    )
    counted = int(status.get("restartsCountTowardsMax") or 0) + answer.counts
    counts = list(counts_of(job_set, jobs).values())
    new = {
        **status,
        "restartsCountTowardsMax": counted,
        "conditions": conditions,
        "replicatedJobsStatus": counts,
    }
    written = yield from _write(job_set, new)
    if written is not job_set:
        yield Note(Ref.to(written), RESTARTING, answer.message, "Warning")
    yield from _delete([answer.job])


def _restart(job_set: Json, jobs: Jobs, answer: Restarted, now: float) -> Steps:
    """Count a restart. The incident is written first, so a restarted operator decides the same."""
    restarts = restarts_of(job_set) + 1
    job_set = yield from _write_down(job_set, answer.record)
    status = job_set.get("status") or {}
    conditions = with_condition(
        status.get("conditions"), RESTARTING, "True", answer.reason, answer.message, now=now
    )
    counted = int(status.get("restartsCountTowardsMax") or 0) + answer.counts
    new = {
        **status,
        "restarts": restarts,
        "restartsCountTowardsMax": counted,
        "conditions": conditions,
        "replicatedJobsStatus": list(counts_of(job_set, jobs).values()),
    }
    written = yield Patch(Ref.to(job_set), {"status": new}, "status")
    yield Note(Ref.to(written), RESTARTING, answer.message, "Warning")


def _write_down(job_set: Json, record: Record) -> Generator[Action, Any, Json]:
    """Write an incident into the annotations, unless it is there."""
    texts = {ATTEMPT: str(record.attempt), LAST_INCIDENT: record.text()}
    there = job_set["metadata"].get("annotations") or {}
    if all(there.get(key) == text for key, text in texts.items()):
        return job_set
    written: Json = yield Patch(Ref.to(job_set), {"metadata": {"annotations": texts}})
    return written


def _end(job_set: Json, jobs: Jobs, how: str, reason: str, message: str, now: float) -> Steps:
    """Write how it ended, and stop what still runs."""
    status = job_set.get("status") or {}
    conditions = with_condition(status.get("conditions"), how, "True", reason, message, now=now)
    if is_true(conditions, RESTARTING):
        conditions = with_condition(conditions, RESTARTING, "False", reason, message, now=now)
    new = {
        **status,
        "terminalState": how,
        "conditions": conditions,
        "replicatedJobsStatus": list(counts_of(job_set, jobs).values()),
    }
    written = yield from _write(job_set, new)
    yield Note(Ref.to(written), reason, message, "Normal" if how == "Completed" else "Warning")
    yield from _tidy(written, jobs, now)


def _tidy(job_set: Json, jobs: Jobs, now: float) -> Steps:
    """Stop what still runs of a JobSet that has ended, and delete it when its time is up."""
    counts = list(counts_of(job_set, jobs).values())
    status = job_set["status"]
    if counts != status.get("replicatedJobsStatus"):
        job_set = yield from _write(job_set, {**status, "replicatedJobsStatus": counts})
    yield from _delete([*jobs.active, *jobs.previous])
    ttl = job_set["spec"].get("ttlSecondsAfterFinished")
    ended = find(status.get("conditions"), status["terminalState"])
    if ttl is None or ended is None:
        return
    due = seconds(ended["lastTransitionTime"]) + ttl
    if now >= due:
        yield Delete(Ref.to(job_set), policy="Foreground")
    else:
        yield Again(due)


def _delete(jobs: Sequence[Json]) -> Steps:
    going = [job for job in jobs if not is_deleting(job)]
    if going:
        yield Together([Delete(Ref.to(job), policy="Foreground") for job in going])
