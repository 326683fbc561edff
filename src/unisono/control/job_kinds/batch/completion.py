"""How far a Job is, and when it is over (jobs §3).

Its pods are counted, each exactly once, whatever happens in between. A pod that ended keeps a
finalizer until it is counted. Counting is two writes: the status with the new sums and the uids of
the pods counted just now, then the pods without their finalizer. A crash between the two is
harmless, because uids on the list are not counted again.

Of a Job's own rules for failures and success the first that matches wins.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from unisono.control.actions import Json
from unisono.control.conditions import find, seconds
from unisono.control.jobs.pods import is_deleting, is_terminal, phase_of
from unisono.engine.model.resources import MAX_COUNT
from unisono.kinds.digits import whole_number

# ---- indexes -------------------------------------------------------------------------------------
#
# Sets of numbers as Jobs write them: "0,2-4".
#
# Few characters name many numbers (`0-2147483646`), in a success policy just as in a status, so the
# numbers are kept as spans and never listed: everything here costs as much as the text is long.

_Span = tuple[int, int]  # first and last


class Indexes:
    """A set of numbers from 0 on, as spans that neither touch nor overlap, in order."""

    __slots__ = ("_spans",)

    def __init__(self, spans: Iterable[_Span] = ()) -> None:
        """Take spans in any order; they may overlap."""
        self._spans: list[_Span] = []
        for first, last in sorted(spans):
            if self._spans and first <= self._spans[-1][1] + 1:
                before = self._spans[-1]
                self._spans[-1] = (before[0], max(before[1], last))
            elif first <= last:
                self._spans.append((first, last))

    def __len__(self) -> int:
        """Return how many numbers there are."""
        return sum(last - first + 1 for first, last in self._spans)

    def __contains__(self, number: int) -> bool:
        """Say whether a number is one of them."""
        place = bisect_left(self._spans, (number + 1,)) - 1
        return place >= 0 and number <= self._spans[place][1]

    def add(self, number: int) -> None:
        """Take in one more; what has no number is none of them."""
        if number >= 0 and number not in self:
            self._spans = Indexes([*self._spans, (number, number)])._spans

    def __or__(self, other: Indexes) -> Indexes:
        """Return the numbers of both."""
        return Indexes([*self._spans, *other._spans])

    def __and__(self, other: Indexes) -> Indexes:
        """Return the numbers that both have."""
        found: list[_Span] = []
        mine, theirs = iter(self._spans), iter(other._spans)
        one, two = next(mine, None), next(theirs, None)
        while one is not None and two is not None:
            first, last = max(one[0], two[0]), min(one[1], two[1])
            if first <= last:
                found.append((first, last))
            if one[1] <= two[1]:
                one = next(mine, None)
            else:
                two = next(theirs, None)
        return Indexes(found)

    def left_out(self, end: int) -> Iterator[int]:
        """Yield the numbers below `end` that are not among them, lowest first.

        >>> list(Indexes([(0, 0), (2, 3)]).left_out(6))
        [1, 4, 5]
        """
        start = 0
        for first, last in self._spans:
            yield from range(start, min(first, end))
            start = last + 1
        yield from range(start, end)

    def text(self) -> str:
        """Write them with ranges where three or more follow each other.

        >>> parse_indexes("0,2,3,4,6,7").text()
        '0,2-4,6,7'
        """
        return ",".join(_written(*span) for span in self._spans)


def parse_indexes(text: str) -> Indexes:
    """Read a list of numbers and ranges.

    >>> found = parse_indexes("0,2-4")
    >>> len(found), 3 in found, 1 in found, list(found.left_out(7))
    (4, True, False, [1, 5, 6])
    """
    return Indexes(filter(None, map(_span, text.split(","))))


def _span(text: str) -> tuple[int, int] | None:
    """Read one number or range; None for what is neither."""
    first, _, last = text.partition("-")
    low, high = whole_number(first), whole_number(last or first)
    return (low, high) if low is not None and high is not None and low <= high else None


def _written(first: int, last: int) -> str:
    if last - first > 1:
        return f"{first}-{last}"
    return str(first) if first == last else f"{first},{last}"


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


# ---- when a Job is over --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a Job ends."""

    succeeded: bool
    reason: str
    message: str


def _failure_action(job: Json, pod: Json) -> tuple[str, str]:
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
        if phase_of(pod) == "Failed" and _failure_action(job, pod)[0] == action
    }


def verdict(job: Json, counts: Counts, now: float, started_at: float) -> Verdict | None:
    """Return why a Job ends now; None if it continues."""
    spec = job["spec"]
    for pod in counts.new_failed:
        action, message = _failure_action(job, pod)
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
