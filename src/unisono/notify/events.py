"""What happened to a Workload, read from its conditions and from the record of what was told.

Nothing here compares an old state with a new one, so no event is lost while no process is at work.
Each event has a mark that tells it from the next one of its kind, and the annotation
`unisono.dev/notified` holds the last mark of each kind:

    event                 happened when                                    mark
    begin                 admitted, and all pods are ready                 when it was admitted
    end, fail             Finished, or given up for good                   when it ended
    preempt               evicted after it had begun                       the number of evictions
    delay                 the start that was promised has slipped          the promised start
    time-limit…           so much of its limit is over                     when it was admitted
    invalid-dependency    its dependency can never be satisfied            1

A promised start is the first reservation or estimate of a workload's wait. The record keeps it with
the time of the promise (`promise=START/MADE/SLIPS`): nothing else in the cluster remembers it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from unisono.control import names
from unisono.kinds.digits import whole_number
from unisono.kinds.json_texts import read_json
from unisono.kinds.kueue.waiting import waiting_message
from unisono.kinds.notifying import SHARES, Event
from unisono.kinds.times import ACTIVE_DEADLINE, TIME_LIMIT, limit_ms
from unisono.kinds.views.workloads import Workload

# What is older was told by the leader of that time; later it is no news.
FRESH_SECONDS = 3600.0
# A start has slipped that is later than promised by this and by a tenth of the promised wait:
# estimates are no more precise, and a reservation moves a little whenever a job ends early.
_LEAST_SLIP_SECONDS = 300.0
_SOON_SECONDS = 60.0
# Each further promise may slip by twice as much: a job that overruns its limit moves the estimates
# of all behind it every few minutes.
_MOST_DOUBLINGS = 8
_SLIP_SHARE = 0.1
PROMISE = "promise"  # in the record, beside the marks
_CANCELLED = "Job is CANCELLED"
# Of the preemptor, behind its name: they are for programs.
_IDENTITIES = re.compile(r" \(UID: [^)]*\)")
# Evictions after which a workload that is not active any more was given up by the system.
_GIVEN_UP = ("DeactivatedDueToRequeuingLimitExceeded", "DeactivatedDueToAdmissionCheck")

Told = Mapping[str, str]


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """One event."""

    event: Event
    mark: str
    at: float  # seconds since 1970
    why: str = ""  # in a sentence of the cluster's
    queued_s: float = -1.0  # how long it waited before it began; -1: unknown
    ran_s: float = -1.0  # how long it had run
    start: float = 0.0  # of a delay: the new start, if there is one
    promised: float = 0.0  # of a delay: the start that was promised


class Found(msgspec.Struct, frozen=True):
    """The events of a Workload, whether they were told or not, and what else to remember."""

    events: tuple[Happened, ...] = ()
    promise: str = ""
    look_again: float | None = None  # when an event happens without a change


def read_told(text: str) -> dict[str, str]:
    """Return the record of an annotation.

    >>> read_told("begin=2026-01-01T00:00:00Z preempt=2 ?")
    {'begin': '2026-01-01T00:00:00Z', 'preempt': '2'}
    """
    pairs = (one.partition("=") for one in text.split())
    return {key: value for key, equals, value in pairs if equals and key}


def written_told(told: Told) -> str:
    """Return a record as an annotation."""
    return " ".join(f"{key}={value}" for key, value in sorted(told.items()) if value)


def is_told(happened: Happened, told: Told) -> bool:
    """Say whether an event was told already."""
    return told.get(happened.event) == happened.mark


def events_of(obj: Mapping[str, Any], wanted: Collection[Event], told: Told, now: float) -> Found:
    """Return the events of a Workload, in the order in which they happened; only those wanted."""
    workload = Workload(obj)
    run = _run_of(workload)
    events: list[Happened] = []
    again: list[float] = []
    if run is not None and {"begin", "preempt"} & set(wanted):
        events.append(run.begin())
    events += _evictions(workload, run, wanted, told)
    events += _ends(workload, run, wanted)
    promise = ""
    if not workload.is_finished and workload.spec.active and not workload.has_quota:
        facts = _facts(workload)
        if "invalid-dependency" in wanted:
            events += _invalid_dependency(facts, workload, now)
        if "delay" in wanted:
            delays, promise, look = _delay(facts, told, now)
            events += delays
            again += look
    if run is not None and not workload.is_finished and not workload.is_evicted:
        limits, look = _limits(workload, run, wanted, now)
        events += limits
        again += look
    return Found(tuple(events), promise, min(again, default=None))


def is_fresh(happened: Happened, now: float) -> bool:
    """Say whether an event is recent enough to be worth a message."""
    return now - happened.at <= FRESH_SECONDS


class _Run(msgspec.Struct, frozen=True):
    """The run of a workload, now or until it ended."""

    mark: str
    since: float  # its pods are ready
    queued_s: float

    def begin(self) -> Happened:
        return Happened(event="begin", mark=self.mark, at=self.since, queued_s=self.queued_s)

    def until(self, at: float) -> float:
        return max(0.0, at - self.since)


def _run_of(workload: Workload) -> _Run | None:
    conditions = workload.conditions
    admitted = conditions.get("Admitted")
    if admitted is None or not admitted.is_true:
        return None
    ready = conditions.get("PodsReady")
    if ready is None and workload.metadata.owner_references:
        return None
    if ready is not None and not ready.is_true:
        return None
    since = ready.since if ready is not None else admitted.since
    created = workload.metadata.created
    past = workload.status.accumulated_past_execution_time_seconds
    queued = since - created - past if created else -1.0
    return _Run(admitted.last_transition_time, since, max(queued, -1.0))


def _evictions(
    workload: Workload, run: _Run | None, wanted: Collection[Event], told: Told
) -> Iterator[Happened]:
    evicted = workload.conditions.get("Evicted")
    if evicted is None or "preempt" not in wanted or _is_given_up(workload):
        return
    count = sum(one.count for one in workload.status.scheduling_stats.evictions)
    # One that was rolled back before its pods ran has lost nothing.
    if not (evicted.is_true and run is not None) and "begin" not in told:
        return
    mark = str(count) if count else evicted.last_transition_time
    own = workload.conditions.message(names.EVICTION)
    message = evicted.message.removeprefix("Previously: ")
    if own and message.startswith("Preempted to accommodate"):
        message = _IDENTITIES.sub("", own)
    ran = run.until(evicted.since) if run is not None and evicted.is_true else -1.0
    yield Happened(event="preempt", mark=mark, at=evicted.since, why=message, ran_s=ran)


def _is_given_up(workload: Workload) -> bool:
    """Say whether the system has taken it out of its queue for good."""
    conditions = workload.conditions
    reason = conditions.reason("Evicted")
    return (
        not workload.spec.active and conditions.is_true("Evicted") and reason.startswith(_GIVEN_UP)
    )


def _ends(workload: Workload, run: _Run | None, wanted: Collection[Event]) -> Iterator[Happened]:
    conditions = workload.conditions
    end = conditions.get("Finished")
    if end is None or not end.is_true:
        end = conditions.get("Evicted") if _is_given_up(workload) else None
    if end is None:
        return
    # As in Slurm, a job that was cancelled has ended and not failed.
    is_well = end.reason == "Succeeded" or end.message.startswith(_CANCELLED)
    event: Event = "end" if is_well else "fail"
    if event in wanted:
        ran = run.until(end.since) if run is not None else -1.0
        yield Happened(
            event=event, mark=end.last_transition_time, at=end.since, why=end.message, ran_s=ran
        )


def _invalid_dependency(
    facts: list[dict[str, Any]], workload: Workload, now: float
) -> Iterator[Happened]:
    # When it became so is not written down: it may have waited for other reasons before.
    if any(one.get("fact") == "DependencyNeverSatisfied" for one in facts):
        why = waiting_message(workload.conditions)
        yield Happened(event="invalid-dependency", mark="1", at=now, why=why)


class _Promise(msgspec.Struct, frozen=True):
    """A start that was promised, when that was, and how many promises slipped before it."""

    start: float
    made: float
    slips: int = 0

    @staticmethod
    def of(text: str) -> _Promise | None:
        numbers = [whole_number(one) or 0 for one in text.split("/")]
        return _Promise(*numbers) if len(numbers) == 3 and numbers[0] else None

    @property
    def text(self) -> str:
        return f"{int(self.start)}/{int(self.made)}/{self.slips}"

    @property
    def latest(self) -> float:
        """The latest start that is no delay."""
        least = _LEAST_SLIP_SECONDS * 2.0 ** min(self.slips, _MOST_DOUBLINGS)
        return self.start + max(least, _SLIP_SHARE * (self.start - self.made))


def _delay(
    facts: list[dict[str, Any]], told: Told, now: float
) -> tuple[list[Happened], str, list[float]]:
    """Return the delay, the promise to remember, and when to look again."""
    timed = [one for name in ("Planned", "Expected") for one in facts if one.get("fact") == name]
    named = timed[0].get("start") if timed else None
    start = named / 1000 if isinstance(named, int) else 0.0
    promise = _Promise.of(told.get(PROMISE, ""))
    if promise is None:
        first = _Promise(start, now)
        return [], first.text if start else "", [first.latest + 1] if start else []
    if max(start, now) <= promise.latest:
        return [], promise.text, [promise.latest + 1]
    # While a job overruns its limit, all behind it are expected at any moment: that says nothing.
    new = start if start > max(now + _SOON_SECONDS, promise.start) else 0.0
    # The mark is the old promise: a new estimate that moves while a message is on its way is no
    # second delay. Once told, the new start is the promise.
    mark = str(int(promise.start))
    delay = Happened(event="delay", mark=mark, at=now, start=new, promised=promise.start)
    if is_told(delay, told) and new:
        promise = _Promise(new, now, promise.slips + 1)
    return [delay], promise.text, []


def _limits(
    workload: Workload, run: _Run, wanted: Collection[Event], now: float
) -> tuple[list[Happened], list[float]]:
    """Return how much of its time limit is over, and when the next share is."""
    asked = {event: share for event, share in SHARES.items() if event in wanted}
    limit = _limit_seconds(workload) if asked else None
    if limit is None:
        return [], []
    passed: list[Happened] = []
    coming: list[float] = []
    for event, share in sorted(asked.items(), key=lambda one: one[1]):
        at = run.since + share * limit
        if at > now:
            coming.append(at)
        else:
            passed.append(Happened(event=event, mark=run.mark, at=at, ran_s=run.until(at)))
    return passed, coming


def _limit_seconds(workload: Workload) -> float | None:
    annotations = workload.metadata.annotations
    granted = whole_number(workload.conditions.message(names.GRANTED))
    if granted:
        return float(granted)
    known = [whole_number(annotations.get(ACTIVE_DEADLINE, ""))]
    try:
        limit = limit_ms(annotations.get(TIME_LIMIT, "0"))
    except ValueError:
        limit = None
    known.append(limit // 1000 if limit else None)
    return min((float(one) for one in known if one), default=None)


def _facts(workload: Workload) -> list[dict[str, Any]]:
    """Return the facts of an explanation, which a condition carries as JSON."""
    try:
        found = read_json(workload.conditions.message(names.EXPLANATION) or "null")
    except ValueError:
        return []
    facts = found.get("facts") if isinstance(found, dict) else None
    return [one for one in facts if isinstance(one, dict)] if isinstance(facts, list) else []
