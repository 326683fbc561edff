"""Estimated starts of pending workloads: renewed at most once a minute, and only after a change.

A published estimate stays until it is wrong by more than a minute, and by more than a twentieth of
the time that is left: it is not more precise than that, and every change costs a write.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from unisono.engine.cluster import new_cluster
from unisono.engine.estimates import MOST, estimates
from unisono.engine.model.explanation import Blocker, Expected, Explanation, Planned
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.state.cluster import ClusterState

PAUSE_MS = 60_000
# An estimate costs about so much for every node; with many nodes fewer workloads get one.
_WORK = 100_000
_LEAST = 8


class WorksOut(Protocol):
    """Estimates starts: the engine, or a wrapper that also measures its time."""

    def __call__(
        self, state: ClusterState, now: Instant, *, most: int
    ) -> dict[WorkloadKey, Expected]:
        """Return when each of the first so many pending workloads will start."""


class Estimates:
    """Remembers the last published estimate of each workload."""

    def __init__(self) -> None:
        """Begin with nothing known."""
        self._state = new_cluster()
        self._known: dict[WorkloadKey, Expected] = {}
        self._made_at: Instant | None = None
        self._is_stale = True
        self.works_out: WorksOut = estimates

    def use(self, state: ClusterState) -> None:
        """Estimate on this state from now on."""
        self._state = state
        self._is_stale = True

    def invalidate(self) -> None:
        """Note that something changed."""
        self._is_stale = True

    def refresh(self, now: Instant) -> list[WorkloadKey]:
        """Estimate again if it is time to; return whose estimate is another now."""
        due = self.next_due()
        if due is None or due > now:
            return []
        self._made_at, self._is_stale = now, False
        nodes = max(1, len(self._state.nodes.table.row_of))
        found = self.works_out(self._state, now, most=max(_LEAST, min(MOST, _WORK // nodes)))
        changed = []
        for key in [*self._known.keys() - found.keys()]:
            del self._known[key]
            changed.append(key)
        for key, fact in found.items():
            old = self._known.get(key)
            if old is None or has_moved(old, fact, now):
                self._known[key] = fact
                changed.append(key)
        return sorted(changed)

    def next_due(self) -> Instant | None:
        """Return when to estimate again; None: not before something happens."""
        if not self._state.waiting:
            return None
        if self._made_at is None:
            return self._state.now
        soonest = Instant(self._made_at + PAUSE_MS)
        if self._is_stale:
            return soonest
        # A workload that should have started by now waits for one that runs longer than expected.
        first = min((fact.start for fact in self._known.values()), default=None)
        return None if first is None else max(soonest, Instant(first + 1))

    def forget(self, key: WorkloadKey) -> None:
        """Take back an estimate that is known to be wrong, until the next one is made."""
        self._known.pop(key, None)

    def added_to(self, explanation: Explanation) -> Explanation:
        """Return an explanation with the estimate; a reservation makes one needless."""
        facts = without_times(explanation.blockers, reservations=False)
        known = self._known.get(explanation.workload)
        if known is not None and not any(isinstance(fact, Planned) for fact in facts):
            facts = (*facts, known)
        elif known is not None:
            facts = tuple(_on_nodes(fact, known) for fact in facts)
        if facts == explanation.blockers:
            return explanation
        return msgspec.structs.replace(explanation, blockers=facts)


def _on_nodes(fact: Blocker, known: Expected) -> Blocker:
    """Return a reservation with the nodes of the estimate, if both mean the same start."""
    if not isinstance(fact, Planned) or abs(fact.start - known.start) > PAUSE_MS:
        return fact
    return msgspec.structs.replace(fact, nodes=known.nodes)


def without_times(facts: tuple[Blocker, ...], *, reservations: bool = True) -> tuple[Blocker, ...]:
    """Return the facts that are not about when it starts: neither estimates nor reservations."""
    left_out = (Expected, Planned) if reservations else Expected
    return tuple(fact for fact in facts if not isinstance(fact, left_out))


def start_of(explanation: Explanation) -> Planned | Expected | None:
    """Return the reservation or the estimate in an explanation."""
    for fact in explanation.blockers:
        if isinstance(fact, Planned | Expected):
            return fact
    return None


def has_reservation(explanation: Explanation | None) -> bool:
    """Say whether an explanation promises a start."""
    return explanation is not None and isinstance(start_of(explanation), Planned)


def has_moved(old: Planned | Expected, new: Planned | Expected, now: Instant) -> bool:
    """Say whether a start is so different that people should know."""
    allowed = max(PAUSE_MS, (old.start - now) // 20)
    return abs(new.start - old.start) > allowed or old.limit_from != new.limit_from
