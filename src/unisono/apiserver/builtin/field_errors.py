"""What can be wrong with a field, in the words that every client of Kubernetes knows.

A cause is a reason that programs read and a sentence that people read; both name the field.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from unisono.apiserver.errors import Cause

_MAX_SHOWN = 80  # of a value that is quoted


def required(path: str, why: str = "") -> Cause:
    """Something is missing."""
    return Cause("FieldValueRequired", f"Required value: {why}" if why else "Required value", path)


def invalid(path: str, value: object, why: str) -> Cause:
    """A value cannot be."""
    return Cause("FieldValueInvalid", f"Invalid value: {shown(value)}: {why}", path)


def immutable(path: str, value: object) -> Cause:
    """A value that was chosen at creation would change."""
    return invalid(path, value, "field is immutable")


def not_supported(path: str, value: object, allowed: Iterable[str]) -> Cause:
    """A value is none of those that are known."""
    listed = ", ".join(f'"{one}"' for one in sorted(allowed))
    message = f"Unsupported value: {shown(value)}: supported values: {listed}"
    return Cause("FieldValueNotSupported", message, path)


def forbidden(path: str, why: str) -> Cause:
    """A field may not be there, or may not change, in this situation."""
    return Cause("FieldValueForbidden", f"Forbidden: {why}", path)


def duplicate(path: str, value: object) -> Cause:
    """A value stands twice where it must be unique."""
    return Cause("FieldValueDuplicate", f"Duplicate value: {shown(value)}", path)


def not_found(path: str, value: object) -> Cause:
    """A value names something that is not there."""
    return Cause("FieldValueNotFound", f"Not found: {shown(value)}", path)


def too_long(path: str, limit: int, what: str = "bytes") -> Cause:
    """A value is longer than allowed."""
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit} {what}", path)


def too_many(path: str, count: int, most: int) -> Cause:
    """A list is longer than allowed."""
    return Cause("FieldValueTooMany", f"Too many: {count}: must have at most {most} items", path)


def about(path: str, value: object, wrong: str) -> Iterator[Cause]:
    """Yield a cause if one of the `wrong_with_…` functions found something."""
    if wrong:
        yield invalid(path, value, wrong)


def shown(value: object) -> str:
    """Return a value as messages quote it.

    >>> shown("a"), shown(None), shown({"a": 1})
    ('"a"', 'null', '{"a": 1}')
    """
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."
