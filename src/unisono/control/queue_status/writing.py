"""When a queue's status is written: only if it says something else, and not too often.

A thousand jobs that are submitted at once change the counts of their queue thousands of times;
people want to see the last of it, and nobody waits for the ones between.
"""

from __future__ import annotations

from itertools import takewhile

from unisono.control.actions import Json, Patch, Ref, Steps
from unisono.control.queue_status.tally import Sums
from unisono.kube.form import Key

# A status is written at once, and then so many seconds not again.
REST_SECONDS = 1.0
# Where many queues are busy each of them rests longer: statuses of queues must not cost more than
# some hundredths of what an API server can store, which is some hundred writes a second.
MOST_PER_SECOND = 3
# That a queue is empty is what people, and scripts, wait for: it is told sooner.
MOST_EMPTY_PER_SECOND = 30
# Who was not written for so long does not count as busy.
_BUSY_SECONDS = 10.0


class Pace:
    """Remembers when each key was last written; forgetting it only means one write more."""

    def __init__(self) -> None:
        """Begin with nobody written."""
        self._written: dict[Key, float] = {}  # the busy ones, in order of their last write

    def rests_until(self, key: Key, sums: Sums, now: float) -> float | None:
        """Return when the status of a queue with these counts may be written; None if it may now.

        Until then nobody need work out what it would say.
        """
        last = self._written.get(key)
        if last is None:
            return None
        is_empty = not sums.pending and not sums.reserving
        most = MOST_EMPTY_PER_SECOND if is_empty else MOST_PER_SECOND
        due = last + max(REST_SECONDS, len(self._written) / most)
        return due if now < due else None

    def write(self, key: Key, obj: Json, status: Json, now: float) -> Steps:
        """Write what is different about a status that does not rest."""
        old = obj.get("status") or {}
        changed = {name: value for name, value in status.items() if old.get(name) != value}
        if changed:
            self.forget(key)
            self._written[key] = now
            self._forget_quiet(now)
            yield Patch(Ref.to(obj), {"status": changed}, "status")

    def _forget_quiet(self, now: float) -> None:
        longest = max(_BUSY_SECONDS, len(self._written) / MOST_PER_SECOND)
        quiet = takewhile(lambda one: now - one[1] > longest, self._written.items())
        for key, _ in list(quiet):
            del self._written[key]

    def forget(self, key: Key) -> None:
        """Let go of a queue that is gone."""
        self._written.pop(key, None)
