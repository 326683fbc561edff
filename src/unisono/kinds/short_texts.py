"""Answers about short texts, kept; those about long ones are worked out each time.

Names, amounts and keys repeat thousands of times and are short. What a client sends may as well be
megabytes long, and a cache that counts entries and not bytes would keep thousands of those.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import TypeVar

Answer = TypeVar("Answer")

# The longest name that Kubernetes allows has 253 characters, a label's key with its prefix 317.
LONGEST_KEPT = 320


def cached_if_short(
    most: int, *, typed: bool = False
) -> Callable[[Callable[..., Answer]], Callable[..., Answer]]:
    """Keep the newest answers of a function, as long as none of its texts is a long one."""

    def decorate(function: Callable[..., Answer]) -> Callable[..., Answer]:
        kept = lru_cache(maxsize=most, typed=typed)(function)

        @wraps(function)
        def ask(*given: Hashable, **named: Hashable) -> Answer:
            for one in given:
                if type(one) is str and len(one) > LONGEST_KEPT:
                    return function(*given, **named)
            return kept(*given, **named)

        return ask

    return decorate
