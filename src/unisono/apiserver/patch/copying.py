"""Copies of JSON values, and a limit to how deep they may go."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import orjson

from unisono.apiserver.errors import bad_request

Given = ParamSpec("Given")
Result = TypeVar("Result")


def copied(value: Any) -> Any:
    """Return a copy that shares nothing with the value."""
    try:
        # To bytes and back is four times as fast as a walk in Python.
        return orjson.loads(orjson.dumps(value))
    except (TypeError, ValueError):
        # Beyond what orjson writes: deeper than 254 levels, or numbers beyond 64 bits.
        return _walked(value)


def _walked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _walked(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_walked(child) for child in value]
    return value


def same(left: Any, right: Any) -> bool:
    """Say whether two JSON values are equal; unlike Python, true is not 1, but 1 is 1.0.

    >>> same({"a": [1, True]}, {"a": [1.0, True]}), same([True], [1])
    (True, False)
    """
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and len(left) == len(right)
            and all(key in right and same(child, right[key]) for key, child in left.items())
        )
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(same, left, right))
    return bool(left == right) and isinstance(left, bool) is isinstance(right, bool)


def equal(left: Any, right: Any) -> bool:
    """Say the same as `same`, faster where most of two large values is alike."""
    if left != right:
        return False
    if isinstance(left, (dict, list)):
        try:
            # Python takes true for 1, bytes do not. They differ for another order of the fields
            # as well, which is rare enough for a walk.
            if orjson.dumps(left) == orjson.dumps(right):
                return True
        except (TypeError, ValueError):
            pass
    return same(left, right)


def bounded(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Refuse values nested so deeply that walking them exhausts the stack."""

    @wraps(function)
    def call(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except RecursionError:
            raise bad_request("the object is nested too deeply") from None

    return call
