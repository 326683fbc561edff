"""The quarantine of a failed node: a record on the node, and what follows from it.

    well ──a device is broken──▶ quarantine ──mended──▶ ten minutes more ──▶ well
    well ──lost────────────────▶ quarantine ──back────▶ 1, 10, 100 … minutes more ──▶ well

Each quarantine is a strike, and strikes count for a day. With the second one for a broken device
only a person lets the node back in, by taking the taint off; that forgets all strikes, and the
fault that is still reported is believed no more until it is gone.

Pure: the record and what is seen now go in, the new record and its events come out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace

from unisono.control.conditions import seconds, timestamp
from unisono.control.health.stragglers import REASON
from unisono.kinds.device_faults import Fault

RECORD = "unisono.dev/health"
# Not ready for so long, a node has lost its pods; a shorter absence is no reason to worry.
LOST_SECONDS = 10.0
LOST = "NodeLost"
NEVER = "never"
_STRIKES_SECONDS = 86_400.0
_MOST_STRIKES = 2
_PROBATION_SECONDS = 600.0
_FIRST_ABSENCE_SECONDS = 60.0
_ABSENCE_GROWS = 10.0


@dataclass(frozen=True, slots=True)
class Record:
    """What is remembered of a node, as in its annotation."""

    reason: str = ""  # why it is in quarantine; empty: it is not
    since: str = ""
    until: str = ""  # empty: as long as it is broken or away; `never`: until a person lifts it
    doubted: str = ""  # a fault that is not acted on: a person said so, or too many nodes are out
    strikes: tuple[str, ...] = ()

    def text(self) -> str:
        """Write it as an annotation."""
        return json.dumps({key: value for key, value in asdict(self).items() if value})

    @staticmethod
    def of(annotations: Mapping[str, str] | None) -> Record:
        """Read it; an empty one if there is none that can be read."""
        try:
            read = json.loads((annotations or {}).get(RECORD) or "{}")
            keys = ("reason", "since", "until", "doubted")
            texts = {key: str(read.get(key) or "") for key in keys}
            return Record(**texts, strikes=tuple(str(one) for one in read.get("strikes") or ()))
        except (ValueError, AttributeError, TypeError):
            return Record()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """How a node is now."""

    fault: Fault | None
    away_since: float | None  # since when it is not ready
    is_tainted: bool
    drags: str = ""  # the gang that it holds up and that is to leave it; empty: none
    may_be_closed: Callable[[], bool]  # not too many others of its sort are out already


@dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of a record, its events, and when to look again."""

    record: Record
    events: tuple[tuple[str, str], ...] = ()
    again_at: float | None = None


def follow(record: Record, seen: Seen, now: float) -> Outcome:
    """Take a record a step further."""
    record = replace(record, strikes=_lately(record.strikes, now))
    wrong = _wrong(seen, now)
    if record.doubted and record.doubted not in wrong:
        record = replace(record, doubted="")
    if record.reason and not seen.is_tainted:
        message = "the taint was removed by hand: earlier failures are forgotten"
        return Outcome(Record(doubted=next(iter(wrong), "")), (("QuarantineLifted", message),))
    if record.reason:
        return _in_time(record, is_over=record.reason not in wrong, now=now)
    for reason, message in wrong.items():
        if reason != record.doubted:
            return _close(record, reason, message, seen, now)
    return Outcome(record, again_at=_lost_at(seen, now))


def _wrong(seen: Seen, now: float) -> dict[str, str]:
    """Return what is wrong with a node now, and how to say it."""
    found: dict[str, str] = {}
    if seen.fault is not None and seen.fault.severity == "broken":
        found[seen.fault.reason] = seen.fault.message
    if seen.drags:
        found[REASON] = f"slows {seen.drags} down, which moves to other nodes"
    if seen.away_since is not None and _lost_at(seen, now) is None:
        found[LOST] = "does not respond"
    return found


def _lost_at(seen: Seen, now: float) -> float | None:
    """Return when a node that is away will count as lost; None if it does, or is there."""
    at = None if seen.away_since is None else seen.away_since + LOST_SECONDS
    return at if at is not None and at > now else None


def _close(record: Record, reason: str, message: str, seen: Seen, now: float) -> Outcome:
    """Put a node in quarantine."""
    if not seen.may_be_closed():
        return Outcome(replace(record, doubted=reason), (_too_many(reason),))
    strikes = (*record.strikes, timestamp(now))
    is_last = reason != LOST and len(strikes) >= _MOST_STRIKES
    until = NEVER if is_last else ""
    record = replace(record, reason=reason, since=timestamp(now), until=until, strikes=strikes)
    lifted = "until the taint is removed by hand" if is_last else "until it recovers"
    told = f"{message}; it gets no pods {lifted}"
    return Outcome(record, (("NodeQuarantined", told),), _lost_at(seen, now))


def _in_time(record: Record, *, is_over: bool, now: float) -> Outcome:
    """Let time pass: a node that is well again is on probation, and then as good as any."""
    if record.until == NEVER:
        return Outcome(record)
    if not is_over:
        if not record.until or record.reason == LOST:
            return Outcome(replace(record, until=""))
        # Broken again before its time was up.
        strikes = (*record.strikes, timestamp(now))
        return Outcome(replace(record, until=NEVER, strikes=strikes))
    if not record.until:
        wait = _probation(record)
        message = f"has recovered; it gets no pods for another {_spoken(wait)}"
        changed = replace(record, until=timestamp(now + wait))
        return Outcome(changed, (("NodeOnProbation", message),), now + wait)
    if now < seconds(record.until):
        return Outcome(record, again_at=seconds(record.until))
    changed = replace(record, reason="", since="", until="")
    return Outcome(changed, (("NodeReleased", "gets pods again"),), now)


def _probation(record: Record) -> float:
    """Return how long a node has to stay well: each time longer if it comes and goes."""
    if record.reason != LOST:
        return _PROBATION_SECONDS
    times = max(1, len(record.strikes))
    return min(_FIRST_ABSENCE_SECONDS * _ABSENCE_GROWS ** (times - 1), _STRIKES_SECONDS)


def _lately(strikes: tuple[str, ...], now: float) -> tuple[str, ...]:
    return tuple(one for one in strikes if seconds(one) > now - _STRIKES_SECONDS)


def _too_many(reason: str) -> tuple[str, str]:
    return (
        "QuarantineLimitReached",
        f"{reason}: not quarantined, as too many nodes of its instance type are; check the node",
    )


def _spoken(length: float) -> str:
    minutes = int(length // 60)
    return f"{minutes} minute{'s' if minutes != 1 else ''}"
