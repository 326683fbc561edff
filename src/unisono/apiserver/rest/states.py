"""States of an object: the same as before, over, fit to be looked at."""

from __future__ import annotations

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
