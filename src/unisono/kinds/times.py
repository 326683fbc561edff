"""How long a job runs, from when and until when: what its annotations and its kind say of it.

    unisono.dev/time-limit            on a job: how long it runs at most, as Slurm writes it (M,
                                      M:S, H:M:S, D-H, D-H:M, D-H:M:S) or as Go does (90m, 1h30m)
    unisono.dev/begin, …/deadline     on a job: 2026-01-31T12:00:00Z, or now+1h30m, where now is
                                      when the job was created
    unisono.dev/default-time-limit    on a LocalQueue or a ClusterQueue, for jobs that do not say
    spec.activeDeadlineSeconds        of the job itself, wherever its kind has it

Limits are for planning: no workload is stopped by one of ours (spec backfill §1).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from unisono.engine.model.names import Instant
from unisono.engine.model.workload import LimitSource
from unisono.kinds.notes import Notes
from unisono.kinds.scalar import duration_ms, instant_ms, seconds_ms

TIME_LIMIT = "unisono.dev/time-limit"
TIME_MIN = "unisono.dev/time-min"
BEGIN = "unisono.dev/begin"
DEADLINE = "unisono.dev/deadline"
DEFAULT_LIMIT = "unisono.dev/default-time-limit"
# On a Workload: the activeDeadlineSeconds of its job.
ACTIVE_DEADLINE = "unisono.dev/active-deadline-seconds"

_UNLIMITED = frozenset({"0", "unlimited", "infinite"})
_CLOCK = re.compile(r"(?:([0-9]{1,5})-)?([0-9]{1,7})(?::([0-9]{1,2}))?(?::([0-9]{1,2}))?")
_LATER = re.compile(r"now(?:\+(.+))?")
_COUNTED = re.compile(r"([0-9]{1,9})\s*(second|minute|hour|day|week)?s?")
_UNIT_MS = {
    "second": 1000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 7 * 86_400_000,
}
_LIMIT_FORMS = "write it like 90 (minutes), 1:30:00, 2-12 (days-hours) or 90m"
_INSTANT_FORMS = "write it like 2026-01-31T12:00:00Z or now+1h30m"


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a job in time."""

    limit_ms: int | None = None
    limit_from: LimitSource = "request"
    least_ms: int | None = None  # None: it does not leave its limit open
    begin_at: Instant | None = None
    deadline: Instant | None = None


def limit_ms(text: str) -> int | None:
    """Return a time limit in milliseconds, None for no limit; raise ValueError with the reason.

    >>> limit_ms("90"), limit_ms("1:30"), limit_ms("1:30:00"), limit_ms("2-12"), limit_ms("90m")
    (5400000, 90000, 5400000, 216000000, 5400000)
    """
    stripped = text.strip()
    if stripped.lower() in _UNLIMITED:
        return None
    found = _CLOCK.fullmatch(stripped)
    if found is not None:
        limit = _clock_ms(*found.groups())
    else:
        try:
            limit = duration_ms(stripped)
        except ValueError:
            raise ValueError(f'"{text}" is not a time limit; {_LIMIT_FORMS}') from None
    if limit <= 0:
        raise ValueError(f'"{text}" is not more than nothing; {_LIMIT_FORMS}')
    return limit


def _clock_ms(days: str | None, first: str, second: str | None, third: str | None) -> int:
    """Return Slurm's forms: without days the first number is minutes, unless two follow it."""
    one, two, three = int(first), int(second or 0), int(third or 0)
    if days is not None:
        seconds = int(days) * 86_400 + one * 3600 + two * 60 + three
    elif third is not None:
        seconds = one * 3600 + two * 60 + three
    else:
        seconds = one * 60 + two
    return seconds_ms(seconds)


def instant_of(text: str, created_at: Instant) -> Instant:
    """Return an instant; raise ValueError with the reason.

    >>> instant_of("now+1h30m", Instant(0)), instant_of("now+2days", Instant(5))
    (5400000, 172800005)
    """
    stripped = text.strip()
    later = _LATER.fullmatch(stripped)
    if later is None:
        try:
            return Instant(instant_ms(stripped))
        except ValueError:
            raise ValueError(f'"{text}" is not a time; {_INSTANT_FORMS}') from None
    counted = _COUNTED.fullmatch(later[1] or "0")
    if counted is not None:
        return Instant(created_at + int(counted[1]) * _UNIT_MS[counted[2] or "second"])
    try:
        return Instant(created_at + duration_ms(later[1]))
    except ValueError:
        raise ValueError(f'"{text}" is not a time; {_INSTANT_FORMS}') from None


def times_of(
    annotations: Mapping[str, str],
    notes: Notes,
    *,
    created_at: Instant,
    active_s: int | None = None,
) -> Times:
    """Return what a job says of itself; what cannot be read is a problem of that field."""
    limit = _limit_of(annotations, TIME_LIMIT, notes)
    source: LimitSource = "request"
    if active_s is not None and (limit is None or seconds_ms(active_s) < limit):
        limit, source = seconds_ms(active_s), "job"
    return Times(
        limit_ms=limit,
        limit_from=source,
        least_ms=_least_of(annotations, limit, notes),
        begin_at=_instant_of(annotations, BEGIN, notes, created_at),
        deadline=_instant_of(annotations, DEADLINE, notes, created_at),
    )


def default_limit_of(annotations: Mapping[str, str], notes: Notes) -> int | None:
    """Return how long jobs of a queue run that do not say so themselves."""
    return _limit_of(annotations, DEFAULT_LIMIT, notes)


def active_seconds(job: Mapping[str, object]) -> int | None:
    """Return how long a job may be active by its own kind's rules; None if it does not say.

    A JobSet does not say so itself; if all of its jobs do, the longest of them counts.
    """
    spec = _part(job, "spec")
    seconds = spec.get(
        "activeDeadlineSeconds", _part(spec, "runPolicy").get("activeDeadlineSeconds")
    )
    replicated = spec.get("replicatedJobs")
    if seconds is None and isinstance(replicated, list) and replicated:
        each = [
            _part(_part(one, "template"), "spec").get("activeDeadlineSeconds") for one in replicated
        ]
        known = [one for one in each if isinstance(one, int)]
        seconds = max(known) if len(known) == len(each) else None
    return seconds if isinstance(seconds, int) and seconds > 0 else None


def _part(obj: object, name: str) -> Mapping[str, object]:
    found = obj.get(name) if isinstance(obj, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _least_of(annotations: Mapping[str, str], limit: int | None, notes: Notes) -> int | None:
    """Return the least limit that a job accepts, if that is less than its limit."""
    least = _limit_of(annotations, TIME_MIN, notes)
    return least if least is not None and (limit is None or least < limit) else None


def _limit_of(annotations: Mapping[str, str], key: str, notes: Notes) -> int | None:
    text = annotations.get(key)
    if text is None:
        return None
    try:
        return limit_ms(text)
    except ValueError as reason:
        notes.problem(f"metadata.annotations[{key}]", str(reason))
        return None


def _instant_of(
    annotations: Mapping[str, str], key: str, notes: Notes, created_at: Instant
) -> Instant | None:
    text = annotations.get(key)
    if text is None:
        return None
    try:
        return instant_of(text, created_at)
    except ValueError as reason:
        notes.problem(f"metadata.annotations[{key}]", str(reason))
        return None
