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

from dataclasses import dataclass, replace

from unisono.control.actions import Json
from unisono.control.conditions import seconds, timestamp
from unisono.control.gangs.recovery import (
    first_delay_of,
    quick_restart_delay,
    ran_soundly,
    starts_again,
)
from unisono.control.job_kinds.volcano import api
from unisono.control.job_kinds.volcano.policies import Reaction
from unisono.control.job_kinds.volcano.tasks import Tally, least_pods, max_retries, pod_name
from unisono.kinds.digits import whole_number

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


def phase_of(job: Json) -> str:
    """Return the phase of a job; empty if it has none yet."""
    return str(((job.get("status") or {}).get("state") or {}).get("phase", ""))


def ordered(job: Json, action: str, message: str, target: str = "") -> Move | None:
    """Return where an action leads from the present phase; None if it means nothing there."""
    phase = phase_of(job)
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
    row = (whole_number(resources.get(api.RESTARTS_IN_A_ROW)) or 0) + 1
    changed_at = seconds(job["status"]["state"].get("lastTransitionTime") or "")
    if phase_of(job) == "Running" and ran_soundly(max(changed_at, restart_at(job)), now):
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
    return seconds(resources[api.RESTART_AT]) if resources.get(api.RESTART_AT) else 0.0


def is_last(job: Json) -> bool:
    """Say whether a job has used up its retries."""
    return bool((job.get("status") or {}).get("retryCount", 0) >= max_retries(job))


def leaving(job: Json, tally: Tally) -> list[Json]:
    """Return the pods that the present phase wants gone, those included that are on their way."""
    phase = phase_of(job)
    if phase == "Restarting":
        if is_last(job):
            return tally.alive()
        target = ((job.get("status") or {}).get("controlledResources") or {}).get(api.TARGET)
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
    phase = phase_of(job)
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
    match phase_of(job):
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
