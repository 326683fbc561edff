"""Dates: when those who wait are to start, and who may go first without moving one.

`OneDate` gives a date to the first that has to wait (EASY); `Calendar` gives one to everybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from unisono.engine.backfill.calendar import NOTHING, Calendar, still_there
from unisono.engine.backfill.counting import counted, given_back
from unisono.engine.backfill.need import Counted
from unisono.engine.backfill.outlook import outlook_of, without
from unisono.engine.backfill.shadow import Shadow
from unisono.engine.decisions import Cycle
from unisono.engine.model.explanation import Blocker, GangDoesNotFit, WouldDelay
from unisono.engine.model.names import Instant
from unisono.engine.model.plan import Date
from unisono.engine.nominate import Nominee, admission_of, nominate
from unisono.engine.quota.assign import Verdict
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.node_table import Integers
from unisono.engine.state.nodes import tenants_of
from unisono.engine.state.pending_queue import Waiting
from unisono.engine.state.queue_book import QueueBook
from unisono.engine.state.quota_tree import available
from unisono.engine.state.tenant import Tenant
from unisono.engine.state.timeline import Group, Kept
from unisono.engine.state.transaction import Booked, Starting


class Dates(Protocol):
    """What a pass asks about time."""

    @property
    def given(self) -> Sequence[Date]:
        """Return all dates."""
        ...

    @property
    def count(self) -> int:
        """Return how many dates there are."""
        ...

    def keep(self) -> Kept | None:
        """Return what the next pass may use of them."""
        ...

    @property
    def are_known(self) -> bool:
        """Say whether the dates are those of the last pass, so that only newcomers count."""
        ...

    @property
    def are_on_nodes(self) -> bool:
        """Say whether dates have nodes of their own, so that others may have to go elsewhere."""
        ...

    @property
    def are_given(self) -> bool:
        """Say whether nobody else gets a date in this pass."""
        ...

    @property
    def is_one(self) -> bool:
        """Say whether there is one date at most.

        Then whoever runs beyond it takes from it, however long, and who starts need not be seated
        before somebody asks.
        """
        ...

    def is_over_by(self, end: Instant) -> bool:
        """Say whether somebody who ends then is gone before the first date."""
        ...

    def in_the_way(self, limit_ms: int) -> tuple[Blocker, ...]:
        """Return why somebody who fits must not start."""
        ...

    def allow(self, nominee: Nominee, end: Instant) -> bool:
        """Say whether a nominee that fits may start; it may have to go to other nodes."""
        ...

    def foresee(self, known: Counted, end: Instant) -> bool | None:
        """Say the same of somebody who is counted; None: that depends on the nodes it gets."""
        ...

    def allow_offer(self, booked: Booked, end: Instant) -> bool:
        """Say the same of somebody who is counted, and whose nodes are fixed."""
        ...

    def note_start(self, end: Instant, booked: Booked) -> None:
        """Take in that the nominee that was just allowed starts."""
        ...

    def give(
        self, waiting: Waiting, group: Group, limit_ms: int, furthest: Instant | None
    ) -> Date | None:
        """Give a workload that has to wait a date, if there is one to give."""
        ...


class OneDate:
    """A date for the first that has to wait."""

    are_on_nodes = False
    is_one = True

    @property
    def given(self) -> Sequence[Date]:
        """Return the one date, if there is one."""
        return () if self.shadow is None else (self.shadow.date,)

    @property
    def count(self) -> int:
        """One or none."""
        return 0 if self.shadow is None else 1

    def keep(self) -> Kept | None:
        """Keep the one date."""
        return self.shadow

    def __init__(
        self, state: ClusterState, cycle: Cycle, now: Instant, known: Shadow | None
    ) -> None:
        self.shadow = known
        self.are_known = known is not None
        self._state = state
        self._cycle = cycle
        self._ledger = cycle.ledger
        self._now = now
        self._started: list[tuple[Instant, int, Booked]] = []  # in this pass
        self._left: Integers | None = None  # on nodes at the date, once who was allowed starts

    @property
    def are_given(self) -> bool:
        """One is all."""
        return self.shadow is not None

    def is_over_by(self, end: Instant) -> bool:
        """Say whether somebody who ends then is gone before the date."""
        return self.shadow is None or end <= self.shadow.start

    def in_the_way(self, limit_ms: int) -> tuple[Blocker, ...]:
        """Name who has the date."""
        assert self.shadow is not None, "somebody is in the way"
        return (WouldDelay(whom=self.shadow.whom, start=self.shadow.start, limit_ms=limit_ms),)

    def allow(self, nominee: Nominee, end: Instant) -> bool:
        """Let pass who ends before the date, or who leaves enough for it."""
        if self.is_over_by(end):
            return True
        tenants: tuple[Tenant, ...] = ()
        if nominee.spots:
            tenants = tenants_of(nominee.waiting.workload, admission_of(nominee))
        return self.allow_offer(Starting(nominee.assignment.as_charges(), tenants), end)

    def foresee(self, known: Counted, end: Instant) -> bool | None:
        """Let pass who ends before the date, or is few enough."""
        shadow = self.shadow
        if shadow is None or end <= shadow.start:
            return True
        room = shadow.room
        for cell, amount in known.cells:
            if cell in room and room[cell] < amount:
                return False
        if shadow.spare is None or shadow.counted is None:
            return None
        return shadow.spare >= known.pods if shadow.counted.room is known.room else None

    def allow_offer(self, booked: Booked, end: Instant) -> bool:
        """Let pass who ends before the date, or who leaves enough for it."""
        shadow = self.shadow
        self._left = None
        if shadow is None or end <= shadow.start:
            return True
        room = shadow.room
        if any(cell in room and room[cell] < amount for cell, amount in booked.charges):
            return False
        if shadow.counted is None and not self._leaves_quota(booked, shadow):
            return False
        if shadow.gang is None and shadow.counted is None:
            return True
        for tenant in booked.tenants:
            self._state.nodes.tenancy.locate(tenant)
        self._left = without(self._free_at(shadow), booked.tenants, self._state.nodes.table)
        if shadow.counted is not None:
            return shadow.counted.fits_on(self._left)
        assert shadow.gang is not None, "one of them says whether it fits"
        answer = outlook_of(self._state).place(shadow.gang, self._left)
        return not isinstance(answer, GangDoesNotFit)

    def _free_at(self, shadow: Shadow) -> Integers:
        """Return what is free on nodes at the date."""
        if shadow.free is None:
            self._ledger.settle()
            table, tenancy = self._state.nodes.table, self._state.nodes.tenancy
            for booked in shadow.gone:
                for tenant in booked.tenants:
                    tenancy.locate(tenant)  # who started since was taken off the ledger again
            shadow.free = given_back(table.free, table, shadow.gone)
        return shadow.free

    def _leaves_quota(self, booked: Booked, shadow: Shadow) -> bool:
        """Say whether both fit into their quota once the others have ended."""
        ledger = self._ledger
        mark = ledger.mark()
        for running in shadow.gone:
            ledger.remove(running.charges)
        ledger.add(shadow.charges)
        fits = all(amount <= available(cell) for cell, amount in booked.charges if amount)
        ledger.rollback(mark)
        return fits

    def note_start(self, end: Instant, booked: Booked) -> None:
        """Keep what is left for the date, and who ends when."""
        shadow, left, self._left = self.shadow, self._left, None
        if shadow is None:
            self._started.append((end, -len(self._started), booked))
            return
        if end <= shadow.start:
            shadow.gone.append(booked)
            return
        for cell, amount in booked.charges:
            if cell in shadow.room:
                shadow.room[cell] -= amount
        if shadow.spare is not None and shadow.counted is not None:
            alike = all(tenant.requests == shadow.counted.requests for tenant in booked.tenants)
            shadow.spare -= sum(tenant.pods for tenant in booked.tenants)
            if not alike:
                shadow.spare = None
        if shadow.free is not None:
            if left is None:
                left = without(shadow.free, booked.tenants, self._state.nodes.table)
            shadow.free = left

    def give(
        self, waiting: Waiting, group: Group, limit_ms: int, furthest: Instant | None
    ) -> Date | None:
        """Give the first one a date; there are no others."""
        if self.shadow is not None:
            return None
        known = counted(self._state, group, waiting)
        if known is not None:
            shadow = self._count_to(waiting, known, limit_ms)
        else:
            shadow = self._find(waiting, group.book, limit_ms)
        if shadow is None or (furthest is not None and shadow.start > furthest):
            return None
        self.shadow = shadow
        return shadow.date

    def _find(self, waiting: Waiting, book: QueueBook, limit_ms: int) -> Shadow | None:
        """Let one after the other end, until it fits."""
        ends = self._ends()
        ledger = self._ledger
        mark = ledger.mark()
        gone: list[Booked] = []
        found: Shadow | None = None
        at = self._now
        for index, (end, _, running) in enumerate(ends):
            ledger.let_go(running)
            gone.append(running)
            at = max(end, Instant(self._now + 1))
            if index + 1 < len(ends) and ends[index + 1][0] <= at:
                continue  # they end together
            if not self._has_enough(waiting):
                continue
            nominee = nominate(
                self._state, book, waiting, ledger, self._now, start=at, displaces=False
            )
            if not nominee.targets and nominee.assignment.verdict is Verdict.FIT:
                end_ms = Instant(at + limit_ms)
                found = self._shadow(nominee, at, end_ms, gone)
                break
        ledger.rollback(mark)
        return found

    def _ends(self) -> Sequence[tuple[Instant, int, Booked]]:
        """Return who ends when, those who start in this pass too, and reservations."""
        there = still_there(self._cycle)
        over = self._state.reserved.ends(self._now) if self._state.policy.reservations else []
        if not self._started and not over:
            return there
        ends: list[tuple[Instant, int, Booked]] = [*there, *self._started]
        ends += [(end, 0, NOTHING) for end in over]
        ends.sort(key=_end)
        return ends

    def _count_to(self, waiting: Waiting, known: Counted, limit_ms: int) -> Shadow | None:
        """Let one after the other end until there is quota, then until there are nodes."""
        short = {cell: amount - available(cell) for cell, amount in known.cells}
        ends, room = self._ends(), known.room
        spare = room.total(self._ledger) - known.pods
        counts_pods = room.is_exact  # as long as all who end gave as much as they took
        soon = Instant(self._now + 1)
        for index, (end, _, booked) in enumerate(ends):
            for cell, amount in booked.charges:
                if cell in short:
                    short[cell] -= amount
            for tenant in booked.tenants:
                spare += tenant.pods
                counts_pods = counts_pods and tenant.requests == known.requests
            at = max(end, soon)
            if index + 1 < len(ends) and ends[index + 1][0] <= at:
                continue  # they end together
            if max(short.values(), default=0) > 0 or (counts_pods and spare < 0):
                continue
            shadow = Shadow(
                whom=waiting.workload.key,
                start=at,
                end=Instant(at + limit_ms),
                gone=[entry[2] for entry in ends[: index + 1]],
                charges=known.cells,
                room={cell: -missing for cell, missing in short.items()},
                gang=None,
                counted=known,
                spare=spare if counts_pods else None,
                free=None,
            )
            if counts_pods or known.fits_on(self._free_at(shadow)):
                return shadow
        return None

    def _has_enough(self, waiting: Waiting) -> bool:
        """Say whether there is enough of everything on all nodes together."""
        if not self._state.nodes.has_nodes:
            return True
        return self._state.nodes.table.has_in_total(waiting.shape.least_in_total)

    def _shadow(self, nominee: Nominee, start: Instant, end: Instant, gone: list[Booked]) -> Shadow:
        state = self._state
        gang = None
        free: Integers = state.nodes.table.free
        if nominee.seeker is not None:
            gang = nominee.seeker.gang(nominee.assignment)
            free = free.copy()
        return Shadow(
            whom=nominee.key,
            start=start,
            end=end,
            gone=gone,
            charges=nominee.assignment.as_charges(),
            room={},
            gang=gang,
            counted=None,
            spare=None,
            free=free,
        )


def _end(entry: tuple[Instant, int, Booked]) -> Instant:
    return entry[0]


def dates_for(state: ClusterState, cycle: Cycle, now: Instant, kept: Kept | None) -> Dates:
    """Return the dates of a pass that starts now, given those of the last one if they hold."""
    timeline = state.timeline
    assert timeline.rules is not None, "without backfill there are no dates"
    if timeline.rules.dates == 1:
        return OneDate(state, cycle, now, kept if isinstance(kept, Shadow) else None)
    newcomers = [(each.waiting, each.group) for each in timeline.arrivals]
    if isinstance(kept, Calendar) and kept.fits(newcomers):
        kept.take_up(cycle, now)
        return kept
    return Calendar(state, cycle, now, timeline.rules)
