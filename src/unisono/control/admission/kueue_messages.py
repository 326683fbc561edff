"""The messages of Kueue's own conditions, word for word: tools and runbooks match on them.

What Unisono knows beyond them (the name of the workload that preempted this one) stands in a
condition of its own, `unisono.dev/Eviction`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.conditions import find
from unisono.engine.model.plan import DueEviction, Eviction

ADMITTED = "The workload is admitted"
NO_RESERVATION = "The workload has no reservation"
NOT_READY = "Not all pods are ready or succeeded"
WAITING_FOR_RECOVERY = "At least one pod has failed, waiting for recovery"
READY = "All pods reached readiness and the workload is running"
OWNER_NOT_FOUND = "The workload's owner no longer exists"

# Reasons and messages of events about the annotation `admission-gated-by`. The first is the reason
# of QuotaReserved, too.
GATED = "AdmissionGated"
GATE_CLEARED = "AdmissionGateCleared"
RELEASED = "Admission gate cleared, workload is now admissible"

# Why a workload may queue again (condition Requeued), by reason.
REQUEUED: Mapping[str, str] = {
    "Reactivated": "The workload was reactivated",
    "ClusterQueueRestarted": "The ClusterQueue was restarted after being stopped",
    "LocalQueueRestarted": "The LocalQueue was restarted after being stopped",
    "BackoffFinished": "The workload backoff was finished",
}

_DEACTIVATED = "The workload is deactivated"
_STOPPED: Mapping[str, str] = {
    "ClusterQueueStopped": "The ClusterQueue is stopped",
    "LocalQueueStopped": "The LocalQueue is stopped",
    "MaximumExecutionTimeExceeded": f"{_DEACTIVATED} due to exceeding the maximum execution time",
    "Deactivated": _DEACTIVATED,
}
_PREEMPTED: Mapping[str, str] = {
    "InClusterQueue": "prioritization in the ClusterQueue",
    "InCohortReclamation": "reclamation within the cohort",
    "InCohortFairSharing": "Fair Sharing within the cohort",
    "InCohortReclaimWhileBorrowing": "reclamation within the cohort while borrowing",
}
UNKNOWN = "UNKNOWN"


class Preemptor(NamedTuple):
    """The workload for which others are evicted, as messages name it."""

    key: str
    uid: str
    job_uid: str
    path: str  # of cohorts to its ClusterQueue, as `/root/team/queue`

    @property
    def described(self) -> str:
        """Its name and uids, for messages of our own."""
        if not self.uid:
            return self.key
        return f"{self.key} (UID: {self.uid}, JobUID: {self.job_uid or 'unknown'})"


def gated(by: str) -> str:
    """Return the message of the event of a workload that controllers have to release first."""
    return f"Workload admission is gated by: {by}"


def was_gated(workload: Json) -> bool:
    """Say whether a Workload's last written reason to wait is its gate."""
    reserved = find((workload.get("status") or {}).get("conditions"), "QuotaReserved")
    return reserved is not None and reserved.get("reason") == GATED


def preempted(eviction: Eviction, by: Preemptor, path: str) -> str:
    """Return the message of Preempted and Evicted; `path` leads to the victim's ClusterQueue."""
    return (
        f"Preempted to accommodate a workload (UID: {by.uid or UNKNOWN}, "
        f"JobUID: {by.job_uid or UNKNOWN}) due to {cause_of_preemption(eviction.reason)}; "
        f"preemptor path: {by.path or UNKNOWN}; preemptee path: {path or UNKNOWN}"
    )


def preempted_by(reason: str, by: Preemptor) -> str:
    """Return the same in our own words: it names the preemptor."""
    return f"Preempted to accommodate {by.described} due to {cause_of_preemption(reason)}"


def cause_of_preemption(reason: str) -> str:
    """Return Kueue's words for a reason of preemption."""
    return _PREEMPTED.get(reason, reason)


def stopped(workload: Json, reason: str, stop: DueEviction | None) -> str:
    """Return the message of Evicted where no other workload needs its place."""
    if reason == "PodsReadyTimeout":
        if stop is not None and stop.deactivate:
            return f"{_DEACTIVATED} due to exceeding the maximum number of re-queuing retries"
        metadata = workload["metadata"]
        return f"Exceeded the PodsReady timeout {metadata['namespace']}/{metadata['name']}"
    if reason == "AdmissionCheck":
        states = (workload.get("status") or {}).get("admissionChecks") or []
        rejected = [one for one in states if one["state"] == "Rejected"]
        if rejected:
            return f"{_DEACTIVATED} due to {_checks(rejected, 'Rejected')}"
        return f"Evicted due to {_checks([o for o in states if o['state'] == 'Retry'], 'Retry')}"
    return _STOPPED.get(reason, reason)


def replaced(by: Json) -> str:
    """Return the message of Finished of a Workload that a slice replaces."""
    metadata = by["metadata"]
    job = (metadata.get("labels") or {}).get(names.JOB_UID_LABEL, "")
    return (
        f"Replaced to accommodate a workload (UID: {metadata.get('uid', '')}, JobUID: {job}) "
        "due to workload slice aggregation"
    )


def not_replaced(node: str) -> str:
    """Return the message of Evicted of a gang that found no other node in time."""
    return f"Workload was evicted as there was no replacement for unhealthy node(s): {node}"


def reset_check(state: str) -> str:
    """Return the message of a check whose state an eviction has reset."""
    return f"Reset to Pending after eviction. Previously: {state}"


def _checks(states: list[Json], state: str) -> str:
    named = [
        f'"{one["name"]}" ({one["message"]})' if one.get("message") else f'"{one["name"]}"'
        for one in sorted(states, key=lambda one: str(one["name"]))
    ]
    noun = "AdmissionChecks" if len(named) > 1 else "AdmissionCheck"
    return f"{noun} in {state} state: {'; '.join(named)}"


def eviction_message(conditions: Sequence[Json] | None) -> str:
    """Return why a workload was evicted last, as people are to read it; empty if it never was."""
    evicted = find(conditions, "Evicted")
    message = str(evicted.get("message") or "") if evicted is not None else ""
    message = message.removeprefix("Previously: ")
    own = find(conditions, names.EVICTION)
    if own is not None and message.startswith("Preempted to accommodate"):
        return str(own["message"])
    return message
