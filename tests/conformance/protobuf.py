"""Just enough protobuf to write request bodies as command lines send them."""

from __future__ import annotations

Value = str | bytes | int | bool

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    """Return an object as it travels: four magic bytes, then its type and its bytes."""
    type_meta = message((1, api_version), (2, kind))
    return b"k8s\x00" + message((1, type_meta), (2, raw), (3, ""), (4, ""))


def message(*fields: tuple[int, Value]) -> bytes:
    """Return a message of numbered fields.

    >>> message((1, "a"), (2, 300)).hex()
    '0a016110ac02'
    """
    return b"".join(_field(number, value) for number, value in fields)


def entry(key: str, value: Value) -> bytes:
    """Return one entry of a map."""
    return message((1, key), (2, value))


def _field(number: int, value: Value) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value & (2**64 - 1))
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
