"""CustomResourceDefinitions of our kinds, for clusters that have an API server of their own.

A definition holds everything itself: references are written out, since a structural schema has
none. Only the kind and its first fields keep their descriptions, so that a definition stays below
the size that `kubectl apply` can remember of an object. Where pod templates alone would exceed
that, the parts of a pod that no decision reads are left open.

The rules of the intake (`kinds.known`) that a schema can say stand in it, too: bounds of numbers
as the typed manifests have them, and amounts that are not negative. So `kubectl apply` tells.

Versions are listed if turning one into the other takes nothing but the new apiVersion: without a
converter, an API server would lose every field that the stored version does not know. A status
may differ: it is ours, and we write it in the stored version. Versions that only have more or fewer
fields than each other are listed, too, if the controller of the kind reads them as one: each then
knows the fields of all, so that nothing is lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import inspect

from unisono.kinds.known import KNOWN
from unisono.kinds.meta import Json
from unisono.kinds.shapes.served import BUILT_IN, Served, served_kinds
from unisono.kinds.shapes.shape import Shape

# What an annotation may hold, and with it what client-side apply can handle.
MOST_BYTES = 262_144

_QUANTITY: Json = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|"
    r"([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
    "x-kubernetes-int-or-string": True,
}
# An amount of something: of an integer the least is said, of a text that it has no minus.
_AMOUNT: Json = {
    **_QUANTITY,
    "pattern": _QUANTITY["pattern"].replace(r"^(\+|-)?", r"^\+?"),
    "minimum": 0,
}
# Where less than nothing means something: an allowance for a resource that is transformed.
_MAY_BE_NEGATIVE = frozenset({"policies.unisono.dev"})
_INT_OR_STRING: Json = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
_OPEN: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
# What stays of the metadata of a template: the rest is the API server's own.
_TEMPLATE_METADATA: Json = {
    "type": "object",
    "properties": {
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
        "finalizers": {"type": "array", "items": {"type": "string"}},
        "generateName": {"type": "string"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "name": {"type": "string"},
        "namespace": {"type": "string"},
    },
}
# Kinds whose versions mean the same by every name that they share; a controller that reads one of
# them in the stored version finds the other's fields there, too, and knows what they mean.
_TOGETHER = frozenset({"mpijobs.kubeflow.org", "clusterqueues.kueue.x-k8s.io"})
# Spellings of widely used manifests that no version has (`kinds.kueue.flavors`).
_ALIASES: Mapping[str, Mapping[str, str]] = {
    "resourceflavors.kueue.x-k8s.io": {"nodeSelector": "nodeLabels"},
}
# How deep schemas are written out; deeper than any that is not recursive.
_DEEPEST = 40

# Definitions that may be left open, stage by stage, until the size fits.
_STAGES: tuple[frozenset[str], ...] = (
    frozenset(),
    frozenset({"core.v1.EphemeralContainer"}),
    frozenset(
        {"core.v1.EphemeralContainer", "core.v1.Volume", "core.v1.Probe", "core.v1.Lifecycle"}
    ),
    frozenset({"core.v1.PodSpec"}),
)


def custom_groups() -> list[str]:
    """Return the groups that an API server does not have by itself, in the order of discovery."""
    groups = dict.fromkeys(served.group for served in served_kinds())
    return [group for group in groups if group not in BUILT_IN]


def crds_of(groups: Iterable[str]) -> Iterator[Json]:
    """Return the definitions of every kind in some groups."""
    wanted = set(groups)
    by_key: dict[str, list[Served]] = {}
    for served in served_kinds():
        if served.group in wanted:
            by_key.setdefault(served.key, []).append(served)
    for versions in by_key.values():
        yield crd_of(versions)


class _Writing(NamedTuple):
    """What decides how schemas of one kind are written."""

    left_open: frozenset[str]
    quantity: Json


def crd_of(versions: Sequence[Served]) -> Json:
    """Return the definition of one kind, given all its versions."""
    stored = next(served for served in versions if served.is_storage)
    are_one = stored.resource in _TOGETHER
    alike = [one for one in versions if are_one or _is_same(one.shape, stored.shape)]
    for stage in _STAGES:
        made = _definition(stored, alike, stage)
        if len(json.dumps(made, separators=(",", ":"))) < MOST_BYTES:
            return made
    raise AssertionError(f"{stored.resource} is too large even without pods")


def _definition(stored: Served, versions: Sequence[Served], left_open: frozenset[str]) -> Json:
    names: Json = {
        "kind": stored.kind,
        "listKind": f"{stored.kind}List",
        "plural": stored.plural,
        "singular": stored.singular,
    }
    if stored.short_names:
        names["shortNames"] = list(stored.short_names)
    if stored.categories:
        names["categories"] = list(stored.categories)
    quantity = _QUANTITY if stored.resource in _MAY_BE_NEGATIVE else _AMOUNT
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": stored.resource,
            "labels": {"app.kubernetes.io/managed-by": "unisono"},
        },
        "spec": {
            "group": stored.group,
            "names": names,
            "scope": "Namespaced" if stored.namespaced else "Cluster",
            "versions": _with_all_fields(
                [_version(served, _Writing(left_open, quantity)) for served in versions],
                _ALIASES.get(stored.resource, {}),
            ),
        },
    }


def _with_all_fields(versions: list[Json], aliases: Mapping[str, str]) -> list[Json]:
    """Let every version keep what only another one knows; defaults stay with their own version.

    Aliases are kept, too.
    """
    specs = [one["schema"]["openAPIV3Schema"]["properties"].get("spec", {}) for one in versions]
    for spec in specs if aliases else ():
        for alias, name in aliases.items():
            spec["properties"][alias] = spec["properties"][name]
    written = [dict(spec.get("properties", {})) for spec in specs]
    for spec, own in zip(specs, written, strict=True):
        for other in written:
            for name, field in other.items():
                if name not in own:
                    kept = {key: value for key, value in field.items() if key != "default"}
                    spec["properties"].setdefault(name, kept)
    return versions


def _version(served: Served, how: _Writing) -> Json:
    kind = KNOWN.kinds.get((served.api_version, served.kind))
    typed = inspect.type_info(kind.struct) if kind is not None else None
    schema = _structural(served.shape.raw, served.shape, typed, how, depth=0)
    schema["properties"]["metadata"] = {"type": "object"}
    version: Json = {"name": served.version, "served": True, "storage": served.is_storage}
    if served.deprecated:
        version |= {"deprecated": True, "deprecationWarning": served.deprecated}
    version["schema"] = {"openAPIV3Schema": schema}
    subresources: Json = {}
    if "status" in served.subresources:
        subresources["status"] = {}
    if served.scale is not None:
        subresources["scale"] = {
            "specReplicasPath": served.scale.spec,
            "statusReplicasPath": served.scale.status,
        }
        if served.scale.selector:
            subresources["scale"]["labelSelectorPath"] = served.scale.selector
    if subresources:
        version["subresources"] = subresources
    if served.selectable:
        version["selectableFields"] = [{"jsonPath": path} for path in served.selectable]
    if served.columns:
        version["additionalPrinterColumns"] = [
            {"name": column.name, "type": column.type, "jsonPath": column.json_path}
            | ({"format": column.format} if column.format else {})
            | ({"priority": column.priority} if column.priority else {})
            for column in served.columns
        ]
    return version


# ---- schemas -----------------------------------------------------------------------------------


def _structural(
    written: Mapping[str, Any], shape: Shape, typed: inspect.Type | None, how: _Writing, depth: int
) -> Json:
    """Write a schema out; `written` is the node as its parent has it, before references.

    `typed` is the type of the same node in the typed manifest, if that knows it.
    """
    reference = written.get("$ref")
    typed = _plain(typed)
    made = _of_type(reference, shape, typed, how, depth)
    if isinstance(typed, inspect.IntType) and made.get("type") == "integer":
        if typed.ge is not None and typed.ge > -(2**31):
            made["minimum"] = max(typed.ge, made.get("minimum", typed.ge))
        if typed.le is not None and typed.le < 2**31 - 1:
            made["maximum"] = min(typed.le, made.get("maximum", typed.le))
    if "default" in written:
        made["default"] = written["default"]
    if written.get("nullable"):
        made["nullable"] = True
    if depth <= 2 and "description" in written:
        made = {"description": written["description"], **made}
    return made


def _plain(typed: inspect.Type | None) -> inspect.Type | None:
    """Return a type without what is said about it, and without that it may be absent."""
    match typed:
        case inspect.Metadata(type=inner):
            return _plain(inner)
        case inspect.UnionType(types=types):
            kept = [one for one in types if not isinstance(one, inspect.NoneType)]
            return _plain(kept[0]) if len(kept) == 1 else None
        case _:
            return typed


def _field_of(typed: inspect.Type | None, name: str) -> inspect.Type | None:
    if not isinstance(typed, inspect.StructType):
        return None
    return next((one.type for one in typed.fields if one.encode_name == name), None)


def _of_type(
    reference: str | None, shape: Shape, typed: inspect.Type | None, how: _Writing, depth: int
) -> Json:
    if shape.is_quantity:
        return dict(how.quantity)
    if shape.is_int_or_string:
        return dict(_INT_OR_STRING)
    if reference == "meta.v1.ObjectMeta":
        return dict(_TEMPLATE_METADATA)
    if reference in how.left_open or depth > _DEEPEST:
        return dict(_OPEN)
    if not shape.type:
        return {"x-kubernetes-preserve-unknown-fields": True}
    made: Json = {
        key: value
        for key, value in shape.raw.items()
        if key not in _WRITTEN_ELSEWHERE and not key.startswith("x-kubernetes-patch-")
    }
    if made.get("format") == "micro-time":
        made["format"] = "date-time"
    if shape.names or "properties" in shape.raw:
        made["properties"] = {
            name: _structural(
                written, shape.field(name) or shape, _field_of(typed, name), how, depth + 1
            )
            for name, written in shape.raw["properties"].items()
        }
    if shape.values is not None:
        more = shape.raw["additionalProperties"]
        value = typed.value_type if isinstance(typed, inspect.DictType) else None
        made["additionalProperties"] = _structural(more, shape.values, value, how, depth + 1)
    if shape.items is not None:
        item = typed.item_type if isinstance(typed, inspect.VarTupleType) else None
        items = _structural(shape.raw["items"], shape.items, item, how, depth + 1)
        made["items"] = _with_keys(items, shape.list_keys)
    return made


_WRITTEN_ELSEWHERE = frozenset(
    {"$ref", "description", "default", "nullable", "properties", "additionalProperties", "items"}
)


def _with_keys(items: Json, keys: Sequence[str]) -> Json:
    """Give a default to keys that may be absent: an API server wants to know every item by them."""
    for key in keys:
        if key not in items.get("required", ()):
            field = items.setdefault("properties", {}).setdefault(key, {"type": "string"})
            field.setdefault("default", "")
    return items


def _is_same(one: Shape, other: Shape, depth: int = 0) -> bool:
    """Say whether two versions have the same fields of the same types."""
    if one.raw is other.raw or depth > _DEEPEST:
        return True
    ignored = {"status"} if depth == 0 else set()
    names = set(one.names) - ignored
    if one.type != other.type or names != set(other.names) - ignored:
        return False
    for name in names:
        mine, theirs = one.field(name), other.field(name)
        assert mine is not None
        assert theirs is not None
        if not _is_same(mine, theirs, depth + 1):
            return False
    pairs = ((one.items, other.items), (one.values, other.values))
    return all(
        (mine is None and theirs is None)
        or (mine is not None and theirs is not None and _is_same(mine, theirs, depth + 1))
        for mine, theirs in pairs
    )
