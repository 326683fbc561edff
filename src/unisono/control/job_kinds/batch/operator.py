"""The operator of batch/v1 Job: makes its pods, counts them, ends it."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
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
    Read,
    Ref,
    Steps,
    Together,
)
from unisono.control.conditions import find, is_true, seconds, timestamp, with_condition
from unisono.control.controller import Reads, own_key, owner_key
from unisono.control.job_kinds.batch.completion import (
    INDEX,
    INDEX_FAILURES,
    TRACKING,
    Counts,
    Verdict,
    count,
    free_indexes,
    index_of,
    restarts,
    ruled,
    verdict,
)
from unisono.control.jobs.pods import (
    AT_ONCE,
    TIMES_TOO_MANY,
    is_deleting,
    is_ready,
    is_terminal,
    most_pods,
    phase_of,
    pod_from,
    pod_name,
    too_many,
)
from unisono.control.view import View
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

_OURS = ("", None, "kubernetes.io/job-controller")
_JOB_NAME = "batch.kubernetes.io/job-name"
_FIRST_BACKOFF = 10.0
_LONGEST_BACKOFF = 600.0


def _read_of_pod(pod: Json) -> object:
    """Return what is read of a pod: how it is, and not where."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    is_going = is_deleting(pod) or is_terminal(pod)
    return (
        metadata.get("deletionTimestamp"),
        metadata.get("finalizers"),
        metadata.get("labels"),
        status if is_going else (phase_of(pod), is_ready(pod), restarts((pod,))),
    )


class JobOperator:
    """Runs Jobs."""

    name = "job"
    watches: Sequence[Kind] = (names.JOB, names.POD)
    owner_kind: Kind = names.JOB
    reads: Mapping[Kind, Reads] = {names.POD: _read_of_pod}
    # What it writes it has counted already; a pod that it releases makes an event when it is gone.
    ignores_own_writes = True

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A Job, or a pod of one."""
        return (own_key(obj),) if kind == names.JOB else owner_key(obj, names.JOB)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Take one Job a step further."""
        job = view.get(names.JOB, key.name, key.namespace)
        if job is None or is_deleting(job):
            # Its pods are counted no more, so their finalizers must go.
            yield from _release(_pods_of(key, view))
            return
        if job["spec"].get("managedBy") not in _OURS:
            return
        pods = view.owned(names.POD, job["metadata"]["uid"])
        conditions = (job.get("status") or {}).get("conditions") or []
        if is_true(conditions, "Complete") or is_true(conditions, "Failed"):
            yield from _release(pods)
            # It ended when none was left: these came late, and would do again what is done.
            late = [pod for pod in pods if not is_terminal(pod) and not is_deleting(pod)]
            if late:
                yield Together([Delete(Ref.to(pod)) for pod in late])
            if (job["status"].get("uncountedTerminatedPods") or {}) != {}:
                cleared = {"status": {"uncountedTerminatedPods": None}}
                job = yield Patch(Ref.to(job), cleared, "status")
            yield from _expire(job, now)
            return
        ignored = ruled(job, pods, "Ignore") | _sent_away(job, pods)
        counts = count(job, pods, ignored, ruled(job, pods, "FailIndex"))
        decided = _ending(conditions)
        if decided is not None:  # also when it is suspended by now: it is not to come back
            yield from self._end(job, counts, decided, _status(job, counts, now), now)
            return
        if job["spec"].get("suspend"):
            yield from self._suspend(job, counts, now)
            return
        yield from self._run(job, pods, counts, view, now)

    # ---- suspended ---------------------------------------------------------------------------

    def _suspend(self, job: Json, counts: Counts, now: float) -> Steps:
        """Send the pods away without counting them, and say that the Job is suspended."""
        if counts.active:
            yield Together([Delete(Ref.to(pod)) for pod in counts.active])
        # Only deleted pods lose their finalizer: one that ends by itself has to be counted.
        yield from _release([*counts.active, *counts.terminating, *counts.ignored])
        status = _status(job, counts, now)
        # Pods that were just deleted still have their nodes, which are not free yet.
        status["active"], status["terminating"] = 0, len(counts.active) + len(counts.terminating)
        status["conditions"] = with_condition(
            status["conditions"], "Suspended", "True", "JobSuspended", "Job suspended", now=now
        )
        status["startTime"] = None
        yield from _write(job, status)
        yield from _release([*counts.to_release, *counts.new_succeeded, *counts.new_failed])

    # ---- running -----------------------------------------------------------------------------

    def _run(
        self, job: Json, pods: Sequence[Json], counts: Counts, view: View, now: float
    ) -> Steps:
        status = _status(job, counts, now)
        if is_true(status["conditions"], "Suspended"):
            status["conditions"] = with_condition(
                status["conditions"], "Suspended", "False", "JobResumed", "Job resumed", now=now
            )
        if not status.get("startTime"):
            status["startTime"] = timestamp(now)
        end = verdict(job, counts, now, seconds(status["startTime"]))
        if end is not None:
            yield from self._end(job, counts, end, status, now)
            return
        wanted = _wanted(job["spec"], counts)
        room = most_pods(job, wanted, (job["spec"]["template"],), view)
        if wanted > room * TIMES_TOO_MANY:
            yield from too_many(job, wanted, view, now)
            room = len(counts.active)  # what is there stays
        # First of all: a second pod of an index, which an earlier request created late, must not be
        # bound beside the first while a refused status keeps us from deleting it.
        going = _surplus(job["spec"], counts.active, wanted)
        if going:
            yield from _release(going)  # they did not fail, and are not to be counted
            yield Together([Delete(Ref.to(pod)) for pod in going])
        # The status with the pods that it speaks of: one of the two alone is mended the next time.
        new, again_at = self._missing(job, pods, counts, room, now)
        status["active"] += len(new)
        patch = _status_patch(job, status)
        if new or patch is not None:
            yield Together([*map(Create, new), *([patch] if patch is not None else [])])
        yield from _release([*counts.to_release, *counts.new_succeeded, *counts.new_failed])
        yield from _release(counts.ignored)
        if again_at is not None:
            yield Again(again_at)
        deadline = job["spec"].get("activeDeadlineSeconds")
        if deadline is not None:
            yield Again(seconds(status["startTime"]) + deadline)

    def _missing(
        self, job: Json, pods: Sequence[Json], counts: Counts, room: int, now: float
    ) -> tuple[list[Json], float | None]:
        """Return the pods to make now, as long as there is room, and when others may follow."""
        spec = job["spec"]
        missing = min(_wanted(spec, counts), room) - len(counts.active)
        if spec.get("podReplacementPolicy") == "Failed":
            missing -= len(counts.terminating)
        if missing <= 0:
            return [], None
        numbers, again_at = _numbers(spec, counts, min(missing, AT_ONCE), now)
        taken = {pod["metadata"]["name"] for pod in pods}
        return _new_pods(job, counts, numbers, taken), again_at

    def _end(self, job: Json, counts: Counts, end: Verdict, status: Json, now: float) -> Steps:
        """Stop what runs; once nothing does, say how it ended."""
        target = "SuccessCriteriaMet" if end.succeeded else "FailureTarget"
        status["conditions"] = with_condition(
            status["conditions"], target, "True", end.reason, end.message, now=now
        )
        if counts.active or counts.terminating:
            yield from _write(job, status)
            if counts.active:
                yield Together([Delete(Ref.to(pod)) for pod in counts.active])
            yield from _release(
                [*counts.to_release, *counts.new_succeeded, *counts.new_failed, *counts.ignored]
            )
            return
        final = "Complete" if end.succeeded else "Failed"
        status["conditions"] = with_condition(
            status["conditions"], final, "True", end.reason, end.message, now=now
        )
        if end.succeeded:
            status["completionTime"] = timestamp(now)
        written = yield from _write(job, status)
        yield from _release(
            [*counts.to_release, *counts.new_succeeded, *counts.new_failed, *counts.ignored]
        )
        reason = "Completed" if end.succeeded else end.reason
        kind = "Normal" if end.succeeded else "Warning"
        message = "Job completed" if end.succeeded else end.message
        yield Note(Ref.to(written), reason, message, kind)  # type: ignore[arg-type]
        yield from _expire(written, now)


def _sent_away(job: Json, pods: Sequence[Json]) -> set[str]:
    """Return the uids of pods that ended because their Job was suspended: that is no failure."""
    if not job["spec"].get("suspend"):
        return set()
    return {pod["metadata"]["uid"] for pod in pods if is_deleting(pod)}


def _ending(conditions: Sequence[Json]) -> Verdict | None:
    """Return the end that was decided before, and not carried out to the end."""
    for kind, succeeded in (("SuccessCriteriaMet", True), ("FailureTarget", False)):
        found = find(conditions, kind)
        if found is not None and found["status"] == "True":
            return Verdict(succeeded, found["reason"], found["message"])
    return None


def _status(job: Json, counts: Counts, now: float) -> Json:
    """Return the status as the pods say it is."""
    old = job.get("status") or {}
    uncounted = {
        "succeeded": [pod["metadata"]["uid"] for pod in counts.new_succeeded],
        "failed": [pod["metadata"]["uid"] for pod in counts.new_failed],
    }
    kept = {pod["metadata"]["uid"] for pod in counts.to_release}
    before = old.get("uncountedTerminatedPods") or {}
    for part, uids in uncounted.items():
        uids[:0] = [uid for uid in before.get(part) or () if uid in kept]
    status: Json = {
        **old,
        "active": len(counts.active),
        "ready": sum(1 for pod in counts.active if is_ready(pod)),
        "terminating": len(counts.terminating),
        "succeeded": counts.succeeded,
        "failed": counts.failed,
        "conditions": list(old.get("conditions") or ()),
        "uncountedTerminatedPods": {part: uids for part, uids in uncounted.items() if uids},
    }
    if job["spec"].get("completionMode") == "Indexed":
        status["completedIndexes"] = counts.completed_indexes.text()
    if job["spec"].get("backoffLimitPerIndex") is not None:
        status["failedIndexes"] = counts.failed_indexes.text()
    return status


def _write(job: Json, status: Json) -> Generator[Action, Any, Json]:
    """Write a status if it is another one; return the job as it then is."""
    patch = _status_patch(job, status)
    if patch is None:
        return job
    written: Json = yield patch
    return written


def _status_patch(job: Json, status: Json) -> Patch | None:
    old = job.get("status") or {}
    if {key: value for key, value in status.items() if value not in (None, 0, {}, [], "")} == {
        key: value for key, value in old.items() if value not in (None, 0, {}, [], "")
    }:
        return None
    return Patch(Ref.to(job), {"status": status}, "status")


def _finalizers(pod: Json) -> list[str]:
    return pod["metadata"].get("finalizers") or []


def _release(pods: Sequence[Json]) -> Steps:
    """Take the tracking finalizer off pods that are accounted for."""
    held = {pod["metadata"]["uid"]: pod for pod in pods if TRACKING in _finalizers(pod)}
    if held:
        yield Together(
            [
                Patch(
                    Ref.to(pod),
                    {"metadata": {"finalizers": [x for x in _finalizers(pod) if x != TRACKING]}},
                    exact=False,
                )
                for pod in held.values()
            ]
        )


def _job_of(pod: Json) -> tuple[str, str] | None:
    """Return name and uid of the Job that a pod belongs to."""
    for owner in pod["metadata"].get("ownerReferences") or ():
        if owner.get("controller") and owner["kind"] == names.JOB.kind:
            return owner["name"], owner["uid"]
    return None


def _read_of_uncounted(pod: Json) -> object:
    return TRACKING in _finalizers(pod), _job_of(pod), is_deleting(pod)


def _uid_of(job: Json) -> object:
    return job["metadata"]["uid"]


class OrphanedPods:
    """Lets go of pods whose Job is gone: it left them, perhaps while nothing ran, or was replaced.

    They are counted no more, and with the finalizer of their Job they could never be deleted. A
    Job of the same name that came later counts its own.
    """

    name = "orphaned-pods"
    watches: Sequence[Kind] = (names.POD, names.JOB)
    reads: Mapping[Kind, Reads] = {names.POD: _read_of_uncounted, names.JOB: _uid_of}
    ignores_own_writes = True

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A pod whose Job may be gone, or the pods of a Job that came or went."""
        if kind == names.POD:
            pods = [obj] if _job_of(obj) is None or is_deleting(obj) else []
        else:
            pods = view.owned(names.POD, obj["metadata"]["uid"])
        return [own_key(pod) for pod in pods if TRACKING in _finalizers(pod)]

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Take the finalizer off a pod whose Job is gone; the API itself says whether it is."""
        pod = view.get(names.POD, key.name, key.namespace)
        if pod is None or TRACKING not in _finalizers(pod):
            return
        found = _job_of(pod)
        if found is not None:
            name, uid = found
            job = view.get(names.JOB, name, key.namespace)
            if job is None or job["metadata"]["uid"] != uid:
                job = yield Read(names.JOB, key.namespace, name)
            if job is not None and job["metadata"]["uid"] == uid:
                return
        yield from _release([pod])


def _pods_of(key: Key, view: View) -> list[Json]:
    """Return the pods that name a Job of this name, whether it exists or not."""
    return [
        pod
        for pod in view.within(names.POD, key.namespace)
        if (pod["metadata"].get("labels") or {}).get(_JOB_NAME) == key.name
    ]


def _wanted(spec: Json, counts: Counts) -> int:
    parallelism = int(spec.get("parallelism", 1))
    completions = spec.get("completions")
    if completions is None:
        return len(counts.active) if counts.succeeded else parallelism
    left = int(completions) - counts.succeeded - len(counts.failed_indexes)
    return min(parallelism, max(0, left))


def _numbers(
    spec: Json, counts: Counts, missing: int, now: float
) -> tuple[list[int], float | None]:
    """Return the numbers of pods to make now, and when others may follow.

    After a failure the whole Job waits, or each index by itself if it has a limit of its own.
    """
    is_indexed = spec.get("completionMode") == "Indexed"
    numbers = free_indexes(spec, counts, missing) if is_indexed else list(range(missing))
    if spec.get("backoffLimitPerIndex") is None:
        until = _backoff_until(counts.failures_in_a_row())
        return (numbers, None) if until <= now else ([], until)
    due = {number: _backoff_until(counts.failures_in_a_row(number)) for number in numbers}
    later = [at for at in due.values() if at > now]
    return [number for number in numbers if due[number] <= now], min(later, default=None)


def _surplus(spec: Json, active: Sequence[Json], wanted: int) -> list[Json]:
    """Return the pods that are too many: second ones of an index, then those that do least.

    A request to make a pod may arrive when its sender has long given it up and made another.
    """
    first: list[Json] = []
    second: list[Json] = []
    indexes: set[int] = set()
    for pod in sorted(active, key=lambda pod: (not is_ready(pod), "nodeName" not in pod["spec"])):
        is_second = spec.get("completionMode") == "Indexed" and index_of(pod) in indexes
        (second if is_second else first).append(pod)
        indexes.add(index_of(pod))
    first.sort(key=lambda pod: (is_ready(pod), -index_of(pod)))
    return [*second, *first[: max(0, len(first) - wanted)]]


def _backoff_until(failures: Sequence[float]) -> float:
    """Return when the next pod may be made, after failures in a row."""
    if not failures:
        return 0.0
    wait = min(_FIRST_BACKOFF * (1 << min(len(failures) - 1, 10)), _LONGEST_BACKOFF)
    return failures[-1] + wait


def _new_pods(
    job: Json, counts: Counts, numbers: Sequence[int], taken: Collection[str]
) -> list[Json]:
    """Return pods to make. A name follows from the job, the number and how many went before.

    A pod that was terminating when its successor was made is counted among both, so the next name
    may be taken: it needs another.
    """
    spec, metadata = job["spec"], job["metadata"]
    is_indexed = spec.get("completionMode") == "Indexed"
    made: list[Json] = []
    round_ = counts.failed + counts.succeeded + len(counts.terminating)
    for number in numbers:
        place = number if is_indexed else len(counts.active) + number
        base = f"{metadata['name']}-{number}" if is_indexed else metadata["name"]
        why = (metadata["uid"], metadata.get("generation"), place)
        names_ = (pod_name(base, *why, later) for later in itertools.count(round_))
        name = next(one for one in names_ if one not in taken)
        pod = pod_from(spec["template"], job, name, finalizers=[TRACKING])
        if is_indexed:
            _number(pod, metadata["name"], number)
        if spec.get("backoffLimitPerIndex") is not None:
            times = len(counts.failures_in_a_row(number))
            pod["metadata"]["annotations"][INDEX_FAILURES] = str(times)
        made.append(pod)
    return made


def _number(pod: Json, job_name: str, number: int) -> None:
    pod["metadata"]["annotations"][INDEX] = str(number)
    pod["metadata"]["labels"][INDEX] = str(number)
    pod["spec"].setdefault("hostname", f"{job_name}-{number}")
    variable = {
        "name": "JOB_COMPLETION_INDEX",
        "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}},
    }
    for part in ("containers", "initContainers"):
        containers = pod["spec"].get(part)
        if containers:
            pod["spec"][part] = [
                {**one, "env": [*(one.get("env") or ()), variable]} for one in containers
            ]


def _expire(job: Json, now: float) -> Steps:
    """Delete a Job that ended, when its time is up."""
    ttl = job["spec"].get("ttlSecondsAfterFinished")
    if ttl is None:
        return
    conditions = (job.get("status") or {}).get("conditions") or ()
    ended = next(
        seconds(one["lastTransitionTime"])
        for one in conditions
        if one["type"] in ("Complete", "Failed") and one["status"] == "True"
    )
    if now >= ended + ttl:
        yield Delete(Ref.to(job), policy="Foreground")
    else:
        yield Again(ended + ttl)
