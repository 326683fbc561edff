"""The operator of kubeflow's jobs: makes pods that find each other, restarts them together.

    Created ──▶ Running ──▶ Succeeded | Failed
                  │  ▲
                  ▼  │ all pods of the last attempt are gone
               Restarting

A job is over when its leader is (without a leader, when all pods are). It says so once nothing of
it runs any more, because its quota is free from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from unisono.control import names
from unisono.control.actions import (
    Action,
    Again,
    Delete,
    Json,
    Note,
    Patch,
    Ref,
    Steps,
    Together,
)
from unisono.control.conditions import find, is_true, seconds, timestamp
from unisono.control.controller import own_key, owner_key
from unisono.control.gangs.recovery import (
    ATTEMPT,
    LAST_INCIDENT,
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
    record_of,
    starts_again,
)
from unisono.control.job_kinds import kubeflow
from unisono.control.job_kinds.kubeflow import ENDS, MPI, JobKind
from unisono.control.job_kinds.kubeflow.pods import (
    mpi_keys_name,
    mpi_objects,
    new_pod,
    services,
    waits_for_workers,
)
from unisono.control.job_kinds.kubeflow.replicas import (
    Replicas,
    attempt_of,
    pods_by_replica,
    selector_of,
)
from unisono.control.job_kinds.ssh_keys import KeyPair, new_key_pair
from unisono.control.jobs.pods import is_deleting, is_terminal, made, most_pods, phase_of, too_many
from unisono.control.jobs.queues import Queues, may_make_pods
from unisono.control.view import View
from unisono.kinds.digits import whole_number
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

_OURS = ("", None, "kubeflow.org/training-operator", "kubeflow.org/mpi-operator")


class KubeflowOperator:
    """Runs the jobs of one kind."""

    def __init__(
        self, job_kind: JobKind, queues: Queues, keys: Callable[[], KeyPair] = new_key_pair
    ) -> None:
        """Take the kind, what knows which jobs wait, and what makes keys for ssh."""
        self._job_kind = job_kind
        self._queues = queues
        self._keys = keys
        self.name = job_kind.kind.kind.lower()
        self.watches: Sequence[Kind] = (job_kind.kind, names.POD)
        self.owner_kind = job_kind.kind

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A job, or a pod of one."""
        if kind == self._job_kind.kind:
            return (own_key(obj),)
        return owner_key(obj, self._job_kind.kind)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Take one job a step further."""
        job = view.get(self._job_kind.kind, key.name, key.namespace)
        policy = (job["spec"].get("runPolicy") or {}) if job is not None else {}
        if job is None or is_deleting(job) or policy.get("managedBy") not in _OURS:
            return
        owned = view.owned(names.POD, job["metadata"]["uid"])
        conditions = (job.get("status") or {}).get("conditions")
        if any(is_true(conditions, end) for end in ENDS):
            yield from self._tidy(job, owned, now)
        elif policy.get("suspend"):
            yield from self._suspend(job, owned, now)
        elif may_make_pods(job, self._job_kind.kind, self._queues, view):
            yield from self._run(job, owned, view, now)

    # ---- before and after --------------------------------------------------------------------

    def _suspend(self, job: Json, owned: Sequence[Json], now: float) -> Steps:
        """Set the condition Suspended, so that pods are not counted as lost, and delete them."""
        status = job.get("status") or {}
        message = f"{self._job_kind.kind.kind} {job['metadata']['name']} is suspended."
        conditions = with_state(
            self._created(job, now),
            "Suspended",
            f"{self._job_kind.kind.kind}Suspended",
            message,
            now,
        )
        changes = {"conditions": conditions, "replicaStatuses": None, "startTime": None}
        if any(status.get(key) != value for key, value in changes.items()):
            yield Patch(Ref.to(job), {"status": changes}, "status")
        yield from _delete(owned)

    def _tidy(self, job: Json, owned: Sequence[Json], now: float) -> Steps:
        policy = job["spec"].get("runPolicy") or {}
        is_thorough = policy.get("cleanPodPolicy") == "All"
        yield from _delete([pod for pod in owned if is_thorough or not is_terminal(pod)])
        ttl = policy.get("ttlSecondsAfterFinished")
        if ttl is None:
            return
        at = seconds(job["status"].get("completionTime") or "") + ttl
        if now >= at:
            yield Delete(Ref.to(job), policy="Foreground")
        else:
            yield Again(at)

    def _created(self, job: Json, now: float) -> list[Json]:
        conditions = (job.get("status") or {}).get("conditions")
        if find(conditions, "Created") is not None:
            return list(conditions or ())
        kind, name = self._job_kind.kind.kind, job["metadata"]["name"]
        return with_state(
            conditions, "Created", f"{kind}Created", f"{kind} {name} is created.", now
        )

    # ---- running -----------------------------------------------------------------------------

    def _run(self, job: Json, owned: Sequence[Json], view: View, now: float) -> Steps:
        replicas, old = pods_by_replica(job, self._job_kind, owned)
        wanted = sum(one.count for one in replicas)
        if wanted > most_pods(job, wanted, (one.template for one in replicas), view):
            yield from too_many(job, wanted, view, now)
            return
        if not (job.get("status") or {}).get("startTime"):
            yield from self._make(job, replicas, view)
        deadline = self._deadline(job)
        if self._is_through(job, replicas):
            yield from self._end(job, replicas, old, "Succeeded", "is successfully completed.", now)
            return
        if deadline is not None and now >= deadline:
            message = "was active longer than it may be (activeDeadlineSeconds)."
            yield from self._end(job, replicas, old, "Failed", message, now)
            return
        answer = _answer_to(job, self._job_kind, replicas, view, now)
        if isinstance(answer, _Failed):
            yield from self._end(job, replicas, old, "Failed", f"failed: {answer.message}", now)
            return
        if answer is not None:
            attempt = attempt_of(job) + 1
            record = record_of(answer.incident, answer.restart, attempt)
            yield from self._restart(job, record, used=answer.used, now=now)
            return
        yield from _delete(old)
        if not old:
            yield from self._create(job, replicas, now)
        yield from self._write(job, replicas, now)
        if deadline is not None:
            yield Again(deadline)

    def _make(self, job: Json, replicas: Sequence[Replicas], view: View) -> Steps:
        """Make what the job has besides pods."""
        namespace = job["metadata"]["namespace"]
        if self._job_kind is MPI:
            has_keys = view.get(names.SECRET, mpi_keys_name(job), namespace) is not None
            yield from made(mpi_objects(job, replicas, None if has_keys else self._keys()))
        else:
            yield from made(services(job, self._job_kind, replicas))

    def _is_through(self, job: Json, replicas: Sequence[Replicas]) -> bool:
        """Say whether the replicas that decide have succeeded."""
        by_type = {one.type: one for one in replicas}
        for leader in self._job_kind.leaders:
            if leader in by_type:
                return by_type[leader].in_phase("Succeeded") == by_type[leader].count
        workers = by_type.get("Worker")
        if workers is None:
            return False
        if (
            self._job_kind is kubeflow.TENSORFLOW
            and job["spec"].get("successPolicy") != "AllWorkers"
        ):
            first = workers.pods.get(0)
            return first is not None and (first.get("status") or {}).get("phase") == "Succeeded"
        return workers.count > 0 and workers.in_phase("Succeeded") == workers.count

    def _deadline(self, job: Json) -> float | None:
        limit = (job["spec"].get("runPolicy") or {}).get("activeDeadlineSeconds")
        started = (job.get("status") or {}).get("startTime")
        return seconds(started) + limit if limit is not None and started else None

    def _create(self, job: Json, replicas: Sequence[Replicas], now: float) -> Steps:
        """Make the pods that are missing, after a failure not before its time."""
        record = Record.of(job["metadata"].get("annotations"))
        if record is not None and record.attempt == attempt_of(job):
            at = seconds(record.restart_at)
            if now < at:
                yield Again(at)
                return
        for one in replicas:
            if one.type == "Launcher" and waits_for_workers(job):
                if not all(other.are_ready for other in replicas if other is not one):
                    continue
            yield from made(
                new_pod(job, self._job_kind, replicas, one, number) for number in one.missing()
            )

    def _restart(self, job: Json, record: Record, *, used: int, now: float) -> Steps:
        """Count an attempt; its number on the job makes leftovers of all pods there are."""
        annotations = {
            ATTEMPT: str(record.attempt),
            LAST_INCIDENT: record.text(),
            kubeflow.COUNTED: str(used),
        }
        job = yield Patch(Ref.to(job), {"metadata": {"annotations": annotations}})
        kind, name = self._job_kind.kind.kind, job["metadata"]["name"]
        message = f"{kind} {name} is restarting (attempt {record.attempt}): {record.message}"
        message += starts_again(seconds(record.restart_at), record.row, now)
        conditions = with_state(
            (job.get("status") or {}).get("conditions"),
            "Restarting",
            f"{kind}Restarting",
            message,
            now,
        )
        yield Patch(Ref.to(job), {"status": {"conditions": conditions}}, "status")
        yield Note(Ref.to(job), f"{kind}Restarting", message, "Warning")

    def _end(
        self,
        job: Json,
        replicas: Sequence[Replicas],
        old: Sequence[Json],
        end: str,
        message: str,
        now: float,
    ) -> Steps:
        """Delete pods that still run; when none is left, write how the job ended."""
        pods = [*old, *(pod for one in replicas for pod in one.pods.values())]
        alive = [pod for pod in pods if not is_terminal(pod)]
        if alive:
            yield from _delete(alive)
            return
        kind, name = self._job_kind.kind.kind, job["metadata"]["name"]
        text = f"{kind} {name} {message}"
        conditions = with_state(self._created(job, now), end, f"{kind}{end}", text, now)
        changes = {
            "conditions": conditions,
            "completionTime": timestamp(now),
            "replicaStatuses": counts_of(job, replicas),
        }
        yield Patch(Ref.to(job), {"status": changes}, "status")
        is_good = end == "Succeeded"
        yield Note(Ref.to(job), f"{kind}{end}", text, "Normal" if is_good else "Warning")

    def _write(
        self, job: Json, replicas: Sequence[Replicas], now: float
    ) -> Generator[Action, Any, None]:
        status = job.get("status") or {}
        conditions = self._created(job, now)
        running = sum(one.in_phase("Running", "Succeeded") for one in replicas)
        kind, name = self._job_kind.kind.kind, job["metadata"]["name"]
        if running and running >= sum(one.count for one in replicas):
            message = f"{kind} {name} is running."
            conditions = with_state(conditions, "Running", f"{kind}Running", message, now)
        changes: Json = {
            "conditions": conditions,
            "replicaStatuses": counts_of(job, replicas),
            "startTime": status.get("startTime") or timestamp(now),
        }
        if any(status.get(key) != value for key, value in changes.items()):
            yield Patch(Ref.to(job), {"status": changes}, "status")


def _delete(pods: Sequence[Json]) -> Steps:
    going = [pod for pod in pods if not is_deleting(pod)]
    if going:
        yield Together([Delete(Ref.to(pod)) for pod in going])


# ---- status --------------------------------------------------------------------------------------
#
# The last condition of the list is what `kubectl get` shows, so a state that comes true is put
# last, and those that it excludes are taken out or set to false.

_EXCLUDES = {
    "Running": ("Restarting",),
    "Restarting": ("Running",),
    "Suspended": ("Running", "Restarting"),
}


def with_state(
    conditions: Sequence[Json] | None, state: str, reason: str, message: str, now: float
) -> list[Json]:
    """Return conditions in which a state is true and the last; unchanged if it was so before."""
    old = find(conditions, state)
    if old is not None and old["status"] == "True" and (conditions or ())[-1] is old:
        return list(conditions or ())
    gone = (state, *_EXCLUDES.get(state, ()))
    kept = [one for one in conditions or () if one["type"] not in gone]
    over = (
        ("Running", "Restarting") if state in ENDS else ("Suspended",) if state == "Running" else ()
    )
    kept = [_false(one, now) if one["type"] in over else one for one in kept]
    return [*kept, _condition(state, "True", reason, message, now)]


def _false(condition: Json, now: float) -> Json:
    if condition["status"] == "False":
        return condition
    return {**condition, "status": "False", "lastTransitionTime": timestamp(now)}


def _condition(state: str, status: str, reason: str, message: str, now: float) -> Json:
    return {
        "type": state,
        "status": status,
        "reason": reason,
        "message": message,
        "lastUpdateTime": timestamp(now),
        "lastTransitionTime": timestamp(now),
    }


def counts_of(job: Json, replicas: Sequence[Replicas]) -> Json:
    """Return how many pods of each type are in which phase, and of which attempt."""
    return {
        one.type: {
            "active": one.in_phase("Pending", "Running"),
            "succeeded": one.in_phase("Succeeded"),
            "failed": one.in_phase("Failed"),
            "selector": selector_of(job, one),
        }
        for one in replicas
    }


# ---- pods that failed ----------------------------------------------------------------------------
#
# What a job of kubeflow's does about pods that failed or were taken away.
#
#     Never               a failure of its own ends the job
#     ExitCode            so does a code up to 127; with a higher one it starts over
#     OnFailure, Always   it starts over, as often as `backoffLimit` says (6 times by default)
#
# What is not the job's own fault (a lost node, a deleted pod) starts it over and counts for
# nothing. An MPI job starts over whatever its replicas say: its launcher has the back-off limit of
# a Job.

# Codes from here on say that a signal ended the program, which may not happen again.
_FIRST_RETRYABLE = 128


@dataclass(frozen=True, slots=True)
class _Failed:
    """The job has failed."""

    message: str


@dataclass(frozen=True, slots=True)
class _Again:
    """The job starts over; so many restarts were its own fault by then."""

    incident: Incident
    restart: Restart
    used: int


def _answer_to(
    job: Json, job_kind: JobKind, replicas: Sequence[Replicas], view: View, now: float
) -> _Failed | _Again | None:
    """Say what follows from how the pods are; None if nothing does."""
    annotations = job["metadata"].get("annotations") or {}
    limit = (job["spec"].get("runPolicy") or {}).get("backoffLimit")
    if is_upstream(annotations) and limit is not None:
        restarts = sum(_restarts(one) for one in replicas)
        if restarts > limit:
            return _Failed(f"its containers were restarted {restarts} times; the limit is {limit}")
    failed = [one for one in replicas if one.in_phase("Failed")]
    if not failed and not any(one.lost for one in replicas):
        return None
    pods = [pod for one in replicas for pod in one.pods.values()]
    incident = first_cause(pods, lambda name: view.get(names.NODE, name), now=now)
    if incident.counts and any(_is_final(one, job_kind) for one in failed):
        return _Failed(incident.message)
    text = annotations.get(kubeflow.COUNTED, "0")
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
        return _Failed(decision.message)
    return _Again(incident, decision, used + decision.counts)


def _is_final(one: Replicas, job_kind: JobKind) -> bool:
    """Say whether a failure of these pods is one for good."""
    if job_kind is MPI or one.restarts in ("OnFailure", "Always"):
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
