"""States of an object: the same as before, over, fit to be looked at."""

from __future__ import annotations

from unisono.apiserver.errors import Cause, invalid
from unisono.apiserver.objects import Json
from unisono.apiserver.schema.fault import WRONG_TYPE, below
from unisono.apiserver.schema.node import OBJECT_META, node_of
from unisono.apiserver.schema.structure import compile_check

_TEXTS = ("name", "generateName", "namespace", "uid", "resourceVersion")
_OWNER_TEXTS = ("apiVersion", "kind", "name", "uid")
_TEXT = {str}


def is_over(obj: Json) -> bool:
    """Say whether an object that was deleted has nothing left to wait for."""
    metadata = obj["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    if metadata.get("deletionGracePeriodSeconds"):
        return False
    return not (obj["kind"] == "Namespace" and obj.get("spec", {}).get("finalizers"))


def check_parts(obj: Json) -> None:
    """Let strategies rely on spec and status being objects and metadata being sound.

    The checker reports the rest, later: admission reads labels, annotations and owners first.
    """
    for part in ("spec", "status"):
        if part in obj and not isinstance(obj[part], dict):
            if obj[part] is None:
                del obj[part]
            else:
                cause = Cause("FieldValueTypeInvalid", "must be an object", part)
                raise invalid(obj["kind"], str(obj["metadata"].get("name", "")), [cause])


def check_metadata_types(kind: str, group: str, metadata: Json) -> None:
    """Refuse metadata whose parts are not of their types, with the path of each that is wrong.

    Nearly all are, so the schema is only asked where a quick look finds something odd.
    """
    if not _is_usual(metadata):
        check = node_of(OBJECT_META, typed=True).compiled(compile_check)
        assert check is not None, "metadata has types"
        faults = [fault for fault in check(metadata) or () if fault.reason == WRONG_TYPE]
        if faults:
            name = metadata.get("name")
            causes = [fault.cause() for fault in below(faults, "metadata")]
            raise invalid(kind, name if isinstance(name, str) else "", causes, group=group)


def _is_usual(metadata: Json) -> bool:
    for name in _TEXTS:
        if name in metadata and type(metadata[name]) is not str:
            return False
    for name in ("labels", "annotations"):
        texts = metadata.get(name)
        if texts is not None and (
            type(texts) is not dict or not _TEXT.issuperset(map(type, texts.values()))
        ):
            return False
    finalizers = metadata.get("finalizers")
    if finalizers is not None and (
        type(finalizers) is not list or not _TEXT.issuperset(map(type, finalizers))
    ):
        return False
    owners = metadata.get("ownerReferences")
    return owners is None or (
        type(owners) is list
        and all(type(one) is dict for one in owners)
        and all(type(one.get(field)) is str for one in owners for field in _OWNER_TEXTS)
    )


def drop_empty(metadata: Json) -> None:
    """Leave out what says nothing: no labels are the same as an empty map of them."""
    for key in ("labels", "annotations", "finalizers", "ownerReferences"):
        if key in metadata and not metadata[key]:
            del metadata[key]
