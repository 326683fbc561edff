"""`override` for Python 3.11, which has none in `typing`: a word for the type checker only."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from typing_extensions import override
else:
    T = TypeVar("T", bound=Callable[..., object])

    def override(method: T) -> T:
        """Return the method as it is."""
        return method


__all__ = ["override"]
