"""The shadow: when the first one that has to wait can start, and what must stay free for it then.

One date is enough for EASY backfill, and needs no calendar: until then things only come free, and
afterwards too. Whoever would still run at that instant must leave the first one its quota and its
place (spec time §3 and §4).
"""

from __future__ import annotations

from unisono.engine.backfill.counted_gang import CountedGang
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import Date
from unisono.engine.placement.gang import Gang
from unisono.engine.state.node_table import Integers
from unisono.engine.state.quota_tree import Cell
from unisono.engine.state.transaction import Booked, Charges


class EasyShadow:
    """One workload's date."""

    __slots__ = (
        "_date",
        "charges",
        "counted",
        "end",
        "free",
        "gang",
        "gone",
        "room",
        "spare",
        "start",
        "whom",
    )

    def __init__(
        self,
        *,
        whom: WorkloadKey,
        start: Instant,
        end: Instant,
        gone: list[Booked],
        charges: Charges,
        room: dict[Cell, int],
        gang: Gang | None,
        counted: CountedGang | None,
        spare: int | None,
        free: Integers | None,
    ) -> None:
        self.whom = whom
        self.start = start
        self.end = end
        self.gone = gone  # who will have ended by then
        self.charges = charges
        self.room = room  # what is left of its flavor-resources then, if counting is enough for it
        self.gang = gang  # None: there are no nodes
        self.counted = counted  # set: counting is enough to know whether it fits
        # Pods like its own that may stay beyond the date; None: that depends on where they sit.
        self.spare = spare
        self.free = free  # on nodes at that instant, before it starts; None: nobody asked yet
        self._date: Date | None = None

    def copy(self) -> EasyShadow:
        """Return a reservation of its own for a cycle that goes on from this one."""
        return EasyShadow(
            whom=self.whom,
            start=self.start,
            end=self.end,
            gone=[*self.gone],
            charges=self.charges,
            room={**self.room},
            gang=self.gang,
            counted=self.counted,
            spare=self.spare,
            free=self.free,
        )

    @property
    def last(self) -> WorkloadKey:
        """Who has the one date is also the last who has one."""
        return self.whom

    @property
    def first(self) -> Date:
        """And the first."""
        return self.date

    def hold(self, now: Instant) -> bool:
        """Say whether the date is yet to come."""
        return self.start > now

    def concern(self, key: WorkloadKey) -> bool:
        """Say whether somebody has the date."""
        return key == self.whom

    @property
    def date(self) -> Date:
        """The date as a plan names it."""
        if self._date is None:
            self._date = Date(workload=self.whom, start=self.start, end=self.end)
        return self._date
