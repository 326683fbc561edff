"""One event, two faces: `v1` and `events.k8s.io/v1`.

    v1                            events.k8s.io/v1
    involvedObject                regarding
    message                       note
    reportingComponent            reportingController
    source                        deprecatedSource
    firstTimestamp                deprecatedFirstTimestamp
    lastTimestamp                 deprecatedLastTimestamp
    count                         deprecatedCount

All other fields have one name: reason, type, action, eventTime, series, related,
reportingInstance.
"""

from __future__ import annotations

from typing import Any

_NEW_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}


def to_new_event(event: dict[str, Any]) -> None:
    """Turn an event of the core group into one of `events.k8s.io`, in place."""
    for old, new in _NEW_NAMES.items():
        if old in event:
            event[new] = event.pop(old)


def to_core_event(event: dict[str, Any]) -> None:
    """Turn an event of `events.k8s.io` into one of the core group, in place."""
    for old, new in _NEW_NAMES.items():
        if new in event:
            event[old] = event.pop(new)
