"""The functions and operators of expressions, CEL's own and those that Kubernetes adds.

A method is a function whose first argument stands before the dot.
"""

from __future__ import annotations

import math
import operator
import string
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final
from zoneinfo import ZoneInfo

from unisono.kinds.expressions.formats import duration_seconds, finder, instant, matcher

_UPPER = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


class Maybe:
    """A value that may be missing: what `.?field` and `optional.none()` give."""

    __slots__ = ("has_value", "value")

    def __init__(self, value: Any = None, *, has_value: bool) -> None:
        """Hold a value, or none."""
        self.value = value
        self.has_value = has_value


MISSING: Final = Maybe(has_value=False)


def present(value: Any) -> Maybe:
    """Return a value that is there, as one that might not have been."""
    return Maybe(value, has_value=True)


def _size(value: Any) -> int:
    if type(value) in (str, list, dict, bytes):
        return len(value)
    raise TypeError("only texts, lists and maps have a size")


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError("needs a text")
    return value


def _int(value: Any) -> int:
    if type(value) is bool or not isinstance(value, str | int | float | datetime):
        raise TypeError("cannot be turned into a whole number")
    made = int(value.timestamp()) if isinstance(value, datetime) else int(value)
    if not -(2**63) <= made < 2**63:
        raise OverflowError("the number needs more than 64 bits")
    return made


def _uint(value: Any) -> int:
    made = _int(value)
    if made < 0:
        raise OverflowError("the number is negative")
    return made


def _double(value: Any) -> float:
    if type(value) is bool or not isinstance(value, str | int | float):
        raise TypeError("cannot be turned into a number")
    return float(value)


def _string(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else str(value)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return f"{_string(value.total_seconds())}s"
    if isinstance(value, str | int):
        return str(value)
    raise TypeError("cannot be turned into a text")


def _bool(value: Any) -> bool:
    if type(value) is bool:
        return value
    known = {"true": True, "false": False, "1": True, "0": False, "t": True, "f": False}
    return known[_text(value).lower()]


def _type(value: Any) -> str:
    names = {bool: "bool", int: "int", float: "double", str: "string", list: "list", dict: "map"}
    return names.get(type(value), "null_type")


def _timestamp(value: Any) -> datetime:
    made = value if isinstance(value, datetime) else instant(_text(value))
    if made is None:
        raise ValueError(f"{value!r} is not a time")
    return made


def _duration(value: Any) -> timedelta:
    if isinstance(value, timedelta):
        return value
    seconds = duration_seconds(_text(value))
    if seconds is None:
        raise ValueError(f"{value!r} is not a duration")
    return timedelta(seconds=seconds)


def _of_time(read: Callable[[datetime], int]) -> Callable[..., int]:
    """Return a reader of a part of a time, in UTC or in a named zone."""
    return lambda value, zone="UTC": read(_timestamp(value).astimezone(ZoneInfo(zone)))


def _of_either(part: Callable[[datetime], int], whole: float) -> Callable[..., int]:
    """Return a reader of a part of a time, or of a whole duration in that unit."""
    of_time = _of_time(part)

    def read(value: Any, zone: str = "UTC") -> int:
        if isinstance(value, timedelta):
            return math.trunc(value.total_seconds() / whole)
        return of_time(value, zone)

    return read


def _split(text: str, separator: str, most: int = -1) -> list[str]:
    if most == 0:
        return []
    parts = text.split(separator) if separator else list(text)
    if 0 < most < len(parts):
        return [*parts[: most - 1], separator.join(parts[most - 1 :])]
    return parts


def _substring(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= start <= end <= len(text):
        raise IndexError(f"there are no characters {start} to {end}")
    return text[start:end]


def _index_of(where: Any, what: Any, start: int = 0) -> int:
    if type(where) is str:
        return where.find(_text(what), start)
    return where.index(what) if what in where else -1


def _last_index_of(where: Any, what: Any) -> int:
    if type(where) is str:
        return where.rfind(_text(what))
    return max((at for at, item in enumerate(where) if item == what), default=-1)


def _or_value(maybe: Maybe, other: Any) -> Any:
    return maybe.value if maybe.has_value else other


def _value(maybe: Maybe) -> Any:
    if not maybe.has_value:
        raise LookupError("there is no value")
    return maybe.value


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "size": _size,
    "int": _int,
    "uint": _uint,
    "double": _double,
    "string": _string,
    "bool": _bool,
    "bytes": lambda value: value if type(value) is bytes else _text(value).encode(),
    "dyn": lambda value: value,
    "type": _type,
    "contains": lambda text, part: _text(part) in _text(text),
    "startsWith": lambda text, part: _text(text).startswith(_text(part)),
    "endsWith": lambda text, part: _text(text).endswith(_text(part)),
    "matches": lambda text, pattern: matcher(_text(pattern))(_text(text)),
    "find": lambda text, pattern: finder(_text(pattern))(_text(text)),
    "charAt": lambda text, at: _substring(text, at, min(at + 1, len(text))),
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "join": lambda texts, separator="": _text(separator).join(texts),
    "lowerAscii": lambda text: _text(text).translate(_LOWER),
    "upperAscii": lambda text: _text(text).translate(_UPPER),
    "replace": lambda text, old, new, most=-1: _text(text).replace(old, new, most),
    "split": _split,
    "substring": _substring,
    "trim": lambda text: _text(text).strip(),
    "isSorted": lambda values: all(one <= other for one, other in pairwise(values)),
    "max": max,
    "min": min,
    "sum": sum,
    "timestamp": _timestamp,
    "duration": _duration,
    "getFullYear": _of_time(lambda time: time.year),
    "getMonth": _of_time(lambda time: time.month - 1),
    "getDate": _of_time(lambda time: time.day),
    "getDayOfMonth": _of_time(lambda time: time.day - 1),
    "getDayOfWeek": _of_time(lambda time: time.isoweekday() % 7),
    "getDayOfYear": _of_time(lambda time: time.timetuple().tm_yday - 1),
    "getHours": _of_either(lambda time: time.hour, 3600),
    "getMinutes": _of_either(lambda time: time.minute, 60),
    "getSeconds": _of_either(lambda time: time.second, 1),
    "getMilliseconds": _of_either(lambda time: time.microsecond // 1000, 0.001),
    "optional.of": present,
    "optional.none": lambda: MISSING,
    "hasValue": lambda maybe: maybe.has_value,
    "value": _value,
    "orValue": _or_value,
    "or": lambda maybe, other: maybe if maybe.has_value else other,
}


# ---- operators -----------------------------------------------------------------------------------
#
# What the signs of an expression do to values.
#
# Numbers, strings, lists and maps are JSON's own. A time or a duration is text in JSON; next to a
# real one it is read as what it is. What does not fit raises TypeError.

_LARGEST = 2**63 - 1
_SMALLEST = -(2**63)


def equal(left: Any, right: Any) -> bool:
    """Compare; values of different types differ, but 1 is 1.0."""
    if type(left) is type(right):
        return bool(left == right)
    if type(left) is bool or type(right) is bool:
        return False
    if isinstance(left, datetime | timedelta) or isinstance(right, datetime | timedelta):
        left, right = _as_same(left, right)
    return bool(left == right)


def _ordered(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], bool]:
    def ordered(left: Any, right: Any) -> bool:
        if type(left) is not type(right):
            if type(left) is bool or type(right) is bool:
                raise TypeError("true and false have no order among other values")
            left, right = _as_same(left, right)
        elif left is None or type(left) is dict or type(left) is list:
            raise TypeError("lists, maps and null have no order")
        return bool(compare(left, right))

    return ordered


def _as_same(left: Any, right: Any) -> tuple[Any, Any]:
    """Read a text beside a time or duration as one."""
    if type(left) is str:
        return _like(right, left), right
    if type(right) is str:
        return left, _like(left, right)
    return left, right


def _like(model: Any, text: str) -> Any:
    if isinstance(model, datetime):
        return instant(text) or text
    if isinstance(model, timedelta):
        seconds = duration_seconds(text)
        return text if seconds is None else timedelta(seconds=seconds)
    return text


def _contains(item: Any, container: Any) -> bool:
    """Do what `item in container` does."""
    if type(container) is list:
        return any(equal(item, each) for each in container)
    if type(container) is dict:
        return item in container
    raise TypeError("only a list or a map can contain something")


def _add(left: Any, right: Any) -> Any:
    """Add numbers, join texts or lists, move a time."""
    if type(left) is not type(right):
        left, right = _as_same(left, right)
    if type(left) is dict or type(left) is bool or type(right) is bool:
        raise TypeError("only numbers, texts, lists and times can be added")
    return _in_range(left + right)


def _subtract(left: Any, right: Any) -> Any:
    """Subtract numbers and times."""
    if type(left) is bool or type(right) is bool:
        raise TypeError("only numbers and times can be subtracted")
    if type(left) is not type(right):
        left, right = _as_same(left, right)
    return _in_range(left - right)


def _multiply(left: Any, right: Any) -> Any:
    """Multiply numbers."""
    _both_numbers(left, right)
    return _in_range(left * right)


def _divide(left: Any, right: Any) -> Any:
    """Divide numbers; whole ones towards zero."""
    _both_numbers(left, right)
    if type(left) is int and type(right) is int:
        quotient = abs(left) // abs(right)
        return _in_range(quotient if (left < 0) == (right < 0) else -quotient)
    if right == 0:
        raise ZeroDivisionError("division by zero")
    return left / right


def _remainder(left: Any, right: Any) -> Any:
    """Return what whole division leaves, with the sign of the first number."""
    if type(left) is not int or type(right) is not int:
        raise TypeError("only whole numbers leave a remainder")
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def negative(value: Any) -> Any:
    """Turn a number's sign around."""
    if type(value) not in (int, float):
        raise TypeError("only numbers have a sign")
    return _in_range(-value)


def index(container: Any, at: Any) -> Any:
    """Return an item of a list or an entry of a map."""
    if type(container) is list:
        if type(at) is not int or at < 0:
            raise IndexError(f"there is no item {at}")
        return container[at]
    if type(container) is dict:
        return container[at]
    raise TypeError("only lists and maps have items")


def _both_numbers(left: Any, right: Any) -> None:
    if type(left) not in (int, float) or type(right) not in (int, float):
        raise TypeError("only numbers can be multiplied or divided")


def _in_range(value: Any) -> Any:
    if type(value) is int and not _SMALLEST <= value <= _LARGEST:
        raise OverflowError("the number needs more than 64 bits")
    return value


OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": equal,
    "!=": lambda left, right: not equal(left, right),
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
    "in": _contains,
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
    "%": _remainder,
}
