"""Who owns which field after a write that is not server-side apply.

Whoever changes or adds a field owns it, alone; a removed field has no owner. An object whose
tracking was wiped stays without until somebody applies to it. kube-api.md §2.7.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from unisono.apiserver.errors import bad_request
from unisono.apiserver.patch.copying import bounded
from unisono.apiserver.patch.entries import (
    Entries,
    Owned,
    Who,
    cap,
    read_entries,
    timestamp,
    updater,
    write_entries,
)
from unisono.apiserver.patch.field_set import Tree, union
from unisono.apiserver.patch.grain import Unshareable, grain_of
from unisono.apiserver.patch.skeleton import skeleton
from unisono.apiserver.patch.tracking import tracked_fields
from unisono.apiserver.patch.versions import Comparison, Translate
from unisono.kinds.shapes.shape import Shape

Json = dict[str, Any]


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
        grain=grain_of(shape),
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


def _record(entries: Entries, who: Who, comparison: Comparison, now: float) -> None:
    """Take what a write touched from its owners, and give what it left to the writer."""
    came, _ = comparison.own
    comparison.take_from(entries)
    if came:
        mine = entries.get(who)
        fields = union(mine.fields, came) if mine is not None else came
        entries[who] = Owned(fields, who.version, timestamp(now))
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
