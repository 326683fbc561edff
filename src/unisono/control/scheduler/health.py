"""Whether the scheduler makes progress: plans, their writes, an explanation for every wait.

An idle scheduler is healthy, and so is one with objects in quarantine. It is not when it was asked
to plan and could not, or could not write what it had decided. Only the first is worth a restart: an
API that takes no writes takes none from another process either.
"""

from __future__ import annotations

from unisono.engine.model.names import WorkloadKey

# A failed step is tried again within seconds, so a minute of failures is no hiccup; a restart reads
# the whole cluster again, so it has to be worth it.
UNREADY_AFTER_S = 60.0
UNHEALTHY_AFTER_S = 300.0


class Health:
    """What the scheduler last did, and what it has owed since when."""

    def __init__(self) -> None:
        """Begin with nothing done and nothing owed."""
        self.planned_at = 0.0
        self.written_at = 0.0
        self.problem = ""  # the last exception
        self._behind_since: float | None = None
        self._unwritten_since: float | None = None
        self._unexplained: dict[WorkloadKey, float] = {}  # in the order in which they came

    def began(self, now: float) -> None:
        """A step begins: a plan is owed."""
        if self._behind_since is None:
            self._behind_since = now

    def planned(self, now: float) -> None:
        """A plan was made, perhaps without what is in quarantine."""
        self.planned_at = now
        self._behind_since = None

    def wrote(self, now: float) -> None:
        """A decision was stored."""
        self.written_at = now
        self._unwritten_since = None

    def could_not_write(self, now: float) -> None:
        """None of the decisions was stored."""
        if self._unwritten_since is None:
            self._unwritten_since = now

    def unexplained(self, key: WorkloadKey, now: float) -> None:
        """A workload waits, and nothing has been found out about it yet."""
        self._unexplained.setdefault(key, now)

    def explained(self, key: WorkloadKey) -> None:
        """A workload has an explanation, or does not wait."""
        self._unexplained.pop(key, None)

    def behind_s(self, now: float) -> float:
        """Return for how long no plan could be made."""
        return _since(self._behind_since, now)

    def unwritten_s(self, now: float) -> float:
        """Return for how long no decision could be written."""
        return _since(self._unwritten_since, now)

    def unexplained_s(self, now: float) -> float:
        """Return how long the oldest workload without an explanation has waited."""
        return _since(next(iter(self._unexplained.values()), None), now)

    def why_not_ready(self, now: float) -> str:
        """Say what has gone wrong for a minute; empty if nothing has."""
        return self.why_unhealthy(now, UNREADY_AFTER_S) or (
            f"no decision could be written for {self.unwritten_s(now):.0f} s"
            if self.unwritten_s(now) > UNREADY_AFTER_S
            else ""
        )

    def why_unhealthy(self, now: float, after_s: float = UNHEALTHY_AFTER_S) -> str:
        """Say why a new process is needed; empty if none is."""
        behind = self.behind_s(now)
        if behind <= after_s:
            return ""
        return f"no plan could be made for {behind:.0f} s: {self.problem or 'the last step hangs'}"


def _since(then: float | None, now: float) -> float:
    return 0.0 if then is None else max(0.0, now - then)
