"""When a queue's status is written: only if it says something else, and not too often.

A thousand jobs that are submitted at once change the counts of their queue thousands of times;
people want to see the last of it, and nobody waits for the ones between.
"""

from __future__ import annotations

from unisono.control.actions import Json, Patch, Ref, Steps
from unisono.kube.form import Key

# A status is written at once, and then so many seconds not again.
REST_SECONDS = 1.0


class Pace:
    """Remembers when each key was last written; forgetting it only means one write more."""

    def __init__(self) -> None:
        """Begin with nobody written."""
        self._written: dict[Key, float] = {}

    def rests_until(self, key: Key, now: float) -> float | None:
        """Return when a status may be written again; None if it may now.

        Until then nobody need work out what it would say.
        """
        due = self._written.get(key, now - REST_SECONDS) + REST_SECONDS
        return due if now < due else None

    def write(self, key: Key, obj: Json, status: Json, now: float) -> Steps:
        """Write what is different about a status that does not rest."""
        old = obj.get("status") or {}
        changed = {name: value for name, value in status.items() if old.get(name) != value}
        if changed:
            self._written[key] = now
            yield Patch(Ref.to(obj), {"status": changed}, "status")

    def forget(self, key: Key) -> None:
        """Let go of a queue that is gone."""
        self._written.pop(key, None)
