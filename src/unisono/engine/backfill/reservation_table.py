"""The reservation table: the second parameter of the one loop (`engine/cycle.py`).

A backfill reservation is the time at which a workload that has to wait is planned to start. A
candidate may start ahead of it only if it delays no reservation. Without backfill there is no
table; EASY keeps one reservation (`easy.py`), conservative backfill one for each pending workload
(`conservative.py`). Spec backfill §3 and §4.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from unisono.engine.backfill.counted_gang import CountedGang
from unisono.engine.backfill.intervals import End
from unisono.engine.model.explanation import Blocker
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import BackfillReservation
from unisono.engine.nominate import Nominee
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.pending_queue import PendingWorkload
from unisono.engine.state.timeline import Group, Kept, Timeline
from unisono.engine.state.transaction import Booked, Starting, Transaction

# Ends when an advance reservation is over: no workload, but nodes come free.
NOTHING = Starting((), ())


@dataclass(slots=True)
class CycleView:
    """What a table sees of the cycle that it belongs to."""

    state: ClusterState
    timeline: Timeline
    transaction: Transaction
    taken: dict[WorkloadKey, None]  # running workloads that this cycle took off the transaction
    now: Instant

    def ends(self) -> Sequence[End]:
        """Return what is on nodes by expected end, without what this cycle took off already.

        Terminating pods of workloads that ended are among them: they hold their nodes until then.
        """
        there = self.timeline.endings()
        ends: Sequence[End] = there
        if self.taken:
            ends = [entry for entry in there if entry[2].admitted.workload.key not in self.taken]
        terminating = self.state.nodes.terminating_by(self.now)
        if not terminating:
            return ends
        pods = [(end, 0, Starting((), (placed,))) for end, placed in terminating]
        return sorted([*ends, *pods], key=lambda entry: entry[0])


class ReservationTable(ABC):
    """Backfill reservations, and what may start beside them."""

    def __init__(self, view: CycleView, *, is_reused: bool) -> None:
        """Belong to a cycle; `is_reused`: with reservations of the last one."""
        self._view = view
        self._state = view.state
        self._transaction = view.transaction
        self._now = view.now
        self.is_reused = is_reused  # then only arrivals are candidates

    @property
    @abstractmethod
    def reservations(self) -> Sequence[BackfillReservation]:
        """All reservations."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many there are."""

    @property
    @abstractmethod
    def is_full(self) -> bool:
        """Whether this cycle makes no further reservation."""

    @property
    @abstractmethod
    def is_easy(self) -> bool:
        """Whether there is one reservation at most.

        Then whatever runs beyond it takes from it, however long, and what starts need not occupy
        its nodes on the transaction before nodes are read.
        """

    @property
    @abstractmethod
    def is_on_nodes(self) -> bool:
        """Whether reservations have nodes of their own, so that other nodes may do for a start."""

    @abstractmethod
    def keep(self) -> Kept | None:
        """Return what the next cycle may reuse."""

    @abstractmethod
    def ends_before_first(self, end: Instant) -> bool:
        """Say whether what ends then ends before the first reservation."""

    @abstractmethod
    def would_delay(self, limit_ms: int) -> tuple[Blocker, ...]:
        """Return why a workload that fits must not start."""

    @abstractmethod
    def allows(self, nominee: Nominee, end: Instant) -> bool:
        """Say whether a nominee that fits may start; it may be moved to other nodes."""

    @abstractmethod
    def allows_counted(self, counted: CountedGang, end: Instant) -> bool | None:
        """Say whether a counted gang may start; None: that depends on the nodes it gets."""

    @abstractmethod
    def allows_booking(self, booked: Booked, end: Instant) -> bool:
        """Say whether a counted gang may start on the nodes it was offered."""

    @abstractmethod
    def started(self, end: Instant, booked: Booked) -> None:
        """Take in that what was just allowed starts."""

    @abstractmethod
    def reserve(
        self, waiting: PendingWorkload, group: Group, limit_ms: int, furthest: Instant | None
    ) -> BackfillReservation | None:
        """Make a reservation for a workload that has to wait, if possible; it is not full."""
