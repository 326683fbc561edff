"""The structs that decisions read, against the schemas that the API checks by.

Every field of every known kind must be a field of the schema, of a type that fits: else a manifest
would be accepted by one and pruned or refused by the other.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec import inspect

from unisono.kinds.known import KNOWN
from unisono.kinds.quantity import Quantity
from unisono.kinds.registry import Kind
from unisono.kinds.scalar import Scalar, Timestamp
from unisono.kinds.shapes.served import Served, served_kinds
from unisono.kinds.shapes.shape import Shape

SERVED = {(one.api_version, one.kind): one for one in served_kinds()}
# Known to the struct only: an alias that admission rewrites before anything looks at the schema,
# the status of kinds that have none, and names of a draft of scheduling.k8s.io/v1alpha2 that no
# release kept. All of them are accepted in files.
ONLY_IN_STRUCTS = {
    "ResourceFlavorSpec.nodeSelector",
    "ResourceFlavor.status",
    "Workload.status",
    "SchedulingConstraints.topologyConstraints",
    "TopologyConstraint.topologyKey",
}
# Structs that read several versions of a kind, or conditions of several kinds. It is enough that
# one of the schemas has the field.
UNITED = {
    "AdmissionCheckSpec",
    "CompositePodGroupSpec",
    "ContainerOverride",
    "GangPolicy",
    "MPIJobSpec",
    "PodGroupSpec",
    "PodGroupTemplate",
    "PodSpecOverride",
    "PodSetTopologyRequest",
    "TimedCondition",
    "WorkloadSpec",
}


# What `_differences` saw, by struct and field.
_FOUND: set[str] = set()
_NOT_FOUND: dict[str, list[str]] = {}


def _is_served(kind: Kind) -> bool:
    # Configuration files are no objects.
    return kind.group != "config.kueue.x-k8s.io" and kind.kind != "SchedulingPolicy"


@pytest.mark.parametrize(
    "kind",
    [kind for kind in KNOWN.kinds.values() if _is_served(kind)],
    ids=lambda kind: f"{kind.api_version}-{kind.kind}",
)
def test_every_field_of_a_struct_is_in_the_schema(kind: Kind) -> None:
    served = SERVED[kind.api_version, kind.kind]
    info = inspect.type_info(kind.struct)
    assert list(_differences(info, served.shape, kind.kind)) == []


@pytest.mark.slow
def test_what_one_struct_reads_of_several_versions_is_in_one_of_their_schemas() -> None:
    for kind in filter(_is_served, KNOWN.kinds.values()):
        shape = SERVED[kind.api_version, kind.kind].shape
        assert list(_differences(inspect.type_info(kind.struct), shape, kind.kind)) == []
    assert sorted(set(_NOT_FOUND) - _FOUND) == []


def test_scope_agrees() -> None:
    for kind in filter(_is_served, KNOWN.kinds.values()):
        served: Served = SERVED[kind.api_version, kind.kind]
        assert served.namespaced == kind.namespaced, kind


def _differences(info: inspect.Type, shape: Shape, path: str) -> Iterator[str]:
    match info:
        case inspect.Metadata():
            yield from _differences(info.type, shape, path)
        case inspect.AnyType():
            return
        case inspect.UnionType():
            members = [one for one in info.types if not isinstance(one, inspect.NoneType)]
            for member in members:
                yield from _differences(member, shape, path)
        case inspect.StructType() if issubclass(info.cls, Scalar):
            yield from _scalar(info.cls, shape, path)
        case inspect.StructType():
            yield from _object(info, shape, path)
        case inspect.VarTupleType() | inspect.DictType() if not shape.type and shape.is_open:
            return
        case inspect.VarTupleType():
            if shape.type != "array":
                yield f"{path}: a list here, {shape.type or 'anything'} in the schema"
            elif shape.items is not None:
                yield from _differences(info.item_type, shape.items, f"{path}[]")
        case inspect.DictType():
            if shape.type != "object":
                yield f"{path}: a map here, {shape.type or 'anything'} in the schema"
            elif shape.values is not None:
                yield from _differences(info.value_type, shape.values, f"{path}[*]")
            elif not shape.is_open:
                yield f"{path}: a map here, an object of fixed fields in the schema"
        case inspect.LiteralType():
            words = set(shape.raw.get("enum", info.values))
            if shape.type != "string":
                yield f"{path}: a word here, {shape.type} in the schema"
            elif set(info.values) - words - {""}:
                yield f"{path}: {info.values} here, {words} in the schema"
        case inspect.StrType():
            yield from _plain("string", shape, path)
        case inspect.BoolType():
            yield from _plain("boolean", shape, path)
        case inspect.IntType():
            yield from _plain("integer", shape, path)
        case inspect.FloatType():
            yield from _plain("number", shape, path)
        case _:
            raise AssertionError(f"{path}: no comparison for {info}")


def _object(info: inspect.StructType, shape: Shape, path: str) -> Iterator[str]:
    if not shape.type and shape.is_open:
        return
    if shape.type != "object":
        yield f"{path}: an object here, {shape.type or 'anything'} in the schema"
        return
    for field in info.fields:
        at = f"{path}.{field.encode_name}"
        name = f"{info.cls.__name__}.{field.encode_name}"
        child = shape.field(field.encode_name)
        if child is not None:
            _FOUND.add(name)
            yield from _differences(field.type, child, at)
        elif not shape.is_open and name not in ONLY_IN_STRUCTS:
            _NOT_FOUND.setdefault(name, []).append(at)
            if info.cls.__name__ not in UNITED:
                yield f"{at}: not in the schema"


def _plain(name: str, shape: Shape, path: str) -> Iterator[str]:
    if shape.type == name or (not shape.type and shape.is_open):
        return
    if shape.is_int_or_string and not shape.is_quantity and name in ("string", "integer"):
        return
    yield f"{path}: {name} here, {shape.type or 'anything'} in the schema"


def _scalar(cls: type, shape: Shape, path: str) -> Iterator[str]:
    if cls is Quantity:
        if not shape.is_quantity:
            yield f"{path}: an amount here, {dict(shape.raw)} in the schema"
    elif cls is Timestamp:
        if shape.raw.get("format") not in ("date-time", "micro-time"):
            yield f"{path}: a time here, {dict(shape.raw)} in the schema"
    elif shape.type != "string":
        yield f"{path}: {cls.__name__} here, {shape.type} in the schema"
