"""The timeline: pending workloads in priority order, running workloads by their expected end.

Kept by events like the rest of the state, and only while the policy asks for backfill. Workloads of
one queue and one equivalence class are one group: a verdict on one of them holds
for all, so that a cycle evaluates groups instead of thousands of equal workloads.

The backfill reservations of the last cycle hold until something else happens than arrivals and
starts; then a cycle evaluates the arrivals only (spec backfill §3).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable
from typing import Final, Protocol

from unisono.engine.model.explanation import Blocker, Explanation, Planned, WouldDelay
from unisono.engine.model.names import Instant, QueueName, WorkloadKey
from unisono.engine.model.plan import BackfillReservation
from unisono.engine.model.policy import Backfill
from unisono.engine.model.workload import Workload
from unisono.engine.state.cluster_queue import ClusterQueueState, LocalQueueState, Running
from unisono.engine.state.pending_queue import EquivalenceClass, PendingWorkload

# Place in the order: (-priority, time, uid, number of entry); smaller goes first. The type has no
# length, so that compiled code keeps the tuple that it is instead of taking it apart.
Place = tuple[int | str, ...]
Lasts = Callable[[Workload], int]  # how long a workload runs
Ending = tuple[Instant, int, Running]  # when, a number that breaks ties, and which workload
# Groups without members that are remembered: sizes of jobs come again and again.
RESTING_KEPT: Final = 1024


class Kept(Protocol):
    """Backfill reservations of one cycle that the next one may still use."""

    @property
    def last(self) -> WorkloadKey:
        """Return the workload with a reservation that is last in the order."""
        ...

    @property
    def first(self) -> BackfillReservation | None:
        """Return the earliest reservation, which backfilled workloads must not delay."""
        ...

    def hold(self, now: Instant) -> bool:
        """Say whether all of them are in the future."""
        ...

    def concern(self, key: WorkloadKey) -> bool:
        """Say whether a workload has one of them."""
        ...


class Member:
    """A pending workload with its place in the order and its time limit."""

    __slots__ = ("group", "limit", "place", "waiting")

    def __init__(self, waiting: PendingWorkload, group: Group, place: Place, limit: int) -> None:
        self.waiting = waiting
        self.group = group
        self.place = place
        self.limit = limit


class Group:
    """Pending workloads of one equivalence class in one queue, in order."""

    __slots__ = (
        "blockers",
        "counted",
        "cq",
        "is_delaying",
        "limits",
        "members",
        "places",
        "recorded_in",
        "stamp",
    )

    def __init__(self, cq: ClusterQueueState) -> None:
        self.cq = cq
        self.members: list[Member] = []
        self.places: list[Place] = []  # of all of them
        self.limits: list[int] = []  # of all of them, the shortest first
        self.blockers: tuple[Blocker, ...] = ()  # the newest verdict on one of them
        self.recorded_in = 0  # by the cycle with this number
        # They fit, but would delay a reservation: all alike, whatever their time limit.
        self.is_delaying = False
        # What one of them needs (a `backfill.counted_gang.CountedGang`, or None), and the edition
        # of nodes and queues from which that was worked out.
        self.counted: object = None
        self.stamp = -1

    def record(self, blockers: tuple[Blocker, ...], recorded_in: int) -> None:
        """Take in a verdict on one of them, and which cycle found it."""
        self.blockers, self.recorded_in = blockers, recorded_in
        self.is_delaying = len(blockers) == 1 and isinstance(blockers[0], WouldDelay)

    def rest(self) -> None:
        """Forget the verdict when the last of them leaves; what they need stays known."""
        self.blockers, self.recorded_in, self.is_delaying = (), 0, False


class Timeline:
    """Pending and running workloads, in time."""

    __slots__ = (
        "_cycles",
        "_draft",
        "_drafted",
        "_entries",
        "_heads",
        "_known",
        "_lasts",
        "_number",
        "arrivals",
        "ending",
        "ends",
        "first_reservation",
        "groups",
        "is_easy",
        "is_on",
        "is_outdated",
        "kept",
        "order",
        "reserved_for",
        "rules",
        "verdicts",
    )

    def __init__(self, rules: Backfill | None = None, lasts: Lasts | None = None) -> None:
        """Keep time by the policy's rules; `lasts` replaces time limits with other run times."""
        self.rules = rules
        self.is_on = rules is not None  # the policy asks for backfill
        self._lasts = lasts
        # Plain EASY: one reservation, the others in order, and no further rule.
        self.is_easy = (
            rules is not None
            and rules.dates == 1
            and not rules.shortest_first
            and not rules.most_tested
            and not rules.most_per_queue
        )
        self.groups: dict[Group, None] = {}  # those that have members
        self.ends: list[Instant] = []  # expected ends of what runs, in order ...
        self.ending: list[Running] = []  # ... and what runs, in the same order
        self.order: list[Group] = []  # all groups by the places of their first members ...
        self._heads: list[Place] = []  # ... which are these
        self._known: dict[
            tuple[QueueName, EquivalenceClass], Group
        ] = {}  # those without members, too
        # The last verdict on a workload, and which cycle found it.
        self.verdicts: dict[WorkloadKey, tuple[int, tuple[Blocker, ...]]] = {}
        self.first_reservation: BackfillReservation | None = None  # of the last cycle
        # Workloads whose explanation names a reservation.
        self.reserved_for: dict[WorkloadKey, None] = {}
        self.arrivals: list[Member] = []
        self.is_outdated = True  # more happened than arrivals and starts
        self.kept: Kept | None = None  # reservations, as the last cycle left them
        self._draft: Kept | None = None  # reservations of a plan that may be applied ...
        self._drafted = -1  # ... and the version of the state it was made from; -1: there is none
        self._entries: dict[WorkloadKey, Member] = {}  # all members
        self._number = 0
        self._cycles = 0

    def rebuild(self, running: Iterable[Running], local_queues: Iterable[LocalQueueState]) -> None:
        """Take in all running and pending workloads at once."""
        for each in running:
            self.started(each, each.admitted.running_since)
        for lq in local_queues:
            for waiting in lq.waiting.values():
                if waiting.slot is not None and lq.cq is not None:
                    self.entered(waiting, lq.cq)

    def limit_of(self, workload: Workload) -> int:
        """Return how long a workload is expected to run."""
        assert self.rules is not None, "without backfill no end is expected"
        return limit_of(workload, self.rules) if self._lasts is None else self._lasts(workload)

    # --- pending workloads -----------------------------------------------------------------------

    def entered(self, waiting: PendingWorkload, cq: ClusterQueueState) -> None:
        """Take in a workload that became pending in a queue; in a closed one it is no candidate."""
        if self.rules is None or cq.blocker is not None:
            return
        workload = waiting.workload
        group = self._group_for(waiting, cq)
        self._number += 1
        place: Place = (-waiting.priority, waiting.since, waiting.tie, self._number)
        limit = limit_of(workload, self.rules) if self._lasts is None else self._lasts(workload)
        member = self._entries[waiting.key] = Member(waiting, group, place, limit)
        places = group.places
        if not places:
            self.groups[group] = None
            self._put_head(place, group)
            group.limits.append(limit)
        else:
            insort(group.limits, limit)
        if not places or place > places[-1]:
            places.append(place)
            group.members.append(member)
        else:
            at = bisect_left(places, place)
            if at == 0:
                self._drop_head(places[0])
                self._put_head(place, group)
            places.insert(at, place)
            group.members.insert(at, member)
        self.arrivals.append(member)

    def reopened(self, cq: ClusterQueueState) -> None:
        """Take in the workloads of a queue that is open now, or forget those of a closed one."""
        if self.rules is None:
            return
        for waiting in cq.pending.in_order():
            if cq.blocker is not None:
                self.left(waiting, cq)
            elif waiting.key not in self._entries:
                self.entered(waiting, cq)

    def _group_for(self, waiting: PendingWorkload, cq: ClusterQueueState) -> Group:
        """Return the group of workloads like this one."""
        name = (cq.spec.name, waiting.equivalence_class)
        group = self._known.get(name)
        if group is None or group.cq is not cq:
            if len(self._known) >= RESTING_KEPT + 2 * len(self.groups):
                there = self.groups
                self._known = {key: each for key, each in self._known.items() if each in there}
            group = self._known[name] = Group(cq)
        return group

    def left(self, waiting: PendingWorkload, cq: ClusterQueueState) -> None:
        """Forget a workload that is no longer pending."""
        member = self._entries.pop(waiting.key, None)
        if member is None:
            return
        group, members = member.group, member.group.members
        at = bisect_left(group.places, member.place) if members[0] is not member else 0
        members.pop(at)
        group.places.pop(at)
        if self.verdicts:
            self.verdicts.pop(waiting.key, None)
            self.reserved_for.pop(waiting.key, None)
        if at == 0:
            self._drop_head(member.place)
            if members:
                self._put_head(group.places[0], group)
        if members:
            group.limits.pop(bisect_left(group.limits, member.limit))
        else:
            group.limits.clear()
            group.rest()
            del self.groups[group]
        if self.kept is not None and self.kept.concern(waiting.key):
            self.is_outdated = True

    def _put_head(self, place: Place, group: Group) -> None:
        heads = self._heads
        if not heads or place > heads[-1]:  # most arrive behind all others
            heads.append(place)
            self.order.append(group)
            return
        at = bisect_left(heads, place)
        heads.insert(at, place)
        self.order.insert(at, group)

    def _drop_head(self, place: Place) -> None:
        at = bisect_left(self._heads, place) if self._heads[0] != place else 0
        self._heads.pop(at)
        self.order.pop(at)

    def is_pending(self, member: Member) -> bool:
        """Say whether a workload that arrived is still pending."""
        return self._entries.get(member.waiting.key) is member

    def record_wait(self, waiting: PendingWorkload, blockers: tuple[Blocker, ...]) -> None:
        """Record why a workload waits; its group waits for the same until another verdict."""
        member = self._entries.get(waiting.key)
        if member is None:  # its queue is closed: that is why it waits
            return
        self.verdicts[waiting.key] = self._cycles, blockers
        if blockers and isinstance(blockers[0], Planned):
            self.reserved_for[waiting.key] = None
        elif self.reserved_for:
            self.reserved_for.pop(waiting.key, None)
        member.group.record(blockers, self._cycles)

    def lapsed(
        self, given: Collection[WorkloadKey], explained: Collection[WorkloadKey]
    ) -> list[Explanation]:
        """Return explanations for workloads whose reservation this cycle does not renew.

        Most of them are not evaluated again: they are too far behind for a reservation and cannot
        start. `explained` are the workloads that the cycle explains otherwise.
        """
        return [
            Explanation(
                workload=key,
                queue=self._entries[key].group.cq.spec.name,
                blockers=_without_reservation(self.verdicts[key][1]),
            )
            for key in sorted(self.reserved_for)
            if key not in given and key not in explained
        ]

    def group_of(self, waiting: PendingWorkload) -> Group | None:
        """Return the group of a pending workload."""
        entry = self._entries.get(waiting.key)
        return entry.group if entry is not None else None

    def why(self, waiting: PendingWorkload) -> tuple[Blocker, ...]:
        """Return why a workload waits, as far as a cycle has evaluated it or its group."""
        group = self.group_of(waiting)
        known = self._own(waiting.workload.key, group)
        if known is None:  # the group's verdict; a reservation belongs to one workload only
            known = _without_reservation(group.blockers) if group is not None else ()
        return self.as_reserved_now(known, waiting)

    def is_new(self, waiting: PendingWorkload, group: Group, blockers: tuple[Blocker, ...]) -> bool:
        """Say whether a verdict has to be recorded: it is new for a workload, or for its group.

        `WouldDelay` is recorded for the whole group at once, since the others are not evaluated.
        """
        known = self._own(waiting.workload.key, group)
        if known is None:
            known = _without_reservation(group.blockers)
        if len(blockers) != 1 or not isinstance(blockers[0], WouldDelay):
            return known != blockers
        return not group.is_delaying or self.as_reserved_now(known, waiting) != blockers

    def own(self, waiting: PendingWorkload) -> tuple[Blocker, ...] | None:
        """Return the verdict on a workload itself, unless its group has a newer one.

        `WouldDelay` is a group's verdict, except for the workload that has the reservation.
        """
        return self._own(waiting.workload.key, self.group_of(waiting))

    def _own(self, key: WorkloadKey, group: Group | None) -> tuple[Blocker, ...] | None:
        known = self.verdicts.get(key)
        if known is None:
            return None
        if group is None or not group.is_delaying or known[0] >= group.recorded_in:
            return known[1]
        first = self.first_reservation
        return known[1] if first is not None and first.workload == key else None

    def as_reserved_now(
        self, blockers: tuple[Blocker, ...], waiting: PendingWorkload
    ) -> tuple[Blocker, ...]:
        """Return `WouldDelay` with the reservation that is first now."""
        fact, first = blockers[0] if len(blockers) == 1 else None, self.first_reservation
        if not isinstance(fact, WouldDelay) or self.rules is None:
            return blockers
        limit = limit_of(waiting.workload, self.rules)
        key, start = fact.reserved_for, fact.start
        if first is not None:
            key, start = first.workload, first.start
        if (key, start, limit) == (fact.reserved_for, fact.start, fact.limit_ms):
            return blockers
        return (WouldDelay(reserved_for=key, start=start, limit_ms=limit),)

    # --- running workloads -----------------------------------------------------------------------

    def started(self, running: Running, since: Instant) -> None:
        """Note when a workload that started is expected to end."""
        if self.rules is None:
            return
        self._number += 1
        workload, lasts = running.admitted.workload, self._lasts
        limit = limit_of(workload, self.rules) if lasts is None else lasts(workload)
        end = Instant(since + limit)
        running.end = (end, self._number)
        at = bisect_right(self.ends, end)  # equal ends stay in the order of the starts
        self.ends.insert(at, end)
        self.ending.insert(at, running)

    def ended(self, running: Running) -> None:
        """Forget a workload that ended; what is pending has to be evaluated again."""
        if self.rules is None:
            return
        at = bisect_left(self.ends, running.end[0])
        while self.ending[at] is not running:
            at += 1
        self.ends.pop(at)
        self.ending.pop(at)
        self.is_outdated = True

    def endings(self) -> list[Ending]:
        """Return what runs, by expected end."""
        return [(running.end[0], running.end[1], running) for running in self.ending]

    def invalidate(self) -> None:
        """Note that something happened that may change every verdict and reservation."""
        self.is_outdated = True

    def forget_counts(self, cq: ClusterQueueState) -> None:
        """Note that a queue was reconfigured: what its groups need is counted again."""
        for group in self._known.values():
            if group.cq is cq:
                group.stamp, group.counted = -1, None

    def reusable(self, now: Instant) -> Kept | None:
        """Return the reservations of the last cycle if nothing happened since that moves one.

        The caller must not change them: its plan may never be applied, and then they still hold.
        """
        kept = self.kept
        if kept is None or self.is_outdated or not kept.hold(now):
            return None
        last = self._entries[kept.last].place
        for entry in self.arrivals:
            if entry.place < last:
                return None
        return kept

    # --- cycles ----------------------------------------------------------------------------------

    def draft(self, version: int, kept: Kept | None) -> None:
        """Keep a cycle's reservations in case its plan is applied."""
        self._drafted, self._draft = version, kept

    def settle(self, version: int) -> None:
        """Take over the reservations of the cycle whose plan is applied."""
        if self._drafted == version:
            kept = self.kept = self._draft
            self.first_reservation = kept.first if kept is not None else None
            self._cycles += 1
            self.is_outdated = False
            self.arrivals.clear()
        self._drafted, self._draft = -1, None


def limit_of(workload: Workload, rules: Backfill) -> int:
    """Return how long a workload will run at most (spec backfill §1)."""
    longest = workload.time_limit_ms  # the usual case: asked for every arrival and start
    if workload.least_limit_ms is not None or workload.max_execution_ms is not None:
        longest = workload.longest_ms
    return rules.default_limit_ms if longest is None else longest


def place_of(member: Member) -> Place:
    """Return a member's place in the order."""
    return member.place


def _without_reservation(blockers: tuple[Blocker, ...]) -> tuple[Blocker, ...]:
    return blockers[1:] if blockers and isinstance(blockers[0], Planned) else blockers
