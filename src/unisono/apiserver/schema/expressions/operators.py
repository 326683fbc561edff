"""What the signs of an expression do to values.

Numbers, strings, lists and maps are JSON's own. A time or a duration is text in JSON; next to a
real one it is read as what it is. What does not fit raises TypeError.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from unisono.apiserver.schema.formats import duration_seconds, instant

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


def contains(item: Any, container: Any) -> bool:
    """Do what `item in container` does."""
    if type(container) is list:
        return any(equal(item, each) for each in container)
    if type(container) is dict:
        return item in container
    raise TypeError("only a list or a map can contain something")


def add(left: Any, right: Any) -> Any:
    """Add numbers, join texts or lists, move a time."""
    if type(left) is not type(right):
        left, right = _as_same(left, right)
    if type(left) is dict or type(left) is bool or type(right) is bool:
        raise TypeError("only numbers, texts, lists and times can be added")
    return _in_range(left + right)


def subtract(left: Any, right: Any) -> Any:
    """Subtract numbers and times."""
    if type(left) is bool or type(right) is bool:
        raise TypeError("only numbers and times can be subtracted")
    if type(left) is not type(right):
        left, right = _as_same(left, right)
    return _in_range(left - right)


def multiply(left: Any, right: Any) -> Any:
    """Multiply numbers."""
    _both_numbers(left, right)
    return _in_range(left * right)


def divide(left: Any, right: Any) -> Any:
    """Divide numbers; whole ones towards zero."""
    _both_numbers(left, right)
    if type(left) is int and type(right) is int:
        quotient = abs(left) // abs(right)
        return _in_range(quotient if (left < 0) == (right < 0) else -quotient)
    if right == 0:
        raise ZeroDivisionError("division by zero")
    return left / right


def remainder(left: Any, right: Any) -> Any:
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
    "in": contains,
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": remainder,
}
