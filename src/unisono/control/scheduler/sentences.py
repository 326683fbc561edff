"""How many sentences about waiting are written while there is better to do.

On a real cluster the API server is the bottleneck: it stores some hundred writes a second, and a
sentence costs it as much as an admission. While workloads are being admitted, most of those who
wait will not wait for long; they are told later, and somebody who was admitted first never is.
"""

from __future__ import annotations

from unisono.control.actions import Again, Steps
from unisono.kube.form import Key

# While workloads are admitted, and else: sentences a second.
BUSY_PER_SECOND = 4.0
QUIET_PER_SECOND = 100.0
# So many may come at once: a person who submits some jobs hears of all of them immediately.
MOST_AT_ONCE = 50.0
# For so long after the last admission it counts as busy.
BUSY_SECONDS = 2.0
_SHORTEST_REST_SECONDS = 1.0


class Sentences:
    """A bucket that fills with time, and who waits for a drop of it."""

    def __init__(self) -> None:
        """Begin with a full bucket."""
        self._left = MOST_AT_ONCE
        self._filled_at = 0.0
        self._admitted_at = float("-inf")
        self._put_off: set[Key] = set()

    def put_off(self, key: Key, now: float, admitted_at: float) -> Steps:
        """Say when to come back if there is no room for a sentence now; else nothing."""
        self._admitted_at = max(self._admitted_at, admitted_at)
        is_busy = now < self._admitted_at + BUSY_SECONDS
        rate = BUSY_PER_SECOND if is_busy else QUIET_PER_SECOND
        passed = max(0.0, now - self._filled_at)
        self._left = min(MOST_AT_ONCE, self._left + rate * passed)
        self._filled_at = now
        if self._left >= 1.0:
            self._left -= 1.0
            self._put_off.discard(key)
            return
        self._put_off.add(key)
        # Everybody's turn comes after that of all others, so nobody asks much more than once.
        yield Again(now + max(_SHORTEST_REST_SECONDS, len(self._put_off) / QUIET_PER_SECOND))

    def give_back(self) -> None:
        """Take back what somebody was given who had nothing new to hear."""
        self._left = min(MOST_AT_ONCE, self._left + 1.0)

    def forget(self, key: Key) -> None:
        """Let go of somebody who need not be told any more."""
        self._put_off.discard(key)

    def has_put_off(self, key: Key) -> bool:
        """Say whether somebody is still waiting to be told."""
        return key in self._put_off
