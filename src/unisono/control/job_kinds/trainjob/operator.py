"""The operator of TrainJob: renders it into a JobSet and tells how that is doing (jobs §1).

    TrainJob + runtime ──▶ Secret, ConfigMap, PodGroup ──▶ JobSet ──▶ conditions, jobsStatus

A JobSet that runs is never touched; while it or the TrainJob is suspended, it follows both the
TrainJob and the runtime. A TrainJob that has ended stays ended, whatever becomes of its JobSet.

The last condition is always the one that holds: `kubectl get trainjob` prints its type, so that
STATE is Suspended, Running, Restarting, Complete or Failed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

from unisono.control import names
from unisono.control.actions import (
    Action,
    Again,
    Create,
    Json,
    Note,
    Patch,
    Ref,
    Steps,
)
from unisono.control.conditions import find, is_true, seconds, with_condition
from unisono.control.controller import own_key, owner_key
from unisono.control.gangs.recovery import ATTEMPT, LAST_INCIDENT
from unisono.control.job_kinds.jobset.operator import RESTARTING
from unisono.control.job_kinds.ssh_keys import KeyPair
from unisono.control.job_kinds.trainjob.ml_policy import SSH_AUTH, new_mpi_keys, with_keys
from unisono.control.job_kinds.trainjob.render import Rendered, rendered
from unisono.control.job_kinds.trainjob.runtimes import BY_RUNTIME, Faults, runtime_key, runtime_of
from unisono.control.jobs.pods import is_deleting
from unisono.control.jobs.queues import Queues, may_make_pods
from unisono.control.view import View
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

_OURS = ("", None, "trainer.kubeflow.org/trainjob-controller")
_RUNTIMES = (names.TRAINING_RUNTIME, names.CLUSTER_TRAINING_RUNTIME)
NOT_CREATED = "TrainJobResourcesCreationFailed"


class TrainJobOperator:
    """Runs TrainJobs."""

    name = "trainjob"
    watches: Sequence[Kind] = (names.TRAIN_JOB, names.JOB_SET, *_RUNTIMES)

    def __init__(self, queues: Queues, new_keys: Callable[[], KeyPair] = new_mpi_keys) -> None:
        """Take what knows which TrainJobs wait to be admitted, and what makes keys for MPI."""
        self._queues = queues
        self._new_keys = new_keys
        self._faults = Faults()

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A TrainJob, its JobSet, or all that use a runtime."""
        if kind == names.TRAIN_JOB:
            yield own_key(obj)
        elif kind == names.JOB_SET:
            yield from owner_key(obj, names.TRAIN_JOB)
        else:
            for user in view.by(names.TRAIN_JOB, BY_RUNTIME, runtime_key(kind, own_key(obj))):
                yield own_key(user)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Take one TrainJob a step further."""
        job = view.get(names.TRAIN_JOB, key.name, key.namespace)
        if job is None or is_deleting(job) or job["spec"].get("managedBy") not in _OURS:
            return
        job_set = _own_job_set(job, view)
        conditions = (job.get("status") or {}).get("conditions")
        if is_true(conditions, "Complete") or is_true(conditions, "Failed"):
            yield from _after_the_end(job, job_set, now)
            return
        suspends = bool(job["spec"].get("suspend")) or not may_make_pods(
            job, names.TRAIN_JOB, self._queues, view
        )
        if job_set is None or suspends or job_set["spec"].get("suspend"):
            job_set = yield from self._apply(job, job_set, view, now, suspends=suspends)
        if job_set is not None:
            yield from _tell(job, job_set, now, suspends=suspends)

    # ---- making ------------------------------------------------------------------------------

    def _apply(
        self, job: Json, job_set: Json | None, view: View, now: float, *, suspends: bool
    ) -> Generator[Action, Any, Json | None]:
        """Make what a TrainJob becomes, or bring it up to date; None if that cannot be said."""
        runtime = runtime_of(job, view)
        faults = self._faults.of(job, runtime, view)
        if faults or runtime is None:
            if job_set is not None and suspends and not job_set["spec"].get("suspend"):
                yield Patch(Ref.to(job_set), {"spec": {"suspend": True}})
            yield from _refuse(job, faults, now)
            return None
        wanted = rendered(job, runtime)
        wanted.job_set["spec"]["suspend"] = suspends
        if job_set is None:
            yield from self._extras(wanted, view)
            made: Json = yield Create(wanted.job_set)
            return made
        if is_deleting(job_set):
            return None  # it is made again when it is gone
        changes = _differences(job_set, wanted.job_set)
        if changes:
            job_set = yield Patch(Ref.to(job_set), changes)
        if bool(job_set["spec"].get("suspend")) != suspends:
            job_set = yield Patch(Ref.to(job_set), {"spec": {"suspend": suspends}})
        return job_set

    def _extras(self, wanted: Rendered, view: View) -> Steps:
        """Make what the JobSet's pods need before there are any."""
        for one in wanted.extras:
            ref = Ref.to(one)
            if view.has(ref.kind) and view.get(ref.kind, ref.name, ref.namespace) is not None:
                continue
            yield Create(with_keys(one, self._new_keys()) if one.get("type") == SSH_AUTH else one)


def _own_job_set(job: Json, view: View) -> Json | None:
    metadata = job["metadata"]
    found = view.get(names.JOB_SET, metadata["name"], metadata["namespace"])
    if found is None:
        return None
    owners = found["metadata"].get("ownerReferences") or ()
    return found if any(one["uid"] == metadata["uid"] for one in owners) else None


def _differences(job_set: Json, wanted: Json) -> Json:
    """Return what is to change in a suspended JobSet: only what may change, and only if it does."""
    changes: Json = {}
    if job_set["spec"].get("replicatedJobs") != _as_stored(wanted, job_set):
        changes["spec"] = {"replicatedJobs": wanted["spec"]["replicatedJobs"]}
    for key in ("labels", "annotations"):
        old = job_set["metadata"].get(key) or {}
        new = {
            name: value for name, value in wanted["metadata"][key].items() if old.get(name) != value
        }
        if new:
            changes.setdefault("metadata", {})[key] = new
    return changes


def _as_stored(wanted: Json, job_set: Json) -> list[Json]:
    """Return the wanted jobs with what the API fills in where nothing is said."""
    stored = {one["name"]: one for one in job_set["spec"].get("replicatedJobs") or ()}
    filled = []
    for one in wanted["spec"]["replicatedJobs"]:
        old = stored.get(one["name"], {})
        filled.append(_filled(one, old))
    return filled


def _filled(new: Any, old: Any) -> Any:
    if isinstance(new, dict) and isinstance(old, dict):
        made = {key: _filled(value, old.get(key)) for key, value in new.items()}
        # A map that people write, such as a selector, has no defaults: a key less is a change.
        return made if _is_open(old) else {**{k: v for k, v in old.items() if k not in new}, **made}
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        return [_filled(one, other) for one, other in zip(new, old, strict=True)]
    return new


def _is_open(value: Json) -> bool:
    return all(isinstance(one, str) for one in value.values())


# ---- telling -----------------------------------------------------------------------------------


def _tell(job: Json, job_set: Json, now: float, *, suspends: bool) -> Steps:
    """Write how a TrainJob is doing: what its JobSet says."""
    job = yield from _copy_texts(job, job_set)
    status, theirs = job.get("status") or {}, job_set.get("status") or {}
    before = list(status.get("conditions") or ())
    end = _end_of(theirs)
    if end is not None:
        kind, ended = end
        conditions = with_condition(
            before, kind, "True", ended["reason"], ended["message"], now=now
        )
        conditions = _state(conditions, kind, now, ended["message"])
    else:
        late = _deadline(job, before)
        if late is not None and not suspends:
            if now >= late:
                message = "the TrainJob ran longer than activeDeadlineSeconds allows"
                yield from _fail(job, job_set, "DeadlineExceeded", message, now)
                return
            yield Again(late)
        conditions = _suspension(before, now, suspends=suspends)
        restarting = find(theirs.get("conditions"), RESTARTING)
        if suspends:
            conditions = _state(conditions, "Suspended", now, "")
        elif restarting is not None and restarting["status"] == "True":
            conditions = _state(conditions, "Restarting", now, restarting["message"])
        else:
            conditions = _state(conditions, "Running", now, "the JobSet is running")
    yield from _write(job, _with_jobs({**status, "conditions": conditions}, theirs))
    last = conditions[-1]
    if not before or before[-1]["type"] != last["type"]:
        bad = last["type"] in ("Failed", "Restarting")
        message = f"{last['reason']}: {last['message']}" if bad else last["message"]
        yield Note(Ref.to(job), last["type"], message, "Warning" if bad else "Normal")


def _end_of(theirs: Json) -> tuple[str, Json] | None:
    """Return which condition says that the JobSet ended, and its message."""
    for kind, of in (("Complete", "Completed"), ("Failed", "Failed")):
        end = find(theirs.get("conditions"), of)
        if end is not None and end["status"] == "True":
            return kind, end
    return None


def _suspension(conditions: list[Json], now: float, *, suspends: bool) -> list[Json]:
    if suspends:
        return with_condition(
            conditions, "Suspended", "True", "Suspended", "the TrainJob is suspended", now=now
        )
    if find(conditions, "Suspended") is None:
        return conditions
    return with_condition(
        conditions, "Suspended", "False", "Resumed", "the TrainJob is resumed", now=now
    )


def _state(conditions: list[Json], state: str, now: float, message: str) -> list[Json]:
    """Make a state the last condition, and remove the states that it replaces."""
    for other in ("Running", "Restarting"):
        if other == state:
            reason = "JobsRestarting" if state == "Restarting" else "JobsRunning"
            conditions = with_condition(conditions, other, "True", reason, message, now=now)
        elif is_true(conditions, other):
            conditions = with_condition(conditions, other, "False", state, f"now {state}", now=now)
    last = [one for one in conditions if one["type"] == state]
    return [one for one in conditions if one["type"] != state] + last


def _with_jobs(status: Json, theirs: Json) -> Json:
    fields = ("name", "ready", "succeeded", "failed", "active", "suspended")
    jobs = [
        {key: one.get(key, 0) for key in fields} for one in theirs.get("replicatedJobsStatus") or ()
    ]
    return {**status, "jobsStatus": jobs} if jobs else status


def _copy_texts(job: Json, job_set: Json) -> Generator[Action, Any, Json]:
    """Show the attempt and the last incident on the object that people look at."""
    theirs = job_set["metadata"].get("annotations") or {}
    own = job["metadata"].get("annotations") or {}
    texts = {
        key: theirs[key]
        for key in (ATTEMPT, LAST_INCIDENT)
        if key in theirs and own.get(key) != theirs[key]
    }
    if not texts:
        return job
    written: Json = yield Patch(Ref.to(job), {"metadata": {"annotations": texts}})
    return written


def _write(job: Json, status: Json) -> Generator[Action, Any, Json]:
    if status == (job.get("status") or {}):
        return job
    written: Json = yield Patch(Ref.to(job), {"status": status}, "status")
    return written


def _deadline(job: Json, conditions: Sequence[Json]) -> float | None:
    """Return when a TrainJob has to be through: so long after it was created, or resumed."""
    limit = job["spec"].get("activeDeadlineSeconds")
    if limit is None:
        return None
    resumed = find(conditions, "Suspended")
    begun = job["metadata"].get("creationTimestamp", "")
    if resumed is not None and resumed["status"] == "False":
        begun = resumed["lastTransitionTime"]
    return seconds(begun) + int(limit)


# ---- what goes wrong, and the end --------------------------------------------------------------


def _refuse(job: Json, faults: Sequence[str], now: float) -> Steps:
    """Say what is wrong with a TrainJob; it waits until that is mended."""
    message = "; ".join(faults) or "its runtime cannot be found"
    status = job.get("status") or {}
    conditions = list(status.get("conditions") or ())
    was = find(conditions, "Suspended")
    if was is not None and (was["reason"], was["message"]) == (NOT_CREATED, message):
        return
    conditions = with_condition(conditions, "Suspended", "True", NOT_CREATED, message, now=now)
    conditions = _state(conditions, "Suspended", now, message)
    yield from _write(job, {**status, "conditions": conditions})
    yield Note(Ref.to(job), NOT_CREATED, message, "Warning")


def _fail(job: Json, job_set: Json, reason: str, message: str, now: float) -> Steps:
    status = job.get("status") or {}
    conditions = with_condition(
        status.get("conditions"), "Failed", "True", reason, message, now=now
    )
    conditions = _state(conditions, "Failed", now, message)
    written = yield from _write(job, {**status, "conditions": conditions})
    yield Note(Ref.to(written), reason, message, "Warning")
    yield from _after_the_end(written, job_set, now)


def _after_the_end(job: Json, job_set: Json | None, now: float) -> Steps:
    """Stop what still runs, and tell how much of it does: quota is given back when nothing does."""
    if job_set is None:
        active = [{**one, "active": 0} for one in (job.get("status") or {}).get("jobsStatus") or ()]
        if active:
            yield from _write(job, {**job["status"], "jobsStatus": active})
        return
    theirs = job_set.get("status") or {}
    yield from _write(job, _with_jobs(job["status"], theirs))
    if not theirs.get("terminalState") and not job_set["spec"].get("suspend"):
        yield Patch(Ref.to(job_set), {"spec": {"suspend": True}})
