"""The operator of Slurm's jobs: makes their pods, follows their script, ends them in time.

    PENDING ──admitted──▶ CONFIGURING ──script runs──▶ RUNNING ──script ends──▶ COMPLETED, FAILED
       ▲                       │                          │ ├─ cancelled ──▶ CANCELLED
       └───────── evicted, requeued, a node lost ─────────┘ └─ out of time ▶ TIMEOUT

An array has no pods: it opens its tasks (`tasks`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from unisono.control import names
from unisono.control.actions import Again, Create, Delete, Json, Note, Patch, Ref, Steps, Together
from unisono.control.admission.evictions import evicted_for
from unisono.control.conditions import find, is_true, seconds, timestamp
from unisono.control.controller import own_key, owner_key
from unisono.control.job_kinds import slurm
from unisono.control.job_kinds.slurm import array_tasks as tasks
from unisono.control.job_kinds.slurm.pods import (
    limit_seconds,
    pod_name,
    pods_of,
    restarts_of,
    service_of,
    subdomain,
)
from unisono.control.jobs.controller import REQUEUED, injections
from unisono.control.jobs.pods import is_deleting, is_terminal, phase_of
from unisono.control.jobs.queues import Queues
from unisono.control.view import View
from unisono.engine.model.names import WorkloadKey
from unisono.kinds.json_texts import read_json
from unisono.kinds.kueue.topology_assignment import pods_per_host
from unisono.kinds.kueue.waiting import waiting_message
from unisono.kinds.slurm import ENDED
from unisono.kinds.views.objects import Conditions
from unisono.kube.form import Key
from unisono.kube.mapping import Kind
from unisono.slurm.environment import allocated_nodes

# How long the record of a job that ended is kept: what sacct can still tell.
KEPT_SECONDS = 7 * 24 * 3600
_SIGNALLED = 128  # shells report a signal as an exit code above it
_LAST_SIGNAL = 64
_OUT_OF_MEMORY = "OOMKilled"

# The account and the QOS of a Workload, as the scheduler has them.
AccountOf = Callable[[WorkloadKey], tuple[str, str] | None]


class SlurmJobOperator:
    """Runs Slurm's jobs."""

    name = "slurmjob"
    watches: Sequence[Kind] = (slurm.JOB, names.POD, names.WORKLOAD)
    owner_kind: Kind = slurm.JOB

    def __init__(self, queues: Queues, account_of: AccountOf = lambda key: None) -> None:
        """Take what knows the gates of pods, and the account of a job that names none."""
        self._queues = queues
        self._account_of = account_of

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A job, its array, one of its pods, or its Workload."""
        if kind != slurm.JOB:
            yield from owner_key(obj, slurm.JOB)
            return
        yield own_key(obj)
        array = tasks.array_of(obj)
        if array:
            yield Key(obj["metadata"].get("namespace", ""), array)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Take one job a step further."""
        job = view.get(slurm.JOB, key.name, key.namespace)
        if job is None or is_deleting(job):
            return
        state = _state(job)
        pods = view.owned(names.POD, job["metadata"]["uid"])
        if state in ENDED:
            yield from _sweep(pods)
            yield from _expire(job, now)
            return
        if job["spec"].get("array"):
            yield from tasks.open_tasks(job, view, now)
            return
        stop = str(job["spec"].get("stop") or "")
        if stop.startswith("cancel"):
            yield from _cancel(job, pods, stop, now)
            return
        workload = self._workload(job, view)
        if stop.startswith("requeue"):
            yield from _requeue(job, workload, stop, now)
            return
        if workload is None or not _may_make_pods(job, workload):
            mine = workload or _own_workload(job, view)
            yield from _wait(job, mine, pods, now, self._payer(job, mine))
            return
        yield from self._run(job, workload, pods, view, now)

    def _workload(self, job: Json, view: View) -> Json | None:
        name = (job["metadata"].get("annotations") or {}).get(slurm.ADMITTED, "")
        return view.get(names.WORKLOAD, name, job["metadata"]["namespace"]) if name else None

    def _payer(self, job: Json, workload: Json | None) -> Json:
        """Return the account and the QOS that a job has without having named them."""
        if workload is None:
            return {}
        metadata = workload["metadata"]
        found = self._account_of(WorkloadKey(f"{metadata['namespace']}/{metadata['name']}"))
        options = job["spec"].get("options") or {}
        pairs = zip(("account", "qos"), found or (), strict=False)
        return {key: value for key, value in pairs if value and not options.get(key)}

    # ---- with pods ----------------------------------------------------------------------------

    def _run(
        self, job: Json, workload: Json, pods: Sequence[Json], view: View, now: float
    ) -> Steps:
        current, old = _of_this_run(job, pods)
        yield from _sweep(old)
        batch = current.get(pod_name(job, 0))
        if _state(job) == "COMPLETING" and _reason(job) == "TimeLimit":
            yield from _after_time(job, list(current.values()), now)
            return
        if batch is not None and is_terminal(batch):
            yield from _end(job, batch, list(current.values()), now)
            return
        lost = [pod for pod in current.values() if is_terminal(pod) or is_deleting(pod)]
        if lost and _state(job) in ("RUNNING", "CONFIGURING"):
            yield from _node_lost(job, workload, lost[0], now)
            return
        if old:
            return  # their end brings us back
        nodes = _nodes(workload)
        allocated = allocated_nodes(job, nodes)
        paid = {**(job.get("status") or {}), **self._payer(job, workload)}
        known = {**job, "status": paid}  # pods are made before that is written
        wanted = pods_of(
            known, allocated, injections(workload, view, self._queues, names.SCHEDULER)
        )
        missing = [pod for pod in wanted if pod["metadata"]["name"] not in current]
        if missing:
            if view.get(names.SERVICE, subdomain(job), job["metadata"]["namespace"]) is None:
                yield Create(service_of(job))
            yield Together([Create(pod) for pod in missing])
        hosts = [node.node for node in allocated]
        if batch is None or phase_of(batch) != "Running":
            yield from _write(job, {"state": "CONFIGURING", "reason": "None", "nodes": hosts})
            return
        started = _started(batch) or now
        changes = {"state": "RUNNING", "reason": "None", "message": "", "nodes": hosts}
        begun = {"startTime": timestamp(started), "expectedStart": None, "plannedNodes": None}
        yield from _write(job, {**changes, **begun, **self._payer(job, workload)})
        yield from _in_time(job, list(current.values()), started, now)


def _in_time(job: Json, pods: Sequence[Json], started: float, now: float) -> Steps:
    """Stop a job whose time is over; what its script still does has half a minute."""
    limit = limit_seconds(job)
    if limit is None:
        return
    if now < started + limit:
        yield Again(started + limit)
        return
    yield from _write(job, {"state": "COMPLETING", "reason": "TimeLimit"})
    yield from _sweep(pods)
    yield Note(Ref.to(job), "TimeLimit", f"Its {limit} s are over", "Warning")


def _after_time(job: Json, pods: Sequence[Json], now: float) -> Steps:
    """End a job whose time is over once nothing of it runs: its nodes are free all at once."""
    yield from _sweep(pods)
    if any(not is_terminal(pod) for pod in pods):
        return
    ended = {"state": "TIMEOUT", "reason": "TimeLimit", "exitCode": "0:15"}
    yield from _write(job, ended | _over(now))


def _own_workload(job: Json, view: View) -> Json | None:
    return next(iter(view.owned(names.WORKLOAD, job["metadata"]["uid"])), None)


def _may_make_pods(job: Json, workload: Json) -> bool:
    status = workload.get("status") or {}
    conditions = status.get("conditions")
    return bool(status.get("admission")) and not is_true(conditions, "Finished")


def _wait(job: Json, workload: Json | None, pods: Sequence[Json], now: float, payer: Json) -> Steps:
    """Say why it waits; pods of a run that was broken off go."""
    if _state(job) in ("RUNNING", "CONFIGURING", "COMPLETING"):
        if "no-requeue" in (job["spec"].get("options") or {}):
            yield from _write(job, {"state": "PREEMPTED", "reason": "None"} | _over(now))
            yield from _sweep(pods)
            return
        again = {"startTime": None, "nodes": None, "restarts": restarts_of(job) + 1}
        yield from _write(job, {"state": "PENDING", "reason": "Priority", **again})
        yield from _sweep(pods)
        return
    yield from _sweep(pods)
    word, message, start, nodes = reason_of(workload)
    if word == "DeadLine":
        yield from _write(job, {"state": "DEADLINE", "reason": "DeadLine"} | _over(now))
        return
    invalid = (job["spec"].get("options") or {}).get("kill-on-invalid-dep") == "yes"
    if word == "DependencyNeverSatisfied" and invalid:
        yield from _write(job, {"state": "CANCELLED", "reason": word} | _over(now))
        return
    if word == "None" and not job.get("status"):
        return  # it was not evaluated yet; in a moment it is written with the reason
    expected = timestamp(start) if start else None
    # A date that moves a little every minute is no news.
    before = (job.get("status") or {}).get("expectedStart") or ""
    if expected and before and abs(seconds(before) - start) < 60:
        expected = before
    changes = {"state": "PENDING", "reason": word, "message": message, "expectedStart": expected}
    yield from _write(job, {**changes, "plannedNodes": list(nodes), **payer})


def _cancel(job: Json, pods: Sequence[Json], stop: str, now: float) -> Steps:
    yield from _sweep(pods)
    if any(not is_terminal(pod) for pod in pods):
        yield from _write(job, {"state": "COMPLETING", "reason": "None"})
        return  # their end brings us back
    ran = bool((job.get("status") or {}).get("startTime"))
    by = stop.partition(":")[2]
    changes = {"state": "CANCELLED", "reason": "None", "exitCode": "0:15" if ran else "0:0"}
    yield from _write(job, {**changes, "message": f"by {by}" if by else ""} | _over(now))


def _requeue(job: Json, workload: Json | None, stop: str, now: float) -> Steps:
    """Send it back to its queue: its Workload is evicted, and keeps its age and its place."""
    if workload is not None and _may_make_pods(job, workload):
        status = workload["status"]
        if not is_true(status.get("conditions"), "Evicted"):
            changes = evicted_for(workload, REQUEUED, "Requeued", now=now)
            yield Patch(Ref.to(workload), {"status": changes}, "status")
    changed: Json = {"spec": {"stop": None}}
    if stop.startswith("requeuehold"):
        changed["metadata"] = {"annotations": {"unisono.dev/hold": "admin"}}
    yield Patch(Ref.to(job), changed)


def _node_lost(job: Json, workload: Json, pod: Json, now: float) -> Steps:
    """End a job that lost a node, or let it begin again; without its nodes it is no gang."""
    options = job["spec"].get("options") or {}
    if "no-requeue" not in options:
        yield Patch(Ref.to(job), {"spec": {"stop": "requeue:node"}})
        yield Note(Ref.to(job), "NodeFail", f"Pod {pod['metadata']['name']} is lost", "Warning")
        return
    yield from _write(job, {"state": "NODE_FAIL", "reason": "NodeDown"} | _over(now))


def _end(job: Json, batch: Json, pods: Sequence[Json], now: float) -> Steps:
    """Say how the script ended, when nothing else of the job runs.

    A job that ends node by node would let others in between, and keep out a job that waits for all.
    """
    others = [pod for pod in pods if pod is not batch]
    if any(not is_terminal(pod) for pod in others):
        yield from _write(job, {"state": "COMPLETING", "reason": "None"})
        yield from _sweep(others)
        return
    code, why = _exit_of(batch)
    state = "COMPLETED" if code == 0 else "FAILED"
    reason = "None" if code == 0 else "NonZeroExitCode"
    text = f"{code}:0"
    if why == _OUT_OF_MEMORY:
        state, reason, text = "OUT_OF_MEMORY", "OutOfMemory", "0:125"
    elif _SIGNALLED < code <= _SIGNALLED + _LAST_SIGNAL:
        reason, text = "RaisedSignal", f"0:{code - _SIGNALLED}"
    changes: Json = {"state": state, "reason": reason, "message": "", "exitCode": text}
    started = _started(batch)
    if started and not (job.get("status") or {}).get("startTime"):
        changes["startTime"] = timestamp(started)
    yield from _write(job, changes | _over(_ended(batch) or now))


def _over(now: float) -> Json:
    return {"endTime": timestamp(now), "expectedStart": None, "plannedNodes": None}


def _state(job: Json) -> str:
    return str((job.get("status") or {}).get("state") or "PENDING")


def _reason(job: Json) -> str:
    return str((job.get("status") or {}).get("reason") or "")


def _nodes(workload: Json) -> Mapping[str, list[str]]:
    """Return the nodes of each group, in the order in which pods get them."""
    assigned = workload["status"]["admission"].get("podSetAssignments") or ()
    return {
        one["name"]: [
            host
            for host, count in pods_per_host(one.get("topologyAssignment"))
            for _ in range(count)
        ]
        for one in assigned
    }


def _of_this_run(job: Json, pods: Sequence[Json]) -> tuple[dict[str, Json], list[Json]]:
    """Return the pods of this run by name, and those of earlier ones."""
    run = str(restarts_of(job))
    current: dict[str, Json] = {}
    old: list[Json] = []
    for pod in pods:
        if (pod["metadata"].get("labels") or {}).get(slurm.RESTART) == run:
            current[pod["metadata"]["name"]] = pod
        else:
            old.append(pod)
    return current, old


def _container(pod: Json) -> Json:
    statuses: Any = (pod.get("status") or {}).get("containerStatuses") or ({},)
    found: Json = statuses[0].get("state") or {}
    return found


def _started(pod: Json) -> float:
    state = _container(pod)
    part = state.get("running") or state.get("terminated") or {}
    return seconds(part.get("startedAt") or "")


def _ended(pod: Json) -> float:
    return seconds((_container(pod).get("terminated") or {}).get("finishedAt") or "")


def _exit_of(pod: Json) -> tuple[int, str]:
    ended = _container(pod).get("terminated") or {}
    default = 0 if phase_of(pod) == "Succeeded" else 1
    return int(ended.get("exitCode", default)), str(ended.get("reason", ""))


def _sweep(pods: Sequence[Json]) -> Steps:
    going = [pod for pod in pods if not is_deleting(pod)]
    if going:
        yield Together([Delete(Ref.to(pod)) for pod in going])


def _write(job: Json, changes: Json) -> Steps:
    """Write what is different of the status."""
    old = job.get("status") or {}
    new = {
        key: value for key, value in changes.items() if (old.get(key) or None) != (value or None)
    }
    if new:
        yield Patch(Ref.to(job), {"status": new}, "status")


def _expire(job: Json, now: float) -> Steps:
    """Delete the record of a job after its retention."""
    if job["spec"].get("task"):
        return  # tasks go with their array
    ended = seconds((job.get("status") or {}).get("endTime") or "")
    if not ended:
        return
    if now >= ended + KEPT_SECONDS:
        yield Delete(Ref.to(job))
    else:
        yield Again(ended + KEPT_SECONDS)


# ---- reasons -------------------------------------------------------------------------------------
#
# Why a job waits, in Slurm's words: the first fact of its Workload's explanation.

_WORD = re.compile(r"[A-Z][A-Za-z]+")

# Facts that have one word of Slurm.
_WORDS: Mapping[str, str] = {
    "ArrayLimit": "JobArrayTaskLimit",
    "BehindInQueue": "Priority",
    "ClaimedThisCycle": "Resources",
    "Deactivated": "JobHeldAdmin",
    "DeadlineMissed": "DeadLine",
    "DependencyNeverSatisfied": "DependencyNeverSatisfied",
    "DependencyPending": "Dependency",
    "ExceedsMaximum": "PartitionNodeLimit",
    "FlavorMismatch": "ReqNodeNotAvail",
    "GangDoesNotFit": "Resources",
    "Gated": "JobHeldAdmin",
    "Misconfigured": "BadConstraints",
    "NamespaceNotSelected": "AccountNotAllowed",
    "NotBefore": "BeginTime",
    "OnHold": "JobHeldAdmin",
    "Quarantined": "BadConstraints",
    "QueueInactive": "PartitionInactive",
    "QueueMissing": "PartitionInactive",
    "QueueStopped": "PartitionDown",
    "QuotaExhausted": "Resources",
    "Reserved": "Reservation",
    "ResourceNotCovered": "ReqNodeNotAvail",
    "WaitingForPods": "Resources",
    "WaitingForVictims": "Resources",
    "WouldDelay": "Priority",
}


_TIMES = ("Planned", "Expected")
# Facts about capacity: only the head of the queue waits for resources, the others for priority.
_SHORT = ("ClaimedThisCycle", "GangDoesNotFit", "QuotaExhausted")


class Why(NamedTuple):
    """Why a job waits: the word, the sentence, when it is to start (0: unknown), and where."""

    word: str
    message: str = ""
    start: float = 0.0
    nodes: tuple[str, ...] = ()


def reason_of(workload: Json | None) -> Why:
    """Return why a job waits, given its Workload."""
    if workload is None:
        return Why("None")
    conditions = (workload.get("status") or {}).get("conditions") or []
    message = waiting_message(Conditions(conditions))
    facts = _facts(find(conditions, names.EXPLANATION))
    timed = next((one for one in facts if one.get("fact") in _TIMES), {})
    start = float(timed.get("start") or 0) / 1000
    nodes = tuple(map(str, timed.get("nodes") or ()))
    first = next((one for one in facts if one.get("fact") not in _TIMES), None)
    if first is None:
        return Why("Priority" if facts else "None", message, start, nodes)
    return Why(_word(first, int(timed.get("position") or 1)), message, start, nodes)


def _word(fact: Json, position: int) -> str:
    name, code = str(fact.get("fact")), str(fact.get("code") or "")
    if name == "Held":
        return "JobHeldAdmin" if fact.get("by") == "admin" else "JobHeldUser"
    if code and _WORD.fullmatch(code):
        return code
    if name in _SHORT and position > 1:
        return "Priority"
    return _WORDS.get(name, "Resources")


def _facts(condition: Json | None) -> list[Json]:
    """Return the facts that a condition carries as JSON in its message."""
    if condition is None:
        return []
    try:
        found = read_json(condition.get("message") or "null")
    except ValueError:
        return []
    facts = found.get("facts") if isinstance(found, dict) else None
    return [one for one in facts or () if isinstance(one, dict)]
