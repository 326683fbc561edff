"""Event expiry: after an hour, and earlier where a namespace has too many."""

from __future__ import annotations

from unisono.apiserver.rest.context import ServerContext
from unisono.apiserver.rest.writer import Writer
from unisono.apiserver.storage.record import Record
from unisono.apiserver.times import seconds

EVENT_SECONDS = 3600.0
MAX_EVENTS_PER_NAMESPACE = 10_000
# In one go, so that no request waits long.
_PER_ROUND = 1000


def expire_events(server: ServerContext, writer: Writer) -> int:
    """Remove events that are too old or too many; return how many."""
    now = server.clock()
    removed = 0
    by_namespace: dict[str, list[tuple[float, Record]]] = {}
    for record in server.store.listing("/events"):
        event = record.load()
        last = _last_seen(event)
        if last is not None and now - last > EVENT_SECONDS:
            removed += _remove(server, writer, record)
            if removed >= _PER_ROUND:
                return removed
        else:
            by_namespace.setdefault(record.namespace, []).append((last or now, record))
    for events in by_namespace.values():
        extra = len(events) - MAX_EVENTS_PER_NAMESPACE
        if extra > 0:
            oldest = sorted(events, key=lambda pair: (pair[0], pair[1].rv))[:extra]
            for _, record in oldest[: _PER_ROUND - removed]:
                removed += _remove(server, writer, record)
    return removed


def _remove(server: ServerContext, writer: Writer, record: Record) -> int:
    newest = server.store.newest(record.key)
    if newest is None or newest.rv != record.rv:
        return 0
    writer.remove(newest, newest.load())
    return 1


def _last_seen(event: dict[str, object]) -> float | None:
    for field in ("lastTimestamp", "eventTime", "firstTimestamp"):
        text = event.get(field)
        if isinstance(text, str):
            found = seconds(text)
            if found is not None:
                return found
    metadata = event["metadata"]
    assert isinstance(metadata, dict)
    return seconds(metadata.get("creationTimestamp", ""))
