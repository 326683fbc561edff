"""The protobuf wire format: a message is a run of numbered values that do not say what they mean.

    tag = number << 3 | wire type
    0   varint: seven bits a byte, least significant first, the top bit says "more"
    1   eight bytes          2   a length and as many bytes          5   four bytes

Types 3 and 4 (groups) are not used any more and count as broken.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.apiserver.errors import ApiError, bad_request

VARINT = 0
FIXED64 = 1
BYTES = 2
FIXED32 = 5

# As many as a body in JSON may have that is not the definition of a kind (`rest.extent`).
MAX_VALUES = 40_000
_MOST_VARINT_BYTES = 10  # 64 bits in portions of seven
_64_BITS = (1 << 64) - 1


def broken(what: str, where: str) -> ApiError:
    """Return the refusal of a body that no client can have meant."""
    place = f" in {where}" if where else ""
    return bad_request(f"the protobuf body {what}{place}")


class Budget:
    """How many values a body may still have: an empty message is two bytes, and a dictionary."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        """Begin with all of them."""
        self._left = MAX_VALUES

    def spend(self, where: str, count: int = 1) -> None:
        """Count values; raises a 400 when there are too many."""
        self._left -= count
        if self._left < 0:
            raise broken(f"has more than {MAX_VALUES} values", where)


def read_message(
    message: bytes, where: str, budget: Budget
) -> Iterator[tuple[int, int, int | bytes]]:
    """Yield number, wire type and raw value of each field; `where` is for refusals."""
    at, end = 0, len(message)
    while at < end:
        budget.spend(where)
        tag, at = _varint(message, at, where)
        number, kind = tag >> 3, tag & 7
        if not number:
            raise broken("has a field with the number 0", where)
        if kind == VARINT:
            value, at = _varint(message, at, where)
            yield number, kind, value
            continue
        if kind == BYTES:
            length, at = _varint(message, at, where)
        elif kind == FIXED64:
            length = 8
        elif kind == FIXED32:
            length = 4
        else:
            raise broken(f"has the unknown wire type {kind}", where)
        if length > end - at:
            raise broken("is cut off", where)
        yield number, kind, message[at : at + length]
        at += length


def read_packed(values: bytes, where: str, budget: Budget) -> Iterator[int]:
    """Yield the numbers of a repeated field that stand together in one value."""
    at = 0
    while at < len(values):
        budget.spend(where)
        value, at = _varint(values, at, where)
        yield value


def signed(value: int) -> int:
    """Read 64 bits as a number that may be negative.

    >>> signed(2**64 - 7)
    -7
    """
    return value - (1 << 64) if value >> 63 else value


def _varint(message: bytes, at: int, where: str) -> tuple[int, int]:
    value = 0
    for position in range(_MOST_VARINT_BYTES):
        if at >= len(message):
            raise broken("is cut off", where)
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            return value & _64_BITS, at
    raise broken("has a number of more than 64 bits", where)
