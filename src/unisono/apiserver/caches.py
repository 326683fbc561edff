"""Verdicts that come again and again, kept within bounds."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from typing import Any, Generic, TypeVar

import orjson

# ---- verdicts ------------------------------------------------------------------------------------
#
# Verdicts on what was seen before: jobs and pods come in thousands of the same shape.
#
# A verdict may be kept if it depends on nothing but the parts it is filed under; then the same
# parts get the same verdict, with or without the cache. Parts are known by a digest, so a large
# template costs no memory.

T = TypeVar("T")

# More shapes than are in use at the same time; a verdict takes about 200 bytes.
_MOST_KEPT = 2048
_DIGEST_BYTES = 16


class VerdictCache(Generic[T]):
    """Verdicts by what they are about; the oldest are forgotten."""

    def __init__(self, most: int = _MOST_KEPT) -> None:
        """Begin with nothing."""
        self._kept: OrderedDict[bytes, T] = OrderedDict()
        self._most = most

    @staticmethod
    def key(*parts: Any) -> bytes:
        """Return what parts of objects are known by."""
        written = orjson.dumps(parts, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
        return blake2b(written, digest_size=_DIGEST_BYTES).digest()

    def get(self, key: bytes) -> T | None:
        """Return a verdict that was kept, or None."""
        return self._kept.get(key)

    def keep(self, key: bytes, verdict: T) -> None:
        """Remember a verdict."""
        if len(self._kept) >= self._most:
            self._kept.popitem(last=False)
        self._kept[key] = verdict
