"""JSON merge patch, RFC 7386: a sparse object whose fields win; null removes a field."""

from __future__ import annotations

from typing import Any

from unisono.apiserver.errors import bad_request
from unisono.apiserver.patch.copying import bounded, copied

Json = dict[str, Any]


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
