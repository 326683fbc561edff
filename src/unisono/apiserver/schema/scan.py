"""Ask a schema whether something is said anywhere in it, without compiling it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from unisono.kinds.shapes.served import definition

Test = Callable[[Mapping[str, Any]], bool]


def says(raw: Mapping[str, Any], test: Test) -> bool:
    """Say whether a test holds for the schema or for any schema below it."""
    seen: set[str] = set()
    waiting = [raw]
    while waiting:
        at = waiting.pop()
        name = at.get("$ref")
        if name is not None:
            if name not in seen:
                seen.add(name)
                waiting.append(definition(name))
            continue
        if test(at):
            return True
        waiting.extend(at.get("properties", {}).values())
        for word in ("items", "additionalProperties"):
            below = at.get(word)
            if isinstance(below, Mapping):
                waiting.append(below)
    return False
