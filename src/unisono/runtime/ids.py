"""Random ids of the operating system, the only source of them; other code takes a callable."""

from __future__ import annotations

import os
import random

_VERSION_4 = 0x4 << 76 | 0x2 << 62  # and the variant
_FREE_BITS = ~(0xF << 76 | 0x3 << 62)
_AT_ONCE = 256  # asking the system for each id would give other threads a turn each time
_pool: list[bytes] = []


def new_uid() -> str:
    """Return a new unique id for an object: a UUID of version 4.

    Written out here because a gang needs a dozen, and the library makes an object of each first.

    >>> import uuid
    >>> uuid.UUID(new_uid()).version
    4
    """
    try:
        drawn = _pool.pop()  # each goes to one thread
    except IndexError:
        much = os.urandom(16 * _AT_ONCE)
        _pool.extend(much[start : start + 16] for start in range(16, len(much), 16))
        drawn = much[:16]
    bits = int.from_bytes(drawn, "big") & _FREE_BITS | _VERSION_4
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def random_source() -> random.Random:
    """Return an unpredictable random source."""
    return random.SystemRandom()
