"""Chance, by one door: generators that a seed and a purpose decide.

Each purpose has a stream of its own, so that one more draw for arrivals does not change sizes.
"""

from __future__ import annotations

import zlib

import numpy as np

Dice = np.random.Generator


def dice(seed: int, purpose: str) -> Dice:
    """Return a generator; equal arguments give equal draws everywhere."""
    return np.random.Generator(np.random.PCG64([seed, zlib.crc32(purpose.encode())]))
