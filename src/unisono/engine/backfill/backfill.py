"""The pass: everybody in turn, and whoever has to wait gets a date (spec time §3).

`plan_in_time` takes the place of the ordinary cycle when the policy asks for backfill. What is done
about one workload (admit it, make others leave for it) is decided by the same code; only who is
looked at, and what must stay free for those who have a date, is different.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from unisono.engine.backfill.calendar import Calendar
from unisono.engine.backfill.counting import counted
from unisono.engine.backfill.dates import Dates, dates_for
from unisono.engine.backfill.express import may_go_express, plan_express
from unisono.engine.backfill.granting import most_granted, raised
from unisono.engine.backfill.quick import admit, may_offer, offer
from unisono.engine.backfill.seating import Seats
from unisono.engine.decisions import Cycle
from unisono.engine.in_turn import everybody_in_turn
from unisono.engine.model.explanation import Blocker, ClaimedThisCycle, Explanation, Planned
from unisono.engine.model.names import Instant, LocalQueueKey
from unisono.engine.model.plan import Plan, Wait
from unisono.engine.model.policy import Backfill
from unisono.engine.nominate import Nominee, facts_of, nominate
from unisono.engine.ordering.limit_counters import LimitCounters
from unisono.engine.ordering.priority_order import multifactor_of
from unisono.engine.quota.assign import Verdict
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.pending_queue import Waiting
from unisono.engine.state.quota_tree import Cell, available
from unisono.engine.state.timeline import Group, Place, place_of
from unisono.engine.state.transaction import Ledger
from unisono.engine.stops import stops_due

_Head = tuple[Place, int, Group]  # who of a group comes next

# Dates beyond the window are still given to so many (spec time §4).
SURE = 10


def plan_in_time(state: ClusterState, now: Instant) -> Plan:
    """Decide one pass; the state is up to date."""
    rules = state.timeline.rules
    assert rules is not None, "without backfill the cycle decides"
    stops = stops_due(state, now)
    if not state.timeline.groups:  # nobody waits
        state.timeline.draft(state.version, None)
        return Plan(based_on=state.version, now=now, stops=tuple(stops))
    if state.priority_order.is_on:
        state.timeline.invalidate()  # priorities change with time
    kept = state.timeline.take_kept(now)
    if not stops and may_go_express(state):
        made = plan_express(state, now, kept)
        if made is not None:
            return made
    cycle = Cycle(state, now, Ledger(state.nodes.tenancy))
    cycle.victims.update(dict.fromkeys(stop.workload for stop in stops))
    done = _Pass(state, cycle, now, rules, dates_for(state, cycle, now, kept))
    done.go()
    cycle.ledger.rollback()
    state.timeline.draft(state.version, done.dates.keep())
    if not done.dates.are_known and state.timeline.promised:
        cycle.waits += done.lapsed()
    return Plan(
        based_on=state.version,
        now=now,
        admissions=tuple(cycle.admissions),
        preemptions=tuple(cycle.preemptions),
        stops=tuple(stops),
        waits=tuple(cycle.waits),
        dates=tuple(done.dates.given),
        examined=tuple(sorted({group.book.spec.name for group in done.seen})),
    )


def try_in_time(
    state: ClusterState, now: Instant, rules: Backfill, seats: Seats | None = None
) -> list[Wait]:
    """Look at everybody on the timeline as a pass would, and change nothing; return who waits.

    `seats` is told who would sit where.
    """
    cycle = Cycle(state, now, Ledger(state.nodes.tenancy))
    kept = state.timeline.take_kept(now)
    dates = dates_for(state, cycle, now, kept)
    if isinstance(dates, Calendar):
        dates.seats = seats
    done = _Pass(state, cycle, now, rules, dates)
    done.go()
    cycle.ledger.rollback()
    return cycle.waits


@dataclass(slots=True)
class _Pass:
    """One look at everybody."""

    state: ClusterState
    cycle: Cycle
    now: Instant
    rules: Backfill
    dates: Dates
    seen: dict[Group, None] = field(default_factory=dict)
    looked_at: int = 0
    _refused: dict[Group, tuple[Blocker, ...]] = field(default_factory=dict)
    # Who fits, but not beside a date, with which limit: others may be short enough.
    _late: dict[Group, int] = field(default_factory=dict)
    # What this pass starts: it counts for limits before it runs.
    _started: LimitCounters = field(default_factory=LimitCounters)
    _of_queue: dict[LocalQueueKey, int] = field(default_factory=dict)

    def go(self) -> None:
        """Look at everybody whom this may concern."""
        for waiting, group in self._whom():
            if self.rules.most_tested and self.looked_at >= self.rules.most_tested:
                break
            queue = waiting.workload.queue
            tested = self._of_queue[queue] = self._of_queue.get(queue, 0) + 1
            if self.rules.most_per_queue and tested > self.rules.most_per_queue:
                continue
            self.looked_at += 1
            self.seen[group] = None
            self.state.evaluating = waiting.key
            self._look(waiting, group)

    def lapsed(self) -> list[Wait]:
        """Take back dates that were told and are not given any more."""
        made = self.cycle
        told = {wait.explanation.workload for wait in made.waits}
        told.update(admit.workload for admit in made.admissions)
        told.update(one.workload for one in made.preemptions)
        lost = self.state.timeline.lapsed({date.workload for date in self.dates.given}, told)
        return [Wait(outcome="line", explanation=why) for why in lost]

    def _whom(self) -> Iterator[tuple[Waiting, Group]]:
        """Yield whom to look at: who made others leave, and then everybody in turn."""
        first = self._claimants()
        if not first:
            yield from self._in_turn()
            return
        yield from first
        done = {waiting.workload.key for waiting, _ in first}
        for waiting, group in self._in_turn():
            if waiting.workload.key not in done:
                yield waiting, group

    def _claimants(self) -> list[tuple[Waiting, Group]]:
        """Return who made others leave: nobody else may take the place first (spec quota §18.2a).

        Otherwise a victim, back in line at its old place, would only have to leave again.
        """
        state, policy = self.state, self.state.policy
        if state.priority_order.is_on or self.dates.are_known:
            return []  # they go first there, too; or nothing has moved since they were looked at
        if policy.strict or not policy.anti_thrash or not state.rota.claimants:
            return []
        found = []
        for book in state.rota.claimants:
            waiting = state.waiting.get(book.pending.preemptor) if book.pending.preemptor else None
            if waiting is not None and waiting.slot is not None and book.blocker is None:
                found.append((waiting, _group(state, waiting)))
        return sorted(found, key=lambda pair: _turn(pair[0]))

    def _in_turn(self) -> Iterator[tuple[Waiting, Group]]:
        """Yield everybody who is worth a look, in turn."""
        timeline = self.state.timeline
        if self.state.priority_order.is_on:
            for _, waiting in everybody_in_turn(self.state):
                group = _group(self.state, waiting)
                if not self._is_over(group):
                    yield waiting, group
            return
        if self.dates.are_known:  # what the last pass found out still holds
            for member in sorted(timeline.arrivals, key=place_of):
                if timeline.is_pending(member):
                    yield member.waiting, member.group
            return
        # What is in order is a heap as well.
        heads: list[_Head] = [(group.places[0], 0, group) for group in timeline.order]
        narrowed = False
        while heads:
            if self.dates.are_given and not narrowed:
                narrowed = True
                heads = self._narrowed(heads)
                if self.rules.shortest_first:
                    yield from self._shortest_first(heads)
                    return
                heapq.heapify(heads)
                continue
            _, index, group = heapq.heappop(heads)
            yield group.members[index].waiting, group
            after = self._after(group, index)
            if after is not None:
                heapq.heappush(heads, (group.places[after], after, group))

    def _shortest_first(self, heads: list[_Head]) -> Iterator[tuple[Waiting, Group]]:
        """Yield everybody who is left, the shortest first."""
        rest = [
            (member.limit, member.place, member)
            for _, index, group in heads
            for member in group.members[index:]
        ]
        rest.sort(key=lambda entry: entry[:2])
        for limit, _, member in rest:
            if not self._is_over(member.group) and not self._is_late(member.group, limit):
                yield member.waiting, member.group

    def _narrowed(self, heads: list[_Head]) -> list[_Head]:
        """Return the groups that are worth a look when there are no dates to give."""
        state, dates = self.state, self.dates
        left: dict[Cell, int] = {}  # of quota
        worth: list[_Head] = []
        for head in heads:
            group = head[2]
            known = counted(state, group, group.members[0].waiting)
            if known is not None:
                if any(amount > _left(cell, left) for cell, amount in known.cells):
                    continue
                if dates.is_one and group.is_delaying:
                    # As was said of one of them already; perhaps not even the shortest may start.
                    shortest = Instant(self.now + group.limits[0])
                    if dates.foresee(known, shortest) is False:
                        continue
            worth.append(head)
        return worth

    def _after(self, group: Group, index: int) -> int | None:
        """Return the next member of a group that is worth a look, if there is one."""
        # A group whose members cannot start and get no dates is left at once.
        if self._is_over(group) or self._is_late(group, group.limits[0]):
            return None
        for after in range(index + 1, len(group.members)):
            if not self._is_late(group, group.members[after].limit):
                return after
        return None

    def _is_late(self, group: Group, limit: int) -> bool:
        """Say whether somebody of a group would delay the one date, like another was found to."""
        if group not in self._late or not self.dates.is_one:
            return False
        return not self.dates.is_over_by(Instant(self.now + limit))

    def _is_over(self, group: Group) -> bool:
        """Say whether nobody else of a group can start or get a date in this pass."""
        return group in self._refused and self.dates.are_given

    def _look(self, waiting: Waiting, group: Group) -> None:
        over = None
        if (multifactor := multifactor_of(self.state)) is not None:
            over = multifactor.over_limit_of(waiting.workload.key, self._started)
        if over is not None:  # it gets no date: who is over a limit is in nobody's way
            self._wait(waiting, group, (over,))
            return
        limit = self.state.timeline.limit_of(waiting.workload)
        blockers = self._refused.get(group)
        if blockers is None:
            blockers = self._try(waiting, group, limit)
            if blockers is None:
                return
        if self.dates.are_given:
            self._wait(waiting, group, blockers)
            return
        given = self.dates.keep()
        ahead = given.last if given is not None else None  # before it gets one itself
        date = self.dates.give(waiting, group, limit, self._furthest())
        if date is not None:
            planned = Planned(
                start=date.start,
                position=self.dates.count,
                limit_ms=limit,
                limit_from=waiting.workload.longest_from,
                behind=ahead,
            )
            blockers = (planned, *blockers)
        self._wait(waiting, group, blockers)

    def _try(self, waiting: Waiting, group: Group, limit: int) -> tuple[Blocker, ...] | None:
        """Let it start if it may; otherwise say what is in its way."""
        end, cycle, dates = Instant(self.now + limit), self.cycle, self.dates
        known = counted(self.state, group, waiting)
        if known is not None and not known.has_quota():
            refused = self._refused[group] = known.shortages(group.book.spec.name)
            return refused
        late = self._late.get(group)
        if late is not None and limit >= late and not dates.is_over_by(end):
            return dates.in_the_way(limit)
        is_open = waiting.workload.least_limit_ms is not None
        if known is not None and not is_open and may_offer(cycle, known):
            may_start = dates.foresee(known, end)
            if may_start is False:
                return self._elsewhere(waiting, group, end, limit)
            made = offer(cycle, waiting, group, known)
            if made is not None:
                if not may_start and not dates.allow_offer(made[1], end):
                    return self._elsewhere(waiting, group, end, limit)
                admit(cycle, waiting, known, made, later=dates.is_one)
                dates.note_start(end, made[1])
                return None
        return self._decide(self._nominate(waiting, group), group, end, limit)

    def _nominate(self, waiting: Waiting, group: Group) -> Nominee:
        """Judge one workload as things are by now; those who leave already leave only once."""
        cycle = self.cycle
        gone = frozenset(cycle.victims)
        return nominate(self.state, group.book, waiting, cycle.ledger, self.now, gone=gone)

    def _elsewhere(
        self, waiting: Waiting, group: Group, end: Instant, limit: int
    ) -> tuple[Blocker, ...] | None:
        """Try other nodes, if dates are on nodes; otherwise say what is in its way."""
        if self.dates.are_on_nodes:
            nominee = self._nominate(waiting, group)
            return self._decide(nominee, group, end, limit)
        self._late[group] = min(limit, self._late.get(group, limit))
        return self.dates.in_the_way(limit)

    def _decide(
        self, nominee: Nominee, group: Group, end: Instant, limit: int
    ) -> tuple[Blocker, ...] | None:
        """Start it or make others leave for it; otherwise say what is in its way."""
        self.cycle.find_machines(nominee)
        if nominee.targets:
            self.cycle.decide(nominee)
            return None
        if nominee.assignment.verdict is not Verdict.FIT:
            facts = self._refused[group] = facts_of(nominee)
            return facts
        is_lent = nominee.lenders and self.dates.is_over_by(end)
        if not is_lent and not self.dates.allow(nominee, end):
            self._late[group] = min(limit, self._late.get(group, limit))
            return self.dates.in_the_way(limit)
        granted = None if is_lent else self._granted(nominee)
        started = len(self.cycle.admissions)
        self.cycle.decide(nominee)
        if len(self.cycle.admissions) > started:
            if granted is not None:
                end = Instant(self.now + granted)
                last = self.cycle.admissions[-1]
                self.cycle.admissions[-1] = msgspec.structs.replace(last, limit_ms=granted)
            self.dates.note_start(end, self.cycle.starting[-1])
            if (multifactor := multifactor_of(self.state)) is not None:
                multifactor.count(nominee.key, self._started)
            return None
        wait = self.cycle.waits.pop()
        return wait.explanation.blockers or (ClaimedThisCycle(queue=group.book.spec.name),)

    def _granted(self, nominee: Nominee) -> int | None:
        """Return the limit to start it with, if it left that open: no date moves because of it."""
        workload = nominee.waiting.workload
        most = most_granted(self.state, workload, self.now)
        if most is None or workload.least_limit_ms is None:
            return None

        def allows(limit: int) -> bool:
            return self.dates.allow(nominee, Instant(self.now + limit))

        return raised(workload.least_limit_ms, most, allows)

    def _furthest(self) -> Instant | None:
        """Return how far away a date may be; None: as far as it has to be."""
        return None if self.dates.count < SURE else Instant(self.now + self.rules.window_ms)

    def _wait(self, waiting: Waiting, group: Group, blockers: tuple[Blocker, ...]) -> None:
        if self.state.timeline.is_new(waiting, group, blockers):
            self.cycle.waits.append(_line(waiting, group, blockers))


def _line(waiting: Waiting, group: Group, blockers: tuple[Blocker, ...]) -> Wait:
    why = Explanation(workload=waiting.workload.key, queue=group.book.spec.name, blockers=blockers)
    return Wait(outcome="line", explanation=why)


def _left(cell: Cell, known: dict[Cell, int]) -> int:
    """Return how much an account has left; many ask for the same one."""
    left = known.get(cell)
    if left is None:
        left = known[cell] = available(cell)
    return left


def _turn(waiting: Waiting) -> tuple[int, Instant, str]:
    workload = waiting.workload
    return -workload.priority, workload.position_time, workload.tie


def _group(state: ClusterState, waiting: Waiting) -> Group:
    found = state.timeline.group_of(waiting)
    assert found is not None, f"{waiting.key} stands in line"
    return found
