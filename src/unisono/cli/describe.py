"""`unisono describe`: everything about an object that a person may want to know, and its events."""

from __future__ import annotations

import argparse
import base64
import binascii
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from unisono.apiserver.times import age
from unisono.cli.connection import asked, verb_parser
from unisono.cli.tables import cell_text, table
from unisono.cli.targets import WORDS, Target, namespace_of, read_targets
from unisono.engine.model.errors import InvalidManifest

if TYPE_CHECKING:
    from unisono.kube.client import Client
    from unisono.kube.form import Json
    from unisono.kube.tables import Table

EXAMPLES = """\
examples:
  unisono describe node g6e-48xlarge-1
  unisono describe trainjob/t5-large -n ml
  unisono describe pods -l team=a
"""


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = verb_parser("Describe objects, with their events.", EXAMPLES, has_everywhere=True)
    made.add_argument("what", nargs="+", metavar="KIND", help=WORDS)
    made.add_argument(
        "-l",
        "--selector",
        default="",
        metavar="LABELS",
        help="only objects with these labels, such as team=a,!old",
    )
    return made


def run(arguments: argparse.Namespace) -> int:
    """Print every object that is meant."""
    return asked(arguments, _describe)


async def _describe(client: Client, arguments: argparse.Namespace) -> int:
    from unisono.kube.api_resources import discover

    targets = read_targets(await discover(client), arguments.what)
    if arguments.everywhere and any(target.name for target in targets):
        raise InvalidManifest("-A", "an object has a name in one namespace; say which with -n")
    texts = []
    for target in targets:
        namespace = namespace_of(client, arguments, target.spoken)
        if target.name:
            texts.append(await _text(client, target, namespace))
            continue
        listing = await client.list(target.spoken.kind, namespace, labels=arguments.selector)
        for each in listing.items:
            one = Target(target.spoken, each["metadata"]["name"])
            texts.append(await _text(client, one, each["metadata"].get("namespace", "")))
    if not texts:
        if any(target.spoken.resource.namespaced for target in targets):
            from unisono.cli.filters import refuse_unknown_namespace

            await refuse_unknown_namespace(client, arguments.namespace)
        print("unisono: nothing found", file=sys.stderr)
    sys.stdout.write("\n\n".join(texts))
    return 0


async def _text(client: Client, target: Target, namespace: str) -> str:
    from unisono.kube.mapping import EVENT
    from unisono.kube.tables import read_table
    from unisono.runtime.clock import RealClock

    obj = await client.get(target.spoken.kind, target.name, namespace)
    resource = target.spoken.resource
    table = await read_table(client, resource, namespace=namespace, name=target.name)
    fields = {
        "involvedObject.name": target.name,
        "involvedObject.kind": resource.kind,
        "involvedObject.namespace": namespace,
    }
    chosen = ",".join(f"{key}={value}" for key, value in fields.items() if value)
    events = await client.list(EVENT, namespace, fields=chosen)
    # Events of an earlier object of that name are left out; some events have no uid.
    uids = (obj["metadata"].get("uid"), target.name, "", None)
    about = [each for each in events.items if each["involvedObject"].get("uid") in uids]
    return described(obj, table, about, RealClock().now())


# ---- one object in sections ----------------------------------------------------------------------
# The same for every kind. What is special about a kind comes from the API itself: the columns of
# its table.

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
    from unisono.cli.objects import dump

    return "\n".join(f"  {line}" for line in dump(value, "yaml").rstrip().splitlines())
