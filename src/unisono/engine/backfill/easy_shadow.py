"""The EASY shadow: when the first workload that has to wait can start, and what it needs then.

One reservation is enough for EASY backfill, and needs no table over time: until the shadow time
things only come free, and afterwards too. What would still run at that instant must leave the
reservation its quota and its place (spec backfill §3 and §4).
"""

from __future__ import annotations

from collections.abc import Sequence

from unisono.engine.backfill.counted_gang import CountedGang
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import BackfillReservation
from unisono.engine.placement.gang import Gang
from unisono.engine.state.node_table import Integers
from unisono.engine.state.quota_tree import Cell
from unisono.engine.state.transaction import Booked, Charges


class EasyShadow:
    """The one reservation of EASY backfill: shadow time, and what is left beside it then."""

    __slots__ = (
        "_reservation",
        "charges",
        "counted",
        "end",
        "ended",
        "extra_pods",
        "free",
        "gang",
        "quota_left",
        "start",
        "workload",
    )

    def __init__(
        self,
        *,
        workload: WorkloadKey,
        start: Instant,
        end: Instant,
        ended: list[Booked],
        charges: Charges,
        quota_left: dict[Cell, int],
        gang: Gang | None,
        counted: CountedGang | None,
        extra_pods: int | None,
        free: Integers | None,
    ) -> None:
        self.workload = workload
        self.start = start
        self.end = end
        self.ended = ended  # what will have ended by then
        self.charges = charges
        self.quota_left = quota_left  # beside it at the shadow time; counted gangs only
        self.gang = gang  # set: the placer says whether it fits
        self.counted = counted  # set: counting is enough to know whether it fits
        # How many pods of its kind may run beyond the shadow time (the literature's extra nodes);
        # None: that depends on the nodes they are on.
        self.extra_pods = extra_pods
        self.free = free  # on nodes at the shadow time, before it starts; None: not worked out yet
        self._reservation: BackfillReservation | None = None

    def copy(self) -> EasyShadow:
        """Return the same, for another cycle to change."""
        return self.after((), {**self.quota_left}, self.extra_pods)

    def after(
        self, ended: Sequence[Booked], quota_left: dict[Cell, int], extra_pods: int | None
    ) -> EasyShadow:
        """Return the reservation after starts: more that ends before it, less beside it."""
        twin = EasyShadow(
            workload=self.workload,
            start=self.start,
            end=self.end,
            ended=[*self.ended, *ended],
            charges=self.charges,
            quota_left=quota_left,
            gang=self.gang,
            counted=self.counted,
            extra_pods=extra_pods,
            free=self.free,
        )
        twin._reservation = self._reservation
        return twin

    @property
    def last(self) -> WorkloadKey:
        """The workload with the last reservation: there is only one."""
        return self.workload

    @property
    def first(self) -> BackfillReservation:
        """The first reservation: there is only one."""
        return self.reservation

    def hold(self, now: Instant) -> bool:
        """Say whether the shadow time is in the future."""
        return self.start > now

    def concern(self, key: WorkloadKey) -> bool:
        """Say whether a workload has the reservation."""
        return key == self.workload

    @property
    def reservation(self) -> BackfillReservation:
        """The reservation as a plan names it."""
        if self._reservation is None:
            self._reservation = BackfillReservation(
                workload=self.workload, start=self.start, end=self.end
            )
        return self._reservation
