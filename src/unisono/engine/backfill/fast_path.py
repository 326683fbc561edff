"""The fast path: EASY backfill where everything is a number.

With one reservation at most, and equal pods that may go to any node in every group that is worth
an evaluation, a cycle needs no transaction and no trial: quota and capacity are integers, and what
starts takes the smallest holes. That is most cycles of a batch queue and of a simulation. As soon
as anything else could make a difference it falls back, with nothing changed, and the one loop
decides (`engine/cycle.py`). Both make the same plan to the last byte: a property test compares them
(tests/engine/backfill/test_fast_path.py).
"""

from __future__ import annotations

from bisect import bisect_right
from heapq import heapify, heappop, heappush
from typing import cast

from unisono.engine.backfill.counted_gang import CountedGang, counted_gang, offer_on, stamp_of
from unisono.engine.backfill.easy import EasyShadow
from unisono.engine.backfill.pod_capacity import Caps, Chosen, PodCapacity
from unisono.engine.model.explanation import Blocker, Explanation, Planned, WouldDelay
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import Admit, Plan, Wait
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.cluster_queue import ClusterQueueState, Running
from unisono.engine.state.pending_queue import PendingWorkload
from unisono.engine.state.quota_tree import Cell, available
from unisono.engine.state.timeline import Group, Kept, Member, Place, place_of
from unisono.engine.state.transaction import Booked, Starting

# The place of a group's next member, its index, and the group.
_Head = tuple[Place, int, Group]
# Expected ends in order, and what ends then.
_Ends = tuple[list[Instant], list[Running | Starting]]


class _FallBack(Exception):
    """Something here is not a number: the one loop has to decide."""


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
        isinstance(reused, EasyShadow) and reused.extra_pods is not None and reused.free is None
    ):
        return None
    cycle = _FastCycle(state, now, reused)
    try:
        if reused is None:
            cycle.evaluate_all()
            cycle.withdraw()
        else:
            cycle.evaluate_arrivals()
    except _FallBack:
        return None
    return cycle.plan()


class _FastCycle:
    """The decisions of one cycle; nothing else changes before the plan is made."""

    __slots__ = (
        "admissions",
        "capacity",
        "caps",
        "chosen",
        "delaying",
        "ending_before",
        "evaluated",
        "explains",
        "extra_pods",
        "free_pods",
        "is_reused",
        "left",
        "left_later",
        "now",
        "refused",
        "shadow",
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
        self.capacity: PodCapacity | None = None
        self.free_pods = 0  # that still fit, on all nodes together
        self.caps: Caps | None = None  # the same on each, beside starts; None: as the state has it
        self.chosen: Chosen | None = None  # nodes of the last start, which are not off `caps` yet
        self.extra_pods = 0  # that may run beyond the shadow time
        self.left: dict[Cell, int] = {}  # quota left now, asked once per cell
        self.left_later: dict[Cell, int] = {}  # quota left at the shadow time
        self.ending_before: list[Booked] = []  # starts that end before the shadow time
        self.started: list[tuple[Instant, Starting]] = []
        self.admissions: list[Admit] = []
        self.waits: list[Wait] = []
        self.evaluated: list[ClusterQueueState] = []  # queues of the candidates
        # Verdicts that hold for a whole group: blockers, or the shortest limit that would delay.
        self.refused: dict[Group, tuple[Blocker, ...]] = {}
        self.delaying: dict[Group, int] = {}

    def plan(self) -> tuple[Plan, Kept | None]:
        """Return the plan, and what the next cycle may reuse."""
        state, shadow = self.state, self.shadow
        if shadow is not None and (self.admissions or not self.is_reused):
            if self.is_reused:  # it belongs to the last cycle, and this plan may never be applied
                shadow = shadow.after(self.ending_before, self.left_later, self.extra_pods)
            else:
                shadow.extra_pods, shadow.quota_left = self.extra_pods, self.left_later
                shadow.ended += self.ending_before
        names = [cq.spec.name for cq in self.evaluated]
        if len(names) > 1:
            names.sort()
        made = Plan(
            based_on=state.version,
            now=self.now,
            admissions=tuple(self.admissions),
            waits=tuple(self.waits),
            reservations=() if shadow is None else (shadow.reservation,),
            examined=tuple(names),
        )
        return made, shadow

    # --- candidates ------------------------------------------------------------------------------

    def evaluate_arrivals(self) -> None:
        """Evaluate arrivals only: reservation and verdicts of the last cycle still hold."""
        shadow, timeline = self.shadow, self.state.timeline
        assert shadow is not None and shadow.extra_pods is not None, "there is a reservation"
        self.extra_pods, self.left_later = shadow.extra_pods, dict(shadow.quota_left)
        entries = timeline.arrivals
        if len(entries) > 1:
            entries = sorted(entries, key=place_of)
        for member in entries:
            if timeline.is_pending(member):
                counted = self._counted(member.group)
                if shadow.counted is None or shadow.counted.capacity is not counted.capacity:
                    raise _FallBack
                self._evaluate(member, counted)

    def evaluate_all(self) -> None:
        """Start what fits, in order; reserve for the first that does not, and backfill the rest."""
        order, at = self.state.timeline.order, 0
        heads: list[_Head] = []  # groups with a member that started already
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
            if self._evaluate(members[index], self._counted(group)) and index + 1 < len(members):
                heappush(heads, (group.places[index + 1], index + 1, group))
        heads = [head for head in heads if self._is_worth_evaluating(head[2])]
        for group in order[at:]:
            if self._is_worth_evaluating(group):
                heads.append((group.places[0], 0, group))
        if len(heads) > 1:
            heapify(heads)
        while heads:
            _, index, group = heappop(heads)
            self._evaluate(group.members[index], self._counted(group))
            after = self._after(group, index)
            if after is not None:
                heappush(heads, (group.places[after], after, group))

    def _is_worth_evaluating(self, group: Group) -> bool:
        """Say whether a group has quota, and a member that might not delay the reservation."""
        counted, left = self._counted(group), self.left
        for cell, amount in counted.cells:
            remaining = left.get(cell)
            if amount > (self._remaining(cell) if remaining is None else remaining):
                return False
        if self.explains and not group.is_delaying:
            return True  # the verdict has to be recorded once
        # Perhaps not even the shortest time limit may start.
        return self._leaves_enough(counted, Instant(self.now + group.limits[0]))

    def _after(self, group: Group, index: int) -> int | None:
        """Return the next member of a group that may still start; None: there is none."""
        if group in self.refused:
            return None
        members = group.members
        if group not in self.delaying:
            return index + 1 if index + 1 < len(members) else None
        assert self.shadow is not None, "a member would delay the reservation"
        most = self.shadow.start - self.now
        if group.limits[0] > most:
            return None
        for after in range(index + 1, len(members)):
            if members[after].limit <= most:
                return after
        return None

    def withdraw(self) -> None:
        """Withdraw a reservation that was recorded and is not made again."""
        timeline, shadow = self.state.timeline, self.shadow
        if not timeline.reserved_for or (
            shadow is not None and [*timeline.reserved_for] == [shadow.workload]
        ):
            return
        explained = {wait.explanation.workload for wait in self.waits}
        explained.update(admit.workload for admit in self.admissions)
        lost = timeline.lapsed(() if shadow is None else (shadow.workload,), explained)
        self.waits += [Wait(outcome="line", explanation=why) for why in lost]

    # --- one candidate ---------------------------------------------------------------------------

    def _counted(self, group: Group) -> CountedGang:
        """Return what a group needs; fall back unless all groups need pods of one kind."""
        if group.stamp == self.stamp:
            counted: CountedGang | None = group.counted  # type: ignore[assignment]  # as it left it
        else:
            counted = counted_gang(self.state, group, group.members[0].waiting)
        if counted is None or not counted.is_best_fit:
            raise _FallBack
        if counted.capacity is not self.capacity:
            self._use(counted.capacity)
        return counted

    def _use(self, capacity: PodCapacity) -> None:
        """Take the capacity for the one kind of pods of this cycle."""
        if self.capacity is not None:
            raise _FallBack
        self.capacity, self.free_pods = capacity, capacity.free
        if not capacity.is_exact:
            raise _FallBack

    def _evaluate(self, member: Member, counted: CountedGang) -> bool:
        """Start a candidate if it may; otherwise record why it waits, and reserve for the first."""
        group, limit = member.group, member.limit
        self.state.evaluating = member.waiting.key
        if group.cq not in self.evaluated:
            self.evaluated.append(group.cq)
        blockers = self.refused.get(group) if self.refused else None
        if blockers is None:
            left = self.left
            for cell, amount in counted.cells:
                remaining = left.get(cell)
                if amount > (self._remaining(cell) if remaining is None else remaining):
                    blockers = ()
                    if self.explains:
                        blockers = counted.shortages_of(group.cq.spec.name, left)
                    self.refused[group] = blockers
                    break
            else:
                if counted.pods > self.free_pods:
                    raise _FallBack  # quota but no place: a nomination explains that
                end = Instant(self.now + limit)
                blockers = self._delays(group, counted, limit, end)
                if blockers is None:
                    if member.waiting.workload.least_limit_ms is not None:
                        raise _FallBack  # the limit to grant is found out at the start
                    self._start(member.waiting, group, counted, end)
                    return True
        waiting = member.waiting
        if self.shadow is None:
            shadow = self.shadow = self._reserve(waiting.key, counted, limit)
            if self.explains:
                blockers = (_planned(waiting, shadow.start, limit), *blockers)
        if self.explains and self.state.timeline.is_new(waiting, group, blockers):
            why = Explanation(workload=waiting.key, queue=group.cq.spec.name, blockers=blockers)
            self.waits.append(Wait(outcome="line", explanation=why))
        return False

    def _remaining(self, cell: Cell) -> int:
        """Find out how much a quota cell has left."""
        left = self.left[cell] = available(cell)
        return left

    def _delays(
        self, group: Group, counted: CountedGang, limit: int, end: Instant
    ) -> tuple[Blocker, ...] | None:
        """Return the reservation that a candidate which fits would delay; None: it does not."""
        shadow = self.shadow
        if shadow is None or end <= shadow.start:
            return None
        found = self.delaying.get(group)
        if found is None or limit < found:
            if self._leaves_enough(counted, end):
                return None
            self.delaying[group] = limit
        if not self.explains:
            return ()
        return (WouldDelay(reserved_for=shadow.workload, start=shadow.start, limit_ms=limit),)

    def _leaves_enough(self, counted: CountedGang, end: Instant) -> bool:
        """Say whether a gang ends before the shadow time, or leaves the reservation enough."""
        assert self.shadow is not None, "there is a reservation"
        if end <= self.shadow.start:
            return True
        left_later = self.left_later
        for cell, amount in counted.cells:
            if cell in left_later and left_later[cell] < amount:
                return False
        return self.extra_pods >= counted.pods

    def _start(
        self, waiting: PendingWorkload, group: Group, counted: CountedGang, end: Instant
    ) -> None:
        state, capacity = self.state, counted.capacity
        chosen = (
            capacity.only(counted.pods)
            if capacity.is_single
            else self._choose(capacity, counted.pods)
        )
        admission, placed_pods = offer_on(state.nodes, chosen, waiting, group.cq, counted)
        self.free_pods -= counted.pods
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
            self.ending_before.append(booked)
        else:
            for cell, amount in counted.cells:
                if cell in self.left_later:
                    self.left_later[cell] -= amount
            self.extra_pods -= counted.pods

    def _choose(self, capacity: PodCapacity, pods: int) -> Chosen:
        """Choose nodes for pods that fit; `caps` is copied with the second start only."""
        if self.chosen is not None:
            if self.caps is None:
                self.caps = capacity.caps.copy()
            capacity.take(self.caps, self.chosen)
        found = self.chosen = capacity.pick(capacity.caps if self.caps is None else self.caps, pods)
        assert found is not None, "it fits"
        return found

    # --- the reservation --------------------------------------------------------------------------

    def _reserve(self, workload: WorkloadKey, counted: CountedGang, limit: int) -> EasyShadow:
        """Let one running workload after the other end until there is enough for the first."""
        extra_pods, requests = self.free_pods - counted.pods, counted.requests
        left = self.left
        cells = [cell for cell, _ in counted.cells]
        short = [
            amount - (left[cell] if cell in left else self._remaining(cell))
            for cell, amount in counted.cells
        ]
        ends, ending = self._ends()
        paid = index = 0  # whose quota is added up: not needed while capacity is short
        soon, last = Instant(self.now + 1), len(ends) - 1
        for booked in ending:
            for placed in booked.placed_pods:
                if placed.requests is not requests and placed.requests != requests:
                    raise _FallBack  # its end does not free as many pods as it has
                extra_pods += placed.pods
            index += 1
            if extra_pods < 0:
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
            raise _FallBack  # it never fits, or that depends on more than ends
        self.extra_pods = extra_pods
        self.left_later = {cell: -short[number] for number, cell in enumerate(cells)}
        ended: list[Booked] = [*ending[:index]]
        return EasyShadow(
            workload=workload,
            start=at,
            end=Instant(at + limit),
            ended=ended,
            charges=counted.cells,
            quota_left=self.left_later,
            gang=None,
            counted=counted,
            extra_pods=extra_pods,
            free=None,
        )

    def _ends(self) -> _Ends:
        """Return expected ends, those of this cycle's starts included."""
        timeline = self.state.timeline
        if not self.started:  # read only
            return timeline.ends, cast("list[Running | Starting]", timeline.ending)
        ends = timeline.ends.copy()
        ending: list[Running | Starting] = [*timeline.ending]
        for end, booked in self.started:
            at = bisect_right(ends, end)
            ends.insert(at, end)
            ending.insert(at, booked)
        return ends, ending


def _is_short(missing: list[int]) -> bool:
    for amount in missing:  # noqa: SIM110  # asked with every end
        if amount > 0:
            return True
    return False


def _planned(waiting: PendingWorkload, start: Instant, limit: int) -> Planned:
    """Return the fact that records the one reservation."""
    return Planned(
        start=start,
        position=1,
        limit_ms=limit,
        limit_from=waiting.workload.longest_from,
        behind=None,
    )
