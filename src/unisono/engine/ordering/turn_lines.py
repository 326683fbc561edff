"""The line of one ClusterQueue when turns decide: the highest priority first (spec turns §6).

Priorities change with every second and with all that runs, so nobody is kept sorted. Everybody has
a row of numbers; who is next is found by one pass over the rows. Asked again at the same instant
(a queue that drains), everybody is sorted once, and the answers are read off.

Two things set workloads aside, each for many at once: a *kind* (shape and priority class) that
found no room is parked, as in every line; a *class* (whose it is, and its shape) that is over a
limit is barred, until those who share the limit use less.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from unisono.engine.model.explanation import Blocker
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.overriding import override
from unisono.engine.ordering.desk import TurnDesk
from unisono.engine.ordering.factors import Standing, priorities
from unisono.engine.state.pending_queue import Kind, PendingQueue, Waiting

# Association, QOS, partition, user without account, shape, time limit: workloads of one such class
# are under the same limits.
Class = tuple[int, str, str, str, int, int | None]
# Tier, priority, submission, job id, array task, uid: the first of two goes first.
TurnKey = tuple[int, int, Instant, int, int, str]

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_ROOM = 64


def class_of(waiting: Waiting, standing: Standing) -> Class:
    """Return the class of workloads that are under the same limits."""
    member = standing.member
    return (
        member.association,
        member.qos.name if member.qos is not None else "",
        member.partition.name if member.partition is not None else "",
        member.user,
        waiting.shape.number,
        standing.time_limit_ms,
    )


class _Columns:
    """Rows of numbers that grow by doubling."""

    def __init__(self) -> None:
        self.fixed: Floats = np.zeros(_ROOM)
        self.age_from: Ints = np.zeros(_ROOM, dtype=np.int64)
        self.association: Ints = np.full(_ROOM, -1, dtype=np.int64)
        self.set_to: Ints = np.zeros(_ROOM, dtype=np.int64)
        self.is_set: Bools = np.zeros(_ROOM, dtype=bool)
        self.tier: Ints = np.zeros(_ROOM, dtype=np.int64)
        self.submitted: Ints = np.zeros(_ROOM, dtype=np.int64)
        self.kind: Ints = np.zeros(_ROOM, dtype=np.int64)
        self.group: Ints = np.zeros(_ROOM, dtype=np.int64)
        self.active: Bools = np.zeros(_ROOM, dtype=bool)

    def grow(self) -> None:
        self.fixed = _doubled(self.fixed)
        self.age_from = _doubled(self.age_from)
        self.association = _doubled(self.association)
        self.set_to = _doubled(self.set_to)
        self.is_set = _doubled(self.is_set)
        self.tier = _doubled(self.tier)
        self.submitted = _doubled(self.submitted)
        self.kind = _doubled(self.kind)
        self.group = _doubled(self.group)
        self.active = _doubled(self.active)


A = TypeVar("A", bound=np.generic)


def _doubled(column: npt.NDArray[A]) -> npt.NDArray[A]:
    return np.concatenate([column, np.zeros_like(column)])


N = TypeVar("N", bound=Hashable)


class _Names(Generic[N]):
    """Numbers for kinds or classes, for as long as somebody is of them."""

    def __init__(self) -> None:
        self._number: dict[N, int] = {}
        self._members: dict[N, int] = {}
        self._count = 0

    def join(self, name: N) -> int:
        """Count one more and return the number."""
        self._members[name] = self._members.get(name, 0) + 1
        if name not in self._number:
            self._count += 1
            self._number[name] = self._count
        return self._number[name]

    def leave(self, name: N) -> bool:
        """Count one less; say whether that was the last."""
        self._members[name] -= 1
        if self._members[name]:
            return False
        del self._members[name], self._number[name]
        return True

    def of(self, name: N) -> int:
        """Return the number; 0 if nobody is of that name."""
        return self._number.get(name, 0)


class Row:
    """Where a workload is in the columns, and the classes it was counted in there."""

    __slots__ = ("group", "kind", "number")

    def __init__(self, number: int, kind: Kind, group: Class) -> None:
        self.number = number
        self.kind = kind
        self.group = group


class TurnLines(PendingQueue):
    """Everybody who waits in one ClusterQueue."""

    def __init__(self, desk: TurnDesk, *, sticky: WorkloadKey | None = None) -> None:
        super().__init__(sticky=sticky)
        self.desk = desk
        self.barred: dict[Class, tuple[Blocker, ...]] = {}
        self._rows: list[Waiting | None] = []
        self._free: list[int] = []
        self._columns = _Columns()
        self._kinds: _Names[Kind] = _Names()
        self._classes: _Names[Class] = _Names()
        self._edition = 0
        # Priorities, and of when.
        self._ranked: tuple[tuple[Instant, int, int, int], Ints] | None = None
        self._order: list[int] | None = None  # rows in turn; None while nobody asked twice
        self._asked = False
        self._next = 0  # nobody in the order before this one is active

    # --- coming and going ------------------------------------------------------------------------

    @override
    def push(self, waiting: Waiting) -> bool:
        """Let a workload join; say whether it will be examined."""
        if not self._free:
            self._free = list(range(len(self._rows) + _ROOM - 1, len(self._rows) - 1, -1))
            self._rows.extend([None] * _ROOM)
            while len(self._columns.fixed) < len(self._rows):
                self._columns.grow()
        number = self._free.pop()
        standing = self.desk.standings[waiting.workload.key]
        kind, group, columns = waiting.kind, class_of(waiting, standing), self._columns
        self._rows[number] = waiting
        waiting.line = Row(number, kind, group)
        columns.kind[number] = self._kinds.join(kind)
        columns.group[number] = self._classes.join(group)
        columns.active[number] = kind not in self.parked and group not in self.barred
        self._fill(number, waiting)
        self._forget_order()
        return bool(columns.active[number])

    def _fill(self, number: int, waiting: Waiting) -> None:
        """Write what decides about a workload's turn into its row."""
        standing, columns = self.desk.standings[waiting.workload.key], self._columns
        columns.fixed[number] = standing.fixed
        columns.age_from[number] = standing.age_from
        columns.association[number] = standing.member.association
        columns.is_set[number] = standing.set_to is not None
        columns.set_to[number] = standing.set_to or 0
        columns.tier[number] = standing.tier
        columns.submitted[number] = waiting.workload.position_time

    @override
    def drop(self, waiting: Waiting) -> None:
        """Let a workload leave."""
        row = _row(waiting)
        waiting.line = None
        self._rows[row.number] = None
        self._columns.active[row.number] = False
        self._free.append(row.number)
        self.unstick(waiting.workload.key)
        if self._kinds.leave(row.kind):
            self.parked.pop(row.kind, None)
        if self._classes.leave(row.group):
            self.barred.pop(row.group, None)

    # --- setting aside ---------------------------------------------------------------------------

    @override
    def park(self, kind: Kind, blockers: tuple[Blocker, ...]) -> None:
        """Set all workloads of a kind aside; newcomers of that kind join them."""
        self.parked[kind] = blockers
        self._columns.active[self._columns.kind == self._kinds.of(kind)] = False

    def bar(self, group: Class, blockers: tuple[Blocker, ...]) -> None:
        """Set all workloads of a class aside that is over a limit."""
        self.barred[group] = blockers
        self._columns.active[self._columns.group == self._classes.of(group)] = False

    @override
    def wake(self, kind: Kind) -> bool:
        """Bring a parked kind back; False if it was not parked."""
        if self.parked.pop(kind, None) is None:
            return False
        self._revive(self._columns.kind == self._kinds.of(kind))
        return True

    def unbar(self, group: Class) -> bool:
        """Bring a barred class back; False if it was not barred."""
        if self.barred.pop(group, None) is None:
            return False
        self._revive(self._columns.group == self._classes.of(group))
        return True

    def _revive(self, rows: Bools) -> None:
        """Let rows be examined again, unless something else keeps them aside."""
        for number in np.flatnonzero(rows).tolist():
            waiting = self._rows[number] if number < len(self._rows) else None
            if waiting is not None:
                row = _row(waiting)
                active = row.kind not in self.parked and row.group not in self.barred
                self._columns.active[number] = active
        self._next = 0

    # --- whose turn ------------------------------------------------------------------------------

    @override
    def head(self, sticky: Waiting | None) -> Waiting | None:
        """Return who is examined next; `sticky` is the entry of `self.sticky` if it still waits."""
        if sticky is not None and sticky.line is not None:
            return sticky
        number = self._first(besides=None)
        return self._rows[number] if number is not None else None

    def after(self, head: Waiting) -> Waiting | None:
        """Return who would be examined if the head were gone."""
        number = self._first(besides=_row(head).number)
        return self._rows[number] if number is not None else None

    def key(self, waiting: Waiting) -> TurnKey:
        """Return what decides whose turn it is between workloads of several queues."""
        return self._key(_row(waiting).number)

    def _key(self, number: int) -> TurnKey:
        waiting = self._rows[number]
        assert waiting is not None, "the row is taken"
        workload = waiting.workload
        return (
            -int(self._columns.tier[number]),
            -int(self._priorities()[number]),
            workload.position_time,
            workload.turn.number,
            workload.turn.task,
            workload.uid,
        )

    def _first(self, *, besides: int | None) -> int | None:
        """Find the first active row, by one pass or, if asked before at this instant, by order."""
        if len(self) <= 1:  # nobody has to be compared with anybody
            (rows,) = self._columns.active.nonzero()
            return int(rows[0]) if len(rows) and rows[0] != besides else None
        ranked = self._priorities()
        if self._asked or self._order is not None:
            return self._first_in_order(besides)
        self._asked = besides is None
        columns = self._columns
        rows = np.flatnonzero(columns.active)
        if besides is not None:
            rows = rows[rows != besides]
        if not len(rows):
            return None
        tiers = columns.tier[rows]
        rows = rows[tiers == tiers.max()]
        best = ranked[rows]
        rows = rows[best == best.max()]
        times = columns.submitted[rows]
        rows = rows[times == times.min()]
        return min(rows.tolist(), key=self._key) if len(rows) > 1 else int(rows[0])

    def _first_in_order(self, besides: int | None) -> int | None:
        if self._order is None:
            self._order, self._next = self._sorted(), 0
        active, order = self._columns.active, self._order
        index = self._next
        while index < len(order) and not active[order[index]]:
            index += 1
        self._next = index
        while index < len(order) and (not active[order[index]] or order[index] == besides):
            index += 1
        return order[index] if index < len(order) else None

    def _sorted(self) -> list[int]:
        """Return all rows in turn."""
        rows = np.array([number for number, one in enumerate(self._rows) if one is not None], int)
        if not len(rows):
            return []
        columns, ranked = self._columns, self._priorities()
        keys = (columns.submitted[rows], -ranked[rows], -columns.tier[rows])
        order = np.lexsort(keys)
        equal = np.ones(len(rows), dtype=bool)
        for key in keys:
            moved = key[order]
            equal[1:] &= moved[1:] == moved[:-1]
        equal[0] = False
        found: list[int] = rows[order].tolist()
        if equal.any():  # the rest of the key decides, which is no number
            found = self._break_ties(found, equal)
        return found

    def _break_ties(self, found: list[int], equal: Bools) -> list[int]:
        starts = [*np.flatnonzero(~equal).tolist(), len(found)]
        result: list[int] = []
        for start, end in pairwise(starts):
            group = found[start:end]
            result.extend(sorted(group, key=self._key) if len(group) > 1 else group)
        return result

    def _priorities(self) -> Ints:
        """Return everybody's priority now, by row."""
        stamp = self.desk.stamp()
        if self._ranked is not None and self._ranked[0] == stamp:
            return self._ranked[1]
        if self._edition != self.desk.edition:
            self._edition = self.desk.edition
            for number, waiting in enumerate(self._rows):
                if waiting is not None:
                    self._fill(number, waiting)
        columns, shares = self._columns, self.desk.fair_shares()
        ranked = priorities(
            columns.fixed,
            columns.age_from,
            shares[columns.association],
            self.desk.rules,
            self.desk.now,
        )
        self._forget_order()
        self._ranked = (stamp, np.where(columns.is_set, columns.set_to, ranked))
        return self._ranked[1]

    def _forget_order(self) -> None:
        self._ranked, self._order, self._asked, self._next = None, None, False, 0

    # --- looking ---------------------------------------------------------------------------------

    @override
    def in_order(self) -> list[Waiting]:
        """Return everybody, set aside or not, in turn."""
        if len(self) <= 1:  # it is nobody else's turn, whatever the numbers
            return [one for one in self._rows if one is not None]
        self._priorities()
        if self._order is None:
            self._order, self._next = self._sorted(), 0
        found = [one for number in self._order if (one := self._rows[number]) is not None]
        if self.sticky is not None:
            found.sort(key=lambda one: one.workload.key != self.sticky)
        return found

    @override
    def barred_heads(self) -> list[tuple[Waiting, tuple[Blocker, ...]]]:
        """Return the first workload of every barred class, in turn, and why it is barred."""
        found: dict[Class, Waiting] = {}
        for waiting in self.in_order():
            if _row(waiting).group in self.barred:
                found.setdefault(_row(waiting).group, waiting)
        return [(waiting, self.barred[group]) for group, waiting in found.items()]

    @override
    def aside(self, waiting: Waiting) -> tuple[Blocker, ...] | None:
        """Return why a workload is set aside, if it is."""
        row = _row(waiting)
        return self.parked.get(row.kind) or self.barred.get(row.group)

    @override
    def __len__(self) -> int:
        """Return how many workloads wait."""
        return len(self._rows) - len(self._free)


def _row(waiting: Waiting) -> Row:
    row = waiting.line
    assert isinstance(row, Row), f"{waiting.workload.key} stands in no line of turns"
    return row
