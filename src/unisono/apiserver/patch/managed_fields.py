"""Ownership of fields after a write that is not server-side apply.

The manager that changes or adds a field owns it, alone; a removed field has no owner. An object
without managedFields stays so until a configuration is applied to it. kube-api.md §2.7.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from unisono.apiserver.errors import Cause, bad_request, invalid
from unisono.apiserver.objects import Json, bounded
from unisono.apiserver.patch.compare import Tracked, object_differences, skeleton, tracked_fields
from unisono.apiserver.patch.field_set import Tree, difference, read_fields, union, union_of
from unisono.apiserver.patch.merge_schema import MergeSchema, Unshareable, merge_schema_of
from unisono.kinds.shapes.shape import Shape


@bounded
def record_update(
    old: Json | None,
    new: Json,
    *,
    manager: str,
    api_version: str,
    subresource: str,
    now: float,
    shape: Shape,
    ignored: Collection[str] | None = None,
    translate: Translate | None = None,
    known: Mapping[str, Tree | None] | None = None,
) -> None:
    """Set `managedFields` of the new object to what they are after the write.

    `known` has what is known of top-level fields of a new object: what their writer owns there.

    `old` is the stored object in the same version, None for a new one. `ignored` names top-level
    fields whose writers are not tracked (none if the kind has no status subresource); without it,
    see `tracking`.
    """
    metadata = new.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        raise bad_request("metadata is not an object")
    before = (old.get("metadata") or {}).get("managedFields") if old is not None else None
    raw, is_trusted = _list_to_start_from(before, metadata.get("managedFields"), subresource)
    if not raw and old is not None:
        metadata.pop("managedFields", None)
        return
    comparison = _compared(
        skeleton(new, api_version) if old is None else old,
        new,
        merge_schema=merge_schema_of(shape),
        api_version=api_version,
        tracked=tracked_fields(api_version, subresource, ignored),
        translate=translate,
        known=known,
    )
    if comparison is not None or not is_trusted:
        try:
            entries = read_entries(raw, is_trusted=is_trusted)
        except ValueError:
            # A list that makes no sense is as good as none.
            entries = read_entries(before, is_trusted=True)
        if comparison is not None:
            _record(entries, updater(manager, api_version, subresource), comparison, now)
        raw = write_entries(entries)
    if raw:
        metadata["managedFields"] = raw
    else:
        metadata.pop("managedFields", None)


def _compared(old: Mapping[str, Any], new: Json, **how: Any) -> Comparison | None:
    """Compare two objects; None if nothing differs, or the new one is not valid anyhow."""
    try:
        comparison = Comparison(old, new, **how)
    except Unshareable:
        return None
    return comparison if any(comparison.own) else None


def _list_to_start_from(before: Any, given: Any, subresource: str) -> tuple[Any, bool]:
    """Return the list of entries that a write is added to, and whether the server wrote it.

    A client may edit the list, or wipe it by sending `[]` or `[{}]`; one that leaves it out, or
    comes through a subresource, keeps it as it was.
    """
    if subresource or given is None or given == before:
        return before, True
    if given in ([], [{}]):
        return None, True
    return given, False


def _record(entries: Entries, manager_key: ManagerKey, comparison: Comparison, now: float) -> None:
    """Take what a write touched from its owners, and give what it left to the writer."""
    came, _ = comparison.own
    comparison.take_from(entries)
    if came:
        mine = entries.get(manager_key)
        fields = union(mine.fields, came) if mine is not None else came
        entries[manager_key] = Owned(fields, manager_key.version, timestamp(now))
        cap(entries)


def without_idle_times(old: Json, new: Json) -> None:
    """Put back the old times of entries if nothing but times differs between two objects.

    A write that changes nothing must not look like one; to be called on what would be stored.
    """
    before, after = old.get("metadata", {}), new.get("metadata", {})
    entries_before, entries = before.get("managedFields"), after.get("managedFields")
    if not entries or not entries_before or entries == entries_before:
        return
    if _untimed(entries) == _untimed(entries_before):
        if {**old, "metadata": None} == {**new, "metadata": None}:
            if {**before, "managedFields": None} == {**after, "managedFields": None}:
                after["managedFields"] = entries_before


def _untimed(entries: list[Json]) -> list[Json]:
    return sorted(
        ({**entry, "time": None} for entry in entries),
        key=lambda entry: (
            entry["operation"],
            entry["manager"],
            entry["apiVersion"],
            entry.get("subresource", ""),
        ),
    )


# ---- differences in the terms of every version that an entry is written in -----------------------
#
# A manager that wrote in v1beta1 owns paths of v1beta1; whether a write in v1beta2 touches them can
# only be seen after both objects are translated. Without a translation the paths are taken as they
# are, which is right for all fields that have the same name in both versions.


# Returns an object in another version, and that version's shape; None if it is no longer served.
Translate = Callable[[Mapping[str, Any], str], tuple[Json, Shape] | None]


class Comparison:
    """What a write changed, added and removed, by version."""

    def __init__(
        self,
        old: Mapping[str, Any],
        new: Json,
        *,
        merge_schema: MergeSchema,
        api_version: str,
        tracked: Tracked,
        translate: Translate | None,
        known: Mapping[str, Tree | None] | None = None,
    ) -> None:
        """Compare two objects in their own version; others when they are asked for."""
        self._old = old
        self._new = new
        self._tracked = tracked
        self._translate = translate
        self.own = object_differences(merge_schema, old, new, tracked, known)
        self._found: dict[str, tuple[Tree, Tree] | None] = {api_version: self.own}

    def in_version(self, version: str) -> tuple[Tree, Tree] | None:
        """Return what came and what went; None if there is no such version any more."""
        if version not in self._found:
            self._found[version] = self._translated(version)
        return self._found[version]

    def _translated(self, version: str) -> tuple[Tree, Tree] | None:
        if self._translate is None:
            return self.own
        old, new = self._translate(self._old, version), self._translate(self._new, version)
        if old is None or new is None:
            return None
        return object_differences(merge_schema_of(new[1]), old[0], new[0], self._tracked)

    def take_from(self, entries: Entries, *, but: object = None) -> None:
        """Take what came and what went away from all entries but one."""
        for manager_key in list(entries):
            if manager_key == but:
                continue
            owned = entries[manager_key]
            found = self.in_version(owned.version)
            if found is None:
                del entries[manager_key]
                continue
            owned.fields = difference(difference(owned.fields, found[0]), found[1])
            if not owned.fields:
                del entries[manager_key]


# ---- the list `metadata.managedFields`: which manager owns which fields, since when, and how -----
#
# manager      kubectl, a controller
#     operation    Apply (server-side apply) or Update (everything else)
#     apiVersion   the version that the paths are written in
#     subresource  the address it wrote through, "status" for example
#     time         when the set last changed; absent if only the ownership of unchanged values did
#     fieldsV1     the paths, see `field_set`
#
# A manager has one entry per operation and subresource, and per version too if it updates. Entries
# that own nothing vanish. Entries with Apply come first, then by time, then by name.


APPLY = "Apply"
UPDATE = "Update"
# More Update entries than this are merged, oldest first: some clients use a new name every day.
MAX_UPDATE_ENTRIES = 10
ANCIENT = "ancient-changes"
_SECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class ManagerKey(NamedTuple):
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


def applier(manager: str, subresource: str) -> ManagerKey:
    """Return the key of a manager that applies."""
    return ManagerKey(manager or "unknown", APPLY, "", subresource)


def updater(manager: str, version: str, subresource: str) -> ManagerKey:
    """Return the key of a manager that updates."""
    return ManagerKey(manager or "unknown", UPDATE, version, subresource)


@dataclass(slots=True)
class Owned:
    """What a manager owns, in the terms of which version, since when (RFC 3339, or empty)."""

    fields: Tree
    version: str
    time: str


Entries = dict[ManagerKey, Owned]


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
        manager_key = ManagerKey(
            entry.get("manager", ""),
            operation,
            version if operation == UPDATE else "",
            entry.get("subresource", ""),
        )
        entries[manager_key] = Owned(fields, version, time)
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
    return [_written(manager_key, owned) for manager_key, owned in ordered if owned.fields]


def _order(entry: tuple[ManagerKey, Owned]) -> tuple[str, str, str, str, str]:
    manager_key, owned = entry
    return (
        manager_key.operation,
        owned.time,
        manager_key.manager,
        owned.version,
        manager_key.subresource,
    )


def _written(manager_key: ManagerKey, owned: Owned) -> Json:
    entry: Json = {
        "manager": manager_key.manager,
        "operation": manager_key.operation,
        "apiVersion": owned.version,
        "time": owned.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": owned.fields,
        "subresource": manager_key.subresource,
    }
    if not owned.time:
        del entry["time"]
    if not manager_key.subresource:
        del entry["subresource"]
    return entry


def cap(entries: Entries) -> None:
    """Merge the oldest Update entries of a version until there are few enough."""
    updates = [
        manager_key
        for manager_key, owned in entries.items()
        if manager_key.operation == UPDATE and owned.fields
    ]
    surplus = len(updates) - MAX_UPDATE_ENTRIES
    if surplus <= 0:
        return
    updates.sort(
        key=lambda manager_key: (
            entries[manager_key].time,
            manager_key.manager,
            manager_key.version,
            manager_key.subresource,
        )
    )
    buckets: dict[str, ManagerKey] = {}
    gathered: dict[ManagerKey, list[Tree]] = {}
    for manager_key in updates:
        if surplus <= 0:
            break
        bucket = updater(ANCIENT, manager_key.version, "")
        first = buckets.setdefault(manager_key.version, manager_key)
        if manager_key in (first, bucket):
            continue
        if bucket not in entries:
            entries[bucket] = entries.pop(first)
        kept, merged = entries[bucket], entries.pop(manager_key)
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
    """Return what any manager owns."""
    return union_of([owned.fields for owned in entries])
