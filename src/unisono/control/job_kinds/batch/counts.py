"""How far a Job is: its pods counted, each exactly once, whatever happens in between.

A pod that ended keeps a finalizer until it is counted. Counting is two writes: the status with the
new sums and the uids of the pods counted just now, then the pods without their finalizer. A crash
between the two is harmless, because uids on the list are not counted again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from unisono.control.actions import Json
from unisono.control.conditions import find, seconds
from unisono.control.job_kinds.batch.indexes import Indexes, parse_indexes
from unisono.control.jobs.pods import is_deleting, is_terminal, phase_of
from unisono.engine.model.resources import MAX_COUNT
from unisono.kinds.digits import whole_number

TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
# On a pod: how often its index had failed before it.
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"


@dataclass(slots=True)
class Counts:
    """What a Job's pods amount to."""

    active: list[Json] = field(default_factory=list)
    terminating: list[Json] = field(default_factory=list)
    # Ended and not counted yet.
    new_succeeded: list[Json] = field(default_factory=list)
    new_failed: list[Json] = field(default_factory=list)
    ignored: list[Json] = field(default_factory=list)  # failed, but a rule says it does not count
    # Counted in the status, still with a finalizer.
    to_release: list[Json] = field(default_factory=list)
    succeeded: int = 0
    failed: int = 0
    completed_indexes: Indexes = field(default_factory=Indexes)
    failed_indexes: Indexes = field(default_factory=Indexes)  # given up, with a limit per index
    # When pods failed that count, and when the last one succeeded: what decides about back-off.
    failures: list[tuple[float, int]] = field(default_factory=list)  # time, index
    last_success: float = 0.0

    def failures_in_a_row(self, index: int | None = None) -> list[float]:
        """Return when pods failed since one succeeded; of an index, since ever."""
        if index is not None:
            return sorted(at for at, one in self.failures if one == index)
        return sorted(at for at, _ in self.failures if at > self.last_success)


def index_of(pod: Json) -> int:
    """Return a pod's number; -1 if it has none."""
    metadata = pod["metadata"]
    text = (metadata.get("annotations") or {}).get(INDEX) or (metadata.get("labels") or {}).get(
        INDEX, ""
    )
    number = whole_number(text, MAX_COUNT)
    return -1 if number is None else number


def failures_before(pod: Json) -> int:
    """Return how often the index of a pod had failed when the pod was made."""
    text = (pod["metadata"].get("annotations") or {}).get(INDEX_FAILURES, "")
    return whole_number(text) or 0


def count(
    job: Json,
    pods: Sequence[Json],
    ignores: set[str],
    gives_up: set[str] | frozenset[str] = frozenset(),
) -> Counts:
    """Count a Job's pods.

    Rules of the Job name failed pods by their uids: those in `ignores` do not count, those in
    `gives_up` end their index.
    """
    spec, status = job["spec"], job.get("status") or {}
    counts = Counts(
        succeeded=status.get("succeeded", 0),
        failed=status.get("failed", 0),
        completed_indexes=parse_indexes(status.get("completedIndexes", "")),
        failed_indexes=parse_indexes(status.get("failedIndexes", "")),
    )
    most_per_index = spec.get("backoffLimitPerIndex")
    uncounted = status.get("uncountedTerminatedPods") or {}
    listed = {*(uncounted.get("succeeded") or ()), *(uncounted.get("failed") or ())}
    counts_deleting = spec.get("podReplacementPolicy") != "Failed"
    for pod in pods:
        has_finalizer = TRACKING in (pod["metadata"].get("finalizers") or ())
        uid = pod["metadata"]["uid"]
        if not is_terminal(pod):
            if not is_deleting(pod):
                counts.active.append(pod)
                continue
            counts.terminating.append(pod)
            if not counts_deleting:
                continue
        elif phase_of(pod) == "Succeeded":
            counts.last_success = max(counts.last_success, ended_at(pod))
        elif uid not in ignores:
            counts.failures.append((ended_at(pod), index_of(pod)))
        if not has_finalizer:
            continue
        if uid in listed:
            counts.to_release.append(pod)
        elif phase_of(pod) == "Succeeded":
            if spec.get("completionMode") == "Indexed":
                number = index_of(pod)
                if number in counts.completed_indexes or number < 0:
                    counts.ignored.append(pod)
                    continue
                counts.completed_indexes.add(number)
            counts.new_succeeded.append(pod)
        elif uid in ignores:
            counts.ignored.append(pod)
        else:
            counts.new_failed.append(pod)
            is_last = most_per_index is not None and failures_before(pod) >= most_per_index
            if is_last or uid in gives_up:
                counts.failed_indexes.add(index_of(pod))
    if spec.get("completionMode") == "Indexed":
        counts.succeeded = len(counts.completed_indexes)
    else:
        counts.succeeded += len(counts.new_succeeded)
    counts.failed += len(counts.new_failed)
    return counts


def ended_at(pod: Json) -> float:
    """Return when a pod ended, as far as it says."""
    times = [
        seconds(state["terminated"].get("finishedAt") or "")
        for one in (pod.get("status") or {}).get("containerStatuses") or ()
        if (state := one.get("state") or {}).get("terminated")
    ]
    if times:
        return max(times)
    disrupted = find((pod.get("status") or {}).get("conditions"), "DisruptionTarget")
    if disrupted is not None:
        return seconds(disrupted["lastTransitionTime"])
    return seconds(pod["metadata"].get("deletionTimestamp", ""))


def restarts(pods: Sequence[Json]) -> int:
    """Return how often containers of living pods were started again."""
    return sum(
        one.get("restartCount", 0)
        for pod in pods
        for part in ("containerStatuses", "initContainerStatuses")
        for one in (pod.get("status") or {}).get(part) or ()
    )
