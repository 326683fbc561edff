"""What to do about a gang of which something failed (jobs §7.3).

    pods that failed or were taken away ──first_cause──▶ Incident ──decide──▶ Restart | GiveUp

An incident is everything that happens to a gang until it is down: one cause, one restart, one
count. Its class says what that means:

| class      | first cause                                          | counts | delay            |
| ---------- | ---------------------------------------------------- | ------ | ---------------- |
| app        | a container ended with an error, or out of memory    | yes    | 10 s, 20 s, …    |
| config     | it could not even be started                         | yes    | 10 s, 20 s, …    |
| disruption | the pod was deleted, evicted or preempted            | no     | none             |
| infra      | its node is gone, not ready, or has a broken device  | no     | none             |
| hang       | no pod made progress for a while                     | yes    | none             |

Restarts that are ordered, not decided here (the policy of a Volcano job, a rule of a JobSet that
restarts one Job or ignores the limit, the retries of a Ray job), come at once the first time; those
that follow short runs wait 10 s, 20 s, …

Pure: dictionaries in, values out; shared by every kind of job that restarts as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

from unisono.control.actions import Json
from unisono.control.conditions import find, seconds, timestamp
from unisono.engine.model.resources import MAX_COUNT
from unisono.kinds.device_faults import fault_of
from unisono.kinds.digits import whole_number
from unisono.kinds.json_texts import read_json

ATTEMPT = "unisono.dev/attempt"
LAST_INCIDENT = "unisono.dev/last-incident"
MAX_RESTARTS = "unisono.dev/max-restarts"
ACCOUNTING = "unisono.dev/restart-accounting"
FIRST_DELAY = "unisono.dev/restart-delay-seconds"

# The default limit (jobs §2.1).
DEFAULT_LIMIT = 6
_FIRST_DELAY_SECONDS = 10.0
_LONGEST_DELAY_SECONDS = 600.0
# A gang that ran so long has got over what was wrong before.
_SOUND_SECONDS = 600.0
# A gang that cannot even start will not start the fourth time either.
_MOST_BAD_STARTS = 3

Class = Literal["app", "config", "disruption", "infra", "hang"]
COUNTED: tuple[Class, ...] = ("app", "config", "hang")
# Why the watchdog fails a pod whose gang does not get any further.
HANG = "CollectiveHang"

_NODE_REASONS = ("NodeLost", "NodeShutdown", "NodeAffinity", "Terminated", "Shutdown")
# Why a node's agent does not run a pod that was bound to it; or OutOf, and what is short.
_REFUSALS = (
    "NodeAffinity",
    "NodeName",
    "NodePorts",
    "TopologyAffinityError",
    "UnexpectedAdmissionError",
)
_NODE_DISRUPTIONS = ("DeletionByTaintManager", "DeletionByPodGC", "TerminationByKubelet")
_START_ERRORS = (
    "StartError",
    "ContainerCannotRun",
    "CreateContainerConfigError",
    "CreateContainerError",
    "InvalidImageName",
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
)


@dataclass(frozen=True, slots=True)
class Incident:
    """Why a gang is down: the first of all that happened."""

    cause: Class
    reason: str
    message: str
    pod: str = ""
    node: str = ""
    at: float = 0.0

    @property
    def counts(self) -> bool:
        """Whether the job itself is to blame, so that its limit counts it."""
        return self.cause in COUNTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How often a job may be restarted, and how often it was for reasons of its own."""

    limit: int
    used: int
    first_delay: float = _FIRST_DELAY_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The last incident, as in the job's annotation."""

    attempt: int  # the attempt that follows it
    cause: str
    reason: str
    message: str
    pod: str = ""
    node: str = ""
    at: str = ""
    row: int = 0  # how many of its sort came in a row
    restart_at: str = ""
    lost_seconds: int = 0  # from the incident until all pods were ready again

    def text(self) -> str:
        """Write it as an annotation."""
        names = {"cause": "class", "restart_at": "restartAt", "lost_seconds": "lostSeconds"}
        written = {names.get(key, key): value for key, value in asdict(self).items() if value}
        return json.dumps({"attempt": self.attempt} | written, separators=(",", ":"))

    @staticmethod
    def of(annotations: Mapping[str, str] | None) -> Record | None:
        """Read it; None if there is none that can be read."""
        try:
            read = read_json((annotations or {}).get(LAST_INCIDENT, ""))
            return Record(
                attempt=int(read["attempt"]),
                cause=str(read["class"]),
                reason=str(read["reason"]),
                message=str(read.get("message", "")),
                pod=str(read.get("pod", "")),
                node=str(read.get("node", "")),
                at=str(read.get("at", "")),
                row=int(read.get("row", 0)),
                restart_at=str(read.get("restartAt", "")),
                lost_seconds=int(read.get("lostSeconds", 0)),
            )
        except (ValueError, KeyError, TypeError, OverflowError):
            return None


@dataclass(frozen=True, slots=True)
class Restart:
    """Start the whole gang again, not before a time."""

    at: float
    row: int
    counts: bool


@dataclass(frozen=True, slots=True)
class GiveUp:
    """It has failed."""

    reason: str
    message: str


Decision = Restart | GiveUp


def decide(
    incident: Incident, budget: Budget, before: Record | None, *, ready_at: float, now: float
) -> Decision:
    """Say what follows from an incident.

    `before` is the incident before this one; `ready_at` says since when the gang had been ready,
    0 if it never was since then.
    """
    was_sound = ready_at > 0 and ran_soundly(ready_at, incident.at)
    follows = before is not None and not was_sound
    if not incident.counts:
        # It says nothing about the job, so a row of failures continues after it.
        return Restart(now, before.row if follows and before is not None else 0, counts=False)
    row = before.row + 1 if follows and before is not None else 1
    if incident.cause == "config" and row >= _MOST_BAD_STARTS and not ready_at:
        message = f"could not be started {row} times in a row: {incident.message}"
        return GiveUp("CrashLoop", message)
    if budget.used >= budget.limit:
        message = f"failed after {budget.used} of at most {budget.limit} restarts: "
        return GiveUp("ReachedMaxRestarts", message + incident.message)
    if incident.cause == "hang":  # waiting was what it did all the time
        return Restart(now, row, counts=True)
    return Restart(max(now, incident.at + _delay(row, budget.first_delay)), row, counts=True)


def ran_soundly(since: float, until: float) -> bool:
    """Say whether a run was so long that a failure after it is the first of a row."""
    return until - since >= _SOUND_SECONDS


def quick_restart_delay(row: int, first_delay: float) -> float:
    """Return how long the restart of this number in a row waits: the first one not at all.

    >>> [quick_restart_delay(row, 10.0) for row in (1, 2, 3, 8, 99)]
    [0.0, 10.0, 20.0, 600.0, 600.0]
    """
    return _delay(row - 1, first_delay) if row > 1 else 0.0


def without_limit(
    incident: Incident,
    before: Record | None,
    first_delay: float,
    *,
    ready_at: float,
    now: float,
) -> Restart:
    """Return the restart after an incident that no limit counts."""
    was_sound = ready_at > 0 and ran_soundly(ready_at, incident.at)
    row = before.row if before is not None and not was_sound else 0
    if not incident.counts:
        return Restart(now, row, counts=False)
    at = incident.at + quick_restart_delay(row + 1, first_delay)
    return Restart(max(now, at), row + 1, counts=False)


def starts_again(at: float, row: int, now: float) -> str:
    """Say when it starts again, as the end of a sentence; empty if it need not wait."""
    return (
        f"; starts again at {timestamp(at)} (back-off: restart {row} in a row)" if at > now else ""
    )


def _delay(row: int, first_delay: float) -> float:
    return min(first_delay * (1 << min(row - 1, 16)), _LONGEST_DELAY_SECONDS)


def record_of(incident: Incident, restart: Restart, attempt: int) -> Record:
    """Return what is written down about an incident."""
    return Record(
        attempt=attempt,
        cause=incident.cause,
        reason=incident.reason,
        message=incident.message,
        pod=incident.pod,
        node=incident.node,
        at=timestamp(incident.at),
        row=restart.row,
        restart_at=timestamp(restart.at),
    )


def recovered(record: Record, now: float) -> Record:
    """Return a record that says how long it took to be ready again."""
    return replace(record, lost_seconds=max(1, int(now - seconds(record.at))))


def is_upstream(annotations: Mapping[str, str] | None) -> bool:
    """Say whether restarts are to be counted as upstream does, container by container."""
    return (annotations or {}).get(ACCOUNTING) == "upstream"


def limit_of(annotations: Mapping[str, str] | None, *written: int | None) -> int:
    """Return how often a job may restart: its annotation, else the first limit that is written."""
    text = (annotations or {}).get(MAX_RESTARTS, "")
    limit = whole_number(text, MAX_COUNT)
    if limit is not None:
        return limit
    return next((one for one in written if one is not None), DEFAULT_LIMIT)


def first_delay_of(annotations: Mapping[str, str] | None) -> float:
    """Return how long to wait after the first failure in a row, in seconds."""
    text = (annotations or {}).get(FIRST_DELAY, "")
    delay = whole_number(text, MAX_COUNT)
    return _FIRST_DELAY_SECONDS if delay is None else float(delay)


# ---- causes ------------------------------------------------------------------------------------


def first_cause(
    pods: Sequence[Json], node: Callable[[str], Json | None], *, now: float
) -> Incident:
    """Return why a gang is down, from its pods that failed or are on their way out.

    What happened first counts. Pods that we take away afterwards end with errors, too; those are
    consequences. Within the same second a pod that failed by itself is the cause.
    """
    causes = [cause for pod in pods if (cause := cause_of(pod, node)) is not None]
    if not causes:
        return Incident("disruption", "PodsGone", "pods of the gang are gone", at=now)
    return min(causes, key=lambda one: (one.at, _PRECEDENCE[one.cause], one.pod))


_PRECEDENCE: Mapping[Class, int] = {"infra": 0, "app": 1, "config": 1, "hang": 1, "disruption": 2}


def cause_of(pod: Json, node: Callable[[str], Json | None]) -> Incident | None:
    """Return what happened to a pod; None if it lives, or ended well."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    name, on = metadata["name"], pod["spec"].get("nodeName", "")
    deleted = deleted_at(pod)
    ended = list(_ends(status))
    failed_at = min((at for at, _, _, _ in ended), default=0.0)
    has_failed = status.get("phase") == "Failed"
    if not has_failed and deleted is None:
        return None
    if status.get("phase") == "Succeeded":
        return None
    at = failed_at or deleted or _disrupted_at(status)
    infra = _node_problem(status, on, node)
    if infra:
        message = f"pod {name}: {infra}"
        return Incident("infra", "NodeFailure", message, name, on, at)
    by_itself = has_failed and (deleted is None or 0 < failed_at < deleted)
    disruption = find(status.get("conditions"), "DisruptionTarget")
    if disruption is not None and disruption["status"] == "True":
        message = f"pod {name}: {disruption.get('message') or disruption['reason']}"
        if disruption["reason"] == HANG:
            return Incident("hang", HANG, disruption["message"], name, on, at)
        return Incident("disruption", disruption["reason"], message, name, on, at)
    if not by_itself:
        gone_at = deleted or at
        return Incident("disruption", "PodDeleted", f"pod {name} was deleted", name, on, gone_at)
    return _own_failure(name, on, status, ended, at)


def was_turned_away(pod: Json) -> bool:
    """Say whether a node's agent refused to run a pod: it never began."""
    status = pod.get("status") or {}
    return status.get("phase") == "Failed" and _is_refused(status)


def _is_refused(status: Json) -> bool:
    reason = status.get("reason") or ""
    return bool(reason.startswith("OutOf") or reason in _REFUSALS)


def _own_failure(
    name: str, on: str, status: Json, ended: Sequence[tuple[float, str, str, int]], at: float
) -> Incident:
    if not ended:
        reason = status.get("reason") or "Failed"
        message = f"pod {name} failed: {status.get('message') or reason}"
        return Incident("app", reason, message, name, on, at)
    at, container, reason, code = min(ended)
    if reason in _START_ERRORS:
        message = f"container {container} of pod {name} could not be started ({reason})"
        return Incident("config", reason, message, name, on, at)
    why = "ran out of memory" if reason == "OOMKilled" else f"ended with exit code {code}"
    return Incident("app", reason, f"container {container} of pod {name} {why}", name, on, at)


def _ends(status: Json) -> Iterator[tuple[float, str, str, int]]:
    """Yield when, which container, why and with which code containers ended in error."""
    for part in ("initContainerStatuses", "containerStatuses"):
        for one in status.get(part) or ():
            over = (one.get("state") or {}).get("terminated")
            if over and over.get("exitCode"):
                at = seconds(over.get("finishedAt") or "")
                yield at, one["name"], over.get("reason") or "Error", over["exitCode"]


def deleted_at(pod: Json) -> float | None:
    """Return when a pod was deleted; None if it was not."""
    metadata = pod["metadata"]
    if "deletionTimestamp" not in metadata:
        return None
    grace = metadata.get("deletionGracePeriodSeconds") or 0
    return seconds(metadata["deletionTimestamp"]) - grace


def _disrupted_at(status: Json) -> float:
    disruption = find(status.get("conditions"), "DisruptionTarget")
    return seconds(disruption["lastTransitionTime"]) if disruption is not None else 0.0


def _node_problem(status: Json, on: str, node: Callable[[str], Json | None]) -> str:
    """Return what is wrong with a pod's node; empty if nothing is."""
    disruption = find(status.get("conditions"), "DisruptionTarget")
    by_disruption = disruption is not None and disruption["reason"] in _NODE_DISRUPTIONS
    if status.get("reason") in _NODE_REASONS or by_disruption:
        return status.get("message") or f"node {on} was lost"
    if _is_refused(status):
        return f"node {on} turned it away: {status.get('message') or status['reason']}"
    if not on:
        return ""
    found = node(on)
    if found is None:
        return f"node {on} is gone"
    conditions = (found.get("status") or {}).get("conditions")
    ready = find(conditions, "Ready")
    if ready is not None and ready["status"] != "True":
        return f"node {on} is not ready"
    fault = fault_of(found)
    if fault is not None and fault.severity == "broken":
        return f"a device of node {on} is broken: {fault.message}"
    return ""
