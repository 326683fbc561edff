"""States of jobs: their names, their short forms, and which of them are ends."""

from __future__ import annotations

from collections.abc import Mapping

SHORT: Mapping[str, str] = {
    "PENDING": "PD",
    "RUNNING": "R",
    "CONFIGURING": "CF",
    "COMPLETING": "CG",
    "COMPLETED": "CD",
    "CANCELLED": "CA",
    "FAILED": "F",
    "TIMEOUT": "TO",
    "NODE_FAIL": "NF",
    "PREEMPTED": "PR",
    "SUSPENDED": "S",
    "DEADLINE": "DL",
    "BOOT_FAIL": "BF",
    "OUT_OF_MEMORY": "OOM",
    "REQUEUED": "RQ",
    "REQUEUE_HOLD": "RH",
    "SPECIAL_EXIT": "SE",
    "STAGE_OUT": "SO",
    "STOPPED": "ST",
    "RESV_DEL_HOLD": "RD",
    "REVOKED": "RV",
    "SIGNALING": "SI",
    "RESIZING": "RS",
}
LONG: Mapping[str, str] = {short: long for long, short in SHORT.items()}
_OVER = frozenset(
    [
        "COMPLETED",
        "CANCELLED",
        "FAILED",
        "TIMEOUT",
        "NODE_FAIL",
        "PREEMPTED",
        "DEADLINE",
        "BOOT_FAIL",
        "OUT_OF_MEMORY",
        "REVOKED",
    ]
)
STARTED = ("CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED")


def is_over(state: str) -> bool:
    """Say whether nothing of a job runs any more."""
    return state in _OVER


def read_states(text: str) -> set[str] | None:
    """Return the states of a list of short or long names; None for all of them.

    >>> sorted(read_states("pd,RUNNING")), read_states("all")
    (['PENDING', 'RUNNING'], None)
    """
    found: set[str] = set()
    for word in filter(None, (one.strip().upper() for one in text.split(","))):
        if word == "ALL":
            return None
        name = LONG.get(word, word)
        if name not in SHORT:
            raise ValueError(word)
        found.add(name)
    return found
