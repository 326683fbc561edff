"""How fast and how often: a token bucket, and delays that grow.

Pure: the time and the random source come in.
"""

from __future__ import annotations

import random
from dataclasses import dataclass


class TokenBucket:
    """So many at once, and then so many per second (a token bucket).

    >>> bucket = TokenBucket(rate=2, burst=1)
    >>> bucket.take(now=0.0), bucket.take(now=0.0), bucket.take(now=0.5)
    (0.0, 0.5, 0.0)
    """

    __slots__ = ("_burst", "_filled_at", "_rate", "_tokens")

    def __init__(self, *, rate: float, burst: float) -> None:
        """Make a full bucket."""
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._filled_at: float | None = None

    def take(self, now: float) -> float:
        """Take one token and return 0, or take nothing and return how long there will be none."""
        wait = self.wait(now)
        if wait == 0.0:
            self._tokens -= 1
        return wait

    def wait(self, now: float) -> float:
        """Return in how many seconds a token can be had; 0 means now."""
        if self._filled_at is not None:
            grown = max(0.0, now - self._filled_at) * self._rate
            self._tokens = min(self._burst, self._tokens + grown)
        self._filled_at = now
        missing = 1 - self._tokens
        # A whisker less than a whole token counts, or rounding could make a caller wait for ever.
        return missing / self._rate if missing > 1e-9 else 0.0

    def reserve(self, now: float) -> float:
        """Take one token in any case; return how far in the future it will be there."""
        wait = self.wait(now)
        self._tokens -= 1
        return wait


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that double from `first_s` to `most_s`.

    With `jitter` 1 a delay is stretched by up to its own length; with -0.5 it is shortened by up to
    a half. So many clients that failed together do not come back together.
    """

    first_s: float
    most_s: float
    jitter: float = 0.0

    def delay(self, failures: int, random_source: random.Random) -> float:
        """Return how long to wait after the given number of failures in a row, at least 1."""
        # 2**60 is far beyond any limit; larger powers would only overflow.
        plain = min(self.most_s, self.first_s * 2.0 ** min(failures - 1, 60))
        return plain * (1 + self.jitter * random_source.uniform(0, 1)) if self.jitter else plain
