"""What happened to a Volcano job, and what its policies make of that (jobs §4).

Events are derived, not received: each follows from pods and status alone, so that nothing is
forgotten when the process dies. What was acted upon is not seen again, because the action starts
the pods anew or ends the job.

    PodFailed, exit code    a pod is in phase Failed
    PodEvicted              a pod is missed (`tally`), or failed together with its node
    PodPending              a pod waits; only ever with a timeout
    TaskCompleted           as many pods of a task succeeded as it has
    TaskFailed              containers of a task were restarted too often

Policies of the pod's task come before those of the job. One with a timeout acts when the event is
that old and still true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from unisono.control.actions import Json
from unisono.control.conditions import seconds
from unisono.control.gangs.recovery import cause_of
from unisono.control.job_kinds.volcano import api
from unisono.control.job_kinds.volcano.tasks import Tally, TaskPods
from unisono.control.jobs.pods import is_deleting, phase_of
from unisono.kinds.scalar import duration_ms

Nodes = Callable[[str], Json | None]  # finds a node by its name


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
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
    event: Event
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


def _first(policies: Sequence[Json], event: Event) -> Json | None:
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


def _events(tally: Tally, nodes: Nodes, now: float) -> Iterator[Event]:
    for one in tally.tasks:
        for number in one.lost:
            pod = one.pods.get(number)
            since = seconds(pod["metadata"]["deletionTimestamp"]) if pod is not None else now
            yield Event(name="PodEvicted", task=one, index=number, since=min(since, now))
        for number, pod in sorted(one.pods.items()):
            if not is_deleting(pod):
                yield from _of_pod(one, number, pod, nodes)
        if one.wanted and one.count("Succeeded") >= one.task.replicas:
            yield Event(name="TaskCompleted", task=one, since=now)
        if 0 <= one.task.max_restarts <= _restarts(one):
            yield Event(name="TaskFailed", task=one, since=now)


def _of_pod(one: TaskPods, number: int, pod: Json, nodes: Nodes) -> Iterator[Event]:
    metadata, phase = pod["metadata"], phase_of(pod)
    since = _ended_at(pod)
    if is_lost_with_node(pod, nodes):
        yield Event(name="PodEvicted", task=one, index=number, since=since, is_own_fault=False)
    elif phase == "Failed":
        code = _exit_code(pod)
        yield Event(name="PodFailed", task=one, index=number, since=since, exit_code=code)
    if phase == "Pending":
        lost_at = (metadata.get("annotations") or {}).get(api.LOST_AT)
        if lost_at:
            since = seconds(lost_at)
            yield Event(name="PodEvicted", task=one, index=number, since=since, is_replaced=True)
        since = seconds(metadata.get("creationTimestamp") or "")
        yield Event(name="PodPending", task=one, index=number, since=since)


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
