"""The list `metadata.managedFields`: which manager owns which fields, since when, and how.

    manager      who; kubectl, a controller
    operation    Apply (server-side apply) or Update (everything else)
    apiVersion   the version in whose terms the paths are written
    subresource  through which door, "status" for example
    time         when the set last changed; absent if only the ownership of unchanged values did
    fieldsV1     the paths, see `field_set`

A manager has one entry per operation and door, and per version too if it updates. Entries that own
nothing vanish. Entries with Apply come first, then by time, then by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from unisono.apiserver.errors import Cause, invalid
from unisono.apiserver.patch.field_set import Tree, read_fields, union_of

Json = dict[str, Any]

APPLY = "Apply"
UPDATE = "Update"
# More Update entries than this are merged, oldest first: some clients use a new name every day.
MAX_UPDATE_ENTRIES = 10
ANCIENT = "ancient-changes"
_SECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class Who(NamedTuple):
    """What tells entries apart; the version of an Apply entry does not."""

    manager: str
    operation: str
    version: str
    subresource: str

    @property
    def described(self) -> str:
        """The entry as a conflict names it."""
        text = f'"{self.manager}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.version}" if self.operation == UPDATE else text


def applier(manager: str, subresource: str) -> Who:
    """Return who somebody is when applying."""
    return Who(manager or "unknown", APPLY, "", subresource)


def updater(manager: str, version: str, subresource: str) -> Who:
    """Return who somebody is when updating."""
    return Who(manager or "unknown", UPDATE, version, subresource)


@dataclass(slots=True)
class Owned:
    """What somebody owns, in which version's terms, since when (RFC 3339, or empty)."""

    fields: Tree
    version: str
    time: str


Entries = dict[Who, Owned]


def read_entries(raw: Any, *, is_trusted: bool) -> Entries:
    """Read a list of entries; raise ValueError where it makes no sense.

    What the server itself wrote is trusted: its sets need no second look.
    """
    if raw is not None and not isinstance(raw, list):
        raise ValueError("managedFields is not a list")
    entries: Entries = {}
    for number, entry in enumerate(raw or ()):
        if is_trusted:
            fields, time = entry.get("fieldsV1") or {}, entry.get("time", "")
        else:
            _check_entry(entry)
            fields, time = read_fields(entry.get("fieldsV1")), _read_time(entry, number)
        version = entry["apiVersion"]
        operation = entry["operation"]
        who = Who(
            entry.get("manager", ""),
            operation,
            version if operation == UPDATE else "",
            entry.get("subresource", ""),
        )
        entries[who] = Owned(fields, version, time)
    return entries


def _check_entry(entry: Any) -> None:
    if not isinstance(entry, dict):
        raise ValueError("an entry is not an object")
    if entry.get("operation") not in (APPLY, UPDATE):
        raise ValueError("operation must be Apply or Update")
    if not entry.get("apiVersion") or entry.get("fieldsType") != "FieldsV1":
        raise ValueError("apiVersion and fieldsType FieldsV1 are required")
    for key in ("manager", "apiVersion", "subresource"):
        if not isinstance(entry.get(key, ""), str):
            raise ValueError(f"{key} is not a text")


def _read_time(entry: Json, number: int) -> str:
    raw = entry.get("time")
    if raw is None or raw == "":
        return ""
    if isinstance(raw, str) and _SECONDS.fullmatch(raw):
        return raw
    try:
        instant = datetime.fromisoformat(raw)
        return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (TypeError, ValueError, OverflowError):
        field = f"metadata.managedFields[{number}].time"
        cause = Cause("FieldValueInvalid", f"{raw!r} is not a time", field)
        raise invalid("", "", [cause]) from None


def write_entries(entries: Entries) -> list[Json]:
    """Return the entries as objects carry them, in order."""
    ordered = sorted(entries.items(), key=_order)
    return [_written(who, owned) for who, owned in ordered if owned.fields]


def _order(entry: tuple[Who, Owned]) -> tuple[str, str, str, str, str]:
    who, owned = entry
    return who.operation, owned.time, who.manager, owned.version, who.subresource


def _written(who: Who, owned: Owned) -> Json:
    entry: Json = {
        "manager": who.manager,
        "operation": who.operation,
        "apiVersion": owned.version,
        "time": owned.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": owned.fields,
        "subresource": who.subresource,
    }
    if not owned.time:
        del entry["time"]
    if not who.subresource:
        del entry["subresource"]
    return entry


def cap(entries: Entries) -> None:
    """Merge the oldest Update entries of a version until there are few enough."""
    updates = [who for who, owned in entries.items() if who.operation == UPDATE and owned.fields]
    surplus = len(updates) - MAX_UPDATE_ENTRIES
    if surplus <= 0:
        return
    updates.sort(key=lambda who: (entries[who].time, who.manager, who.version, who.subresource))
    buckets: dict[str, Who] = {}
    gathered: dict[Who, list[Tree]] = {}
    for who in updates:
        if surplus <= 0:
            break
        bucket = updater(ANCIENT, who.version, "")
        first = buckets.setdefault(who.version, who)
        if who in (first, bucket):
            continue
        if bucket not in entries:
            entries[bucket] = entries.pop(first)
        kept, merged = entries[bucket], entries.pop(who)
        gathered.setdefault(bucket, [kept.fields]).append(merged.fields)
        kept.time = merged.time
        surplus -= 1
    for bucket, trees in gathered.items():
        trees.reverse()  # fields of the newest first, as if they had been merged one by one
        entries[bucket].fields = union_of(trees)


@lru_cache(maxsize=8)
def _timestamp(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def timestamp(now: float) -> str:
    """Return a time as objects write it, in whole seconds."""
    return _timestamp(int(now))


def all_fields(entries: Iterable[Owned]) -> Tree:
    """Return what anybody owns."""
    return union_of([owned.fields for owned in entries])
