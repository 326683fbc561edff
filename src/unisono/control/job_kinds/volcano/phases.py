"""The phases of a Volcano job, and what leads from one to the next (jobs §4).

    Pending ⇄ Running ──all pods ended──▶ Completed | Failed
       │         │
       ├─────────┴─RestartJob, RestartTask, …─▶ Restarting ──pods gone──▶ Pending
       │                                            └──retries used up──▶ Failed
       ├──AbortJob────▶ Aborting ───▶ Aborted ──ResumeJob──▶ Restarting
       ├──CompleteJob─▶ Completing ─▶ Completed
       └──TerminateJob▶ Terminating ▶ Terminated

A job leaves a phase that ends in -ing when no pod of it runs any more: quota is free from then on,
and no old rank answers new peers.

Restarts by a policy that follow each other quickly back off: such a job is Pending without the pods
that restart until its time has come, so that commands, and policies about its other pods, hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from unisono.control.actions import Json
from unisono.control.conditions import seconds, timestamp
from unisono.control.gangs.recovery import (
    cause_of,
    first_delay_of,
    quick_restart_delay,
    ran_soundly,
    starts_again,
)
from unisono.control.job_kinds import volcano
from unisono.control.job_kinds.volcano.tasks import (
    Tally,
    TaskPods,
    least_pods,
    max_retries,
    pod_name,
)
from unisono.control.jobs.pods import is_deleting, phase_of
from unisono.kinds.digits import whole_number
from unisono.kinds.scalar import duration_ms

LIVE = ("", "Pending", "Running")
ENDED = ("Completed", "Failed", "Terminated", "Aborted")
ENDING = {"Aborting": "Aborted", "Completing": "Completed", "Terminating": "Terminated"}
_ENDS = {"AbortJob": "Aborting", "CompleteJob": "Completing", "TerminateJob": "Terminating"}
_RESTARTS = ("RestartJob", "RestartTask", "RestartPod", "RestartPartition")


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """From one phase to the next."""

    phase: str
    reason: str = ""
    message: str = ""
    is_retry: bool = False
    is_whole: bool = False  # all pods start anew: the job gets a new version
    target: str = ""  # a task, or a task and a number, if not all pods start anew
    row: int | None = None  # how many restarts there were in a row then, if that changes
    restart_at: float = 0.0  # not before then are pods made, if it has to wait


def job_phase(job: Json) -> str:
    """Return the phase of a job; empty if it has none yet."""
    return str(((job.get("status") or {}).get("state") or {}).get("phase", ""))


def ordered(job: Json, action: str, message: str, target: str = "") -> Move | None:
    """Return where an action leads from the present phase; None if it means nothing there."""
    phase = job_phase(job)
    if action == "ResumeJob" and phase in ("Aborting", "Aborted"):
        return Move(
            phase="Restarting", reason=action, message=message, is_retry=True, is_whole=True
        )
    if phase not in LIVE:
        return None
    if action in _ENDS:
        return Move(phase=_ENDS[action], reason=action, message=message)
    if action in _RESTARTS:
        is_whole = action == "RestartJob" or not target
        return Move(
            phase="Restarting",
            reason=action,
            message=message,
            is_retry=True,
            is_whole=is_whole,
            target="" if is_whole else target,
        )
    return None


def reaction_move(job: Json, reaction: Reaction, now: float) -> Move | None:
    """Return where a policy leads."""
    event = reaction.event
    task = event.task.task.name
    target = event.pod if reaction.action == "RestartPod" else task
    what = f"pod {pod_name(job, task, event.index)}" if event.index is not None else f"task {task}"
    code = f" with exit code {event.exit_code}" if event.exit_code is not None else ""
    move = ordered(job, reaction.action, f"{event.name} of {what}{code}", target)
    if move is None:
        return None
    if not event.is_own_fault:
        return replace(move, is_retry=False, message=f"{move.message} and its node is lost")
    is_failure = move.phase == "Restarting" and event.name != "PodEvicted"
    return _backing_off(job, move, now) if is_failure else move


def _backing_off(job: Json, move: Move, now: float) -> Move:
    """Return a restart that waits if it is not the first in a row after short runs.

    Upstream restarts at once, always. With a large maxRetry and pods that fail (or succeed) in no
    time, that is dozens of gangs made and deleted in a second.
    """
    resources = (job.get("status") or {}).get("controlledResources") or {}
    row = (whole_number(resources.get(volcano.RESTARTS_IN_A_ROW)) or 0) + 1
    changed_at = seconds(job["status"]["state"].get("lastTransitionTime") or "")
    if job_phase(job) == "Running" and ran_soundly(max(changed_at, restart_at(job)), now):
        row = 1
    delay = quick_restart_delay(row, first_delay_of(job["metadata"].get("annotations")))
    is_over = (job["status"].get("retryCount") or 0) + 1 >= max_retries(job)
    if is_over or not delay:
        return replace(move, row=row)
    message = move.message + starts_again(now + delay, row, now)
    return replace(move, row=row, restart_at=now + delay, message=message)


def restart_at(job: Json) -> float:
    """Return before when no pods are made since the last restart has to wait; else 0."""
    resources = (job.get("status") or {}).get("controlledResources") or {}
    return seconds(resources[volcano.RESTART_AT]) if resources.get(volcano.RESTART_AT) else 0.0


def is_last(job: Json) -> bool:
    """Say whether a job has used up its retries."""
    return bool((job.get("status") or {}).get("retryCount", 0) >= max_retries(job))


def leaving(job: Json, tally: Tally) -> list[Json]:
    """Return the pods that the present phase wants gone, those included that are on their way."""
    phase = job_phase(job)
    if phase == "Restarting":
        if is_last(job):
            return tally.alive()
        target = ((job.get("status") or {}).get("controlledResources") or {}).get(volcano.TARGET)
        task, _, number = (target or "").partition("/")
        targets = [
            pod
            for one in tally.tasks
            if one.task.name == task
            for index, pod in one.pods.items()
            if number in ("", str(index))
        ]
        return [*tally.old, *targets]
    if phase in ENDING or phase in ENDED:
        return tally.alive()
    return list(tally.old)


def moved_by_itself(job: Json, tally: Tally) -> Move | None:
    """Return the phase that a job moves to without a command."""
    phase = job_phase(job)
    is_clear = not leaving(job, tally)
    if phase in ENDING:
        return Move(phase=ENDING[phase]) if is_clear else None
    if phase == "Restarting":
        if not is_clear:
            return None
        if is_last(job):
            message = f"retried {job['status']['retryCount'] - 1} times; maxRetry is "
            return Move(phase="Failed", reason="MaxRetry", message=message + str(max_retries(job)))
        if not (at := restart_at(job)):
            return Move(phase="Pending")
        return Move(phase="Pending", reason="BackOff", message=f"starts again at {timestamp(at)}")
    if phase in ENDED:
        return None
    return _synced(job, tally)


def _synced(job: Json, tally: Tally) -> Move | None:
    least, succeeded = least_pods(job), tally.count("Succeeded")
    ended = succeeded + tally.count("Failed")
    enough = job["spec"].get("minSuccess")
    if enough and succeeded >= enough:
        return Move(phase="Completing", reason="MinSuccess", message=f"{succeeded} pods succeeded")
    if tally.wanted and ended >= tally.wanted:
        return _over(job, tally, least, succeeded)
    match job_phase(job):
        case "Running" if tally.wanted - ended - tally.count("Running") > tally.wanted - least:
            return Move(phase="Pending", reason="PodsPending")
        case "Pending" if least <= ended + tally.count("Running"):
            return Move(phase="Running")
    return None


def _over(job: Json, tally: Tally, least: int, succeeded: int) -> Move:
    """Return how a job ended whose pods have all ended."""
    minima = [min(one.task.own_least, one.wanted) for one in tally.tasks]
    for one, own in zip(tally.tasks, minima, strict=True):
        if least >= sum(minima) and one.count("Succeeded") < own:
            message = f"{one.count('Succeeded')} of {own} pods of task {one.task.name} succeeded"
            return Move(phase="Failed", reason="TaskFailed", message=message)
    wanted = max(min(least, tally.wanted), job["spec"].get("minSuccess") or 0)
    if succeeded < wanted:
        message = f"{succeeded} of {wanted} pods succeeded"
        return Move(phase="Failed", reason="PodsFailed", message=message)
    return Move(phase="Completed")


# ---- policies ------------------------------------------------------------------------------------
#
# What happened to a Volcano job, and what its policies make of that (jobs §4).
#
# Events are derived, not received: each follows from pods and status alone, so that nothing is
# forgotten when the process dies. What was acted upon is not seen again, because the action starts
# the pods anew or ends the job.
#
#     PodFailed, exit code    a pod is in phase Failed
#     PodEvicted              a pod is missed (`tally`), or failed together with its node
#     PodPending              a pod waits; only ever with a timeout
#     Unknown                 a pod took the place of one that was missed, and finds no node
#     TaskCompleted           as many pods of a task succeeded as it has
#     TaskFailed              containers of a task were restarted too often
#
# Policies of the pod's task come before those of the job. One with a timeout acts when the event is
# that old and still true.

# A pod that took another's place is given so long to find a node; Volcano's scheduler looks once a
# second.
UNKNOWN_AFTER_SECONDS = 2.0
Nodes = Callable[[str], Json | None]  # finds a node by its name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    """Something that a policy may speak of."""

    name: str
    task: TaskPods
    index: int | None = None  # of the pod
    since: float
    exit_code: int | None = None
    is_replaced: bool = False  # the pod was lost and another is there, which does not run yet
    is_own_fault: bool = True  # False: its node is to blame, and no retry is counted

    @property
    def pod(self) -> str:
        """Which pod it is about, as a target is written."""
        return self.task.task.name if self.index is None else f"{self.task.task.name}/{self.index}"


@dataclass(frozen=True, slots=True)
class Reaction:
    """What a policy wants done, why, and from when on."""

    action: str
    event: _Event
    at: float


def reactions(job: Json, tally: Tally, nodes: Nodes, now: float) -> list[Reaction]:
    """Return what is to be done about everything that is the case, earliest first."""
    found = []
    for event in _events(tally, nodes, now):
        for policies in (event.task.task.policies, job["spec"].get("policies") or ()):
            policy = _first(policies, event)
            if policy is not None:
                delay = _timeout(policy)
                if not (event.is_replaced and delay == 0):
                    # The clock of a node, or of the API, may be ahead of ours. What is the case
                    # is the case: without a timeout its date is not waited for.
                    at = event.since + delay if delay else min(event.since, now)
                    found.append(Reaction(policy.get("action", ""), event, at))
                break
    return sorted(found, key=lambda one: one.at)


def _first(policies: Sequence[Json], event: _Event) -> Json | None:
    for policy in policies:
        named = {policy.get("event"), *(policy.get("events") or ())}
        if event.name == "PodPending" and not policy.get("timeout"):
            continue
        if event.name in named or "*" in named:
            return policy
        if event.exit_code is not None and policy.get("exitCode") == event.exit_code:
            return policy
    return None


def _timeout(policy: Json) -> float:
    try:
        return duration_ms(policy["timeout"]) / 1000 if policy.get("timeout") else 0.0
    except ValueError:
        return 0.0


def is_lost_with_node(pod: Json, nodes: Nodes) -> bool:
    """Say whether a pod failed because of its node."""
    found = cause_of(pod, nodes) if phase_of(pod) == "Failed" else None
    return found is not None and found.cause == "infra"


def _events(tally: Tally, nodes: Nodes, now: float) -> Iterator[_Event]:
    for one in tally.tasks:
        for number in one.lost:
            pod = one.pods.get(number)
            since = seconds(pod["metadata"]["deletionTimestamp"]) if pod is not None else now
            yield _Event(name="PodEvicted", task=one, index=number, since=min(since, now))
        for number, pod in sorted(one.pods.items()):
            if not is_deleting(pod):
                yield from _of_pod(one, number, pod, nodes, now)
        if one.wanted and one.count("Succeeded") >= one.task.replicas:
            yield _Event(name="TaskCompleted", task=one, since=now)
        if 0 <= one.task.max_restarts <= _restarts(one):
            yield _Event(name="TaskFailed", task=one, since=now)


def unknown_at(tally: Tally) -> Iterator[float]:
    """Yield when pods that took the place of others will have looked for a node long enough."""
    for pod in tally.every():
        lost_at = (pod["metadata"].get("annotations") or {}).get(volcano.LOST_AT)
        if lost_at and not pod["spec"].get("nodeName"):
            yield seconds(lost_at) + UNKNOWN_AFTER_SECONDS


def _of_pod(one: TaskPods, number: int, pod: Json, nodes: Nodes, now: float) -> Iterator[_Event]:
    metadata, phase = pod["metadata"], phase_of(pod)
    since = _ended_at(pod)
    if is_lost_with_node(pod, nodes):
        yield _Event(name="PodEvicted", task=one, index=number, since=since, is_own_fault=False)
    elif phase == "Failed":
        code = _exit_code(pod)
        yield _Event(name="PodFailed", task=one, index=number, since=since, exit_code=code)
    if phase == "Pending":
        lost_at = (metadata.get("annotations") or {}).get(volcano.LOST_AT)
        if lost_at:
            since = seconds(lost_at)
            yield _Event(name="PodEvicted", task=one, index=number, since=since, is_replaced=True)
            if not pod["spec"].get("nodeName") and now >= since + UNKNOWN_AFTER_SECONDS:
                unknown = since + UNKNOWN_AFTER_SECONDS
                yield _Event(name="Unknown", task=one, index=number, since=unknown)
        since = seconds(metadata.get("creationTimestamp") or "")
        yield _Event(name="PodPending", task=one, index=number, since=since)


def _ended_at(pod: Json) -> float:
    """Return when the last container ended; if none says so, when the pod was made."""
    ends = [
        seconds(ended.get("finishedAt") or "")
        for one in (pod.get("status") or {}).get("containerStatuses") or ()
        if (ended := (one.get("state") or {}).get("terminated"))
    ]
    return max(ends, default=seconds(pod["metadata"].get("creationTimestamp") or ""))


def _exit_code(pod: Json) -> int | None:
    for one in (pod.get("status") or {}).get("containerStatuses") or ():
        ended = (one.get("state") or {}).get("terminated")
        if ended and ended.get("exitCode"):
            return int(ended["exitCode"])
    return None


def _restarts(one: TaskPods) -> int:
    return sum(
        status.get("restartCount", 0)
        for pod in one.pods.values()
        if phase_of(pod) in ("Running", "Pending")
        for part in ("containerStatuses", "initContainerStatuses")
        for status in (pod.get("status") or {}).get(part) or ()
    )
