"""The rules of a JobSet: dependencies, when it is done, and what a failure means (jobs §2).

All of it reads dictionaries; nothing is written here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from unisono.control.actions import Json
from unisono.control.conditions import find, is_true, seconds
from unisono.control.gangs.recovery import is_upstream
from unisono.control.job_kinds.jobset.child_jobs import (
    ATTEMPT_LABEL,
    REPLICATED_LABEL,
    pods_of,
    replicas_of,
)
from unisono.control.jobs.pods import is_deleting
from unisono.kinds.digits import whole_number

_LONGEST_PATTERN = 1024  # of an expression that we are willing to try on messages


@dataclass(slots=True)
class Jobs:
    """The Jobs that a JobSet has."""

    previous: list[Json] = field(default_factory=list)  # of an attempt before this one
    active: list[Json] = field(default_factory=list)
    successful: list[Json] = field(default_factory=list)
    failed: list[Json] = field(default_factory=list)

    @property
    def current(self) -> list[Json]:
        """Those of this attempt."""
        return [*self.active, *self.successful, *self.failed]


def is_gang(job_set: Json) -> bool:
    """Say whether a failure restarts all of it at once: one incident, one count (§2.1)."""
    return not is_upstream(job_set["metadata"].get("annotations"))


def replicated_of(job: Json) -> str:
    """Return the replicated job that a Job is of."""
    return str((job["metadata"].get("labels") or {}).get(REPLICATED_LABEL, ""))


def attempt_of(job: Json) -> int:
    """Return which attempt a Job is of."""
    text = (job["metadata"].get("labels") or {}).get(ATTEMPT_LABEL, "")
    return whole_number(text) or 0


def sorted_out(job_set: Json, jobs: Sequence[Json]) -> Jobs:
    """Sort Jobs by how they stand.

    What others waited to be complete, and is, is not done again when a gang restarts. A gang's
    Job that is about to fail counts as failed: its peers cannot continue.
    """
    restarts = restarts_of(job_set)
    gang = is_gang(job_set)
    kept = prerequisites(job_set) if gang else frozenset()
    found = Jobs()
    for job in jobs:
        conditions = (job.get("status") or {}).get("conditions")
        succeeded = is_true(conditions, "Complete")
        if attempt_of(job) < restarts and not (succeeded and replicated_of(job) in kept):
            found.previous.append(job)
        elif succeeded:
            found.successful.append(job)
        elif is_true(conditions, "Failed") or (gang and is_true(conditions, "FailureTarget")):
            found.failed.append(job)
        elif is_deleting(job):
            found.previous.append(job)  # it was deleted by hand; it will be made again
        else:
            found.active.append(job)
    return found


def restarts_of(job_set: Json) -> int:
    """Return how often a JobSet was restarted."""
    return int((job_set.get("status") or {}).get("restarts") or 0)


# ---- dependencies ------------------------------------------------------------------------------


def is_in_order(job_set: Json) -> bool:
    """Say whether replicated jobs start one after the other."""
    policy = job_set["spec"].get("startupPolicy") or {}
    return policy.get("startupPolicyOrder") == "InOrder"


def prerequisites(job_set: Json) -> frozenset[str]:
    """Return the replicated jobs that others wait to be complete."""
    return frozenset(
        needed["name"]
        for one in job_set["spec"].get("replicatedJobs") or ()
        for needed in one.get("dependsOn") or ()
        if needed.get("status") == "Complete"
    )


def stages_of(spec: Json) -> Mapping[str, int]:
    """Return how many others have to start before each replicated job: its place in the order.

    The pods of one stage start together; they are the gang.
    """
    stages: dict[str, int] = {}
    policy = spec.get("startupPolicy") or {}
    in_order = policy.get("startupPolicyOrder") == "InOrder"
    for place, one in enumerate(spec.get("replicatedJobs") or ()):
        needed = [stages.get(each["name"], 0) + 1 for each in one.get("dependsOn") or ()]
        stages[one["name"]] = place if in_order else max(needed, default=0)
    return stages


def may_start(job_set: Json, replicated: Json, counts: Mapping[str, Json]) -> bool:
    """Say whether what a replicated job waits for has come."""
    if is_in_order(job_set):
        for one in job_set["spec"]["replicatedJobs"]:
            if one["name"] == replicated["name"]:
                return True
            if not _is_ready(one, counts):
                return False
    if not replicated.get("dependsOn"):
        return True
    sizes = {one["name"]: one for one in job_set["spec"]["replicatedJobs"]}
    return all(
        _is_complete(sizes[needed["name"]], counts)
        if needed.get("status") == "Complete"
        else _is_ready(sizes[needed["name"]], counts)
        for needed in replicated.get("dependsOn") or ()
        if needed["name"] in sizes
    )


def _is_complete(replicated: Json, counts: Mapping[str, Json]) -> bool:
    return bool(counts[replicated["name"]]["succeeded"] >= replicas_of(replicated))


def _is_ready(replicated: Json, counts: Mapping[str, Json]) -> bool:
    count = counts[replicated["name"]]
    return bool(count["ready"] + count["failed"] + count["succeeded"] >= replicas_of(replicated))


def are_all_started(job_set: Json, counts: Mapping[str, Json]) -> bool:
    """Say whether all Jobs are ready or over."""
    return all(_is_ready(one, counts) for one in job_set["spec"].get("replicatedJobs") or ())


# ---- how far it is -----------------------------------------------------------------------------


def counts_of(job_set: Json, jobs: Jobs) -> Mapping[str, Json]:
    """Return how far each replicated job is, as the status lists it."""
    found: dict[str, Json] = {}
    wanted: dict[str, int] = {}
    for replicated in job_set["spec"].get("replicatedJobs") or ():
        name = replicated["name"]
        found[name] = {"name": name, **dict.fromkeys(_COUNTED, 0)}
        wanted[name] = pods_of(replicated)

    def counts(some: Iterable[Json]) -> Iterator[tuple[Json, Json]]:
        return ((found[name], job) for job in some if (name := replicated_of(job)) in found)

    for count, _ in counts(jobs.successful):
        count["succeeded"] += 1
    for count, _ in counts(jobs.failed):
        count["failed"] += 1
    for count, job in counts(jobs.active):
        status = job.get("status") or {}
        ready = (status.get("ready") or 0) + (status.get("succeeded") or 0)
        count["ready"] += ready >= wanted[count["name"]] and not job["spec"].get("suspend")
        count["suspended"] += bool(job["spec"].get("suspend"))
    for count, job in counts((*jobs.active, *jobs.previous, *jobs.failed)):
        count["active"] += has_pods(job)
    return found


_COUNTED = ("ready", "succeeded", "failed", "active", "suspended")


def has_pods(job: Json) -> bool:
    """Say whether pods of a Job are there; those on their way out still take their place."""
    status = job.get("status") or {}
    return bool(status.get("active") or status.get("terminating"))


# ---- when it is done ---------------------------------------------------------------------------


def is_successful(job_set: Json, jobs: Jobs) -> bool:
    """Say whether the success policy is met."""
    policy = job_set["spec"].get("successPolicy") or {}
    targets = policy.get("targetReplicatedJobs") or [
        one["name"] for one in job_set["spec"].get("replicatedJobs") or ()
    ]
    done = [job for job in jobs.successful if replicated_of(job) in targets]
    if policy.get("operator", "All") == "Any":
        return bool(done)
    wanted = sum(
        replicas_of(one)
        for one in job_set["spec"].get("replicatedJobs") or ()
        if one["name"] in targets
    )
    return bool(done) and len(done) >= wanted


# ---- what a failure means ----------------------------------------------------------------------

Answer = Literal[
    "FailJobSet",
    "RestartJobSet",
    "RestartJobSetAndIgnoreMaxRestarts",
    "RestartJob",
    "RestartJobAndIgnoreMaxRestarts",
]


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the failure policy says, of which Job, and by which of its rules (empty: by none)."""

    action: Answer
    job: Json
    rule: str = ""


def ruling(job_set: Json, failed: Sequence[Json]) -> Ruling:
    """Return the first rule that a failed Job matches; else the default, which is to restart."""
    ordered = sorted(failed, key=lambda job: (failed_at(job), job["metadata"]["name"]))
    policy = job_set["spec"].get("failurePolicy") or {}
    for place, rule in enumerate(policy.get("rules") or ()):
        for job in ordered:
            if _matches(rule, job):
                name = rule.get("name") or f"failurePolicyRule{place}"
                return Ruling(rule["action"], job, name)
    return Ruling("RestartJobSet", ordered[0])


def failed_at(job: Json) -> float:
    """Return when a Job failed, or was about to."""
    found = failure_of(job)
    return seconds(found["lastTransitionTime"]) if found is not None else 0.0


def failure_of(job: Json) -> Json | None:
    """Return the condition that tells why a Job failed."""
    conditions = (job.get("status") or {}).get("conditions")
    return find(conditions, "FailureTarget") or find(conditions, "Failed")


def _matches(rule: Json, job: Json) -> bool:
    targets = rule.get("targetReplicatedJobs")
    if targets and replicated_of(job) not in targets:
        return False
    failure = failure_of(job) or {}
    reasons = rule.get("onJobFailureReasons")
    if reasons and failure.get("reason") not in reasons:
        return False
    patterns = rule.get("onJobFailureMessagePatterns")
    return not patterns or any(_found(one, failure.get("message", "")) for one in patterns)


def _found(pattern: str, message: str) -> bool:
    """Say whether a pattern is found in a message; one that cannot be read is found in none."""
    if len(pattern) > _LONGEST_PATTERN:
        return False
    try:
        return re.search(pattern, message) is not None
    except re.error:
        return False
