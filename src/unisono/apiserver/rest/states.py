"""States of an object: the same as before, over, fit to be looked at."""

from __future__ import annotations

from typing import Any

from unisono.apiserver.errors import Cause, invalid
from unisono.apiserver.strategy import Json


def is_over(obj: Json) -> bool:
    """Say whether an object that was deleted has nothing left to wait for."""
    metadata = obj["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    if metadata.get("deletionGracePeriodSeconds"):
        return False
    return not (obj["kind"] == "Namespace" and obj.get("spec", {}).get("finalizers"))


def check_parts(obj: Json) -> None:
    """Let strategies rely on spec and status being objects; the checker reports the rest."""
    for part in ("spec", "status"):
        if part in obj and not isinstance(obj[part], dict):
            if obj[part] is None:
                del obj[part]
            else:
                cause = Cause("FieldValueTypeInvalid", "must be an object", part)
                raise invalid(obj["kind"], str(obj["metadata"].get("name", "")), [cause])


def drop_empty(metadata: Json) -> None:
    """Leave out what says nothing: no labels are the same as an empty map of them."""
    for key in ("labels", "annotations", "finalizers", "ownerReferences"):
        if key in metadata and not metadata[key]:
            del metadata[key]


def is_same(obj: Json, old: Json) -> bool:
    """Compare two states, not minding when somebody last wrote."""
    if obj.keys() != old.keys():
        return False
    for key in obj:
        if key != "metadata" and obj[key] != old[key]:
            return False
    new_metadata, old_metadata = dict(obj["metadata"]), dict(old["metadata"])
    new_fields = _without_times(new_metadata.pop("managedFields", None))
    old_fields = _without_times(old_metadata.pop("managedFields", None))
    return new_metadata == old_metadata and new_fields == old_fields


def _without_times(entries: Any) -> list[Json]:
    return [
        {key: value for key, value in entry.items() if key != "time"} for entry in entries or ()
    ]
