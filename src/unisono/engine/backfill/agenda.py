"""The agenda: everybody who waits in the order of their turn, and everybody who runs by their end.

Kept by events like the rest of the state, and only while the policy asks for backfill. Workloads of
one kind (same queue, shape and priority) stand in one group, because they share a verdict.

What the last pass found out stays true until something else happens than workloads coming or
starting: then only newcomers have to be looked at (spec time §3).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable
from typing import Final, Protocol

from unisono.engine.model.explanation import Blocker, Explanation, Planned, WouldDelay
from unisono.engine.model.names import Instant, QueueName, WorkloadKey
from unisono.engine.model.plan import Date
from unisono.engine.model.policy import Backfill
from unisono.engine.model.workload import Workload
from unisono.engine.state.doors import Door
from unisono.engine.state.pending_queue import Kind, Waiting
from unisono.engine.state.queue_book import QueueBook, Running

# Place in turn: (-priority, time, uid, number of entry); smaller goes first. The type has no
# length, so that compiled code keeps the tuple that it is instead of taking it apart.
Place = tuple[int | str, ...]
Lasts = Callable[[Workload], int]  # how long somebody runs
Ending = tuple[Instant, int, Running]  # when, a number that breaks ties, and who
# Groups without members that are remembered: sizes of jobs come again and again.
RESTING_KEPT: Final = 1024


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


class Member:
    """A workload that stands in line, with its place there and its time limit."""

    __slots__ = ("group", "limit", "place", "waiting")

    def __init__(self, waiting: Waiting, group: Group, place: Place, limit: int) -> None:
        self.waiting = waiting
        self.group = group
        self.place = place
        self.limit = limit


class Group:
    """Workloads of one kind in one queue, in turn."""

    __slots__ = (
        "blockers",
        "book",
        "counted",
        "is_delaying",
        "limits",
        "members",
        "places",
        "stamp",
        "told",
    )

    def __init__(self, book: QueueBook) -> None:
        self.book = book
        self.members: list[Member] = []
        self.places: list[Place] = []  # of all of them
        self.limits: list[int] = []  # of all of them, the shortest first
        self.blockers: tuple[Blocker, ...] = ()  # the newest verdict on one of them
        self.told = 0  # and the pass that found it
        self.is_delaying = False  # they fit, but would delay somebody: all alike, however long
        # What one of them needs, as `backfill.counting` found out (its type is known there), and
        # from which edition of nodes and queues.
        self.counted: object = None
        self.stamp = -1

    def tell(self, blockers: tuple[Blocker, ...], told: int) -> None:
        """Take in a verdict on one of them, and which pass found it."""
        self.blockers, self.told = blockers, told
        self.is_delaying = len(blockers) == 1 and isinstance(blockers[0], WouldDelay)

    def rest(self) -> None:
        """Forget what was said when the last of them leaves; what they need stays known."""
        self.blockers, self.told, self.is_delaying = (), 0, False


class Agenda:
    """Who waits and who runs, in time."""

    __slots__ = (
        "_draft",
        "_drafted",
        "_entries",
        "_heads",
        "_known",
        "_lasts",
        "_number",
        "_passes",
        "dated",
        "ending",
        "ends",
        "groups",
        "is_easy",
        "is_shaken",
        "kept",
        "newcomers",
        "order",
        "promised",
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
        self.groups: dict[Group, None] = {}  # those that have members
        self.ends: list[Instant] = []  # when those who run are expected to end, in order ...
        self.ending: list[Running] = []  # ... and who
        self.order: list[Group] = []  # all groups by the places of their first members ...
        self._heads: list[Place] = []  # ... which are these
        self._known: dict[tuple[QueueName, Kind], Group] = {}  # those without members, too
        # What was last said of whom, and by which pass.
        self.verdicts: dict[WorkloadKey, tuple[int, tuple[Blocker, ...]]] = {}
        self.dated: Date | None = None  # the first date of the last pass
        self.promised: dict[WorkloadKey, None] = {}  # who was told a date, and nothing since
        self.newcomers: list[Member] = []
        self.is_shaken = True  # more happened than newcomers
        self.kept: Kept | None = None  # dates, as the last pass left them
        self._draft: Kept | None = None  # dates of a pass whose plan may be carried out ...
        self._drafted = -1  # ... and from which version of the state it was made; -1: there is none
        self._entries: dict[WorkloadKey, Member] = {}  # everybody in line
        self._number = 0
        self._passes = 0

    @property
    def is_on(self) -> bool:
        """Say whether the policy asks for backfill."""
        return self.rules is not None

    def hear(self, running: Iterable[Running], doors: Iterable[Door]) -> None:
        """Take in everybody at once."""
        for each in running:
            self.starts(each, each.holding.running_since)
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
        group = self._group_for(waiting, book)
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
        self.newcomers.append(member)

    def _group_for(self, waiting: Waiting, book: QueueBook) -> Group:
        """Return the group of workloads like this one."""
        name = (book.spec.name, waiting.kind)
        group = self._known.get(name)
        if group is None or group.book is not book:
            if len(self._known) >= RESTING_KEPT + 2 * len(self.groups):
                there = self.groups
                self._known = {key: each for key, each in self._known.items() if each in there}
            group = self._known[name] = Group(book)
        return group

    def leave(self, waiting: Waiting, book: QueueBook) -> None:
        """Let a workload leave its line."""
        if self.rules is None:
            return
        member = self._entries[waiting.key]
        del self._entries[waiting.key]
        group, members = member.group, member.group.members
        at = bisect_left(group.places, member.place) if members[0] is not member else 0
        members.pop(at)
        group.places.pop(at)
        if self.verdicts:
            self.verdicts.pop(waiting.key, None)
            self.promised.pop(waiting.key, None)
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
            self.is_shaken = True

    def _put_head(self, place: Place, group: Group) -> None:
        heads = self._heads
        if not heads or place > heads[-1]:  # most come behind all others
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

    def is_in_line(self, member: Member) -> bool:
        """Say whether somebody who came still stands there."""
        return self._entries.get(member.waiting.key) is member

    def note(self, waiting: Waiting, blockers: tuple[Blocker, ...]) -> None:
        """File why a workload waits; its equals wait for the same as long as they have no other."""
        self.verdicts[waiting.key] = self._passes, blockers
        if blockers and isinstance(blockers[0], Planned):
            self.promised[waiting.key] = None
        elif self.promised:
            self.promised.pop(waiting.key, None)
        self._entries[waiting.key].group.tell(blockers, self._passes)

    def lapsed(
        self, given: Collection[WorkloadKey], told: Collection[WorkloadKey]
    ) -> list[Explanation]:
        """Return who loses its date because this pass gives it none, and what is left to say.

        Nobody looks at most of them again: they come too late for a date, and cannot start. `told`
        are those of whom the pass says something else.
        """
        return [
            Explanation(
                workload=key,
                queue=self._entries[key].group.book.spec.name,
                blockers=_without_date(self.verdicts[key][1]),
            )
            for key in sorted(self.promised)
            if key not in given and key not in told
        ]

    def group_of(self, waiting: Waiting) -> Group | None:
        """Return the group of a workload that stands in line."""
        entry = self._entries.get(waiting.key)
        return entry.group if entry is not None else None

    def why(self, waiting: Waiting) -> tuple[Blocker, ...]:
        """Return why a workload waits, as far as a pass has looked at it or its equals."""
        group = self.group_of(waiting)
        known = self._own(waiting.workload.key, group)
        if known is None:  # what its equals wait for; a date is only one's own
            known = _without_date(group.blockers) if group is not None else ()
        return self.as_of_now(known, waiting)

    def is_news(self, waiting: Waiting, group: Group, blockers: tuple[Blocker, ...]) -> bool:
        """Say whether a verdict has to be told: it is new for a workload, or for its equals.

        That somebody would delay a date is said of all equals at once: nobody else looks at them.
        """
        known = self._own(waiting.workload.key, group)
        if known is None:
            known = _without_date(group.blockers)
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

    def starts(self, running: Running, since: Instant) -> None:
        """Note when somebody who starts is expected to end."""
        if self.rules is None:
            return
        self._number += 1
        workload, lasts = running.holding.workload, self._lasts
        limit = limit_of(workload, self.rules) if lasts is None else lasts(workload)
        end = Instant(since + limit)
        running.end = (end, self._number)
        at = bisect_right(self.ends, end)  # of those who end together, in the order of their starts
        self.ends.insert(at, end)
        self.ending.insert(at, running)

    def ended(self, running: Running) -> None:
        """Forget somebody who ended; whoever waits has to be looked at."""
        if self.rules is None:
            return
        at = bisect_left(self.ends, running.end[0])
        while self.ending[at] is not running:
            at += 1
        self.ends.pop(at)
        self.ending.pop(at)
        self.is_shaken = True

    def endings(self) -> list[Ending]:
        """Return who runs, by expected end."""
        return [(running.end[0], running.end[1], running) for running in self.ending]

    def shake(self) -> None:
        """Note that something happened which may concern everybody."""
        self.is_shaken = True

    def forget_counts(self, book: QueueBook) -> None:
        """Note that a queue was configured anew: what its groups need is counted again."""
        for group in self._known.values():
            if group.book is book:
                group.stamp, group.counted = -1, None

    def take_kept(self, now: Instant) -> Kept | None:
        """Return the dates of the last pass if nothing happened since that could move one.

        Whoever takes them may change them: they come back with the draft of the next plan.
        """
        kept, self.kept = self.kept, None
        if kept is None or self.is_shaken or not kept.hold(now):
            self.is_shaken = True
            return None
        last = self._entries[kept.last].place
        for entry in self.newcomers:
            if entry.place < last:
                self.is_shaken = True
                return None
        return kept

    # --- passes ----------------------------------------------------------------------------------

    def draft(self, version: int, kept: Kept | None) -> None:
        """Keep what a pass found out, for the case that its plan is carried out."""
        self._drafted, self._draft = version, kept

    def settle(self, version: int) -> None:
        """Take over what the pass found out whose plan is carried out."""
        if self._drafted == version:
            kept = self.kept = self._draft
            self.dated = kept.first if kept is not None else None
            self._passes += 1
            self.is_shaken = False
            self.newcomers.clear()
        self._drafted, self._draft = -1, None


def limit_of(workload: Workload, rules: Backfill) -> int:
    """Return how long a workload will run at most (spec time §1)."""
    longest = workload.time_limit_ms  # as most have it: asked of everybody who comes or starts
    if workload.least_limit_ms is not None or workload.max_execution_ms is not None:
        longest = workload.longest_ms
    return rules.default_limit_ms if longest is None else longest


def place_of(member: Member) -> Place:
    """Return the place of somebody in line."""
    return member.place


def _without_date(blockers: tuple[Blocker, ...]) -> tuple[Blocker, ...]:
    return blockers[1:] if blockers and isinstance(blockers[0], Planned) else blockers
