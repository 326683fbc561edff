"""When a Job is over, and which failures count: its own rules, first match wins (jobs §3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from unisono.control.actions import Json
from unisono.control.job_kinds.batch.counts import Counts, index_of, restarts
from unisono.control.job_kinds.batch.indexes import Indexes, parse_indexes
from unisono.control.jobs.pods import phase_of


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a Job ends."""

    succeeded: bool
    reason: str
    message: str


def failure_action(job: Json, pod: Json) -> tuple[str, str]:
    """Return what the podFailurePolicy says of a failed pod: an action, and a sentence."""
    rules = (job["spec"].get("podFailurePolicy") or {}).get("rules") or ()
    for place, rule in enumerate(rules):
        if _matches(rule, pod):
            name = pod["metadata"]["name"]
            return rule["action"], f"Pod {name} matched rule {place} ({rule['action']})"
    return "Count", ""


def _matches(rule: Json, pod: Json) -> bool:
    codes = rule.get("onExitCodes")
    if codes is not None:
        return any(_matches_code(codes, name, code) for name, code in _exit_codes(pod))
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(
        one["type"] == wanted["type"] and one["status"] == wanted.get("status", "True")
        for wanted in rule.get("onPodConditions") or ()
        for one in conditions
    )


def _matches_code(codes: Json, container: str, code: int) -> bool:
    if codes.get("containerName") not in (None, container):
        return False
    return bool((code in codes["values"]) == (codes["operator"] == "In"))


def _exit_codes(pod: Json) -> Iterator[tuple[str, int]]:
    for part in ("containerStatuses", "initContainerStatuses"):
        for one in (pod.get("status") or {}).get(part) or ():
            ended = (one.get("state") or {}).get("terminated")
            if ended and ended.get("exitCode"):
                yield one["name"], ended["exitCode"]


def ruled(job: Json, pods: Sequence[Json], action: str) -> set[str]:
    """Return the uids of failed pods about which the podFailurePolicy says so."""
    if not job["spec"].get("podFailurePolicy"):
        return set()
    return {
        pod["metadata"]["uid"]
        for pod in pods
        if phase_of(pod) == "Failed" and failure_action(job, pod)[0] == action
    }


def verdict(job: Json, counts: Counts, now: float, started_at: float) -> Verdict | None:
    """Return why a Job ends now; None if it continues."""
    spec = job["spec"]
    for pod in counts.new_failed:
        action, message = failure_action(job, pod)
        if action == "FailJob":
            return Verdict(succeeded=False, reason="PodFailurePolicy", message=message)
    limit = spec.get("backoffLimit", 6)
    template = (spec.get("template") or {}).get("spec") or {}
    restarted = restarts(counts.active) if template.get("restartPolicy") == "OnFailure" else 0
    if counts.failed > limit or (restarted > 0 and restarted >= limit):
        message = "Job has reached the specified backoff limit"
        return Verdict(succeeded=False, reason="BackoffLimitExceeded", message=message)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and started_at and now >= started_at + deadline:
        message = "Job was active longer than specified deadline"
        return Verdict(succeeded=False, reason="DeadlineExceeded", message=message)
    return _given_up(spec, counts) or _success(spec, counts)


def _given_up(spec: Json, counts: Counts) -> Verdict | None:
    """Say whether too many indexes failed, or there is none left to try."""
    failed, most = len(counts.failed_indexes), spec.get("maxFailedIndexes")
    if most is not None and failed > most:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return Verdict(succeeded=False, reason="MaxFailedIndexesExceeded", message=message)
    if failed and failed + counts.succeeded >= (spec.get("completions") or 0):
        message = "Job has failed indexes"
        return Verdict(succeeded=False, reason="FailedIndexes", message=message)
    return None


def _success(spec: Json, counts: Counts) -> Verdict | None:
    for rule in (spec.get("successPolicy") or {}).get("rules") or ():
        wanted = parse_indexes(rule.get("succeededIndexes", ""))
        there = counts.completed_indexes & wanted if wanted else counts.completed_indexes
        enough = rule.get("succeededCount", len(wanted))
        if len(there) >= enough:
            return Verdict(
                succeeded=True, reason="SuccessPolicy", message="Matched rules at index 0"
            )
    completions = spec.get("completions")
    if completions is None:
        is_complete = counts.succeeded > 0 and not counts.active
    else:
        is_complete = counts.succeeded >= completions
    if is_complete:
        message = "Reached expected number of succeeded pods"
        return Verdict(succeeded=True, reason="CompletionsReached", message=message)
    return None


def free_indexes(spec: Json, counts: Counts, most: int) -> list[int]:
    """Return at most so many of the numbers that neither ran through nor run now, lowest first."""
    pods = [*counts.active]
    if spec.get("podReplacementPolicy") == "Failed":
        pods += counts.terminating
    taken = Indexes((number, number) for number in map(index_of, pods) if number >= 0)
    taken = taken | counts.completed_indexes | counts.failed_indexes
    return list(islice(taken.left_out(spec.get("completions") or 0), most))
