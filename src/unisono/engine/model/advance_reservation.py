"""Advance reservations: nodes kept for some workloads, or for maintenance (spec backfill §8)."""

from __future__ import annotations

from typing import Literal

import msgspec

from unisono.engine.model.names import Instant, LocalQueueKey, NodeName, namespace_of
from unisono.engine.model.workload import Workload

_PERIOD_MS = {"daily": 24 * 3600 * 1000, "weekly": 7 * 24 * 3600 * 1000}


class AdvanceReservation(msgspec.Struct, frozen=True, kw_only=True):
    """Which nodes, from when until when, and which workloads may run there meanwhile."""

    name: str
    start: Instant
    end: Instant
    nodes: tuple[NodeName, ...] = ()  # none named: all of them
    # Workloads of any of these may run there; none at all if all are empty (maintenance).
    local_queues: tuple[LocalQueueKey, ...] = ()
    namespaces: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()  # as workloads name them
    users: tuple[str, ...] = ()
    repeat: Literal["", "daily", "weekly"] = ""

    def is_open_to(self, workload: Workload) -> bool:
        """Say whether a workload may run on these nodes at any time."""
        return (
            workload.queue in self.local_queues
            or namespace_of(workload.key) in self.namespaces
            or (workload.turn.account != "" and workload.turn.account in self.accounts)
            or (workload.turn.user != "" and workload.turn.user in self.users)
        )

    def times_from(self, instant: Instant) -> tuple[Instant, Instant] | None:
        """Return its present or next occurrence; None once it is over for good."""
        period = _PERIOD_MS.get(self.repeat)
        if period is None:
            return (self.start, self.end) if instant < self.end else None
        later = max(0, (instant - self.end) // period + 1) * period
        return Instant(self.start + later), Instant(self.end + later)
