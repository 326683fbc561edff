"""From a protobuf body to the object it means.

    "k8s\\0"  Unknown {1 typeMeta {1 apiVersion, 2 kind}, 2 raw, 3 contentEncoding, 4 contentType}

`raw` is the message of the kind. It is read field by field with the tables of `fields`; a number
that they do not have is refused by name of its place, never dropped: what the author wrote must
not get lost on the way. Whatever the bytes are, the outcome is an object or an `ApiError`: no
message contains itself, so the tables bound how deep a body can be nested.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import orjson

from unisono.apiserver.errors import ApiError, bad_request, unsupported_media_type
from unisono.apiserver.objects import Json
from unisono.apiserver.protobuf.fields import KINDS, MESSAGES

MAGIC = b"k8s\0"

_ADVICE = "send it as JSON or YAML instead, for example with kubectl apply -f"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def decode(body: bytes) -> Json:
    """Return the object in a request body; raise 415 for what is not known, 400 for broken bytes.

    >>> decode(b"k8s\\0\\x0a\\x0f\\x0a\\x02v1\\x12\\x09Namespace\\x12\\x05\\x0a\\x03\\x0a\\x01a")
    {'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {'name': 'a'}}
    """
    budget = _Budget()
    if not body.startswith(MAGIC):
        raise _broken("does not start with k8s and a zero", "")
    type_meta: dict[int, str] = {}
    raw = b""
    for number, kind, value in _read_message(body[len(MAGIC) :], "its envelope", budget):
        if kind != _BYTES or not isinstance(value, bytes):
            raise _broken(f"has no bytes in field {number}", "its envelope")
        if number == 1:
            type_meta = {
                inner: _text(text, "its type")
                for inner, _, text in _read_message(value, "its type", budget)
            }
        elif number == 2:
            raw = value
        elif value:  # an encoding such as gzip, or another type of content than protobuf
            text = _text(value, "its envelope")
            raise unsupported_media_type(f"the protobuf body holds {text!r}; {_ADVICE}")
    api_version, kind_name = type_meta.get(1, ""), type_meta.get(2, "")
    name = message_of(api_version, kind_name)
    if not name:
        known = f"{api_version} {kind_name}".strip() or "an object without a kind"
        raise unsupported_media_type(f"{known} is not known in its protobuf form; {_ADVICE}")
    return {
        "apiVersion": api_version,
        "kind": kind_name,
        **_object(raw, name, kind_name, "", budget),
    }


def _object(raw: bytes, name: str, kind: str, where: str, budget: _Budget) -> Json:
    """Read one message; `where` is the path so far, empty at the top."""
    fields = message(name)
    assert fields is not None, f"no message is named {name}"
    result: Json = {}
    for number, wire_type, value in _read_message(raw, where, budget):
        field = fields.get(number)
        if field is None:
            place = f" in {where}" if where else ""
            raise unsupported_media_type(
                f"{kind}: field {number}{place} ({name}) is not known here in its protobuf form; "
                f"{_ADVICE}"
            )
        context = f"{where}.{field.name}" if where and field.name != "." else where or field.name
        if field.is_map:
            key, item = _entry(field, wire_type, value, kind, context, budget)
            result.setdefault(field.name, {})[key] = item
        elif field.is_list:
            result.setdefault(field.name, []).extend(
                _items(field, wire_type, value, kind, context, budget)
            )
        else:
            item = _value(field, wire_type, value, kind, context, budget)
            if field.name == ".":
                result.update(item)
            elif item is not None and (item or field.stays_empty):
                result[field.name] = item
            else:
                result.pop(field.name, None)  # the last value of a field is the one that counts
    return result


def _entry(
    field: _Field, wire_type: int, value: int | bytes, kind: str, where: str, budget: _Budget
) -> tuple[str, Any]:
    if wire_type != _BYTES or not isinstance(value, bytes):
        raise _broken("has no map entry", where)
    key = ""
    item_type = _BYTES
    item_value: int | bytes = b""
    for number, inner_type, inner in _read_message(value, where, budget):
        if number == 1:
            key = _text(inner, where)
        elif number == 2:
            item_type, item_value = inner_type, inner
        else:
            raise _broken(f"has a map entry with field {number}", where)
    return key, _value(field, item_type, item_value, kind, f"{where}[{key}]", budget)


def _items(
    field: _Field, wire_type: int, value: int | bytes, kind: str, where: str, budget: _Budget
) -> list[Any]:
    if field.type == "int" and isinstance(value, bytes) and wire_type == _BYTES:
        return [_signed(number) for number in _read_packed(value, where, budget)]
    return [_value(field, wire_type, value, kind, where, budget)]


def _value(
    field: _Field, wire_type: int, value: int | bytes, kind: str, where: str, budget: _Budget
) -> Any:
    """Return one value as JSON has it; None stands for a time that is not set."""
    if field.type in ("int", "bool"):
        if wire_type != _VARINT or not isinstance(value, int):
            raise _broken("has no number", where)
        return _signed(value) if field.type == "int" else value != 0
    if wire_type != _BYTES or not isinstance(value, bytes):
        raise _broken("has a number instead of text or a message", where)
    plain = _PLAIN.get(field.type)
    if plain is not None:
        return plain(value, where, budget)
    return _object(value, field.type, kind, where, budget)


# ---- types that JSON writes as one value ---------------------------------------------------------


def _text(value: int | bytes, where: str) -> str:
    if not isinstance(value, bytes):
        raise _broken("has a number instead of text", where)
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise _broken("has text that is not UTF-8", where) from None


def _string(value: bytes, where: str, budget: _Budget) -> str:
    return _text(value, where)


def _base64(value: bytes, where: str, budget: _Budget) -> str:
    return base64.b64encode(value).decode()


def _quantity(value: bytes, where: str, budget: _Budget) -> str:
    found = _one(value, where, 1, budget)
    return _text(found, where) if found is not None else "0"


def _int_or_string(value: bytes, where: str, budget: _Budget) -> int | str:
    parts = {number: part for number, _, part in _read_message(value, where, budget)}
    if parts.get(1, 0) == 1:
        return _text(parts.get(3, b""), where)
    number = parts.get(2, 0)
    if not isinstance(number, int):
        raise _broken("has no number", where)
    return _signed(number)


def _moment(value: bytes, where: str, budget: _Budget) -> datetime | None:
    parts = {number: part for number, _, part in _read_message(value, where, budget)}
    seconds, nanos = parts.get(1, 0), parts.get(2, 0)
    if not isinstance(seconds, int) or not isinstance(nanos, int):
        raise _broken("has no time", where)
    if not seconds and not nanos:
        return None
    try:
        return _EPOCH + timedelta(seconds=_signed(seconds), microseconds=nanos // 1000)
    except OverflowError:
        raise _broken("has a time before year 1 or after year 9999", where) from None


def _time(value: bytes, where: str, budget: _Budget) -> str | None:
    moment = _moment(value, where, budget)
    return None if moment is None else _written(moment, "seconds")


def _microtime(value: bytes, where: str, budget: _Budget) -> str | None:
    moment = _moment(value, where, budget)
    return None if moment is None else _written(moment, "microseconds")


def _written(moment: datetime, precision: str) -> str:
    return moment.replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def _json(value: bytes, where: str, budget: _Budget) -> Any:
    content = _one(value, where, 1, budget) or b"null"
    if not isinstance(content, bytes):
        content = b""
    budget.spend(where, content.count(b",") + content.count(b"{") + content.count(b"["))
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        raise _broken("has something else than JSON", where) from None


def _strings(value: bytes, where: str, budget: _Budget) -> list[str]:
    return [_text(item, where) for _, _, item in _read_message(value, where, budget)]


def _one(value: bytes, where: str, wanted: int, budget: _Budget) -> int | bytes | None:
    found: int | bytes | None = None
    for number, _, part in _read_message(value, where, budget):
        if number == wanted:
            found = part
    return found


_PLAIN: dict[str, Callable[[bytes, str, _Budget], Any]] = {
    "string": _string,
    "bytes": _base64,
    "quantity": _quantity,
    "intOrString": _int_or_string,
    "time": _time,
    "microtime": _microtime,
    "json": _json,
    "strings": _strings,
}


# ---- the wire format -----------------------------------------------------------------------------
#
# The protobuf wire format: a message is a run of numbered values that do not say what they mean.
#
#     tag = number << 3 | wire type
#     0   varint: seven bits a byte, least significant first, the top bit says "more"
#     1   eight bytes          2   a length and as many bytes          5   four bytes
#
# Types 3 and 4 (groups) are not used any more and count as broken.

_VARINT = 0
_FIXED64 = 1
_BYTES = 2
_FIXED32 = 5

# As many as a body in JSON may have that is not the definition of a kind (`rest.extent`).
_MAX_VALUES = 40_000
_MOST_VARINT_BYTES = 10  # 64 bits in portions of seven
_64_BITS = (1 << 64) - 1


def _broken(what: str, where: str) -> ApiError:
    """Return the refusal of a body that no client can have meant."""
    place = f" in {where}" if where else ""
    return bad_request(f"the protobuf body {what}{place}")


class _Budget:
    """How many values a body may still have: an empty message is two bytes, and a dictionary."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        """Begin with all of them."""
        self._left = _MAX_VALUES

    def spend(self, where: str, count: int = 1) -> None:
        """Count values; raises a 400 when there are too many."""
        self._left -= count
        if self._left < 0:
            raise _broken(f"has more than {_MAX_VALUES} values", where)


def _read_message(
    message: bytes, where: str, budget: _Budget
) -> Iterator[tuple[int, int, int | bytes]]:
    """Yield number, wire type and raw value of each field; `where` is for refusals."""
    at, end = 0, len(message)
    while at < end:
        budget.spend(where)
        tag, at = _varint(message, at, where)
        number, kind = tag >> 3, tag & 7
        if not number:
            raise _broken("has a field with the number 0", where)
        if kind == _VARINT:
            value, at = _varint(message, at, where)
            yield number, kind, value
            continue
        if kind == _BYTES:
            length, at = _varint(message, at, where)
        elif kind == _FIXED64:
            length = 8
        elif kind == _FIXED32:
            length = 4
        else:
            raise _broken(f"has the unknown wire type {kind}", where)
        if length > end - at:
            raise _broken("is cut off", where)
        yield number, kind, message[at : at + length]
        at += length


def _read_packed(values: bytes, where: str, budget: _Budget) -> Iterator[int]:
    """Yield the numbers of a repeated field that stand together in one value."""
    at = 0
    while at < len(values):
        budget.spend(where)
        value, at = _varint(values, at, where)
        yield value


def _signed(value: int) -> int:
    """Read 64 bits as a number that may be negative.

    >>> signed(2**64 - 7)
    -7
    """
    return value - (1 << 64) if value >> 63 else value


def _varint(message: bytes, at: int, where: str) -> tuple[int, int]:
    value = 0
    for position in range(_MOST_VARINT_BYTES):
        if at >= len(message):
            raise _broken("is cut off", where)
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            return value & _64_BITS, at
    raise _broken("has a number of more than 64 bits", where)


# ---- the notation of messages --------------------------------------------------------------------
#
# What the numbers of each message mean, read from `fields`.
#
#     EnvVar  1 name*, 2 value, 3 valueFrom*: EnvVarSource
#     Probe  1 .: ProbeHandler, 2 initialDelaySeconds: int
#
# A message is its name, two spaces and its fields; lines that are indented go on with it. A field
# is a number, the name it has in JSON, and a type unless it is text:
#
#     int bool string bytes quantity intOrString time microtime json strings    or another message
# []T   a list of T                     {}T   a map from text to T     name*     stands in JSON even
# when it is empty or zero: zero means something, or the field is               required. Go writes
# most empty fields all the same, and without the star they vanish.     .         the fields of that
# message stand directly in the one around it

# What clients send beside a request to delete, under the version of whatever they delete.
_DELETE_OPTIONS = "DeleteOptions"


@dataclass(frozen=True, slots=True)
class _Field:
    """One field of a message."""

    name: str  # "." is inlined
    type: str
    is_list: bool
    is_map: bool
    stays_empty: bool


@cache
def message(name: str) -> dict[int, _Field] | None:
    """Return the fields of a message by number; None if the name is that of a plain type."""
    text = texts().get(name)
    if text is None:
        return None
    return dict(_field(part) for part in text.split(","))


def message_of(api_version: str, kind: str) -> str:
    """Return the message of a kind; empty if its form is not known here."""
    if kind == _DELETE_OPTIONS:
        return _DELETE_OPTIONS
    return KINDS.get(f"{api_version} {kind}", "")


@cache
def texts() -> dict[str, str]:
    """Return every message in its notation, by name."""
    found: dict[str, str] = {}
    name = ""
    for line in MESSAGES.strip().splitlines():
        if line[0] == " ":
            found[name] += line
            continue
        name, _, fields = line.partition("  ")
        assert name not in found, f"two messages are named {name}"
        found[name] = fields
    return found


def _field(text: str) -> tuple[int, _Field]:
    named, _, type_name = text.partition(":")
    number, name = named.split()
    type_name = type_name.strip() or "string"
    return int(number), _Field(
        name=name.removesuffix("*"),
        type=type_name.removeprefix("[]").removeprefix("{}"),
        is_list=type_name.startswith("[]"),
        is_map=type_name.startswith("{}"),
        stays_empty=name.endswith("*"),
    )
