"""What a job that had to leave keeps of its work."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Restarts:
    """Starts over, goes on from a checkpoint, or was only suspended."""

    checkpoint_s: float = 0.0  # 0: nothing is kept; else what was done at the last whole multiple
    restore_s: float = 0.0  # what it costs to take it up again
    suspends: bool = False  # who has to leave keeps all of it; not who lost a node

    def kept(self, done: float, *, is_lost: bool = False) -> float:
        """Return the work that is not lost; `is_lost`: with the node that it was on."""
        if self.suspends and not is_lost:
            return done
        return done // self.checkpoint_s * self.checkpoint_s if self.checkpoint_s else 0.0
