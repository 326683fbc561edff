"""The agenda: everybody who waits in the order of their turn, and everybody who runs by their end.

Kept by events like the rest of the state, and only while the policy asks for backfill. Workloads of
one kind (same queue, shape and priority) stand in one group, because they share a verdict.

What the last pass found out stays true until something else happens than workloads coming or
starting: then only newcomers have to be looked at (spec time §3).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import Protocol

from unisono.engine.model.explanation import Blocker
from unisono.engine.model.names import Instant, QueueName, WorkloadKey
from unisono.engine.model.policy import Backfill
from unisono.engine.model.resources import Amounts
from unisono.engine.model.workload import Workload
from unisono.engine.order.lines import Kind, Waiting, kind_of
from unisono.engine.place.demand import Constraint
from unisono.engine.reserve.need import Counted
from unisono.engine.reserve.pod_room import PodRoom
from unisono.engine.state.doors import Door
from unisono.engine.state.queue_book import QueueBook, Running

# Place in turn: (-priority, time, uid, number of entry); smaller goes first.
Place = tuple[int, Instant, str, int]
Member = tuple[Place, Waiting]
RoomKey = tuple[Constraint, Amounts, tuple[str, ...]]


class Kept(Protocol):
    """Dates of one pass that the next one may still use."""

    @property
    def last(self) -> WorkloadKey:
        """Return who of those with a date is the last in turn."""
        ...

    def hold(self, now: Instant) -> bool:
        """Say whether all of them are yet to come."""
        ...

    def concern(self, key: WorkloadKey) -> bool:
        """Say whether somebody has one of them."""
        ...


class Group:
    """Workloads of one kind in one queue, in turn."""

    __slots__ = ("blockers", "book", "counted", "members", "stamp")

    def __init__(self, book: QueueBook) -> None:
        self.book = book
        self.members: list[Member] = []
        self.blockers: tuple[Blocker, ...] = ()  # the newest verdict on one of them
        # What `counting` found out about them, and about which picture of nodes and queues.
        self.counted: Counted | None = None
        self.stamp: tuple[int, int, int] | None = None


class Agenda:
    """Who waits and who runs, in time."""

    __slots__ = (
        "_draft",
        "_number",
        "_places",
        "ends",
        "groups",
        "is_shaken",
        "kept",
        "newcomers",
        "rooms",
        "rules",
        "verdicts",
    )

    def __init__(self, rules: Backfill | None = None) -> None:
        self.rules = rules
        self.groups: dict[tuple[QueueName, Kind], Group] = {}
        self.ends: list[tuple[Instant, int, Running]] = []  # who runs, by expected end
        self.verdicts: dict[WorkloadKey, tuple[Blocker, ...]] = {}
        self.newcomers: list[tuple[Place, Waiting, Group]] = []
        self.is_shaken = True  # more happened than newcomers
        self.kept: Kept | None = None  # dates, as the last pass left them
        # For pods of one kind (constraint, request, order of nodes), and for which nodes.
        self.rooms: dict[RoomKey, tuple[tuple[int, int], PodRoom]] = {}
        self._draft: tuple[int, Kept | None] | None = None
        self._places: dict[WorkloadKey, Place] = {}
        self._number = 0

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

    # --- who waits -------------------------------------------------------------------------------

    def join(self, waiting: Waiting, book: QueueBook) -> None:
        """Let a workload stand in line."""
        if self.rules is None:
            return
        workload = waiting.workload
        key = (book.spec.name, kind_of(waiting))
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = Group(book)
        self._number += 1
        place = (-workload.priority, workload.position_time, workload.uid, self._number)
        self._places[workload.key] = place
        if group.members and place < group.members[-1][0]:
            insort(group.members, (place, waiting), key=_place)
        else:
            group.members.append((place, waiting))
        self.newcomers.append((place, waiting, group))

    def leave(self, waiting: Waiting, book: QueueBook) -> None:
        """Let a workload leave its line."""
        if self.rules is None:
            return
        key = (book.spec.name, kind_of(waiting))
        group = self.groups[key]
        place = self._places.pop(waiting.workload.key)
        del group.members[bisect_left(group.members, place, key=_place)]
        self.verdicts.pop(waiting.workload.key, None)
        if not group.members:
            del self.groups[key]
        if self.kept is not None and self.kept.concern(waiting.workload.key):
            self.is_shaken = True

    def note(self, waiting: Waiting, book: QueueBook, blockers: tuple[Blocker, ...]) -> None:
        """File why a workload waits; its equals wait for the same as long as they have no other."""
        self.verdicts[waiting.workload.key] = blockers
        self.groups[book.spec.name, kind_of(waiting)].blockers = blockers

    def why(self, waiting: Waiting, book: QueueBook) -> tuple[Blocker, ...]:
        """Return why a workload waits, as far as a pass has looked at it or its equals."""
        known = self.verdicts.get(waiting.workload.key)
        if known is None:
            group = self.groups.get((book.spec.name, kind_of(waiting)))
            known = group.blockers if group is not None else ()
        return known

    # --- who runs --------------------------------------------------------------------------------

    def starts(self, running: Running) -> None:
        """Note when somebody who starts is expected to end."""
        if self.rules is None:
            return
        self._number += 1
        holding = running.holding
        end = Instant(holding.running_since + limit_of(holding.workload, self.rules))
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

    def take_kept(self, now: Instant) -> Kept | None:
        """Return the dates of the last pass if nothing happened since that could move one.

        Whoever takes them may change them: they come back with the draft of the next plan.
        """
        kept, self.kept = self.kept, None
        if kept is None or self.is_shaken or not kept.hold(now):
            self.is_shaken = True
            return None
        last = self._places[kept.last]
        if all(entry[0] > last for entry in self.newcomers):
            return kept
        self.is_shaken = True
        return None

    # --- passes ----------------------------------------------------------------------------------

    def draft(self, version: int, kept: Kept | None) -> None:
        """Keep what a pass found out, for the case that its plan is carried out."""
        self._draft = version, kept

    def settle(self, version: int) -> None:
        """Take over what the pass found out whose plan is carried out."""
        if self._draft is not None and self._draft[0] == version:
            self.kept = self._draft[1]
            self.is_shaken = False
            self.newcomers.clear()
        self._draft = None


def limit_of(workload: Workload, rules: Backfill) -> int:
    """Return how long a workload will run at most (spec time §1)."""
    longest = workload.longest_ms
    return rules.default_limit_ms if longest is None else longest


def _place(member: Member) -> Place:
    return member[0]
