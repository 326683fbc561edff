"""EASY backfill: one reservation, for the first workload that has to wait (spec backfill §3).

Until the shadow time things only come free, so one instant is enough to know: what still runs then
must leave the reservation its quota and its place (`EasyShadow`, §4). No table over time is needed.
"""

from __future__ import annotations

from collections.abc import Sequence

from unisono.engine.backfill.counted_gang import CountedGang, counted_gang
from unisono.engine.backfill.future_placement import free_after, free_beside, future_placement_of
from unisono.engine.backfill.intervals import End
from unisono.engine.backfill.reservation_table import NOTHING, CycleView, ReservationTable
from unisono.engine.model.explanation import Blocker, GangDoesNotFit, WouldDelay
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.overriding import override
from unisono.engine.model.plan import BackfillReservation
from unisono.engine.nominate import Nominee, admission_of, nominate
from unisono.engine.placement.gang import Gang
from unisono.engine.quota.assign import Verdict
from unisono.engine.state.cluster_queue import ClusterQueueState
from unisono.engine.state.node_table import Integers
from unisono.engine.state.nodes import placed_pods_of
from unisono.engine.state.occupancy import PlacedPods
from unisono.engine.state.pending_queue import PendingWorkload
from unisono.engine.state.quota_tree import Cell, available
from unisono.engine.state.timeline import Group, Kept
from unisono.engine.state.transaction import Booked, Charges, Starting


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
        """Take all parts by name; nothing has a default, so that no search forgets one."""
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
        other = EasyShadow(
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
        other._reservation = self._reservation
        return other

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


# --- the table ------------------------------------------------------------------------------------


class EasyTable(ReservationTable):
    """A reservation for the first workload that has to wait."""

    def __init__(self, view: CycleView, reused: EasyShadow | None) -> None:
        """Begin with the reservation of the last cycle, if it holds."""
        super().__init__(view, is_reused=reused is not None)
        self.shadow = None if reused is None else reused.copy()
        self._started: list[End] = []  # in this cycle
        # Free on nodes at the shadow time beside what was allowed last: `started` books the same.
        self._left: Integers | None = None

    @property
    @override
    def is_on_nodes(self) -> bool:
        """The reservation is for any nodes that do."""
        return False

    @property
    @override
    def is_easy(self) -> bool:
        """There is one reservation at most."""
        return True

    @property
    @override
    def reservations(self) -> Sequence[BackfillReservation]:
        """The one reservation, if there is one."""
        return () if self.shadow is None else (self.shadow.reservation,)

    @property
    @override
    def count(self) -> int:
        """One or none."""
        return 0 if self.shadow is None else 1

    @override
    def keep(self) -> Kept | None:
        """Return the one reservation."""
        return self.shadow

    @property
    @override
    def is_full(self) -> bool:
        """One is all."""
        return self.shadow is not None

    @override
    def ends_before_first(self, end: Instant) -> bool:
        """Say whether what ends then ends before the shadow time."""
        return self.shadow is None or end <= self.shadow.start

    @override
    def would_delay(self, limit_ms: int) -> tuple[Blocker, ...]:
        """Name the workload that has the reservation."""
        assert self.shadow is not None, "there is a reservation"
        return (
            WouldDelay(
                reserved_for=self.shadow.workload, start=self.shadow.start, limit_ms=limit_ms
            ),
        )

    @override
    def allows(self, nominee: Nominee, end: Instant) -> bool:
        """Allow what ends before the shadow time, or leaves enough for the reservation."""
        if self.ends_before_first(end):
            return True
        placed_pods: tuple[PlacedPods, ...] = ()
        if nominee.placements:
            placed_pods = placed_pods_of(nominee.waiting.workload, admission_of(nominee))
        return self.allows_booking(Starting(nominee.assignment.as_charges(), placed_pods), end)

    @override
    def allows_counted(self, counted: CountedGang, end: Instant) -> bool | None:
        """Allow what ends before the shadow time, or has few enough pods."""
        shadow = self.shadow
        if shadow is None or end <= shadow.start:
            return True
        left = shadow.quota_left
        for cell, amount in counted.cells:
            if cell in left and left[cell] < amount:
                return False
        if shadow.extra_pods is None or shadow.counted is None:
            return None
        return (
            shadow.extra_pods >= counted.pods
            if shadow.counted.capacity is counted.capacity
            else None
        )

    @override
    def allows_booking(self, booked: Booked, end: Instant) -> bool:
        """Allow what ends before the shadow time, or leaves enough for the reservation."""
        shadow = self.shadow
        self._left = None
        if shadow is None or end <= shadow.start:
            return True
        left = shadow.quota_left
        if any(cell in left and left[cell] < amount for cell, amount in booked.charges):
            return False
        if shadow.counted is None and not self._leaves_quota(booked, shadow):
            return False
        if shadow.gang is None and shadow.counted is None:
            return True
        for placed in booked.placed_pods:
            self._state.nodes.occupancy.locate(placed)
        self._left = free_beside(self._free_at(shadow), booked.placed_pods, self._state.nodes.table)
        if shadow.counted is not None:
            return shadow.counted.fits_on(self._left)
        assert shadow.gang is not None, "one of them says whether it fits"
        answer = future_placement_of(self._state).place(shadow.gang, self._left)
        return not isinstance(answer, GangDoesNotFit)

    def _free_at(self, shadow: EasyShadow) -> Integers:
        """Return what is free on nodes at the shadow time."""
        if shadow.free is None:
            self._transaction.settle()
            table, occupancy = self._state.nodes.table, self._state.nodes.occupancy
            for booked in shadow.ended:
                for placed in booked.placed_pods:
                    occupancy.locate(
                        placed
                    )  # what started since was taken off the transaction again
            shadow.free = free_after(table.free, shadow.ended, table)
        return shadow.free

    def _leaves_quota(self, booked: Booked, shadow: EasyShadow) -> bool:
        """Say whether both fit into their quota once the others have ended."""
        transaction = self._transaction
        mark = transaction.mark()
        for running in shadow.ended:
            transaction.remove(running.charges)
        transaction.add(shadow.charges)
        fits = all(amount <= available(cell) for cell, amount in booked.charges if amount)
        transaction.rollback(mark)
        return fits

    @override
    def started(self, end: Instant, booked: Booked) -> None:
        """Keep what is left for the reservation, and what ends when."""
        shadow, left, self._left = self.shadow, self._left, None
        if shadow is None:
            self._started.append((end, -len(self._started), booked))
            return
        if end <= shadow.start:
            shadow.ended.append(booked)
            return
        for cell, amount in booked.charges:
            if cell in shadow.quota_left:
                shadow.quota_left[cell] -= amount
        if shadow.extra_pods is not None and shadow.counted is not None:
            has_equal_pods = all(
                placed.requests == shadow.counted.requests for placed in booked.placed_pods
            )
            shadow.extra_pods -= sum(placed.pods for placed in booked.placed_pods)
            if not has_equal_pods:
                shadow.extra_pods = None
        if shadow.free is not None:
            if left is None:
                left = free_beside(shadow.free, booked.placed_pods, self._state.nodes.table)
            shadow.free = left

    @override
    def reserve(
        self, waiting: PendingWorkload, group: Group, limit_ms: int, furthest: Instant | None
    ) -> BackfillReservation | None:
        """Make the one reservation."""
        counted = counted_gang(self._state, group, waiting)
        if counted is not None:
            shadow = self._shadow_by_count(waiting, counted, limit_ms)
        else:
            shadow = self._shadow_by_nomination(waiting, group.cq, limit_ms)
        if shadow is None or (furthest is not None and shadow.start > furthest):
            return None
        self.shadow = shadow
        return shadow.reservation

    def _shadow_by_nomination(
        self, waiting: PendingWorkload, cq: ClusterQueueState, limit_ms: int
    ) -> EasyShadow | None:
        """Let one running workload after the other end, until a nomination fits."""
        ends = self._ends()
        transaction = self._transaction
        mark = transaction.mark()
        ended: list[Booked] = []
        found: EasyShadow | None = None
        at = self._now
        for index, (end, _, running) in enumerate(ends):
            transaction.let_go(running)
            ended.append(running)
            at = max(end, Instant(self._now + 1))
            if index + 1 < len(ends) and ends[index + 1][0] <= at:
                continue  # they end together
            if not self._has_enough_in_total(waiting):
                continue
            nominee = nominate(
                self._state, cq, waiting, transaction, self._now, start=at, may_preempt=False
            )
            if not nominee.targets and nominee.assignment.verdict is Verdict.FIT:
                found = self._shadow_of(nominee, at, Instant(at + limit_ms), ended)
                break
        transaction.rollback(mark)
        return found

    def _ends(self) -> Sequence[End]:
        """Return what ends when: also starts of this cycle, and advance reservations."""
        there = self._view.ends()
        over = self._state.reserved.ends(self._now) if self._state.policy.reservations else []
        if not self._started and not over:
            return there
        ends: list[End] = [*there, *self._started]
        ends += [(end, 0, NOTHING) for end in over]
        ends.sort(key=_end)
        return ends

    def _shadow_by_count(
        self, waiting: PendingWorkload, counted: CountedGang, limit_ms: int
    ) -> EasyShadow | None:
        """Let running workloads end until there is quota, then until there are nodes."""
        short = {cell: amount - available(cell) for cell, amount in counted.cells}
        ends, capacity = self._ends(), counted.capacity
        extra = capacity.total(self._transaction) - counted.pods
        counts_pods = capacity.is_exact  # while every end frees as many pods as it has
        soon = Instant(self._now + 1)
        for index, (end, _, booked) in enumerate(ends):
            for cell, amount in booked.charges:
                if cell in short:
                    short[cell] -= amount
            for placed in booked.placed_pods:
                extra += placed.pods
                counts_pods = counts_pods and placed.requests == counted.requests
            at = max(end, soon)
            if index + 1 < len(ends) and ends[index + 1][0] <= at:
                continue  # they end together
            if max(short.values(), default=0) > 0 or (counts_pods and extra < 0):
                continue
            shadow = EasyShadow(
                workload=waiting.workload.key,
                start=at,
                end=Instant(at + limit_ms),
                ended=[entry[2] for entry in ends[: index + 1]],
                charges=counted.cells,
                quota_left={cell: -missing for cell, missing in short.items()},
                gang=None,
                counted=counted,
                extra_pods=extra if counts_pods else None,
                free=None,
            )
            if counts_pods or counted.fits_on(self._free_at(shadow)):
                return shadow
        return None

    def _has_enough_in_total(self, waiting: PendingWorkload) -> bool:
        """Say whether there is enough of everything on all nodes together."""
        if not self._state.nodes.has_nodes:
            return True
        return self._state.nodes.table.has_in_total(waiting.request.least_in_total)

    def _shadow_of(
        self, nominee: Nominee, start: Instant, end: Instant, ended: list[Booked]
    ) -> EasyShadow:
        state = self._state
        gang = None
        free: Integers = state.nodes.table.free
        if nominee.node_search is not None:
            gang = nominee.node_search.gang(nominee.assignment)
            free = free.copy()
        return EasyShadow(
            workload=nominee.key,
            start=start,
            end=end,
            ended=ended,
            charges=nominee.assignment.as_charges(),
            quota_left={},
            gang=gang,
            counted=None,
            extra_pods=None,
            free=free,
        )


def _end(entry: End) -> Instant:
    return entry[0]
