"""Refuse what is nested so deeply that walking it could end in an accident.

No kind comes near the limit; what does is a mistake or an attack. Encoders, comparisons and CEL all
recurse, and the first of them gives up at 254 levels.
"""

from __future__ import annotations

from typing import Any

from unisono.apiserver.errors import bad_request

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
