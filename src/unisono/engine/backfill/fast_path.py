"""The express pass: EASY backfilling where everything is a number.

If there is one date at most, and everybody who is worth a look asks for equal pods that may go to
any node, a pass needs no ledger and no trying: quota and places are integers, and who starts takes
the smallest holes. That is most passes of a batch queue and of a simulation. As soon as anything
else could make a difference this gives up, with nothing changed, and the general pass decides
(`backfill/backfill.py`). Both make the same plan to the last byte; a property test compares them.
"""

from __future__ import annotations

from bisect import bisect_right
from heapq import heapify, heappop, heappush
from typing import cast

from unisono.engine.backfill.counted_gang import CountedGang, counted_gang, offer_on, stamp_of
from unisono.engine.backfill.easy_shadow import EasyShadow
from unisono.engine.backfill.pod_capacity import Caps, Chosen, PodCapacity
from unisono.engine.model.explanation import Blocker, Explanation, Planned, WouldDelay
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import Admit, Plan, Wait
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.cluster_queue import ClusterQueueState, Running
from unisono.engine.state.pending_queue import Waiting
from unisono.engine.state.quota_tree import Cell, available
from unisono.engine.state.timeline import Group, Kept, Member, Place, place_of
from unisono.engine.state.transaction import Booked, Starting

_Head = tuple[Place, int, Group]  # who of a group comes next
# When somebody ends, and who, in two lists.
_Ends = tuple[list[Instant], list[Running | Starting]]


class _Leave(Exception):
    """Something here is not a number: the general pass has to decide."""


def fast_path(
    state: ClusterState, now: Instant, reused: Kept | None
) -> tuple[Plan, Kept | None] | None:
    """Decide a cycle by numbers, given the reservation of the last one; None: not possible."""
    if (
        not state.timeline.is_easy
        or state.priority_order.is_on
        or state.active_queues.with_preemptor
        or state.config.policy.reservations
        or state.nodes.has_terminating
    ):
        return None
    if reused is not None and not (
        isinstance(reused, EasyShadow) and reused.spare is not None and reused.free is None
    ):
        return None
    done = _Pass(state, now, reused)
    try:
        if reused is None:
            done.look_at_all()
            done.take_back()
        else:
            done.look_at_newcomers()
    except _Leave:
        return None
    return done.plan()


class _Pass:
    """One look at everybody whom it may concern; nothing but this changes before the end."""

    __slots__ = (
        "admissions",
        "caps",
        "chosen",
        "explains",
        "free",
        "gone",
        "is_reused",
        "late",
        "later",
        "left",
        "now",
        "refused",
        "room",
        "seen",
        "shadow",
        "spare",
        "stamp",
        "started",
        "state",
        "waits",
    )

    def __init__(self, state: ClusterState, now: Instant, shadow: EasyShadow | None) -> None:
        self.state = state
        self.now = now
        self.explains = state.explains
        self.shadow = shadow
        self.is_reused = shadow is not None
        self.stamp = stamp_of(state)
        self.room: PodCapacity | None = None
        self.free = 0  # pods that still fit, on all nodes together
        self.caps: Caps | None = None  # and on each, without those who start; None: as now
        self.chosen: Chosen | None = None  # where the last one goes, who is not taken off yet
        self.spare = 0  # pods that may stay beyond the date
        self.left: dict[Cell, int] = {}  # of quota, now; each flavor-resource is asked once
        self.later: dict[Cell, int] = {}  # of quota, at the date
        self.gone: list[Booked] = []  # who starts now and is gone by the date
        self.started: list[tuple[Instant, Starting]] = []
        self.admissions: list[Admit] = []
        self.waits: list[Wait] = []
        self.seen: list[ClusterQueueState] = []  # the queues of whom was looked at
        self.refused: dict[Group, tuple[Blocker, ...]] = {}
        self.late: dict[Group, int] = {}

    def plan(self) -> tuple[Plan, Kept | None]:
        """Write down what was found; only now may anybody see it."""
        state, shadow = self.state, self.shadow
        if shadow is not None and (self.admissions or not self.is_reused):
            if self.is_reused:  # what the last cycle left stays as it is: this is only a plan
                shadow = shadow.copy()
            shadow.spare, shadow.room = self.spare, self.later
            shadow.gone += self.gone
        names = [cq.spec.name for cq in self.seen]
        if len(names) > 1:
            names.sort()
        made = Plan(
            based_on=state.version,
            now=self.now,
            admissions=tuple(self.admissions),
            waits=tuple(self.waits),
            dates=() if shadow is None else (shadow.date,),
            examined=tuple(names),
        )
        return made, shadow

    # --- whom ------------------------------------------------------------------------------------

    def look_at_newcomers(self) -> None:
        """The date of the last pass holds: only who came since is worth a look."""
        shadow, timeline = self.shadow, self.state.timeline
        assert shadow is not None and shadow.spare is not None, "there is a date"
        self.spare, self.later = shadow.spare, dict(shadow.room)
        entries = timeline.arrivals
        if len(entries) > 1:
            entries = sorted(entries, key=place_of)
        for member in entries:
            if timeline.is_pending(member):
                counted = self._known(member.group)
                if shadow.counted is None or shadow.counted.capacity is not counted.capacity:
                    raise _Leave
                self._look(member, counted)

    def look_at_all(self) -> None:
        """Start who fits, in turn; the first that does not gets a date, and others may go first."""
        order, at = self.state.timeline.order, 0
        heads: list[_Head] = []  # groups of which somebody started already
        while self.shadow is None:
            index = 0
            if heads and (at == len(order) or heads[0][0] < order[at].places[0]):
                _, index, group = heappop(heads)
            elif at < len(order):
                group = order[at]
                at += 1
            else:
                return
            members = group.members
            if self._look(members[index], self._known(group)) and index + 1 < len(members):
                heappush(heads, (group.places[index + 1], index + 1, group))
        heads = [head for head in heads if self._is_worth_a_look(head[2])]
        for group in order[at:]:
            if self._is_worth_a_look(group):
                heads.append((group.places[0], 0, group))
        if len(heads) > 1:
            heapify(heads)
        while heads:
            _, index, group = heappop(heads)
            self._look(group.members[index], self._known(group))
            after = self._after(group, index)
            if after is not None:
                heappush(heads, (group.places[after], after, group))

    def _is_worth_a_look(self, group: Group) -> bool:
        """Say whether a group has quota, and whether somebody might leave the date alone."""
        counted, left = self._known(group), self.left
        for cell, amount in counted.cells:
            room = left.get(cell)
            if amount > (self._ask(cell) if room is None else room):
                return False
        if self.explains and not group.is_delaying:
            return True  # nobody told them yet
        # Perhaps not even the shortest may start.
        return self._is_harmless(counted, Instant(self.now + group.limits[0]))

    def _after(self, group: Group, index: int) -> int | None:
        """Return the next member of a group that may still start, if there is one."""
        if group in self.refused:
            return None
        members = group.members
        if group not in self.late:
            return index + 1 if index + 1 < len(members) else None
        assert self.shadow is not None, "somebody would delay the date"
        most = self.shadow.start - self.now
        if group.limits[0] > most:
            return None
        for after in range(index + 1, len(members)):
            if members[after].limit <= most:
                return after
        return None

    def take_back(self) -> None:
        """Take back a date that was told and is not given any more."""
        timeline, shadow = self.state.timeline, self.shadow
        if not timeline.promised or (shadow is not None and [*timeline.promised] == [shadow.whom]):
            return
        told = {wait.explanation.workload for wait in self.waits}
        told.update(admit.workload for admit in self.admissions)
        lost = timeline.lapsed(() if shadow is None else (shadow.whom,), told)
        self.waits += [Wait(outcome="line", explanation=why) for why in lost]

    # --- one of them -----------------------------------------------------------------------------

    def _known(self, group: Group) -> CountedGang:
        """Return what a group needs; all need the same sort of pods, and only their number."""
        if group.stamp == self.stamp:
            counted = cast("CountedGang | None", group.counted)
        else:
            counted = counted_gang(self.state, group, group.members[0].waiting)
        if counted is None or not counted.is_best_fit:
            raise _Leave
        if counted.capacity is not self.room:
            self._enter(counted.capacity)
        return counted

    def _enter(self, room: PodCapacity) -> None:
        """Look at the nodes for pods of one sort; nobody may need others."""
        if self.room is not None:
            raise _Leave
        self.room, self.free = room, room.free
        if not room.is_exact:
            raise _Leave

    def _look(self, member: Member, counted: CountedGang) -> bool:
        """Let one start if it may; otherwise say what is in its way."""
        group, limit = member.group, member.limit
        self.state.evaluating = member.waiting.key
        if group.cq not in self.seen:
            self.seen.append(group.cq)
        blockers = self.refused.get(group) if self.refused else None
        if blockers is None:
            left = self.left
            for cell, amount in counted.cells:
                room = left.get(cell)
                if amount > (self._ask(cell) if room is None else room):
                    blockers = ()
                    if self.explains:
                        blockers = counted.shortages_of(group.cq.spec.name, left)
                    self.refused[group] = blockers
                    break
            else:
                if counted.pods > self.free:
                    raise _Leave  # there is quota, and no place
                end = Instant(self.now + limit)
                blockers = self._in_the_way(group, counted, limit, end)
                if blockers is None:
                    if member.waiting.workload.least_limit_ms is not None:
                        raise _Leave  # how long it runs is found out when it starts
                    self._start(member.waiting, group, counted, end)
                    return True
        waiting = member.waiting
        if self.shadow is None:
            shadow = self.shadow = self._dated(waiting.key, counted, limit)
            if self.explains:
                blockers = (_planned(waiting, shadow.start, limit), *blockers)
        if self.explains and self.state.timeline.is_new(waiting, group, blockers):
            why = Explanation(workload=waiting.key, queue=group.cq.spec.name, blockers=blockers)
            self.waits.append(Wait(outcome="line", explanation=why))
        return False

    def _ask(self, cell: Cell) -> int:
        """Find out how much a flavor-resource has left."""
        left = self.left[cell] = available(cell)
        return left

    def _in_the_way(
        self, group: Group, counted: CountedGang, limit: int, end: Instant
    ) -> tuple[Blocker, ...] | None:
        """Return whose date somebody who fits would delay; None: nobody's."""
        shadow = self.shadow
        if shadow is None or end <= shadow.start:
            return None
        found = self.late.get(group)
        if found is None or limit < found:
            if self._is_harmless(counted, end):
                return None
            self.late[group] = limit
        if not self.explains:
            return ()
        return (WouldDelay(whom=shadow.whom, start=shadow.start, limit_ms=limit),)

    def _is_harmless(self, counted: CountedGang, end: Instant) -> bool:
        """Say whether somebody ends before the date, or leaves enough for it."""
        assert self.shadow is not None, "there is a date"
        if end <= self.shadow.start:
            return True
        later = self.later
        for cell, amount in counted.cells:
            if cell in later and later[cell] < amount:
                return False
        return self.spare >= counted.pods

    def _start(self, waiting: Waiting, group: Group, counted: CountedGang, end: Instant) -> None:
        state, room = self.state, counted.capacity
        chosen = room.only(counted.pods) if room.is_single else self._choose(room, counted.pods)
        admission, placed_pods = offer_on(state.nodes, chosen, waiting, group.cq, counted)
        self.free -= counted.pods
        for cell, amount in counted.cells:
            self.left[cell] -= amount
        self.admissions.append(
            Admit(
                workload=waiting.key,
                admission=admission,
                charges=counted.charges,
            )
        )
        booked = Starting(counted.cells, placed_pods)
        if self.shadow is None:
            self.started.append((end, booked))
        elif end <= self.shadow.start:
            self.gone.append(booked)
        else:
            for cell, amount in counted.cells:
                if cell in self.later:
                    self.later[cell] -= amount
            self.spare -= counted.pods

    def _choose(self, room: PodCapacity, pods: int) -> Chosen:
        """Choose nodes for pods that fit; most passes let one start, and need no other picture."""
        if self.chosen is not None:
            if self.caps is None:
                self.caps = room.caps.copy()
            room.take(self.caps, self.chosen)
        found = self.chosen = room.pick(room.caps if self.caps is None else self.caps, pods)
        assert found is not None, "there is room for it"
        return found

    # --- the date --------------------------------------------------------------------------------

    def _dated(self, whom: WorkloadKey, counted: CountedGang, limit: int) -> EasyShadow:
        """Let one after the other end until there are quota and places for the first that waits."""
        spare, requests = self.free - counted.pods, counted.requests
        left = self.left
        cells = [cell for cell, _ in counted.cells]
        short = [
            amount - (left[cell] if cell in left else self._ask(cell))
            for cell, amount in counted.cells
        ]
        ends, ending = self._ends()
        paid = index = 0  # whose quota is counted: it is not asked for as long as places are short
        soon, last = Instant(self.now + 1), len(ends) - 1
        for booked in ending:
            for placed in booked.placed_pods:
                if placed.requests is not requests and placed.requests != requests:
                    raise _Leave  # it does not give back as many places as it has pods
                spare += placed.pods
            index += 1
            if spare < 0:
                continue
            end = ends[index - 1]
            at = end if end > soon else soon
            if index <= last and ends[index] <= at:
                continue  # they end together
            for over in ending[paid:index]:
                for cell, amount in over.charges:
                    for number, wanted in enumerate(cells):
                        if wanted is cell:
                            short[number] -= amount
            paid = index
            if not _is_short(short):
                break
        else:
            raise _Leave  # it never fits, or its turn depends on more than that
        self.spare = spare
        self.later = {cell: -short[number] for number, cell in enumerate(cells)}
        gone: list[Booked] = [*ending[:index]]
        return EasyShadow(
            whom=whom,
            start=at,
            end=Instant(at + limit),
            gone=gone,
            charges=counted.cells,
            room=self.later,
            gang=None,
            counted=counted,
            spare=spare,
            free=None,
        )

    def _ends(self) -> _Ends:
        """Return who ends when, those who start in this pass too."""
        timeline = self.state.timeline
        if not self.started:  # nobody changes them
            return timeline.ends, cast("list[Running | Starting]", timeline.ending)
        ends = timeline.ends.copy()
        ending: list[Running | Starting] = [*timeline.ending]
        for end, booked in self.started:
            at = bisect_right(ends, end)
            ends.insert(at, end)
            ending.insert(at, booked)
        return ends, ending


def _is_short(missing: list[int]) -> bool:
    for amount in missing:  # noqa: SIM110  # asked whenever somebody ends
        if amount > 0:
            return True
    return False


def _planned(waiting: Waiting, start: Instant, limit: int) -> Planned:
    """Return what the first that waits is told about its date."""
    return Planned(
        start=start,
        position=1,
        limit_ms=limit,
        limit_from=waiting.workload.longest_from,
        behind=None,
    )
