"""Makes jobs at the times of a schedule: CronJobs of batch/v1 and Volcano, RayCronJobs.

    a time of the schedule ──▶ job NAME-MINUTES ──▶ status.active ──ended──▶ kept for a while

Everything is read anew at each look: what is due since the last time, and which jobs there are.
The name of a job follows from its time, so a crash between making it and writing that down makes no
second one. However many times were missed, one run is made for all of them, the latest;
`concurrencyPolicy` and `startingDeadlineSeconds` may leave that out, too. The jobs wait in queues
as any others.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from unisono.control import names
from unisono.control.actions import (
    Action,
    Again,
    Create,
    Delete,
    Json,
    Note,
    Patch,
    Ref,
    Steps,
    Together,
)
from unisono.control.conditions import is_true, seconds, timestamp
from unisono.control.controller import own_key, owner_key
from unisono.control.job_kinds import ray, volcano
from unisono.control.jobs.pods import is_deleting
from unisono.control.jobs.workload import owner_reference
from unisono.control.view import View
from unisono.kinds.cron import (
    MANY_MISSED,
    due,
    parse_schedule,
    wrong_with_schedule,
    wrong_with_zone,
    zone_named,
)
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

# On a job made by hand (`kubectl create job --from`): it is kept as any other, and is no run.
_BY_HAND = "cronjob.kubernetes.io/instantiate"
# Runs of one schedule that have not ended. Kubernetes has no bound; one of every second, whose
# jobs wait in a queue, would fill the store, and its own status with the list of them.
MOST_ACTIVE = 500
# Finished jobs deleted in one go, when a history limit was lowered.
_AT_ONCE = 200
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True, kw_only=True)
class CronKind:
    """A kind that has a schedule, and the jobs that it makes."""

    name: str
    kind: Kind
    job: Kind
    at: str  # the annotation on a job with the time that it was made for
    template: Callable[[Json], Json]  # labels, annotations and spec of a job
    # How a job ended: None while it has not.
    has_succeeded: Callable[[Json], bool | None]
    ended: Callable[[Json], str]  # when
    counts: bool = True  # whether there are limits, a policy, and a list of active jobs


class CronJobs:
    """Runs the schedules of one kind."""

    def __init__(self, cron: CronKind) -> None:
        """Take the kind."""
        self._cron = cron
        self.name = cron.name
        self.watches: Sequence[Kind] = (cron.kind, cron.job)
        self.owner_kind: Kind = cron.kind
        self.idle_without: Kind = cron.kind

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A schedule, or a job of one."""
        cron = self._cron
        return (own_key(obj),) if kind == cron.kind else owner_key(obj, cron.kind)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Make what is due, note what ended, delete what is too old."""
        cron, kind = view.get(self._cron.kind, key.name, key.namespace), self._cron
        if cron is None or is_deleting(cron):
            return
        jobs = view.owned(kind.job, cron["metadata"]["uid"])
        status = _status(kind, cron, jobs, now)
        for name, how in _newly_ended(kind, cron, jobs):
            yield Note(
                Ref.to(cron), "SawCompletedJob", f"Saw completed job: {name}, condition: {how}"
            )
        running = [job for job in jobs if _is_run(kind, job) and kind.has_succeeded(job) is None]
        time = None
        if not cron["spec"].get("suspend"):
            time = yield from _look_at_schedule(kind, cron, status, now)
        if time is not None:
            yield from _start(kind, cron, status, running, time)
        changed = {
            field: value
            for field, value in status.items()
            if (cron.get("status") or {}).get(field) != value
        }
        if changed:
            yield Patch(Ref.to(cron), {"status": changed}, "status")
        if kind.counts:
            yield from _forget_old(kind, cron, jobs)


def _start(kind: CronKind, cron: Json, status: Json, running: Sequence[Json], time: int) -> Steps:
    """Make the job of a time, as far as the policy allows."""
    policy = cron["spec"].get("concurrencyPolicy", "Allow") if kind.counts else "Allow"
    metadata, about = cron["metadata"], Ref.to(cron)
    zone = zone_named(cron["spec"].get("timeZone"))
    job = _job(kind, cron, time, zone)
    # Made before a crash, and not written down: it is the run itself, and nothing it waits for.
    others = [one for one in running if one["metadata"]["name"] != job["metadata"]["name"]]
    if len(others) >= MOST_ACTIVE and policy != "Replace":
        message = (
            f"Not starting job: {len(others)} runs have not ended, and there may be {MOST_ACTIVE};"
            " the next one starts when one has ended. Run it less often, or see what they wait for"
        )
        yield Note(about, "TooManyActiveJobs", message, "Warning")
        return
    if policy == "Forbid" and others:
        message = (
            "Not starting job because prior execution is running and concurrency policy is Forbid"
        )
        yield Note(about, "JobAlreadyActive", message)
        return
    if policy == "Replace" and others:
        yield Together([Delete(Ref.to(one)) for one in others])
        for one in others:
            name = one["metadata"]["name"]
            yield Note(about, "SuccessfulDelete", f"Deleted job {name}")
        gone = {one["metadata"]["uid"] for one in others}
        _set_active(status, [one for one in status.get("active") or () if one["uid"] not in gone])
    made = yield Create(job)
    if made["metadata"]["name"] not in {one["metadata"]["name"] for one in running}:
        yield Note(about, "SuccessfulCreate", f"Created job {made['metadata']['name']}")
    if kind.counts and kind.has_succeeded(made) is None:
        known = [one for one in status.get("active") or () if one["uid"] != made["metadata"]["uid"]]
        _set_active(status, [*known, _reference(made, metadata["namespace"])])
    status["lastScheduleTime"] = timestamp(time)


# ---- what is due ---------------------------------------------------------------------------------


def _look_at_schedule(
    kind: CronKind, cron: Json, status: Json, now: float
) -> Generator[Action, Any, int | None]:
    """Return the time for which a job is to be made now, and come back for the next one."""
    about, spec = Ref.to(cron), cron["spec"]
    text, zone_name = str(spec.get("schedule") or ""), str(spec.get("timeZone") or "UTC")
    if wrong := wrong_with_schedule(text):
        yield Note(
            about, "UnparseableSchedule", f'unparseable schedule: "{text}" : {wrong}', "Warning"
        )
        return None
    zone = zone_named(zone_name)
    if zone is None:
        message = f'invalid timeZone: "{zone_name}": {wrong_with_zone(zone_name)}'
        yield Note(about, "UnknownTimeZone", message, "Warning")
        return None
    schedule = parse_schedule(text)
    last = status.get("lastScheduleTime") or cron["metadata"].get("creationTimestamp") or ""
    since, deadline = seconds(last), spec.get("startingDeadlineSeconds")
    found = due(schedule, zone, since, now)
    if found.next is not None:
        yield Again(float(found.next))
    elif found.latest is None:
        yield Note(about, "UnparseableSchedule", f'schedule "{text}" names no time', "Warning")
    if found.latest is None:
        return None
    if kind.counts and deadline is not None:
        if found.latest + deadline < now:
            when = timestamp(found.latest)
            yield Note(
                about, "MissSchedule", f"Missed scheduled time to start a job: {when}", "Warning"
            )
            return None
        found = due(schedule, zone, max(since, now - deadline - 1), now)
    if found.missed > MANY_MISSED:
        message = (
            "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check"
            f" clock skew: {found.missed} times were missed, and one job is made for them"
        )
        yield Note(about, "TooManyMissedTimes", message, "Warning")
    return found.latest


# ---- jobs ----------------------------------------------------------------------------------------


def _job(kind: CronKind, cron: Json, time: int, zone: tzinfo | None) -> Json:
    """Return the job of a time; its name follows from that."""
    metadata = cron["metadata"]
    template = kind.template(cron)
    written = template.get("metadata") or {}
    annotations = dict(written.get("annotations") or {})
    annotations[kind.at] = datetime.fromtimestamp(time, zone).isoformat().replace("+00:00", "Z")
    return {
        "apiVersion": kind.job.api_version,
        "kind": kind.job.kind,
        "metadata": {
            "name": f"{metadata['name']}-{_number(cron, time)}",
            "namespace": metadata["namespace"],
            "labels": dict(written.get("labels") or {}),
            "annotations": annotations,
            "ownerReferences": [owner_reference(cron)],
        },
        "spec": template.get("spec") or {},
    }


def _number(cron: Json, time: int) -> int:
    """Return what tells the jobs apart: minutes as in Kubernetes, seconds if minutes do not."""
    schedule = parse_schedule(cron["spec"]["schedule"])
    return time if 0 < schedule.every_s < 60 else time // 60


def _is_run(kind: CronKind, job: Json) -> bool:
    """Say whether a job was made by its schedule, and is not on its way out."""
    return kind.at in (job["metadata"].get("annotations") or {}) and not is_deleting(job)


def _reference(job: Json, namespace: str) -> Json:
    metadata = job["metadata"]
    return {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "name": metadata["name"],
        "namespace": namespace,
        "resourceVersion": metadata["resourceVersion"],
        "uid": metadata["uid"],
    }


def _status(kind: CronKind, cron: Json, jobs: Sequence[Json], now: float) -> Json:
    """Return the status as the jobs say it is; what is made now comes in addition."""
    old = cron.get("status") or {}
    # A job made before a crash is the last one, whatever the status says.
    times = [old.get("lastScheduleTime") or ""]
    for job in jobs:
        written = (job["metadata"].get("annotations") or {}).get(kind.at, "")
        if 0 < seconds(written) <= now:
            times.append(timestamp(seconds(written)))
    status: Json = {}
    if last := max(times, key=seconds):
        status["lastScheduleTime"] = last
    if not kind.counts:
        return status
    there = {job["metadata"]["uid"]: job for job in jobs if kind.has_succeeded(job) is None}
    active = [one for one in old.get("active") or () if one.get("uid") in there]
    known = {one["uid"] for one in active}
    active += [
        _reference(job, cron["metadata"]["namespace"])
        for uid, job in there.items()
        if uid not in known and _is_run(kind, job)
    ]
    _set_active(status, active)
    succeeded = [kind.ended(job) for job in jobs if kind.has_succeeded(job)]
    latest = max([old.get("lastSuccessfulTime") or "", *succeeded], key=seconds)
    if latest:
        status["lastSuccessfulTime"] = latest
    return status


def _set_active(status: Json, active: Sequence[Json]) -> None:
    # None takes the field away, as Kubernetes has it without active jobs.
    status["active"] = list(active) or None


def _newly_ended(kind: CronKind, cron: Json, jobs: Sequence[Json]) -> Iterable[tuple[str, str]]:
    listed = {one.get("uid") for one in (cron.get("status") or {}).get("active") or ()}
    for job in jobs:
        how = kind.has_succeeded(job)
        if how is not None and job["metadata"]["uid"] in listed:
            yield job["metadata"]["name"], "Complete" if how else "Failed"


def _forget_old(kind: CronKind, cron: Json, jobs: Sequence[Json]) -> Steps:
    """Delete finished jobs beyond the history limits, oldest first."""
    for how, field in ((True, "successfulJobsHistoryLimit"), (False, "failedJobsHistoryLimit")):
        limit = cron["spec"].get(field)
        ended = [job for job in jobs if kind.has_succeeded(job) is how and not is_deleting(job)]
        if limit is None or len(ended) <= limit:
            continue
        ended.sort(key=lambda job: (_begun(job), job["metadata"]["name"]))
        old = ended[: min(len(ended) - limit, _AT_ONCE)]
        yield Together([Delete(Ref.to(job)) for job in old])
        for job in old:
            yield Note(Ref.to(cron), "SuccessfulDelete", f"Deleted job {job['metadata']['name']}")


def _begun(job: Json) -> float:
    started = (job.get("status") or {}).get("startTime")
    return seconds(started or job["metadata"].get("creationTimestamp") or "")


# ---- kinds ---------------------------------------------------------------------------------------


def _has_job_succeeded(job: Json) -> bool | None:
    conditions = (job.get("status") or {}).get("conditions")
    if is_true(conditions, "Complete"):
        return True
    return False if is_true(conditions, "Failed") else None


def _job_ended(job: Json) -> str:
    return str((job.get("status") or {}).get("completionTime") or "")


_VOLCANO_ENDS: Mapping[str, bool] = {"Completed": True, "Failed": False, "Terminated": False}


def _volcano_state(job: Json) -> Json:
    return (job.get("status") or {}).get("state") or {}


def _ray_template(cron: Json) -> Json:
    """The template of a RayCronJob is a spec alone, so its own labels are those of its jobs."""
    metadata = cron["metadata"]
    annotations = dict(metadata.get("annotations") or {})
    annotations.pop(_LAST_APPLIED, None)
    return {
        "metadata": {"labels": metadata.get("labels") or {}, "annotations": annotations},
        "spec": cron["spec"].get("jobTemplate") or {},
    }


_RAY_ENDS: Mapping[str, bool] = {"Complete": True, "Failed": False}


def _has_ray_job_succeeded(job: Json) -> bool | None:
    status = job.get("status") or {}
    ended = _RAY_ENDS.get(status.get("jobDeploymentStatus", ""))
    return ended if ended is not True else status.get("jobStatus") == "SUCCEEDED"


CRON_KINDS: Sequence[CronKind] = (
    CronKind(
        name="cronjob",
        kind=names.CRON_JOB,
        job=names.JOB,
        at="batch.kubernetes.io/cronjob-scheduled-timestamp",
        template=lambda cron: cron["spec"].get("jobTemplate") or {},
        has_succeeded=_has_job_succeeded,
        ended=_job_ended,
    ),
    CronKind(
        name="vc-cronjob",
        kind=volcano.CRON_JOB,
        job=volcano.JOB,
        at="volcano.sh/cronjob-scheduled-timestamp",
        template=lambda cron: cron["spec"].get("jobTemplate") or {},
        has_succeeded=lambda job: _VOLCANO_ENDS.get(_volcano_state(job).get("phase", "")),
        ended=lambda job: str(_volcano_state(job).get("lastTransitionTime") or ""),
    ),
    CronKind(
        name="raycronjob",
        kind=ray.CRON_JOB,
        job=ray.JOB,
        at="ray.io/cronjob-scheduled-timestamp",
        template=_ray_template,
        has_succeeded=_has_ray_job_succeeded,
        ended=lambda job: str((job.get("status") or {}).get("endTime") or ""),
        counts=False,  # KubeRay's has neither a policy nor limits
    ),
)
