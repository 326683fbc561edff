"""The calendar: a date for everybody who waits (conservative backfill, spec time §4).

Whoever has to wait gets the first stretch of time in which quota and nodes are there for as long as
the limit says, with everybody before them at their own dates. Whoever fits now may start if the
same is true from now on.
"""

from __future__ import annotations

from collections.abc import Sequence

from unisono.engine.decisions import Cycle, Starting
from unisono.engine.ledger import Booked
from unisono.engine.model.explanation import Blocker, GangDoesNotFit, WouldDelay
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import Date
from unisono.engine.model.policy import Backfill
from unisono.engine.nominate import Nominee, affordable, write_admission
from unisono.engine.order.lines import Waiting
from unisono.engine.place.seek import Seeker
from unisono.engine.quota.assign import Verdict
from unisono.engine.quota.tree import available
from unisono.engine.reserve.agenda import Group
from unisono.engine.reserve.counting import counted, fill_holes
from unisono.engine.reserve.need import Counted
from unisono.engine.reserve.pieces import Pieces
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.floor import tenants_of
from unisono.engine.state.queue_book import QueueBook, Running
from unisono.engine.state.tenancy import Tenant

# So many stretches are looked at on nodes before a workload is left without a date in this pass.
MOST_TRIED = 32
# Who ends when a reservation is over: nobody, but nodes come free.
NOTHING = Starting((), ())


class Calendar:
    """Dates for everybody, or for so many."""

    are_on_nodes = True

    def __init__(self, state: ClusterState, cycle: Cycle, now: Instant, rules: Backfill) -> None:
        self._state = state
        self._cycle = cycle
        self._ledger = cycle.ledger
        self._now = now
        self._rules = rules
        self._pieces: Pieces | None = None  # made with the first date
        self.are_known = False
        self._dates: dict[WorkloadKey, Date] = {}
        self._first: Date | None = None  # the one that comes first
        # Only less is free than a moment ago: the same shape, for as long, is not earlier.
        self._bounds: dict[tuple[QueueBook, int, str], tuple[int, Instant]] = {}
        self._started: list[tuple[Instant, int, Booked]] = []  # before the first date

    # --- from one pass to the next ---------------------------------------------------------------

    def keep(self) -> Calendar | None:
        """Keep all dates, if there are any."""
        return self if self._dates else None

    def take_up(self, cycle: Cycle, now: Instant) -> None:
        """Go on in another pass: only newcomers are looked at, and come after everybody else."""
        self.are_known = True
        self._cycle = cycle
        self._ledger = cycle.ledger
        self._now = now

    @property
    def given(self) -> Sequence[Date]:
        """Return all dates."""
        return tuple(self._dates.values())

    @property
    def count(self) -> int:
        """Return how many dates there are."""
        return len(self._dates)

    @property
    def last(self) -> WorkloadKey:
        """Return who got the last date."""
        return next(reversed(self._dates))

    def hold(self, now: Instant) -> bool:
        """Say whether all dates are yet to come, and nobody runs longer than was thought."""
        if self._pieces is not None and self._pieces.next_cut <= now:
            return False
        return self._first is None or self._first.start > now

    def concern(self, key: WorkloadKey) -> bool:
        """Say whether somebody has a date."""
        return key in self._dates

    # --- dates -----------------------------------------------------------------------------------

    @property
    def are_given(self) -> bool:
        """Say whether all dates of this pass are given."""
        return self._rules.dates is not None and len(self._dates) >= self._rules.dates

    def is_over_by(self, end: Instant) -> bool:
        """Say whether somebody who ends then is gone before the first date."""
        return self._first is None or end <= self._first.start

    def in_the_way(self, limit_ms: int) -> tuple[Blocker, ...]:
        """Name whose date comes first."""
        assert self._first is not None, "somebody is in the way"
        first = self._first
        return (WouldDelay(whom=first.workload, start=first.start, limit_ms=limit_ms),)

    # --- now -------------------------------------------------------------------------------------

    def allow(self, nominee: Nominee, end: Instant) -> bool:
        """Let pass who ends before the first date, or finds room beside all dates."""
        if self._pieces is None:
            return True
        if not self.is_over_by(end):
            high = self._pieces.cut(end)
            if not self._has_quota(nominee, high):
                return False
            if nominee.seeker is not None and not self._move(nominee, nominee.seeker, high):
                return False
        return True

    def allow_offer(self, booked: Booked, end: Instant) -> bool:
        """Let pass who ends before the first date, or stays where all dates leave room."""
        if self._pieces is None or self.is_over_by(end):
            return True
        high = self._pieces.cut(end)
        for cell, amount in booked.charges:
            if amount > available(cell) - self._pieces.most_used(cell, 0, high) + cell.usage:
                return False
        return self._pieces.leaves(self._with_rows(booked.tenants), high)

    def _has_quota(self, nominee: Nominee, high: int) -> bool:
        mark = self._ledger.mark()
        self._let_time_pass(nominee.book, 0, high)
        fits = all(amount <= available(cell) for cell, amount in nominee.charges.items() if amount)
        self._ledger.rollback(mark)
        return fits

    def _move(self, nominee: Nominee, seeker: Seeker, high: int) -> bool:
        """Find nodes that stay free for as long as it runs."""
        assert self._pieces is not None, "there are dates"
        free = self._pieces.least_free(0, high)
        answer = self._state.outlook.place(seeker.gang(nominee.assignment), free)
        if isinstance(answer, GangDoesNotFit):
            return False
        if sum(spot.pods for spot in answer) != sum(nominee.assignment.counts):
            return False  # an elastic gang that would have to be smaller waits for its turn
        nominee.spots = answer
        return True

    def note_start(self, end: Instant, booked: Booked) -> None:
        """Book who starts."""
        if self._pieces is None:
            self._started.append((end, -len(self._started), booked))
        else:
            high = self._pieces.cut(end)
            self._pieces.book(booked.tenants, booked.charges, 0, high)

    # --- later -----------------------------------------------------------------------------------

    def give(
        self, waiting: Waiting, group: Group, limit_ms: int, furthest: Instant | None
    ) -> Date | None:
        """Give a workload the first stretch that is long enough."""
        book = group.book
        if self.are_given:
            return None
        pieces = self._pieces
        if pieces is None:
            pieces = self._pieces = self._make_pieces()
        alike = (book, waiting.shape.number, waiting.term)
        bound = self._bounds.get(alike)
        first = 1  # it was looked at for now already
        if bound is not None and bound[0] <= limit_ms:
            first = max(1, pieces.piece_before(bound[1]))
        known = counted(self._state, group, waiting)
        if known is not None:
            starts = pieces.starts_counted(known, limit_ms, first)
        else:
            wanted = waiting.shape.least_in_total if self._state.floor.has_nodes else ()
            starts = pieces.starts(wanted, limit_ms, first)
        for low in starts[:MOST_TRIED]:
            start = pieces.cuts[low]
            if furthest is not None and start > furthest:
                break
            end = Instant(start + limit_ms)
            if known is not None and known.fills_holes:
                found = self._count(known, start, end)
            else:
                found = self._try(waiting, book, known, start, end)
            if found is not None:
                self._bounds[alike] = (limit_ms, start)
                return self._promise(waiting, start, end, found)
        return None

    def _count(self, known: Counted, start: Instant, end: Instant) -> Starting | None:
        """Look for nodes for a gang that only has to be counted; there is quota."""
        assert self._pieces is not None, "there are pieces by now"
        low = self._pieces.piece_before(start)
        high = max(low + 1, self._pieces.piece_before(end))
        view = self._state.floor.in_order(known.levels)
        caps = known.capacities(self._pieces.least_free(low, high))[view]
        taken = fill_holes(caps, known.pods)
        if taken is None:
            return None
        positions, counts = taken
        tenant = Tenant((), known.requests, rows=view[positions], counts=counts)
        return Starting(known.cells, (tenant,))

    def _make_pieces(self) -> Pieces:
        over = [(end, 0, NOTHING) for end in self._state.reserved.ends(self._now)]
        ends = sorted(
            [*still_there(self._cycle), *self._started, *over], key=lambda entry: entry[0]
        )
        return Pieces(self._state.floor.table, self._now, ends, self._rules.resolution_ms)

    def _try(
        self,
        waiting: Waiting,
        book: QueueBook,
        known: Counted | None,
        start: Instant,
        end: Instant,
    ) -> Starting | None:
        """Look for quota and nodes from one instant to another."""
        assert self._pieces is not None, "there are pieces by now"
        low = self._pieces.piece_before(start)
        high = max(low + 1, self._pieces.piece_before(end))
        mark = self._ledger.mark()
        self._let_time_pass(book, low, high)
        assignment = affordable(self._state, book, waiting, self._ledger, self._now)
        self._ledger.rollback(mark)
        if assignment.verdict is not Verdict.FIT:
            return None
        charges = assignment.as_charges()
        if not self._state.floor.has_nodes:
            return Starting(charges, ())
        free = self._pieces.least_free(low, high)
        if known is not None and not known.fits_on(free):
            return None
        fence = self._state.reserved.fence(waiting.workload, start)
        gang = Seeker(self._state.floor, waiting, fence=fence).gang(assignment)
        answer = self._state.outlook.place(gang, free)
        if isinstance(answer, GangDoesNotFit):
            return None
        admission = write_admission(book.spec.name, waiting.shape, assignment, answer)
        return Starting(charges, self._with_rows(tenants_of(waiting.workload, admission)))

    def _promise(self, waiting: Waiting, start: Instant, end: Instant, found: Starting) -> Date:
        assert self._pieces is not None, "there are pieces by now"
        low, high = self._pieces.piece_before(start), self._pieces.cut(end)
        self._pieces.book(found.tenants, found.charges, low, high)
        date = Date(workload=waiting.workload.key, start=start, end=end)
        self._dates[date.workload] = date
        if self._first is None or start < self._first.start:
            self._first = date
        return date

    def _let_time_pass(self, book: QueueBook, low: int, high: int) -> None:
        """Book on the ledger the most that is used of each account meanwhile."""
        assert self._pieces is not None, "there are pieces by now"
        root = book.node.root()
        for cell in [*self._pieces.usage]:
            if cell.node.root() is root:
                more = self._pieces.most_used(cell, low, high) - cell.usage
                if more:
                    self._ledger.add(((cell, more),))

    def _with_rows(self, tenants: tuple[Tenant, ...]) -> tuple[Tenant, ...]:
        for tenant in tenants:
            self._state.floor.tenancy.locate(tenant)
        return tenants


def still_there(cycle: Cycle) -> list[tuple[Instant, int, Running]]:
    """Return who runs, by expected end, without those whom this pass has already let go."""
    ends = cycle.state.agenda.ends
    if not cycle.taken:
        return ends
    return [entry for entry in ends if entry[2].holding.workload.key not in cycle.taken]
