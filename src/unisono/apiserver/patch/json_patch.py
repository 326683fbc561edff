"""JSON patch, RFC 6902: a list of operations, all of them or none.

A pointer such as `/spec/containers/0/image` walks from the root; `~1` stands for `/` and `~0` for
`~` in a name, and `-` for the place behind the last item of a list.

A patch that does not fit the object (a test that fails, a path that is missing) is 422 Invalid,
one that is not a patch at all 400 BadRequest, one that is too much work 413.

In three things the real server is more generous than the RFC, and clients rely on it: `replace`
adds a field that is missing, `test` takes a missing field for null, and -1 is the last item.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from unisono.apiserver.errors import ApiError, bad_request
from unisono.apiserver.objects import Json, bounded, copied, same

# The real server stops here as well; a patch of that length is a mistake or an attack.
MAX_OPERATIONS = 10_000
# How many bytes all `copy` operations together may duplicate: as large as a request may be. A list
# copied into itself doubles every time, so thirty operations would otherwise fill the memory.
MAX_COPIED_BYTES = 3 * 1024 * 1024
# More digits than any list can have items; `int` is slow on endless ones.
MAX_INDEX_DIGITS = 9
_INDEX = re.compile(r"0|-?[1-9][0-9]*")


@bounded
def json_patch(target: Json, operations: list[Any]) -> Json:
    """Return the object with the operations applied in order."""
    if not isinstance(operations, list):
        raise bad_request("a JSON patch is a list of operations")
    if len(operations) > MAX_OPERATIONS:
        message = f"a JSON patch may have {MAX_OPERATIONS} operations; this one has"
        raise ApiError(413, "RequestEntityTooLarge", f"{message} {len(operations)}")
    document = _Document(copied(target))
    for number, operation in enumerate(operations):
        document.run(operation, f"operation {number}")
    if not isinstance(document.root, dict):
        raise _misfit("the patch leaves no object behind")
    return document.root


def _misfit(message: str) -> ApiError:
    return ApiError(422, "Invalid", message)


class _Document:
    """The object while it is being changed."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._copied_bytes = 0

    def run(self, operation: Any, where: str) -> None:
        """Carry out one operation."""
        if not isinstance(operation, dict):
            raise bad_request(f"{where} is not an object with op and path")
        act = _OPERATIONS.get(operation["op"]) if isinstance(operation.get("op"), str) else None
        if act is None:
            names = ", ".join(_OPERATIONS)
            raise _misfit(f"{where}: op is {operation.get('op')!r}; it is one of {names}")
        path = _pointer(operation, "path", where)
        act(self, operation, path, f"{where}: {operation['op']} {operation['path']}")

    # ---- the six operations ------------------------------------------------------------------

    def add(self, operation: Mapping[str, Any], path: list[str], where: str) -> None:
        self._put(path, copied(_value(operation, where)), where)

    def remove(self, _operation: Mapping[str, Any], path: list[str], where: str) -> None:
        self._take(path, where)

    def replace(self, operation: Mapping[str, Any], path: list[str], where: str) -> None:
        value = copied(_value(operation, where))
        if not path:
            self.root = value
            return
        parent = self._find(path[:-1], where)
        if isinstance(parent, dict):
            parent[path[-1]] = value
        else:
            place = _index(parent, path[-1], where)
            parent[place] = value

    def move(self, operation: Mapping[str, Any], path: list[str], where: str) -> None:
        source = _pointer(operation, "from", where)
        if len(path) > len(source) and path[: len(source)] == source:
            raise _misfit(f"{where}: a value cannot be moved into itself")
        self._put(path, self._take(source, where), where)

    def copy(self, operation: Mapping[str, Any], path: list[str], where: str) -> None:
        value = self._find(_pointer(operation, "from", where), where)
        self._copied_bytes += _size(value)
        if self._copied_bytes > MAX_COPIED_BYTES:
            message = f"{where}: the patch copies more than {MAX_COPIED_BYTES} bytes"
            raise ApiError(413, "RequestEntityTooLarge", message)
        self._put(path, copied(value), where)

    def test(self, operation: Mapping[str, Any], path: list[str], where: str) -> None:
        expected = operation.get("value")
        if path and expected is None:
            parent = self._find(path[:-1], where)
            if isinstance(parent, dict) and path[-1] not in parent:
                return
        if not same(self._find(path, where), expected):
            raise _misfit(f"{where}: the value is another one")

    # ---- places ------------------------------------------------------------------------------

    def _find(self, path: list[str], where: str) -> Any:
        context = self.root
        for name in path:
            if isinstance(context, dict):
                if name not in context:
                    raise _misfit(f"{where}: there is no field {name!r}")
                context = context[name]
            else:
                context = context[_index(context, name, where)]
        return context

    def _put(self, path: list[str], value: Any, where: str) -> None:
        if not path:
            self.root = value
            return
        parent = self._find(path[:-1], where)
        if isinstance(parent, dict):
            parent[path[-1]] = value
        elif path[-1] == "-" and isinstance(parent, list):
            parent.append(value)
        else:
            place = _index(parent, path[-1], where, extra=1)
            parent.insert(place, value)

    def _take(self, path: list[str], where: str) -> Any:
        if not path:
            raise _misfit(f"{where}: the whole object cannot be taken away")
        parent = self._find(path[:-1], where)
        if isinstance(parent, dict):
            if path[-1] not in parent:
                raise _misfit(f"{where}: there is no such field")
            return parent.pop(path[-1])
        place = _index(parent, path[-1], where)
        return parent.pop(place)


_OPERATIONS: Mapping[str, Callable[[_Document, Mapping[str, Any], list[str], str], None]] = {
    "add": _Document.add,
    "remove": _Document.remove,
    "replace": _Document.replace,
    "move": _Document.move,
    "copy": _Document.copy,
    "test": _Document.test,
}


def _value(operation: Mapping[str, Any], where: str) -> Any:
    if "value" not in operation:
        raise _misfit(f"{where}: value is missing")
    return operation["value"]


def _pointer(operation: Mapping[str, Any], key: str, where: str) -> list[str]:
    text = operation.get(key)
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise _misfit(f"{where}: {key} is {text!r}; it must be empty or start with /")
    # The order matters: "~01" is "~1", not "/".
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _index(parent: Any, text: str, where: str, *, extra: int = 0) -> int:
    """Read a place in a list; `extra` is 1 where the place behind the last item counts."""
    if not isinstance(parent, list):
        raise _misfit(f"{where}: nothing can be below a plain value")
    if len(text) > MAX_INDEX_DIGITS or _INDEX.fullmatch(text) is None:
        raise _misfit(f"{where}: {text[:MAX_INDEX_DIGITS]!r} is not an index of a list")
    places = len(parent) + extra
    place = int(text) + (places if text[0] == "-" else 0)
    if not 0 <= place < places:
        raise _misfit(f"{where}: the list has {len(parent)} items")
    return place


def _size(value: Any) -> int:
    try:
        return len(orjson.dumps(value))
    except (TypeError, ValueError):
        return len(str(value))  # too deep or too large a number for orjson: roughly is enough


# ---- jSON merge patch, RFC 7386: a sparse object whose fields win; null removes a field ----------


@bounded
def merge_patch(target: Json, patch: Json) -> Json:
    """Return the object with the patch merged in; lists are replaced whole."""
    if not isinstance(patch, dict):
        raise bad_request("a merge patch is an object")
    result: Json = copied(target)
    _merge(result, copied(patch))
    return result


def _merge(target: Json, patch: Json) -> None:
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        elif isinstance(value, dict):
            below = target.get(name)
            if not isinstance(below, dict):
                # What stands there is no object: the patch is merged into an empty one, so that
                # its nulls vanish.
                below = target[name] = {}
            _merge(below, value)
        else:
            target[name] = value
