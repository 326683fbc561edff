"""Conservative backfill: a reservation for each workload that has to wait (spec backfill §4).

It gets the first interval in which quota and nodes are free for as long as its time limit, with all
workloads before it at their own reservations. What fits now may start if the same is true from now
on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from unisono.engine.backfill import node_capacity, slot_capacity
from unisono.engine.backfill.counted_gang import CountedGang, counted_gang
from unisono.engine.backfill.future_placement import ReservedNodes, future_placement_of
from unisono.engine.backfill.intervals import End, Intervals
from unisono.engine.backfill.node_capacity import NodeCapacity
from unisono.engine.backfill.reservation_table import NOTHING, CycleView, ReservationTable
from unisono.engine.backfill.slot_capacity import SlotCapacity, pools_of
from unisono.engine.model.explanation import Blocker, GangDoesNotFit, WouldDelay
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.overriding import override
from unisono.engine.model.plan import BackfillReservation
from unisono.engine.model.policy import Backfill
from unisono.engine.model.resources import Amounts
from unisono.engine.nominate import Nominee, admission_of, affordable, build_admission
from unisono.engine.placement.node_search import NodeSearch
from unisono.engine.placement.placement import placement_of
from unisono.engine.quota.assign import Verdict
from unisono.engine.state.cluster_queue import ClusterQueueState
from unisono.engine.state.node_table import Rows
from unisono.engine.state.nodes import placed_pods_of
from unisono.engine.state.occupancy import PlacedPods
from unisono.engine.state.pending_queue import PendingWorkload
from unisono.engine.state.quota_tree import available
from unisono.engine.state.timeline import Group
from unisono.engine.state.transaction import Booked, Starting

# Starts that are tried on nodes before a workload is left without a reservation.
MOST_TRIED = 32


# Equal bounds hold for a queue's workloads with one gang request and relation to advance
# reservations.
_BoundsKey = tuple[ClusterQueueState, int, str]


class ConservativeTable(ReservationTable):
    """Reservations for all pending workloads, or for as many as the policy allows."""

    def __init__(self, view: CycleView, rules: Backfill) -> None:
        super().__init__(view, is_reused=False)
        self._rules = rules
        self._placement = placement_of(self._state)
        self._intervals: Intervals | None = None  # made with the first reservation, and with it ...
        self._capacity: NodeCapacity | SlotCapacity | None = None
        self._is_shared = False  # set: intervals, capacity and the rest are the last cycle's
        self._reservations: dict[WorkloadKey, BackfillReservation] = {}
        self._first: BackfillReservation | None = None  # the earliest
        self._bounds: dict[_BoundsKey, Bounds] = {}
        self._own_bounds: dict[_BoundsKey, Bounds] = {}  # of these: not shared with the last cycle
        self._started: list[tuple[Instant, int, Booked]] = []  # before the first reservation
        # Set for estimates: it records the nodes of each reservation.
        self.reserved_nodes: ReservedNodes | None = None

    # --- from one cycle to the next --------------------------------------------------------------

    @override
    def keep(self) -> ConservativeTable | None:
        """Return the table, if it has reservations."""
        return self if self._reservations else None

    def fits(self, arrivals: Iterable[tuple[PendingWorkload, Group]]) -> bool:
        """Say whether arrivals since the last cycle can be counted like the others."""
        capacity = self._capacity
        if isinstance(capacity, SlotCapacity):
            return all(
                capacity.can_count(counted_gang(self._state, group, one)) for one, group in arrivals
            )
        return capacity is None or all(
            capacity.can_count(requests) for one, _ in arrivals for requests in _requests(one)
        )

    def resumed(self, view: CycleView) -> ConservativeTable:
        """Return a table that goes on in another cycle, with its arrivals as the candidates."""
        other = ConservativeTable(view, self._rules)
        other.is_reused = other._is_shared = True
        other._intervals, other._capacity = self._intervals, self._capacity
        other._reservations, other._first = self._reservations, self._first
        other._bounds, other._started = self._bounds, self._started
        other.reserved_nodes = self.reserved_nodes
        return other

    def _own(self) -> None:
        """Copy what the last cycle left before changing it: this plan may never be applied.

        Most cycles without arrivals change nothing, and copy nothing.
        """
        self._is_shared = False
        self._reservations = {**self._reservations}
        self._bounds = {**self._bounds}  # each is copied when it is needed
        self._started = [*self._started]
        if self._intervals is not None and self._capacity is not None:
            self._intervals = self._intervals.copy()
            self._capacity = self._capacity.copy(self._intervals)

    @property
    @override
    def is_easy(self) -> bool:
        """There may be many reservations."""
        return False

    @property
    @override
    def reservations(self) -> Sequence[BackfillReservation]:
        """All reservations."""
        return tuple(self._reservations.values())

    @property
    @override
    def count(self) -> int:
        """How many there are."""
        return len(self._reservations)

    @property
    def last(self) -> WorkloadKey:
        """The workload that got the last reservation."""
        return next(reversed(self._reservations))

    @property
    def first(self) -> BackfillReservation | None:
        """The earliest reservation."""
        return self._first

    def hold(self, now: Instant) -> bool:
        """Say whether all are in the future, and nothing runs longer than expected."""
        if self._intervals is not None and self._intervals.next_cut <= now:
            return False
        return self._first is None or self._first.start > now

    def concern(self, key: WorkloadKey) -> bool:
        """Say whether a workload has a reservation."""
        return key in self._reservations

    # --- reservations ----------------------------------------------------------------------------

    @property
    @override
    def is_on_nodes(self) -> bool:
        """Whether reservations have nodes of their own, so that other nodes may do for a start."""
        return isinstance(self._capacity, NodeCapacity)

    @property
    @override
    def is_full(self) -> bool:
        """Whether the policy allows no further reservation."""
        return self._rules.dates is not None and len(self._reservations) >= self._rules.dates

    @override
    def ends_before_first(self, end: Instant) -> bool:
        """Say whether what ends then ends before the first reservation."""
        return self._first is None or end <= self._first.start

    @override
    def would_delay(self, limit_ms: int) -> tuple[Blocker, ...]:
        """Name the earliest reservation."""
        assert self._first is not None, "there is a reservation"
        first = self._first
        return (WouldDelay(reserved_for=first.workload, start=first.start, limit_ms=limit_ms),)

    # --- now -------------------------------------------------------------------------------------

    @override
    def allows(self, nominee: Nominee, end: Instant) -> bool:
        """Allow what ends before the first reservation, or fits beside all of them."""
        if self._intervals is None or self.ends_before_first(end):
            return True
        if self._is_shared:
            self._own()
        high = self._intervals.cut(end)
        if not self._has_quota(nominee, high):
            return False
        if nominee.node_search is None:
            return True
        if isinstance(self._capacity, SlotCapacity):
            placed_pods = placed_pods_of(nominee.waiting.workload, admission_of(nominee))
            return self._capacity.allows(self._with_rows(placed_pods), high)
        return self._find_other_nodes(nominee, nominee.node_search, high)

    @override
    def allows_counted(self, counted: CountedGang, end: Instant) -> bool | None:
        """Reservations are on nodes: those it gets decide."""
        return None

    @override
    def allows_booking(self, booked: Booked, end: Instant) -> bool:
        """Allow what ends before the first reservation, or fits on its nodes beside all of them."""
        if self._intervals is None or self._capacity is None or self.ends_before_first(end):
            return True
        if self._is_shared:
            self._own()
        high = self._intervals.cut(end)
        for cell, amount in booked.charges:
            if amount > available(cell) - self._intervals.peak_usage(cell, 0, high) + cell.usage:
                return False
        return self._capacity.allows(self._with_rows(booked.placed_pods), high)

    def _has_quota(self, nominee: Nominee, high: int) -> bool:
        mark = self._transaction.mark()
        self._book_peak_usage(nominee.cq, 0, high)
        fits = all(amount <= available(cell) for cell, amount in nominee.charges.items() if amount)
        self._transaction.rollback(mark)
        return fits

    def _find_other_nodes(self, nominee: Nominee, node_search: NodeSearch, high: int) -> bool:
        """Find nodes that stay free for as long as it runs."""
        assert isinstance(self._capacity, NodeCapacity), (
            "where pods are counted other nodes do not help"
        )
        free = self._capacity.least_free(0, high)
        answer = future_placement_of(self._state).place(node_search.gang(nominee.assignment), free)
        if isinstance(answer, GangDoesNotFit):
            return False
        if sum(placed.pods for placed in answer) != sum(nominee.assignment.counts):
            return False  # an elastic gang that would have to be smaller waits
        nominee.placements = answer
        return True

    @override
    def started(self, end: Instant, booked: Booked) -> None:
        """Book what starts."""
        if self._is_shared:
            self._own()
        if self.reserved_nodes is not None:
            self.reserved_nodes.started(end, booked)
        if self._intervals is None:
            self._started.append((end, -len(self._started), booked))
        else:
            self._book(booked, 0, self._intervals.cut(end))

    def _book(self, booked: Booked, low: int, high: int) -> None:
        assert self._intervals is not None and self._capacity is not None, (
            "there are intervals by now"
        )
        self._intervals.charge(booked.charges, low, high)
        self._capacity.book(booked.placed_pods, low, high)

    # --- later -----------------------------------------------------------------------------------

    @override
    def reserve(
        self, waiting: PendingWorkload, group: Group, limit_ms: int, furthest: Instant | None
    ) -> BackfillReservation | None:
        """Reserve the first interval that is long enough."""
        if self._is_shared:
            self._own()
        if self._intervals is None:
            self._make_intervals()
        intervals, capacity = self._intervals, self._capacity
        assert intervals is not None and capacity is not None, "there are intervals by now"
        alike = (group.cq, waiting.request.number, waiting.subclass)
        bounds = self._own_bounds.get(alike)
        if bounds is None:
            known = self._bounds.get(alike)
            bounds = Bounds() if known is None else known.copy()
            self._bounds[alike] = self._own_bounds[alike] = bounds
        # From the second interval on: it was evaluated for now already.
        first = max(1, intervals.interval_at(bounds.earliest(limit_ms)))
        counted = counted_gang(self._state, group, waiting)
        if counted is not None:
            starts = capacity.starts(counted, limit_ms, first)
        else:
            assert isinstance(capacity, NodeCapacity), "where pods are counted all of them are"
            wanted = waiting.request.least_in_total if self._state.nodes.has_nodes else ()
            starts = capacity.starts_by_total(wanted, limit_ms, first)
        order: Rows | None = None  # of the nodes; slots have none
        for tried, low in enumerate(islice(starts, MOST_TRIED)):
            start = intervals.cuts[low]
            if furthest is not None and start > furthest:
                break
            end = Instant(start + limit_ms)
            found: Starting | None
            if counted is None:
                found = self._place(waiting, group.cq, start, end)
            elif isinstance(capacity, SlotCapacity):
                found = Starting(counted.cells, (capacity.find(counted),))
            else:
                if order is None:
                    order = self._placement.in_order(counted.levels)
                high = max(low + 1, intervals.interval_at(end))
                placed = capacity.find(counted, order, low, high, again=tried > 0)
                found = None if placed is None else Starting(counted.cells, (placed,))
            if found is not None:
                bounds.note(limit_ms, start)
                reservation = self._book_reservation(waiting, start, end, found)
                if self.reserved_nodes is not None:
                    self._record_nodes(self.reserved_nodes, reservation, counted, found)
                return reservation
        return None

    def _record_nodes(
        self,
        nodes: ReservedNodes,
        reservation: BackfillReservation,
        counted: CountedGang | None,
        found: Starting,
    ) -> None:
        """Record the nodes of a reservation."""
        if isinstance(self._capacity, NodeCapacity):
            nodes.reserved(reservation, found.placed_pods)
        elif counted is not None:
            nodes.counted(reservation, counted)

    def _make_intervals(self) -> None:
        """Cut time at the expected ends, and count what comes free with each."""
        state, table = self._state, self._state.nodes.table
        if self.reserved_nodes is not None:
            self.reserved_nodes.running(self._view.ends())
        over = [(end, 0, NOTHING) for end in state.reserved.ends(self._now)]
        ends: list[End] = sorted(
            [*self._view.ends(), *self._started, *over], key=lambda entry: entry[0]
        )
        resolution = self._rules.resolution_ms
        groups = [(group.members[0].waiting, group) for group in self._view.timeline.groups]
        pools = pools_of(counted_gang(state, group, waiting) for waiting, group in groups)
        if pools is not None:
            most = slot_capacity.MOST_INTERVALS
            self._intervals = Intervals(self._now, ends, resolution_ms=resolution, most=most)
            self._capacity = SlotCapacity(table, pools, self._intervals, ends)
            return
        most = node_capacity.MOST_INTERVALS
        self._intervals = Intervals(self._now, ends, resolution_ms=resolution, most=most)
        requested = (
            (requests, counted_gang(state, group, waiting) is not None)
            for waiting, group in groups
            for requests in _requests(waiting)
        )
        self._capacity = NodeCapacity(table, self._intervals, ends, requested)

    def _place(
        self, waiting: PendingWorkload, cq: ClusterQueueState, start: Instant, end: Instant
    ) -> Starting | None:
        """Find quota and nodes that stay free from one instant to another."""
        assert self._intervals is not None, "there are intervals by now"
        assert isinstance(self._capacity, NodeCapacity), (
            "where pods are counted nothing has to be tried"
        )
        low = self._intervals.interval_at(start)
        high = max(low + 1, self._intervals.interval_at(end))
        mark = self._transaction.mark()
        self._book_peak_usage(cq, low, high)
        assignment = affordable(self._state, cq, waiting, self._transaction, self._now)
        self._transaction.rollback(mark)
        if assignment.verdict is not Verdict.FIT:
            return None
        charges = assignment.as_charges()
        if not self._state.nodes.has_nodes:
            return Starting(charges, ())
        free = self._capacity.least_free(low, high)
        excluded = self._state.reserved.excluded_nodes(waiting.workload, start)
        gang = NodeSearch(self._placement, waiting, excluded=excluded).gang(assignment)
        answer = future_placement_of(self._state).place(gang, free)
        if isinstance(answer, GangDoesNotFit):
            return None
        admission = build_admission(cq.spec.name, waiting.request, assignment, answer)
        return Starting(charges, self._with_rows(placed_pods_of(waiting.workload, admission)))

    def _book_reservation(
        self, waiting: PendingWorkload, start: Instant, end: Instant, found: Starting
    ) -> BackfillReservation:
        assert self._intervals is not None, "there are intervals by now"
        high = self._intervals.cut(end)
        self._book(found, self._intervals.interval_at(start), high)
        reservation = BackfillReservation(workload=waiting.workload.key, start=start, end=end)
        self._reservations[reservation.workload] = reservation
        if self._first is None or start < self._first.start:
            self._first = reservation
        return reservation

    def _book_peak_usage(self, cq: ClusterQueueState, low: int, high: int) -> None:
        """Book on the transaction the most that is used of each quota cell in [low, high)."""
        assert self._intervals is not None, "there are intervals by now"
        root = cq.node.root()
        for cell in self._intervals.cells:
            if cell.node.root() is root:
                more = self._intervals.peak_usage(cell, low, high) - cell.usage
                if more:
                    self._transaction.add(((cell, more),))

    def _with_rows(self, placed_pods: tuple[PlacedPods, ...]) -> tuple[PlacedPods, ...]:
        for placed in placed_pods:
            self._state.nodes.occupancy.locate(placed)
        return placed_pods


class Bounds:
    """Lower bounds for the starts of workloads of one equivalence class, by time limit.

    Reservations only take capacity, so with the same or a longer limit none starts earlier than
    the last one of its class did.
    """

    __slots__ = ("_limits", "_starts")

    def __init__(self) -> None:
        self._limits: list[int] = []  # both grow
        self._starts: list[Instant] = []

    def copy(self) -> Bounds:
        """Return the same bounds, for another cycle to raise."""
        other = Bounds()
        other._limits, other._starts = [*self._limits], [*self._starts]
        return other

    def earliest(self, limit_ms: int) -> Instant:
        """Return the start before which no place can be found."""
        at = bisect_right(self._limits, limit_ms)
        return self._starts[at - 1] if at else Instant(0)

    def note(self, limit_ms: int, start: Instant) -> None:
        """Record the first start that was found for a time limit."""
        low = bisect_right(self._limits, limit_ms)
        if low and self._starts[low - 1] >= start:
            return
        low = low - 1 if low and self._limits[low - 1] == limit_ms else low
        high = bisect_right(self._starts, start, lo=low)
        self._limits[low:high] = [limit_ms]
        self._starts[low:high] = [start]


def _requests(waiting: PendingWorkload) -> Iterator[Amounts]:
    """Yield what each pod of a workload takes of a node."""
    for pod_set in waiting.request.pod_sets:
        yield pod_set.requests if pod_set.node_requests is None else pod_set.node_requests
