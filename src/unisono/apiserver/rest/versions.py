"""One stored object, shown in whatever version was asked for, and the conversions behind that."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import orjson

from unisono.apiserver.catalogue import Catalogue, Resource
from unisono.apiserver.objects import Json
from unisono.apiserver.patch.managed_fields import Translate
from unisono.apiserver.storage.record import Record
from unisono.kinds.core.versions import (
    lower_autoscaler,
    lower_pod_groups,
    raise_autoscaler,
    raise_pod_groups,
    to_core_event,
    to_new_event,
)
from unisono.kinds.kueue import convert as kueue
from unisono.kinds.shapes.shape import Shape


def shown(record: Record, resource: Resource) -> Json:
    """Return a stored object in the version of a resource, a new copy."""
    obj = record.load()
    if not (resource.is_as_stored and obj["apiVersion"] == resource.stored_as):
        obj = convert(resource.served.key, obj, resource.served.version)
    if record.rv < resource.schema_rv:
        resource.checker.fill(obj)
    return obj


def shown_bytes(record: Record, resource: Resource) -> bytes:
    """Return a stored object in the version of a resource as JSON."""
    if resource.is_as_stored and record.rv >= resource.schema_rv:
        return record.data
    return orjson.dumps(shown(record, resource))


def stored(obj: Json, resource: Resource) -> Json:
    """Return an object in the version in which its kind is stored."""
    if resource.is_as_stored:
        return obj
    return convert(resource.key, obj, resource.stored_as.rpartition("/")[2])


# ---- field ownership across versions -------------------------------------------------------------


def translator(catalogue: Catalogue, resource: Resource) -> Translate | None:
    """Return what shows an object in another version of its kind; None if there is only one."""
    served = resource.served
    if resource.is_only_version:
        return None

    def translate(obj: Mapping[str, Any], api_version: str) -> tuple[Json, Shape] | None:
        found = catalogue.find(served.group, api_version.rpartition("/")[2], served.plural)
        if found is None:
            return None
        return convert(served.key, dict(obj), found.served.version), found.served.shape

    return translate


def unowned(resource: Resource) -> Collection[str] | None:
    """Return which fields have no owner at the main address; None for the usual ones.

    Where the status has no address of its own it is a field like others.
    """
    return None if resource.has_status or resource.strategy.is_typed else ()


# ---- conversion ----------------------------------------------------------------------------------
#
# Objects in other versions of their kind; nothing is lost on the way there and back.
#
# A mapping says how the fields of one version become those of another, and drops what has no place
# there. What would not come back by mapping once more is kept in an annotation, and put in again on
# the way back, unless the field was given another value in the meantime:
#
#     v1beta1                      v1beta2
#     retryDelayMinutes: 5    →    annotation unisono.dev/kept-for-v1beta1: [["spec", …], 5, …]
#     retryDelayMinutes: 5    ←
#
# Kinds without a mapping are the same in all versions and only change their apiVersion. An Event
# has two faces in two API groups, stored as one; it is converted like any other kind.

_KEPT_FOR = "unisono.dev/kept-for-"
_ABSENT = object()


def convert(key: str, obj: Json, to_version: str) -> Json:
    """Return an object as the kind `group/plural` in a version; the result shares nothing."""
    group, _, plural = key.partition("/")
    wanted = f"{group}/{to_version}" if group else to_version
    made: Json = orjson.loads(orjson.dumps(obj))
    given = str(obj.get("apiVersion"))
    if given == wanted:
        return made
    kept = _take_kept(made, wanted)
    mapping = _MAPPINGS.get(group)
    if mapping is None:
        made["apiVersion"] = wanted
        return made
    mapping(plural, made, given, wanted)
    made["apiVersion"] = wanted
    for path, original, mapped in kept:
        _restore(made, path, original, mapped)
    _keep_what_is_lost(made, obj, lambda back: mapping(plural, back, wanted, given), given)
    return made


# ---- mappings ----------------------------------------------------------------------------------

_MapFields = Callable[[str, Json, str, str], None]


def _map_kueue(plural: str, obj: Json, given: str, wanted: str) -> None:
    """Go through the stored version: up first, then down."""
    versions = (given.rpartition("/")[2], wanted.rpartition("/")[2])
    if versions[0] != kueue.STORED:
        kueue.raise_version(plural, obj)
    if versions[1] != kueue.STORED:
        kueue.lower_version(plural, obj, versions[1])


def _map_scheduling(plural: str, obj: Json, given: str, wanted: str) -> None:
    if given.endswith("/v1alpha2"):
        raise_pod_groups(plural, obj)
    if wanted.endswith("/v1alpha2"):
        lower_pod_groups(plural, obj)


def _map_autoscaler(plural: str, obj: Json, given: str, wanted: str) -> None:
    if plural == "horizontalpodautoscalers":
        (lower_autoscaler if wanted.endswith("/v1") else raise_autoscaler)(obj)


def _map_event(plural: str, obj: Json, given: str, wanted: str) -> None:
    if plural == "events":
        (to_core_event if wanted == "v1" else to_new_event)(obj)


_MAPPINGS: Mapping[str, _MapFields] = {
    "": _map_event,
    "autoscaling": _map_autoscaler,
    "events.k8s.io": _map_event,
    "kueue.x-k8s.io": _map_kueue,
    "scheduling.k8s.io": _map_scheduling,
}


# ---- what has no place in a version ------------------------------------------------------------


def _keep_what_is_lost(
    made: Json, before: Json, map_back: Callable[[Json], None], given: str
) -> None:
    """Note what mapping back would not bring back, under the version that knows it."""
    back: Json = orjson.loads(orjson.dumps(made))
    map_back(back)
    lost = [
        one
        for part in before.keys() | back.keys()
        if part not in ("apiVersion", "kind", "metadata")
        for one in _differences(before.get(part, _ABSENT), back.get(part, _ABSENT), (part,))
    ]
    if lost:
        annotations = made.setdefault("metadata", {}).setdefault("annotations", {})
        lost.sort(key=lambda one: [str(step) for step in one[0]])
        annotations[_name(given)] = orjson.dumps(lost).decode()


def _differences(before: Any, back: Any, path: tuple[str | int, ...]) -> list[list[Any]]:
    """List where two values differ: the path, the value before, and the value after mapping.

    A value is a list of one, so that an absent one (an empty list) differs from null.
    """
    if before is not _ABSENT and before == back:
        return []
    if isinstance(before, dict) and isinstance(back, dict):
        pairs = [
            (name, before.get(name, _ABSENT), back.get(name, _ABSENT))
            for name in sorted(before.keys() | back.keys())
        ]
    elif isinstance(before, list) and isinstance(back, list) and len(before) == len(back):
        pairs = [(index, one, back[index]) for index, one in enumerate(before)]
    else:
        return [[list(path), _boxed(before), _boxed(back)]]
    return [
        found for step, one, other in pairs for found in _differences(one, other, (*path, step))
    ]


def _boxed(value: Any) -> list[Any]:
    return [] if value is _ABSENT else [value]


def _name(api_version: str) -> str:
    return f"{_KEPT_FOR}{api_version.replace('/', '-')}"


def _take_kept(obj: Json, wanted: str) -> list[tuple[list[Any], list[Any], list[Any]]]:
    """Take out what was kept for a version; what is not as we wrote it counts as nothing."""
    metadata = obj.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if not isinstance(annotations, dict) or _name(wanted) not in annotations:
        return []
    text = annotations.pop(_name(wanted))
    if not annotations:
        del obj["metadata"]["annotations"]
    try:
        listed = orjson.loads(text)
    except (orjson.JSONDecodeError, TypeError):
        return []
    return [tuple(one) for one in listed if _is_entry(one)] if isinstance(listed, list) else []


def _is_entry(raw: Any) -> bool:
    return (
        isinstance(raw, list)
        and len(raw) == 3
        and all(isinstance(part, list) for part in raw)
        and bool(raw[0])
    )


def _restore(obj: Json, path: list[Any], original: list[Any], mapped: list[Any]) -> None:
    """Put a value back, if what stands there is still what the mapping made of it."""
    at: Any = obj
    for step in path[:-1]:
        if isinstance(at, dict) and isinstance(step, str):
            at = at.get(step)
        elif isinstance(at, list) and isinstance(step, int) and 0 <= step < len(at):
            at = at[step]
        else:
            return
    last = path[-1]
    if isinstance(at, dict) and isinstance(last, str):
        if _boxed(at.get(last, _ABSENT)) == mapped:
            at.pop(last, None)
            if original:
                at[last] = original[0]
    elif isinstance(at, list) and isinstance(last, int) and 0 <= last < len(at):
        if [at[last]] == mapped and original:
            at[last] = original[0]
