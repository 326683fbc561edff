"""A schema-driven decoder: raw YAML or JSON in, a typed manifest or *all* of its problems out.

The schema is the struct itself. A manifest class derives from `Schema` and is declared
`frozen=True, kw_only=True`; field names become camelCase (write `msgspec.field(name="podCIDR")`
where Kubernetes writes something else). A field's type may be

    str int float bool Literal[…] Any          plain values; Any keeps a subtree as it is; an int
                                               has 32 bits, unless it is an `Int64` or says le=…
    Quantity Timestamp Duration                any `Scalar`: read from one string or number
    a Schema                                   an object; unknown fields are problems, unless the
                                               class sets `is_open: ClassVar[bool] = True`
    tuple[T, …]  Mapping[str, T]               lists and maps
    T | None, int | str, Schema | str          unions; the raw value's type chooses the member

and may carry `Annotated[T, msgspec.Meta(description=…, ge=…, max_length=…, pattern=…)]`:
descriptions are what `kubectl explain` prints, constraints are checked here.

Null counts as absent, as in Kubernetes. Problems carry a Kubernetes field path
(`spec.resourceGroups[0].flavors[1].name`) and are listed in document order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar, cast

import msgspec
from msgspec import inspect as shape

from unisono.kinds.nearest import did_you_mean
from unisono.kinds.scalar import ReadsRaw, Scalar

T = TypeVar("T", bound=msgspec.Struct)

# Kubernetes counts in 32 bits; generations, and some numbers of seconds and of users, have 64.
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
# Up to here every whole number is exact as a float, and no weight or price is larger.
_MOST_FLOAT = 10**15


class Schema(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of every typed manifest and of every object inside one; it only sets the options."""

    # An open object may have fields that we do not know; they are dropped.
    is_open: ClassVar[bool] = False


# In which way something is wrong, for programs: the words of Kubernetes without "FieldValue".
Reason = Literal[
    "Required", "Invalid", "NotSupported", "TypeInvalid", "TooLong", "TooMany", "Unknown"
]


class Problem(msgspec.Struct, frozen=True):
    """Something that is wrong with a manifest, and where."""

    path: str
    message: str
    reason: Reason = "Invalid"


def decode(
    cls: type[T], raw: object, *, path: str = "", ignore_unknown: bool = False
) -> tuple[T | None, list[Problem]]:
    """Build a `cls` from a parsed document, or say everything that is wrong with it.

    The value is None exactly when there are problems. `ignore_unknown` drops unknown fields, for
    documents whose fields were checked by a schema that knows more of them.
    """
    problems = _Problems()
    problems.ignore_unknown = ignore_unknown
    value = _reader(cls)(raw, (None, path), problems)
    return (None, list(problems)) if problems else (cast(T, value), [])


def encode(manifest: msgspec.Struct) -> dict[str, Any]:
    """Return the plain mapping that a manifest stands for.

    Defaults are left out, except for what an object says of itself: apiVersion and kind.
    """
    return cast(dict[str, Any], _with_texts(manifest))


# A path is a chain (parent, part) that is only joined when there is something to report.
_Path = tuple[Any, str]
_Read = Callable[[Any, _Path, "_Problems"], Any]
_MISSING = object()  # the reader found a problem and has no value


class _Problems(list[Problem]):
    """What was found so far, and whether unknown fields count."""

    ignore_unknown = False


def _join(path: _Path) -> str:
    parts: list[str] = []
    at: _Path | None = path
    while at is not None:
        parts.append(at[1])
        at = at[0]
    return "".join(reversed(parts)).removeprefix(".")


def _report(problems: _Problems, path: _Path, message: str, reason: Reason = "TypeInvalid") -> Any:
    problems.append(Problem(_join(path), message, reason))
    return _MISSING


# Readers that were made once, bounded by the number of schema classes.
_READERS: dict[type, _Read] = {}


def _reader(cls: type[msgspec.Struct]) -> _Read:
    known = _READERS.get(cls)
    if known is None:
        info = shape.type_info(cls)
        assert isinstance(info, shape.StructType)
        known = _READERS[cls] = _object_reader(info)
    return known


def _reader_for(info: shape.Type) -> _Read:
    match info:
        case shape.Metadata():
            return _reader_for(info.type)
        case shape.AnyType():
            return lambda raw, path, problems: raw
        case shape.StructType() if issubclass(info.cls, Scalar):
            return _scalar_reader(cast(type[ReadsRaw], info.cls))
        case shape.StructType():
            return _lazy_object_reader(info)
        case shape.StrType():
            return _text_reader(info)
        case shape.BoolType():
            return _bool_reader
        case shape.IntType():
            return _integer_reader(info)
        case shape.FloatType():
            return _float_reader
        case shape.LiteralType():
            return _literal_reader(info.values)
        case shape.VarTupleType():
            return _list_reader(info)
        case shape.DictType():
            return _map_reader(info)
        case shape.UnionType():
            return _union_reader(info)
        case _:
            raise TypeError(f"a manifest cannot have a field of type {info}")


_MOST_DIGITS = 40  # that people read; Python refuses to print numbers of thousands of them


def describe(raw: object) -> str:
    """Name a raw value as its author sees it."""
    match raw:
        case None:
            return "null"
        case bool():
            return f"the boolean {str(raw).lower()}"
        case int() if abs(raw) >= 10**_MOST_DIGITS:
            return f"a number of more than {_MOST_DIGITS} digits"
        case int() | float():
            return f"the number {raw}"
        case str():
            shown = raw if len(raw) <= 40 else raw[:37] + "..."
            return f'the string "{shown}"'
        case list():
            return "a list"
        case _:
            return "an object"


# ---- objects -------------------------------------------------------------------------------


def _lazy_object_reader(info: shape.StructType) -> _Read:
    """Make the reader at the first use, so that a schema may contain itself.

    Describing a class means describing everything below it, so what is known of it is kept.
    """

    def read(raw: Any, path: _Path, problems: _Problems) -> Any:
        known = _READERS.get(info.cls)
        if known is None:
            known = _READERS[info.cls] = _object_reader(info)
        return known(raw, path, problems)

    return read


class _Field(NamedTuple):
    """How one field of an object is read."""

    name: str  # in the struct
    part: str  # of a path
    read: _Read
    plain: type | None  # a value of exactly this type is taken as it is


def _object_reader(info: shape.StructType) -> _Read:
    fields = {
        field.encode_name: _Field(
            field.name, f".{field.encode_name}", _reader_for(field.type), _plain(field.type)
        )
        for field in info.fields
    }
    required = tuple(field.encode_name for field in info.fields if field.required)
    is_open = bool(getattr(info.cls, "is_open", False))

    def read(raw: Any, path: _Path, problems: _Problems) -> Any:
        if not isinstance(raw, dict):
            return _report(problems, path, f"must be an object, not {describe(raw)}")
        before = len(problems)
        values: dict[str, Any] = {}
        for key, item in raw.items():
            field = fields.get(key)
            if field is None:
                if not is_open and not problems.ignore_unknown:
                    hint = did_you_mean(key, fields)
                    if key == "spec" and "kind" in raw:
                        hint = "; this kind has no spec: its fields stand beside kind"
                    _report(problems, (path, f".{key}"), f"unknown field{hint}", "Unknown")
                continue
            name, part, reader, plain = field
            if type(item) is plain:
                values[name] = item
            elif item is not None:
                values[name] = reader(item, (path, part), problems)
        for key in required:
            if raw.get(key) is None:
                _report(problems, (path, f".{key}"), "is required", "Required")
        return _MISSING if len(problems) > before else info.cls(**values)

    return read


def _plain(info: shape.Type) -> type | None:
    """Return the type whose values need no reading: most fields are texts, and any text will do."""
    match info:
        case shape.BoolType():
            return bool
        case shape.StrType(min_length=None, max_length=None, pattern=None):
            return str
        case shape.UnionType(types=(one, shape.NoneType()) | (shape.NoneType(), one)):
            return _plain(one)
        case _:
            return None


# ---- lists, maps, unions ---------------------------------------------------------------------


def _list_reader(info: shape.VarTupleType) -> _Read:
    item_reader = _reader_for(info.item_type)
    least, most = info.min_length, info.max_length

    def read(raw: Any, path: _Path, problems: _Problems) -> Any:
        if not isinstance(raw, list):
            return _report(problems, path, f"must be a list, not {describe(raw)}")
        if least is not None and len(raw) < least:
            message = f"has {len(raw)} items; at least {least} are needed"
            _report(problems, path, message, "Invalid")
        if most is not None and len(raw) > most:
            message = f"has {len(raw)} items; at most {most} are allowed"
            return _report(problems, path, message, "TooMany")
        return tuple(
            [item_reader(item, (path, f"[{index}]"), problems) for index, item in enumerate(raw)]
        )

    return read


def _map_reader(info: shape.DictType) -> _Read:
    value_reader, plain = _reader_for(info.value_type), _plain(info.value_type)
    most = info.max_length

    def read(raw: Any, path: _Path, problems: _Problems) -> Any:
        if not isinstance(raw, dict):
            return _report(problems, path, f"must be an object, not {describe(raw)}")
        if most is not None and len(raw) > most:
            message = f"has {len(raw)} entries; at most {most} are allowed"
            return _report(problems, path, message, "TooMany")
        return {
            key: item if type(item) is plain else value_reader(item, (path, f"[{key}]"), problems)
            for key, item in raw.items()
        }

    return read


def _union_reader(info: shape.UnionType) -> _Read:
    """Choose the member by the raw value's type; null was dealt with by the caller."""
    members = [member for member in info.types if not isinstance(member, shape.NoneType)]
    if len(members) == 1:
        return _reader_for(members[0])
    readers = [(_takes(member), _reader_for(member)) for member in members]
    wanted = " or ".join(_noun(member) for member in members)

    def read(raw: Any, path: _Path, problems: _Problems) -> Any:
        for takes, reader in readers:
            if takes(raw):
                return reader(raw, path, problems)
        return _report(problems, path, f"must be {wanted}, not {describe(raw)}")

    return read


def _takes(info: shape.Type) -> Callable[[object], bool]:
    """Say which raw values a member of a union claims."""
    match info:
        case shape.Metadata():
            return _takes(info.type)
        case shape.StructType() if not issubclass(info.cls, Scalar):
            return lambda raw: isinstance(raw, dict)
        case shape.VarTupleType():
            return lambda raw: isinstance(raw, list)
        case shape.BoolType():
            return lambda raw: isinstance(raw, bool)
        case shape.IntType():
            return lambda raw: isinstance(raw, int) and not isinstance(raw, bool)
        case shape.StrType():
            return lambda raw: isinstance(raw, str)
        case _:
            raise TypeError(f"a union in a manifest cannot have the member {info}")


def _noun(info: shape.Type) -> str:
    match info:
        case shape.Metadata():
            return _noun(info.type)
        case shape.StructType():
            return "an object"
        case shape.VarTupleType():
            return "a list"
        case shape.BoolType():
            return "a boolean"
        case shape.IntType():
            return "an integer"
        case _:
            return "a string"


# ---- plain values ----------------------------------------------------------------------------


def _scalar_reader(cls: type[ReadsRaw]) -> _Read:
    def read(raw: Any, path: _Path, problems: _Problems) -> Any:
        try:
            return cls.from_raw(raw)
        except ValueError as error:
            found = "" if isinstance(raw, str) else f", not {describe(raw)}"
            return _report(
                problems, path, f"{error}{found}", "Invalid" if not found else "TypeInvalid"
            )

    return read


def _text_reader(info: shape.StrType) -> _Read:
    least, most, pattern = info.min_length, info.max_length, info.pattern
    matcher = re.compile(pattern) if pattern else None

    def read(raw: Any, path: _Path, problems: _Problems) -> Any:
        if not isinstance(raw, str):
            hint = "; put it in quotes" if isinstance(raw, bool | int | float) else ""
            return _report(problems, path, f"must be a string, not {describe(raw)}{hint}")
        if least is not None and len(raw) < least:
            message = "must not be empty" if least == 1 else "is too short"
            return _report(problems, path, message, "Invalid")
        if most is not None and len(raw) > most:
            message = f"has {len(raw)} characters; at most {most} are allowed"
            return _report(problems, path, message, "TooLong")
        if matcher is not None and matcher.search(raw) is None:
            return _report(problems, path, f'"{raw}" does not match {pattern}', "Invalid")
        return raw

    return read


def _bool_reader(raw: Any, path: _Path, problems: _Problems) -> Any:
    if isinstance(raw, bool):
        return raw
    return _report(problems, path, f"must be true or false, not {describe(raw)}")


def _integer_reader(info: shape.IntType) -> _Read:
    low = info.ge if info.ge is not None else -(2**31) if info.gt is None else info.gt + 1
    high = info.le if info.le is not None else 2**31 - 1 if info.lt is None else info.lt - 1

    def read(raw: Any, path: _Path, problems: _Problems) -> Any:
        if isinstance(raw, float) and raw.is_integer():
            raw = int(raw)
        if not isinstance(raw, int) or isinstance(raw, bool):
            return _report(problems, path, f"must be an integer, not {describe(raw)}")
        if raw < low or raw > high:
            found = describe(raw).removeprefix("the number ")
            limit = f"at least {low}" if raw < low else f"at most {high}"
            return _report(problems, path, f"is {found}; it must be {limit}", "Invalid")
        return raw

    return read


def _float_reader(raw: Any, path: _Path, problems: _Problems) -> Any:
    is_number = isinstance(raw, int | float) and not isinstance(raw, bool)
    if not is_number or raw != raw or abs(raw) == float("inf"):
        return _report(problems, path, f"must be a number, not {describe(raw)}")
    if abs(raw) > _MOST_FLOAT:
        message = f"is {describe(raw).partition('number ')[2]}; it must be at most {_MOST_FLOAT}"
        return _report(problems, path, message, "Invalid")
    return float(raw)


def _literal_reader(values: tuple[Any, ...]) -> _Read:
    # msgspec sorts nothing and keeps no order that we may rely on; the message sorts.
    listed = ", ".join(f'"{value}"' for value in sorted(values))
    allowed = frozenset(values)

    def read(raw: Any, path: _Path, problems: _Problems) -> Any:
        if isinstance(raw, str) and raw in allowed:
            return raw
        reason: Reason = "NotSupported" if isinstance(raw, str) else "TypeInvalid"
        return _report(problems, path, f"must be one of {listed}, not {describe(raw)}", reason)

    return read


def _with_texts(value: object) -> object:
    """Replace scalars by what stands in the manifest, everywhere below `value`."""
    match value:
        case Scalar():
            return cast(ReadsRaw, value).to_raw()
        case msgspec.Struct():
            return _fields_with_texts(value)
        case Mapping():
            return {key: _with_texts(item) for key, item in value.items()}
        case tuple() | list():
            return [_with_texts(item) for item in value]
        case _:
            return value


# Asking a type for its fields evaluates its annotations; there are a few hundred types.
_fields = cache(msgspec.structs.fields)


def _fields_with_texts(value: msgspec.Struct) -> dict[str, object]:
    """List a struct's fields under their written names, leaving out what has its default."""
    written: dict[str, object] = {}
    for field in _fields(type(value)):
        item = getattr(value, field.name)
        default = field.default
        if field.default_factory is not msgspec.NODEFAULT:
            default = cast(Callable[[], object], field.default_factory)()
        is_default = not field.required and item == default
        if item is None or (is_default and field.encode_name not in ("apiVersion", "kind")):
            continue
        written[field.encode_name] = _with_texts(item)
    return written
