"""Where a cycle's candidates come from: the first parameter of the one loop (`engine/cycle.py`).

`Heads`          the head of every active ClusterQueue, nominated before the first decision, in the
                 classical order or by the fair-sharing tournament (spec quota §6 and §9)
`PriorityHeads`  heads in multifactor priority order over all queues (spec priority §6)
`AllPending`     with backfill: all pending workloads in order (spec backfill §3); timeline groups
                 stand for thousands of equal workloads

A source says which candidate comes next, nominates it on the right picture, and takes in what was
decided. What is done about one candidate is the same for all of them (`engine/decide.py`).
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Iterator

from unisono.engine.backfill.counted_gang import CountedGang, counted_gang
from unisono.engine.backfill.reservation_table import ReservationTable
from unisono.engine.decide import Decisions
from unisono.engine.model.explanation import (
    Blocker,
    ClaimedThisCycle,
    Explanation,
    Planned,
    WouldDelay,
)
from unisono.engine.model.names import Instant, LocalQueueKey
from unisono.engine.model.overriding import override
from unisono.engine.model.plan import Outcome, Wait
from unisono.engine.model.policy import Backfill
from unisono.engine.nominate import Nominee, nominate
from unisono.engine.ordering.heads import Tournament, classical_key
from unisono.engine.ordering.multifactor_queue import MultifactorQueue, PriorityKey
from unisono.engine.quota.assign import Verdict
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.cluster_queue import ClusterQueueState
from unisono.engine.state.pending_queue import PendingWorkload
from unisono.engine.state.quota_tree import Cell, available
from unisono.engine.state.timeline import Group, Place, place_of

# Whether it goes behind preemptors with a pending preemption, and its multifactor priority.
_Rank = tuple[bool, PriorityKey]
_FIRST: _Rank = (False, (0, 0, Instant(0), 0, 0, ""))
# The place of a group's next member, its index, and the group.
_Head = tuple[Place, int, Group]
# The first so many get a reservation even beyond the window (spec backfill §4).
BEYOND_WINDOW = 10


class Candidate:
    """A pending workload that a cycle decides about."""

    __slots__ = ("cq", "group", "nominee", "waiting")

    def __init__(
        self,
        cq: ClusterQueueState,
        waiting: PendingWorkload,
        group: Group | None = None,
        nominee: Nominee | None = None,
    ) -> None:
        self.cq = cq
        self.waiting = waiting
        self.group = group  # of the timeline; None without backfill
        self.nominee = nominee  # set: nominated before the first decision


class Candidates(ABC):
    """A source of candidates."""

    def __init__(self, cycle: Decisions) -> None:
        self.cycle = cycle
        self.state = cycle.state
        self.evaluated: dict[ClusterQueueState, None] = {}  # the queues of the candidates so far

    @abstractmethod
    def __iter__(self) -> Iterator[Candidate]:
        """Yield candidates; each is decided before the next one is asked for."""

    def decide_early(self, candidate: Candidate) -> bool:
        """Decide a candidate whose outcome is known without a nomination; False: it is not."""
        return False

    @abstractmethod
    def nominate(self, candidate: Candidate) -> Nominee:
        """Find out what a candidate could get."""

    def decided(self, candidate: Candidate, nominee: Nominee, wait: Wait | None) -> None:
        """Take in a decision; None: the candidate starts."""
        if wait is not None:
            self.cycle.waits.append(wait)

    def withdrawn(self) -> list[Wait]:
        """Return waits that take back what an earlier cycle promised."""
        return []


def candidates_for(cycle: Decisions) -> Candidates:
    """Return the source that the policy asks for; with backfill priority orders inside of it."""
    if cycle.table is not None:
        return AllPending(cycle, cycle.table)
    if cycle.limits is not None:
        return PriorityHeads(cycle)
    return Heads(cycle)


def _active_heads(state: ClusterState) -> list[tuple[ClusterQueueState, PendingWorkload]]:
    """Return the heads that are worth an evaluation, with their queues.

    Preemptors go along in every cycle that may start something: the nodes that their victims leave
    are not for others.
    """
    heads = {cq: state.head_of(cq) for cq in state.active_queues.ready if not cq.blocked_by_head}
    if state.nodes.has_nodes and any(heads.values()):
        for cq in state.active_queues.with_preemptor:
            if cq.pending.preemptor is not None and cq.blocker is None:
                heads[cq] = state.head_of(cq)
    return [(cq, head) for cq, head in heads.items() if head is not None]


class Heads(Candidates):
    """The head of every active queue, all nominated on the same picture (spec quota §6).

    Before the first decision, because the order of decision depends on what all of them would
    borrow: nominated one by one, an earlier head would change how far the later ones borrow.
    """

    def __init__(self, cycle: Decisions) -> None:
        super().__init__(cycle)
        state, transaction, now = cycle.state, cycle.transaction, cycle.now
        self._nominees = [
            nominate(state, cq, head, transaction, now) for cq, head in _active_heads(state)
        ]
        cycle.is_last = len(self._nominees) == 1
        self.evaluated.update((nominee.cq, None) for nominee in self._nominees)

    @override
    def __iter__(self) -> Iterator[Candidate]:
        for nominee in self._in_order():
            yield Candidate(nominee.cq, nominee.waiting, None, nominee)

    def _in_order(self) -> Iterator[Nominee]:
        """Yield nominees in the order of decision; fair sharing judges shares as they change."""
        if len(self._nominees) == 1:  # most cycles of a busy cluster: one queue has news
            yield self._nominees[0]
            return
        if self.state.policy.fair_sharing is None:
            yield from sorted(self._nominees, key=classical_key)
            return
        by_root: dict[str, list[Nominee]] = {}
        for nominee in self._nominees:
            root = nominee.node.root()
            # A cohort and a queue without a cohort may have the same name.
            by_root.setdefault(f"{root.name}/{root.is_queue}", []).append(nominee)
        touched = self.cycle.touched
        for name in sorted(by_root):
            tournament = Tournament(by_root[name])
            while (winner := tournament.pop()) is not None:
                touched.clear()
                yield winner
                for node in touched:
                    tournament.touch(node)

    @override
    def nominate(self, candidate: Candidate) -> Nominee:
        """Return the nominee of before the first decision."""
        assert candidate.nominee is not None, "heads are nominated together"
        return candidate.nominee


class PriorityHeads(Candidates):
    """Heads in one priority order over all queues.

    A queue's second workload may go before another queue's first, so the cycle ends as soon as a
    workload that is not a head would be next; the next cycle goes on from there.
    """

    def __init__(self, cycle: Decisions) -> None:
        super().__init__(cycle)
        self._heads = self._ranked()
        heapq.heapify(self._heads)
        self._bound: _Rank | None = None  # of the best workload that is not a head

    def _ranked(self) -> list[tuple[_Rank, str, ClusterQueueState, PendingWorkload]]:
        heads = _active_heads(self.state)
        if len(heads) == 1:  # a single head needs no rank
            return [(_FIRST, cq.spec.name, cq, head) for cq, head in heads]
        return [(_rank(cq, head), cq.spec.name, cq, head) for cq, head in heads]

    @override
    def __iter__(self) -> Iterator[Candidate]:
        while self._heads:
            rank, _, cq, head = heapq.heappop(self._heads)
            if self._bound is not None and self._bound < rank:
                return
            self.evaluated[cq] = None
            yield Candidate(cq, head)

    @override
    def decide_early(self, candidate: Candidate) -> bool:
        """Set a head's class aside that is over a limit."""
        over = self.cycle.over_limit(candidate.waiting)
        if over is None:
            return False
        self.cycle.waits.append(_wait("bar", candidate, (over,)))
        self._bound_by_next(candidate)
        return True

    @override
    def nominate(self, candidate: Candidate) -> Nominee:
        """Nominate a head on the picture of before the first decision, like all heads."""
        transaction = self.cycle.transaction
        lifted = transaction.lift()
        nominee = nominate(self.state, candidate.cq, candidate.waiting, transaction, self.cycle.now)
        transaction.put_back(lifted)
        return nominee

    @override
    def decided(self, candidate: Candidate, nominee: Nominee, wait: Wait | None) -> None:
        """Find the queue's next workload if its head starts or steps aside."""
        super().decided(candidate, nominee, wait)
        if wait is None or wait.outcome == "park":
            self._bound_by_next(candidate)

    def _bound_by_next(self, candidate: Candidate) -> None:
        """End the cycle before the workload behind a head that no longer is one."""
        if not self._heads:  # order after the last head is irrelevant
            return
        pending = candidate.cq.pending
        assert isinstance(pending, MultifactorQueue), "priority orders every queue or none"
        after = pending.after(candidate.waiting)
        following = _rank(candidate.cq, after) if after is not None else None
        if self._bound is None or (following is not None and following < self._bound):
            self._bound = following


class AllPending(Candidates):
    """All pending workloads in order, with a backfill reservation for those that have to wait.

    Preemptors come first: their victims, pending again at their old places, would otherwise take
    what they just left (spec quota §18.2a).
    """

    def __init__(self, cycle: Decisions, table: ReservationTable) -> None:
        super().__init__(cycle)
        rules = cycle.timeline.rules
        assert rules is not None, "without backfill heads are the candidates"
        self._rules: Backfill = rules
        self._table = table
        self._timeline = cycle.timeline
        self._tested = 0
        self._of_queue: dict[LocalQueueKey, int] = {}
        kept = table.keep()
        self._ahead = kept.last if kept is not None else None  # has the last reservation so far
        self._reserved = table.count
        # Verdicts of this cycle that hold for a whole group: blockers, ...
        self._refused: dict[Group, tuple[Blocker, ...]] = {}
        # ... or the shortest time limit that would delay a reservation.
        self._delaying: dict[Group, int] = {}

    # --- which ones ------------------------------------------------------------------------------

    @override
    def __iter__(self) -> Iterator[Candidate]:
        rules = self._rules
        for waiting, group in self._pending():
            if rules.most_tested and self._tested >= rules.most_tested:
                break
            queue = waiting.workload.queue
            tested = self._of_queue[queue] = self._of_queue.get(queue, 0) + 1
            if rules.most_per_queue and tested > rules.most_per_queue:
                continue
            self._tested += 1
            self.evaluated[group.cq] = None
            yield Candidate(group.cq, waiting, group)

    def _pending(self) -> Iterator[tuple[PendingWorkload, Group]]:
        first = self._preemptors()
        return self._in_order() if not first else self._after_preemptors(first)

    def _after_preemptors(
        self, first: list[tuple[PendingWorkload, Group]]
    ) -> Iterator[tuple[PendingWorkload, Group]]:
        yield from first
        done = {waiting.workload.key for waiting, _ in first}
        for waiting, group in self._in_order():
            if waiting.workload.key not in done:
                yield waiting, group

    def _preemptors(self) -> list[tuple[PendingWorkload, Group]]:
        state, policy = self.state, self.state.policy
        if self.cycle.limits is not None or self._table.is_reused:
            return []  # first in priority order anyway; or nothing changed since the last cycle
        if policy.strict or not policy.anti_thrash or not state.active_queues.with_preemptor:
            return []
        found = []
        for cq in state.active_queues.with_preemptor:
            waiting = state.waiting.get(cq.pending.preemptor) if cq.pending.preemptor else None
            if waiting is not None and waiting.slot is not None and cq.blocker is None:
                found.append((waiting, self._group(waiting)))
        return sorted(found, key=lambda pair: _classical_place(pair[0]))

    def _group(self, waiting: PendingWorkload) -> Group:
        found = self._timeline.group_of(waiting)
        assert found is not None, f"{waiting.key} is pending"
        return found

    def _in_order(self) -> Iterator[tuple[PendingWorkload, Group]]:
        """Yield the workloads that are worth an evaluation, in order."""
        timeline, table = self._timeline, self._table
        if self.cycle.limits is not None:
            for _, waiting in priority_order(self.state):
                group = self._group(waiting)
                if not self._is_over(group):
                    yield waiting, group
            return
        if table.is_reused:  # what the last cycle found out still holds
            for member in sorted(timeline.arrivals, key=place_of):
                if timeline.is_pending(member):
                    yield member.waiting, member.group
            return
        # What is in order is a heap as well.
        heads: list[_Head] = [(group.places[0], 0, group) for group in timeline.order]
        narrowed = False
        while heads:
            if table.is_full and not narrowed:
                narrowed = True
                heads = self._narrowed(heads)
                if self._rules.shortest_first:
                    yield from self._shortest_first(heads)
                    return
                heapq.heapify(heads)
                continue
            _, index, group = heapq.heappop(heads)
            yield group.members[index].waiting, group
            after = self._after(group, index)
            if after is not None:
                heapq.heappush(heads, (group.places[after], after, group))

    def _shortest_first(self, heads: list[_Head]) -> Iterator[tuple[PendingWorkload, Group]]:
        """Yield the rest, the shortest time limit first."""
        rest = [
            (member.limit, member.place, member)
            for _, index, group in heads
            for member in group.members[index:]
        ]
        rest.sort(key=lambda entry: entry[:2])
        for limit, _, member in rest:
            if not self._is_over(member.group) and not self._delays(member.group, limit):
                yield member.waiting, member.group

    def _narrowed(self, heads: list[_Head]) -> list[_Head]:
        """Return the groups that are worth an evaluation when all reservations are made."""
        table = self._table
        left: dict[Cell, int] = {}  # of quota
        worth: list[_Head] = []
        for head in heads:
            group = head[2]
            counted = counted_gang(self.state, group, group.members[0].waiting)
            if counted is not None:
                if any(amount > _left(cell, left) for cell, amount in counted.cells):
                    continue
                if table.is_easy and group.is_delaying:
                    # As recorded of one of them; perhaps not even the shortest may start.
                    shortest = Instant(self.cycle.now + group.limits[0])
                    if table.allows_counted(counted, shortest) is False:
                        continue
            worth.append(head)
        return worth

    def _after(self, group: Group, index: int) -> int | None:
        """Return the next member of a group that is worth an evaluation, if there is one."""
        # A group whose members cannot start and get no reservation is left at once.
        if self._is_over(group) or self._delays(group, group.limits[0]):
            return None
        for after in range(index + 1, len(group.members)):
            if not self._delays(group, group.members[after].limit):
                return after
        return None

    def _delays(self, group: Group, limit: int) -> bool:
        """Say whether a member would delay the one reservation, as another was found to."""
        if group not in self._delaying or not self._table.is_easy:
            return False
        return not self._table.ends_before_first(Instant(self.cycle.now + limit))

    def _is_over(self, group: Group) -> bool:
        """Say whether no member of a group can start or get a reservation in this cycle."""
        return group in self._refused and self._table.is_full

    # --- one of them -----------------------------------------------------------------------------

    @override
    def decide_early(self, candidate: Candidate) -> bool:
        """Apply a limit or the group's verdict; start what fits by counting."""
        waiting, group, cycle = candidate.waiting, candidate.group, self.cycle
        assert group is not None, "with backfill every candidate has a group"
        if cycle.limits is not None and (over := cycle.over_limit(waiting)) is not None:
            # No reservation: what is over a limit is in no other's way.
            self._record(candidate, group, (over,))
            return True
        limit = self._timeline.limit_of(waiting.workload)
        refused = self._refused.get(group)
        if refused is not None:
            self._wait(candidate, group, limit, refused)
            return True
        counted = counted_gang(self.state, group, waiting)
        if counted is not None and not counted.has_quota():
            refused = self._refused[group] = counted.shortages(group.cq.spec.name)
            self._wait(candidate, group, limit, refused)
            return True
        table = self._table
        end = Instant(cycle.now + limit)
        delaying = self._delaying.get(group)
        if delaying is not None and limit >= delaying and not table.ends_before_first(end):
            self._wait(candidate, group, limit, table.would_delay(limit))
            return True
        if counted is None or waiting.workload.least_limit_ms is not None:
            return False
        return self._start_counted(candidate, counted, group, end, limit)

    def _start_counted(
        self, candidate: Candidate, counted: CountedGang, group: Group, end: Instant, limit: int
    ) -> bool:
        """Start a gang for which counting is enough, unless a reservation is in its way."""
        cycle, table = self.cycle, self._table
        if not cycle.may_start_counted(counted):
            return False
        allowed = table.allows_counted(counted, end)
        if allowed is not False:
            offer = cycle.offer_counted(candidate.waiting, candidate.cq, counted)
            if offer is None:
                return False
            if allowed or table.allows_booking(offer[1], end):
                cycle.admit_counted(candidate.waiting, counted, offer, later=table.is_easy)
                table.started(end, offer[1])
                return True
        if table.is_on_nodes:
            return False  # other nodes may do: a nomination finds out
        self._note_delay(group, limit)
        self._wait(candidate, group, limit, table.would_delay(limit))
        return True

    @override
    def nominate(self, candidate: Candidate) -> Nominee:
        """Nominate on what earlier decisions left; their victims are not preempted once more."""
        cycle = self.cycle
        return nominate(
            self.state,
            candidate.cq,
            candidate.waiting,
            cycle.transaction,
            cycle.now,
            evicted=frozenset(cycle.victims),
        )

    @override
    def decided(self, candidate: Candidate, nominee: Nominee, wait: Wait | None) -> None:
        """Remember a verdict for the group, and make a reservation for what has to wait."""
        if wait is None:
            return
        if nominee.targets:
            self.cycle.waits.append(wait)  # it waits for its victims
            return
        group = _group_of(candidate)
        blockers = wait.explanation.blockers
        if nominee.assignment.verdict is not Verdict.FIT:
            self._refused[group] = blockers
        elif len(blockers) == 1 and isinstance(blockers[0], WouldDelay):
            self._note_delay(group, blockers[0].limit_ms)
        limit = self._timeline.limit_of(candidate.waiting.workload)
        facts = blockers or (ClaimedThisCycle(queue=candidate.cq.spec.name),)
        self._wait(candidate, group, limit, facts)

    def _note_delay(self, group: Group, limit: int) -> None:
        self._delaying[group] = min(limit, self._delaying.get(group, limit))

    def _wait(
        self, candidate: Candidate, group: Group, limit: int, blockers: tuple[Blocker, ...]
    ) -> None:
        """Record why a candidate waits, and make a reservation for it if there is one to make."""
        table, waiting = self._table, candidate.waiting
        if not table.is_full:
            reservation = table.reserve(waiting, group, limit, self._furthest())
            if reservation is not None:
                self._reserved += 1
                planned = Planned(
                    start=reservation.start,
                    position=self._reserved,
                    limit_ms=limit,
                    limit_from=waiting.workload.longest_from,
                    behind=self._ahead,
                )
                self._ahead = waiting.key
                blockers = (planned, *blockers)
        self._record(candidate, group, blockers)

    def _furthest(self) -> Instant | None:
        """Return how far ahead a reservation may be; None: as far as it has to be."""
        if self._reserved < BEYOND_WINDOW:
            return None
        return Instant(self.cycle.now + self._rules.window_ms)

    def _record(self, candidate: Candidate, group: Group, blockers: tuple[Blocker, ...]) -> None:
        if self._timeline.is_new(candidate.waiting, group, blockers):
            self.cycle.waits.append(_wait("line", candidate, blockers))

    @override
    def withdrawn(self) -> list[Wait]:
        """Take back reservations that were recorded and are not made again."""
        made, table = self.cycle, self._table
        if table.is_reused or not self._timeline.reserved_for:
            return []
        explained = {wait.explanation.workload for wait in made.waits}
        explained.update(admit.workload for admit in made.admissions)
        explained.update(one.workload for one in made.preemptions)
        reserved = {reservation.workload for reservation in table.reservations}
        lost = self._timeline.lapsed(reserved, explained)
        return [Wait(outcome="line", explanation=why) for why in lost]


def priority_order(state: ClusterState) -> Iterator[tuple[ClusterQueueState, PendingWorkload]]:
    """Yield the pending workloads of all open queues in multifactor priority order."""
    open_queues = [cq for cq in state.queues.values() if cq.blocker is None and len(cq.pending)]
    if len(open_queues) == 1:  # in its own order
        (cq,) = open_queues
        for waiting in cq.pending.in_order():
            yield cq, waiting
        return

    def of(
        cq: ClusterQueueState,
    ) -> Iterator[tuple[_Rank, str, ClusterQueueState, PendingWorkload]]:
        for waiting in cq.pending.in_order():
            yield _rank(cq, waiting), cq.spec.name, cq, waiting

    # A plain list: a queue that changes while it is read would be read from a later picture.
    for _, _, cq, waiting in list(heapq.merge(*map(of, open_queues))):
        yield cq, waiting


def _rank(cq: ClusterQueueState, waiting: PendingWorkload) -> _Rank:
    pending = cq.pending
    assert isinstance(pending, MultifactorQueue), "priority orders every queue or none"
    return waiting.workload.key != pending.preemptor, pending.key(waiting)


def _classical_place(waiting: PendingWorkload) -> tuple[int, Instant, str]:
    workload = waiting.workload
    return -workload.priority, workload.position_time, workload.tie


def _group_of(candidate: Candidate) -> Group:
    assert candidate.group is not None, "with backfill every candidate has a group"
    return candidate.group


def _wait(outcome: Outcome, candidate: Candidate, blockers: tuple[Blocker, ...]) -> Wait:
    key, queue = candidate.waiting.workload.key, candidate.cq.spec.name
    return Wait(
        outcome=outcome, explanation=Explanation(workload=key, queue=queue, blockers=blockers)
    )


def _left(cell: Cell, memo: dict[Cell, int]) -> int:
    """Return how much of a quota cell is left; many candidates ask for the same one."""
    left = memo.get(cell)
    if left is None:
        left = memo[cell] = available(cell)
    return left
