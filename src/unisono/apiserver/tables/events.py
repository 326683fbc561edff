"""Events, oldest first: when, about what, why, and in which words.

An event has two faces, `v1` and `events.k8s.io/v1`, with other names for the same facts. Printing
reads both. Unlike other kinds the rows do not come by name, which says nothing here, but by time,
so that the newest stands at the end of the page where the reader looks first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from unisono.apiserver.tables.age import age
from unisono.apiserver.tables.printer import (
    NAME_HEADING,
    Content,
    Heading,
    Json,
    Printer,
)
from unisono.apiserver.times import seconds


def by_time(events: Iterable[Json]) -> list[Json]:
    """Return events with the one seen last at the end."""
    return sorted(events, key=_moment)


def _moment(event: Mapping[str, Any]) -> tuple[float, str, str]:
    metadata, last = event["metadata"], _last(event)
    seen = seconds(last) if isinstance(last, str) else None
    return seen or 0.0, metadata.get("namespace", ""), metadata.get("name", "")


def _first(event: Mapping[str, Any]) -> Any:
    return (
        event.get("firstTimestamp")
        or event.get("deprecatedFirstTimestamp")
        or event.get("eventTime")
        or ""
    )


def _last(event: Mapping[str, Any]) -> Any:
    series = event.get("series")
    if isinstance(series, dict):
        return series.get("lastObservedTime") or ""
    return event.get("lastTimestamp") or event.get("deprecatedLastTimestamp") or _first(event)


def _count(event: Mapping[str, Any]) -> int:
    series = event.get("series")
    if series:
        return int(series.get("count") or 0)
    return event.get("count") or event.get("deprecatedCount") or 1


def _source(event: Mapping[str, Any]) -> str:
    source = event.get("source") or event.get("deprecatedSource") or {}
    component = (
        source.get("component")
        or event.get("reportingComponent")
        or event.get("reportingController")
        or ""
    )
    instance = source.get("host") or event.get("reportingInstance")
    return f"{component}, {instance}" if instance else component


def _cells(event: Mapping[str, Any], now: float) -> list[Content]:
    about = event.get("involvedObject") or event.get("regarding") or {}
    kind, name = about.get("kind", "").lower(), about.get("name", "")
    return [
        age(_last(event), now),
        event.get("type", ""),
        event.get("reason", ""),
        f"{kind}/{name}" if name else kind,
        about.get("fieldPath", ""),
        _source(event),
        (event.get("message") or event.get("note") or "").strip(),
        age(_first(event), now),
        _count(event),
        event["metadata"].get("name", ""),
    ]


EVENTS = Printer(
    headings=(
        Heading("Last Seen", "How long ago it happened, or happened again."),
        Heading("Type", "Normal, or Warning."),
        Heading("Reason", "Why, in one word."),
        Heading("Object", "What it is about."),
        Heading("Subobject", "Which part of it, such as a container.", priority=1),
        Heading("Source", "Who says so.", priority=1),
        Heading("Message", "What happened, in a sentence."),
        Heading("First Seen", "How long ago it happened first.", priority=1),
        Heading("Count", "How often it happened.", priority=1),
        Heading(NAME_HEADING.name, NAME_HEADING.description, format="name", priority=1),
    ),
    cells=_cells,
)
