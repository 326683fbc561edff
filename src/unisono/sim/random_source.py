"""Random numbers: generators that a seed and a purpose decide.

Each purpose has a stream of its own, so that one more draw for arrivals does not change sizes.
"""

from __future__ import annotations

import zlib

import numpy as np

RandomSource = np.random.Generator


def random_source(seed: int, purpose: str) -> RandomSource:
    """Return a generator; equal arguments give equal draws on every machine."""
    return np.random.Generator(np.random.PCG64([seed, zlib.crc32(purpose.encode())]))
