"""One object in sections: name, columns of its kind, conditions, spec, events.

The same for every kind. What is special about a kind comes from the API itself: the columns of its
table.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any

from unisono.apiserver.tables.age import age
from unisono.cli.columns import cell_text
from unisono.cli.objects import dump
from unisono.cli.tables import table
from unisono.kube.tables import Table

Json = Mapping[str, Any]

# Long, and written by programs for programs.
_UNREAD = ("kubectl.kubernetes.io/last-applied-configuration",)
_SHOWN_ABOVE = ("apiVersion", "kind", "metadata")
_MOST_SHOWN = 300


def described(obj: Json, row: Table, events: Iterable[Json], now: float) -> str:
    """Return the whole text, with a line end."""
    parts = [_head(obj, row, now)]
    status = obj.get("status") or {}
    if isinstance(status, dict) and status.get("conditions"):
        parts.append(_section("Conditions", _conditions(status["conditions"], now)))
    for key, value in obj.items():
        if key in _SHOWN_ABOVE or key == "status" or value in (None, {}, []):
            continue
        shown = _sizes(value) if obj["kind"] == "Secret" and key == "data" else value
        parts.append(_section(key[:1].upper() + key[1:], _indented(shown)))
    rest = (
        {key: value for key, value in status.items() if key != "conditions"}
        if isinstance(status, dict)
        else status
    )
    if rest:
        parts.append(_section("Status", _indented(rest)))
    parts.append(_section("Events", _events(events, now)))
    return "\n".join(parts) + "\n"


def _section(title: str, text: str) -> str:
    return f"{title}:\n{text}" if text else f"{title}: none"


def _head(obj: Json, row: Table, now: float) -> str:
    metadata = obj["metadata"]
    lines: list[tuple[str, str]] = [("Name", metadata["name"])]
    if metadata.get("namespace"):
        lines.append(("Namespace", metadata["namespace"]))
    lines.append(("Kind", f"{obj['kind']} ({obj['apiVersion']})"))
    created = metadata.get("creationTimestamp")
    lines.append(("Created", f"{created} ({age(created, now)} ago)"))
    if metadata.get("deletionTimestamp"):
        lines.append(("Deleted", f"{metadata['deletionTimestamp']}"))
    for owner in metadata.get("ownerReferences") or ():
        lines.append(("Owner", f"{owner['kind']}/{owner['name']}"))
    if metadata.get("finalizers"):
        lines.append(("Finalizers", ", ".join(metadata["finalizers"])))
    lines += _pairs("Labels", metadata.get("labels"))
    lines += _pairs("Annotations", metadata.get("annotations"))
    known = {title.lower() for title, _ in lines} | {"age"}
    cells = row.rows[0].cells if row.rows else []
    lines += [
        (column.name, cell_text(cell))
        for column, cell in zip(row.columns, cells, strict=False)
        if column.name.lower() not in known and cell not in (None, "", "<none>")
    ]
    width = max(len(title) for title, _ in lines) + 1
    return "\n".join(
        f"{f'{title}:' if title else '':<{width}}  {text}".rstrip() for title, text in lines
    )


def _pairs(title: str, pairs: Json | None) -> list[tuple[str, str]]:
    shown = [f"{key}={value}" for key, value in (pairs or {}).items() if key not in _UNREAD]
    cut = [text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…" for text in shown]
    return [(title if not index else "", text) for index, text in enumerate(cut)]


def _conditions(conditions: Iterable[Json], now: float) -> str:
    rows = [
        (
            one.get("type"),
            one.get("status"),
            age(one.get("lastTransitionTime"), now),
            one.get("reason"),
            _one_line(one.get("message")),
        )
        for one in conditions
    ]
    return table(("TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"), rows)


def _events(events: Iterable[Json], now: float) -> str:
    rows = []
    for one in sorted(events, key=_last_seen):
        count = one.get("count") or 1
        seen = age(_last_seen(one)[0], now)
        source = one.get("reportingComponent") or (one.get("source") or {}).get("component")
        rows.append(
            (
                f"{seen} (x{count})" if count > 1 else seen,
                one.get("type"),
                one.get("reason"),
                source,
                _one_line(one.get("message")),
            )
        )
    return table(("LAST SEEN", "TYPE", "REASON", "FROM", "MESSAGE"), rows) if rows else ""


def _last_seen(event: Json) -> tuple[str, str]:
    metadata = event["metadata"]
    seen = event.get("lastTimestamp") or event.get("eventTime") or metadata.get("creationTimestamp")
    return seen or "", metadata["name"]


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def _sizes(secrets: Json) -> dict[str, str]:
    """Return how long each secret is, which is all that a screen should show of it."""
    return {key: f"{_size(text)} bytes" for key, text in secrets.items()}


def _size(text: str) -> int:
    try:
        return len(base64.b64decode(text))
    except binascii.Error:
        return len(text)


def _indented(value: Any) -> str:
    return "\n".join(f"  {line}" for line in dump(value, "yaml").rstrip().splitlines())
