"""The agenda: everybody who waits in the order of their turn, and everybody who runs by their end.

Kept by events like the rest of the state, and only while the policy asks for backfill. Workloads of
one kind (same queue, shape and priority) stand in one group, because they share a verdict.

What the last pass found out stays true until something else happens than workloads coming or
starting: then only newcomers have to be looked at (spec time §3).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from typing import Protocol

from unisono.engine.model.explanation import Blocker, WouldDelay
from unisono.engine.model.names import Instant, QueueName, WorkloadKey
from unisono.engine.model.plan import Date
from unisono.engine.model.policy import Backfill
from unisono.engine.model.resources import Amounts
from unisono.engine.model.workload import Workload
from unisono.engine.order.lines import Kind, Waiting
from unisono.engine.place.demand import Constraint
from unisono.engine.reserve.need import Counted
from unisono.engine.reserve.pod_room import PodRoom
from unisono.engine.state.doors import Door
from unisono.engine.state.queue_book import QueueBook, Running

# Place in turn: (-priority, time, uid, number of entry); smaller goes first.
Place = tuple[int, Instant, str, int]
Member = tuple[Place, Waiting, int]  # with its time limit
Newcomer = tuple[Place, Waiting, "Group", int]
Lasts = Callable[[Workload], int]  # how long somebody runs
RoomKey = tuple[Constraint, Amounts, tuple[str, ...]]


class Kept(Protocol):
    """Dates of one pass that the next one may still use."""

    @property
    def last(self) -> WorkloadKey:
        """Return who of those with a date is the last in turn."""
        ...

    @property
    def first(self) -> Date | None:
        """Return the date that comes first: whoever goes first must not delay it."""
        ...

    def hold(self, now: Instant) -> bool:
        """Say whether all of them are yet to come."""
        ...

    def concern(self, key: WorkloadKey) -> bool:
        """Say whether somebody has one of them."""
        ...


class Group:
    """Workloads of one kind in one queue, in turn."""

    __slots__ = (
        "blockers",
        "book",
        "counted",
        "is_delaying",
        "limits",
        "members",
        "stamp",
        "told",
    )

    def __init__(self, book: QueueBook) -> None:
        self.book = book
        self.members: list[Member] = []
        self.limits: list[int] = []  # of all of them, the shortest first
        self.blockers: tuple[Blocker, ...] = ()  # the newest verdict on one of them
        self.told = 0  # and the pass that found it
        self.is_delaying = False  # they fit, but would delay somebody: all alike, however long
        # What `counting` found out about them, and about which picture of nodes and queues.
        self.counted: Counted | None = None
        self.stamp: tuple[int, int, int] | None = None

    def tell(self, blockers: tuple[Blocker, ...], told: int) -> None:
        """Take in a verdict on one of them, and which pass found it."""
        self.blockers, self.told = blockers, told
        self.is_delaying = len(blockers) == 1 and isinstance(blockers[0], WouldDelay)


class Agenda:
    """Who waits and who runs, in time."""

    __slots__ = (
        "_draft",
        "_entries",
        "_lasts",
        "_number",
        "_passes",
        "dated",
        "ends",
        "groups",
        "is_easy",
        "is_shaken",
        "kept",
        "newcomers",
        "order",
        "rooms",
        "rules",
        "verdicts",
    )

    def __init__(self, rules: Backfill | None = None, lasts: Lasts | None = None) -> None:
        """Keep time as the policy says; `lasts` says how long each runs, if not its limit."""
        self.rules = rules
        self._lasts = lasts
        # The first who waits has a date, others are looked at in turn, and nothing else is asked.
        self.is_easy = (
            rules is not None
            and rules.dates == 1
            and not rules.shortest_first
            and not rules.most_tested
            and not rules.most_per_queue
        )
        self.groups: dict[tuple[QueueName, Kind], Group] = {}
        self.ends: list[tuple[Instant, int, Running]] = []  # who runs, by expected end
        # All groups by their first member; the rest of an entry never has to be compared.
        self.order: list[tuple[Place, int, Group]] = []
        # What was last said of whom, and by which pass.
        self.verdicts: dict[WorkloadKey, tuple[int, tuple[Blocker, ...]]] = {}
        self.dated: Date | None = None  # the first date of the last pass
        self.newcomers: list[Newcomer] = []
        self.is_shaken = True  # more happened than newcomers
        self.kept: Kept | None = None  # dates, as the last pass left them
        # For pods of one kind (constraint, request, order of nodes), and for which nodes.
        self.rooms: dict[RoomKey, tuple[tuple[int, int], PodRoom]] = {}
        self._draft: tuple[int, Kept | None] | None = None
        self._entries: dict[WorkloadKey, tuple[Place, Group]] = {}  # everybody in line
        self._number = 0
        self._passes = 0

    @property
    def is_on(self) -> bool:
        """Say whether the policy asks for backfill."""
        return self.rules is not None

    def hear(self, running: Iterable[Running], doors: Iterable[Door]) -> None:
        """Take in everybody at once."""
        for each in running:
            self.starts(each)
        for door in doors:
            for waiting in door.waiting.values():
                if waiting.line is not None and door.book is not None:
                    self.join(waiting, door.book)

    def limit_of(self, workload: Workload) -> int:
        """Return how long a workload is expected to run."""
        assert self.rules is not None, "without backfill nobody is expected to end"
        return limit_of(workload, self.rules) if self._lasts is None else self._lasts(workload)

    # --- who waits -------------------------------------------------------------------------------

    def join(self, waiting: Waiting, book: QueueBook) -> None:
        """Let a workload stand in line."""
        if self.rules is None:
            return
        workload = waiting.workload
        key = (book.spec.name, waiting.kind)
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = Group(book)
        self._number += 1
        place = (-workload.priority, waiting.since, waiting.tie, self._number)
        self._entries[workload.key] = place, group
        limit = limit_of(workload, self.rules) if self._lasts is None else self._lasts(workload)
        members = group.members
        insort(group.limits, limit)
        if not members:
            insort(self.order, (place, 0, group))
            members.append((place, waiting, limit))
        elif place > members[-1][0]:
            members.append((place, waiting, limit))
        else:
            if place < members[0][0]:
                self._drop_head(members[0][0])
                insort(self.order, (place, 0, group))
            insort(members, (place, waiting, limit), key=_place)
        self.newcomers.append((place, waiting, group, limit))

    def leave(self, waiting: Waiting, book: QueueBook) -> None:
        """Let a workload leave its line."""
        if self.rules is None:
            return
        place, group = self._entries.pop(waiting.workload.key)
        members = group.members
        at = bisect_left(members, place, key=_place) if members[0][0] != place else 0
        limit = members.pop(at)[2]
        del group.limits[bisect_left(group.limits, limit)]
        self.verdicts.pop(waiting.workload.key, None)
        if at == 0:
            self._drop_head(place)
            if members:
                insort(self.order, (members[0][0], 0, group))
            else:
                del self.groups[book.spec.name, waiting.kind]
        if self.kept is not None and self.kept.concern(waiting.workload.key):
            self.is_shaken = True

    def _drop_head(self, place: Place) -> None:
        del self.order[bisect_left(self.order, (place,))]

    def note(self, waiting: Waiting, blockers: tuple[Blocker, ...]) -> None:
        """File why a workload waits; its equals wait for the same as long as they have no other."""
        self.verdicts[waiting.workload.key] = self._passes, blockers
        self._entries[waiting.workload.key][1].tell(blockers, self._passes)

    def group_of(self, waiting: Waiting) -> Group | None:
        """Return the group of a workload that stands in line."""
        entry = self._entries.get(waiting.workload.key)
        return entry[1] if entry is not None else None

    def why(self, waiting: Waiting) -> tuple[Blocker, ...]:
        """Return why a workload waits, as far as a pass has looked at it or its equals."""
        group = self.group_of(waiting)
        known = self._own(waiting.workload.key, group)
        if known is None:
            known = group.blockers if group is not None else ()
        return self.as_of_now(known, waiting)

    def is_news(self, waiting: Waiting, group: Group, blockers: tuple[Blocker, ...]) -> bool:
        """Say whether a verdict has to be told: it is new for a workload, or for its equals.

        That somebody would delay a date is said of all equals at once: nobody else looks at them.
        """
        known = self._own(waiting.workload.key, group)
        if known is None:
            known = group.blockers
        if len(blockers) != 1 or not isinstance(blockers[0], WouldDelay):
            return known != blockers
        return not group.is_delaying or self.as_of_now(known, waiting) != blockers

    def own(self, waiting: Waiting) -> tuple[Blocker, ...] | None:
        """Return what was said of a workload itself, if nothing newer was said of its equals.

        Who would delay somebody is not looked at one by one. Who has the date delays nobody.
        """
        return self._own(waiting.workload.key, self.group_of(waiting))

    def _own(self, key: WorkloadKey, group: Group | None) -> tuple[Blocker, ...] | None:
        known = self.verdicts.get(key)
        if known is None:
            return None
        if group is None or not group.is_delaying or known[0] >= group.told:
            return known[1]
        has_date = self.dated is not None and self.dated.workload == key
        return known[1] if has_date else None

    def as_of_now(self, blockers: tuple[Blocker, ...], waiting: Waiting) -> tuple[Blocker, ...]:
        """Tell whom a workload would delay as dates are now."""
        fact, first = blockers[0] if len(blockers) == 1 else None, self.dated
        if not isinstance(fact, WouldDelay) or self.rules is None:
            return blockers
        limit = limit_of(waiting.workload, self.rules)
        whom, start = (fact.whom, fact.start) if first is None else (first.workload, first.start)
        if (whom, start, limit) == (fact.whom, fact.start, fact.limit_ms):
            return blockers
        return (WouldDelay(whom=whom, start=start, limit_ms=limit),)

    # --- who runs --------------------------------------------------------------------------------

    def starts(self, running: Running) -> None:
        """Note when somebody who starts is expected to end."""
        if self.rules is None:
            return
        self._number += 1
        holding = running.holding
        admitted = holding.admitted_at
        since = holding.reserved_at if admitted is None else admitted
        lasts = self._lasts
        limit = limit_of(holding.workload, self.rules) if lasts is None else lasts(holding.workload)
        end = Instant(since + limit)
        running.end = (end, self._number)
        insort(self.ends, (end, self._number, running))

    def ended(self, running: Running) -> None:
        """Forget somebody who ended; whoever waits has to be looked at."""
        if self.rules is None:
            return
        del self.ends[bisect_left(self.ends, running.end)]
        self.is_shaken = True

    def shake(self) -> None:
        """Note that something happened which may concern everybody."""
        self.is_shaken = True

    def forget_counts(self, book: QueueBook) -> None:
        """Note that a queue was configured anew: what its groups need is counted again."""
        for group in self.groups.values():
            if group.book is book:
                group.stamp = group.counted = None

    def take_kept(self, now: Instant) -> Kept | None:
        """Return the dates of the last pass if nothing happened since that could move one.

        Whoever takes them may change them: they come back with the draft of the next plan.
        """
        kept, self.kept = self.kept, None
        if kept is None or self.is_shaken or not kept.hold(now):
            self.is_shaken = True
            return None
        last = self._entries[kept.last][0]
        for entry in self.newcomers:
            if entry[0] < last:
                self.is_shaken = True
                return None
        return kept

    # --- passes ----------------------------------------------------------------------------------

    def draft(self, version: int, kept: Kept | None) -> None:
        """Keep what a pass found out, for the case that its plan is carried out."""
        self._draft = version, kept

    def settle(self, version: int) -> None:
        """Take over what the pass found out whose plan is carried out."""
        if self._draft is not None and self._draft[0] == version:
            self.kept = self._draft[1]
            self.dated = self.kept.first if self.kept is not None else None
            self._passes += 1
            self.is_shaken = False
            self.newcomers.clear()
        self._draft = None


def limit_of(workload: Workload, rules: Backfill) -> int:
    """Return how long a workload will run at most (spec time §1)."""
    longest = workload.longest_ms
    return rules.default_limit_ms if longest is None else longest


def _place(member: Member) -> Place:
    return member[0]
