"""Ranks that hold their gangs up: since when, what is said about it, and what their nodes remember.

| a rank is slow (`kinds/pace.py`) | what follows                                                  |
| -------------------------------- | ------------------------------------------------------------- |
| for 5 minutes                    | an event names pod and node; the node remembers the gang      |
| for 10 minutes, 1.5 × the median | the node is suspect; it is closed if the job asks to be moved |

A node that is named by two gangs within a day is suspect, too. A job asks to be moved with the
annotation `unisono.dev/straggler: replace`; it then leaves the node after its next checkpoint, as
it leaves one that broke.

Pure: what was known and how ranks compare go in, what is known and what to tell come out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal, NamedTuple

from unisono.control.actions import Json
from unisono.control.conditions import seconds, timestamp
from unisono.kinds.json_texts import read_json
from unisono.kinds.pace import Rank

KNOWN = "unisono.dev/stragglers"  # on a Workload
NAMED = "unisono.dev/slow-for"  # on a node
REACTION = "unisono.dev/straggler"  # on a job, and its Workload
REPLACE = "replace"
REASON = "Straggler"
# Ranks are compared so often, by the medians of their last steps.
WINDOW_SECONDS = 60.0
_SLOW_SECONDS = 300.0
_SEVERE_SECONDS = 600.0
_SEVERE_FACTOR = 1.5
_NAMED_SECONDS = 86_400.0
# A gang that is to move has so long to reach a checkpoint; then the node has a new chance.
_CLOSED_SECONDS = 3600.0
_MOST_GANGS = 2
_MOST_REMEMBERED = 8

Level = Literal["", "slow", "severe"]
_ORDER: tuple[Level, ...] = ("", "slow", "severe")


@dataclass(frozen=True, slots=True)
class Slow:
    """Since when a pod holds its gang up, and what was said of it."""

    since: str
    told: Level = ""


class Finding(NamedTuple):
    """A pod of which something new is to be said."""

    pod: str
    rank: Rank
    level: Level


def known(annotations: Mapping[str, str] | None) -> dict[str, Slow]:
    """Read what is known of a gang's slow pods."""
    return {
        pod: Slow(str(one.get("since", "")), one["told"] if one.get("told") in _ORDER else "")
        for pod, one in _read(annotations, KNOWN).items()
    }


def text_of(slow: Mapping[str, Slow]) -> str | None:
    """Write it; None if there is nothing to say, which takes the annotation away."""
    written = {pod: {k: v for k, v in asdict(one).items() if v} for pod, one in slow.items()}
    return json.dumps(written, separators=(",", ":")) if written else None


def follow(
    before: Mapping[str, Slow], ranks: Mapping[str, Rank], now: float
) -> tuple[dict[str, Slow], list[Finding]]:
    """Take what is known a window further; a pod that is not slow in one window begins anew."""
    after: dict[str, Slow] = {}
    findings: list[Finding] = []
    for pod, rank in sorted(ranks.items()):
        if not rank.is_slow:
            continue
        was = before.get(pod, Slow(timestamp(now)))
        level = max(was.told, _level(now - seconds(was.since), rank), key=_ORDER.index)
        if level != was.told:
            findings.append(Finding(pod, rank, level))
        after[pod] = Slow(was.since, level)
    return after, findings


def _level(lasted: float, rank: Rank) -> Level:
    if lasted >= _SEVERE_SECONDS and rank.factor > _SEVERE_FACTOR:
        return "severe"
    return "slow" if lasted >= _SLOW_SECONDS else ""


# ---- nodes ---------------------------------------------------------------------------------------


def named(node: Json, gang: str, level: Level, now: float, *, moves: bool) -> str:
    """Return what a node remembers once it held a gang up."""
    there = _lately(node, now)
    there[gang] = {
        "at": timestamp(now),
        **({"severe": True} if level == "severe" else {}),
        **({"moves": True} if level == "severe" and moves else {}),
    }
    latest = sorted(there.items(), key=lambda item: str(item[1]["at"]))[-_MOST_REMEMBERED:]
    return json.dumps(dict(latest), separators=(",", ":"))


def suspected_until(node: Json, now: float) -> float | None:
    """Return until when a node is suspect for the gangs that it held up; None if it is not."""
    entries = _lately(node, now).values()
    times = sorted(seconds(one["at"]) for one in entries)
    ends = [seconds(one["at"]) for one in entries if one.get("severe")]
    if len(times) >= _MOST_GANGS:
        ends.append(times[-_MOST_GANGS])
    return max(ends) + _NAMED_SECONDS if ends else None


def to_leave(node: Json, now: float) -> tuple[str, float] | None:
    """Return which gang is to leave a node, and until when it is closed for that; None if none."""
    found = [
        (seconds(one["at"]) + _CLOSED_SECONDS, gang)
        for gang, one in _lately(node, now).items()
        if one.get("moves") and seconds(one["at"]) > now - _CLOSED_SECONDS
    ]
    until, gang = max(found, default=(0.0, ""))
    return (gang, until) if gang else None


def _lately(node: Json, now: float) -> dict[str, Json]:
    entries = _read(node["metadata"].get("annotations"), NAMED)
    return {
        gang: one
        for gang, one in entries.items()
        if seconds(str(one.get("at", ""))) > now - _NAMED_SECONDS
    }


def _read(annotations: Mapping[str, str] | None, key: str) -> dict[str, Json]:
    try:
        read = read_json((annotations or {}).get(key) or "{}")
    except ValueError:
        return {}
    if not isinstance(read, dict):
        return {}
    return {name: one for name, one in read.items() if isinstance(one, dict)}
