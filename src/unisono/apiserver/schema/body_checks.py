"""Fields that a JSON document gives twice; every other reader keeps the last and says nothing."""

from __future__ import annotations

import json
from typing import Any

import orjson

from unisono.apiserver.errors import bad_request

# More would not help, and a hostile document could have millions.
_MAX_REPORTED = 20


class _Twice(dict[str, Any]):
    """An object in which some keys were given more than once."""

    __slots__ = ("keys_twice",)
    keys_twice: list[str]


def duplicate_fields(body: bytes) -> list[str]:
    """Return the paths of keys that stand more than once in the same object.

    >>> duplicate_fields(b'{"spec": {"a": 1, "a": 2, "b": [{"c": 1, "c": 1}]}}')
    ['spec.a', 'spec.b[0].c']
    """
    found_any = False

    def read(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found_any
        made = dict(pairs)
        if len(made) == len(pairs):
            return made
        found_any = True
        marked = _Twice(pairs)
        seen: set[str] = set()
        twice = [key for key, _ in pairs if key in seen or seen.add(key)]  # type: ignore[func-returns-value]  # add returns None, which is what makes it work
        marked.keys_twice = list(dict.fromkeys(twice))
        return marked

    try:
        root = json.loads(body, object_pairs_hook=read)
    except (ValueError, RecursionError):
        return []  # YAML, or unreadable; decoding says so
    found: list[str] = []
    if found_any:
        _collect(root, "", found)
    return found


def has_every_key(value: Any, body: bytes) -> bool:
    """Say whether a value surely has all keys of the JSON text that it was read from.

    Then none stood there twice, and the text need not be read again to find that out. Every key of
    a text ends in `":` if no space stands before a colon anywhere. Where strings contain the same
    letters there seem to be more keys than there are: the answer is no, which only costs time.

    >>> has_every_key({"a": [{"b": 1}]}, b'{"a": [{"b": 1}]}')
    True
    >>> has_every_key({"a": 2}, b'{"a": 1, "a": 2}')
    False
    """
    if _is_written_so(value, body):
        return True
    if any(before in body for before in (b" :", b"\n:", b"\t:", b"\r:")):
        return False
    count = body.count(b'":')
    level: list[Any] = [value] if type(value) is dict or type(value) is list else []
    while level and count >= 0:
        below: list[Any] = []
        for container in level:
            if type(container) is dict:
                count -= len(container)
                container = container.values()
            below += [each for each in container if type(each) is dict or type(each) is list]
        level = below
    return count == 0


def _is_written_so(value: Any, body: bytes) -> bool:
    """Say whether a text is just what we would write, as it is from most programs."""
    try:
        return orjson.dumps(value) == body
    except (TypeError, ValueError):
        return False


def _collect(value: Any, path: str, found: list[str]) -> None:
    if len(found) >= _MAX_REPORTED:
        return
    if isinstance(value, dict):
        for key in value.keys_twice if isinstance(value, _Twice) else ():
            found.append(f"{path}.{key}" if path else key)
        for key, item in value.items():
            if isinstance(item, dict | list):
                _collect(item, f"{path}.{key}" if path else key, found)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict | list):
                _collect(item, f"{path}[{index}]", found)


# ---- refuse what is nested so deeply that walking it could end in an accident --------------------
#
# No kind comes near the limit; what does is a mistake or an attack. Encoders, comparisons and CEL
# all recurse, and the first of them gives up at 254 levels.


MAX_DEPTH = 200


def refuse_deep(value: object) -> None:
    """Raise a 400 if anything stands more than `MAX_DEPTH` levels down."""
    if is_deep(value):
        raise bad_request(f"the object is nested more than {MAX_DEPTH} levels deep")


def is_deep(value: object) -> bool:
    """Say whether anything stands more than `MAX_DEPTH` levels down."""
    level: list[Any] = [value] if type(value) is dict or type(value) is list else []
    for _ in range(MAX_DEPTH + 1):
        level = [
            item
            for container in level
            for item in (container.values() if type(container) is dict else container)
            if type(item) is dict or type(item) is list
        ]
        if not level:
            return False
    return True
