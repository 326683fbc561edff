"""The pending queue of one ClusterQueue in priority order: the highest first (spec priority §6).

Priorities change with every second and with all that runs, so that nothing is kept sorted. Each
workload has a row of numbers, and the head is found by one pass over the columns. Asked again at
the same instant (a queue that drains), all rows are sorted once, and the answers are read off.

Two things set workloads aside, each for many at once: an equivalence class that was found
inadmissible, as in every pending queue; and a limit class, whose workloads are under the same
limits and ask for the same, that has reached a limit, until less counts for that limit.
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
from unisono.engine.ordering.factors import JobRecord, priorities
from unisono.engine.ordering.multifactor import MultifactorPriority
from unisono.engine.state.pending_queue import EquivalenceClass, PendingQueue, PendingWorkload

# Association, QOS, partition, user without account, gang request, time limit: such workloads are
# under the same limits and reach them together.
LimitClass = tuple[int, str, str, str, int, int | None]
# Tier, priority, submission, job id, array task, uid: the smaller goes first.
PriorityKey = tuple[int, int, Instant, int, int, str]

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_ROWS_ADDED = 64


def limit_class_of(waiting: PendingWorkload, record: JobRecord) -> LimitClass:
    """Return the class of workloads under the same limits that a workload belongs to."""
    member = record.member
    return (
        member.association,
        member.qos.name if member.qos is not None else "",
        member.partition.name if member.partition is not None else "",
        member.user,
        waiting.request.number,
        record.time_limit_ms,
    )


class _Columns:
    """What decides the order, one number per row and column; grows by doubling."""

    def __init__(self) -> None:
        self.fixed: Floats = np.zeros(_ROWS_ADDED)
        self.age_from: Ints = np.zeros(_ROWS_ADDED, dtype=np.int64)
        self.association: Ints = np.full(_ROWS_ADDED, -1, dtype=np.int64)
        self.set_to: Ints = np.zeros(_ROWS_ADDED, dtype=np.int64)
        self.is_set: Bools = np.zeros(_ROWS_ADDED, dtype=bool)
        self.tier: Ints = np.zeros(_ROWS_ADDED, dtype=np.int64)
        self.submitted: Ints = np.zeros(_ROWS_ADDED, dtype=np.int64)
        self.equivalence_class: Ints = np.zeros(_ROWS_ADDED, dtype=np.int64)
        self.group: Ints = np.zeros(_ROWS_ADDED, dtype=np.int64)
        self.active: Bools = np.zeros(_ROWS_ADDED, dtype=bool)

    def grow(self) -> None:
        self.fixed = _doubled(self.fixed)
        self.age_from = _doubled(self.age_from)
        self.association = _doubled(self.association)
        self.set_to = _doubled(self.set_to)
        self.is_set = _doubled(self.is_set)
        self.tier = _doubled(self.tier)
        self.submitted = _doubled(self.submitted)
        self.equivalence_class = _doubled(self.equivalence_class)
        self.group = _doubled(self.group)
        self.active = _doubled(self.active)


A = TypeVar("A", bound=np.generic)


def _doubled(column: npt.NDArray[A]) -> npt.NDArray[A]:
    return np.concatenate([column, np.zeros_like(column)])


N = TypeVar("N", bound=Hashable)


class _Numbers(Generic[N]):
    """Numbers for classes of workloads, for as long as a class has members."""

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
        """Return the number; 0 if the class has no members."""
        return self._number.get(name, 0)


class Row:
    """Where a workload is in the columns, and the classes it was counted in there."""

    __slots__ = ("equivalence_class", "group", "number")

    def __init__(self, number: int, equivalence_class: EquivalenceClass, group: LimitClass) -> None:
        self.number = number
        self.equivalence_class = equivalence_class
        self.group = group


class MultifactorQueue(PendingQueue):
    """All pending workloads of one ClusterQueue, in priority order."""

    def __init__(
        self, multifactor: MultifactorPriority, *, preemptor: WorkloadKey | None = None
    ) -> None:
        super().__init__(preemptor=preemptor)
        self.multifactor = multifactor
        # Classes that reached a limit, and which.
        self.limit_blocked: dict[LimitClass, tuple[Blocker, ...]] = {}
        self._rows: list[PendingWorkload | None] = []
        self._free: list[int] = []
        self._columns = _Columns()
        self._classes: _Numbers[EquivalenceClass] = _Numbers()
        self._limit_classes: _Numbers[LimitClass] = _Numbers()
        self._edition = 0
        # Priorities by row, and what they were computed from.
        self._ranked: tuple[tuple[Instant, int, int, int], Ints] | None = None
        self._order: list[int] | None = None  # rows sorted; None until asked for twice
        self._asked = False
        self._next = 0  # no row in the order before this one is active

    # --- adding and removing ----------------------------------------------------------------------

    @override
    def push(self, waiting: PendingWorkload) -> bool:
        """Add a workload; say whether it may become the head, i.e. will be evaluated."""
        if not self._free:
            self._free = list(range(len(self._rows) + _ROWS_ADDED - 1, len(self._rows) - 1, -1))
            self._rows.extend([None] * _ROWS_ADDED)
            while len(self._columns.fixed) < len(self._rows):
                self._columns.grow()
        number = self._free.pop()
        record = self.multifactor.pending[waiting.workload.key]
        equivalence_class, group, columns = (
            waiting.equivalence_class,
            limit_class_of(waiting, record),
            self._columns,
        )
        self._rows[number] = waiting
        waiting.slot = Row(number, equivalence_class, group)
        columns.equivalence_class[number] = self._classes.join(equivalence_class)
        columns.group[number] = self._limit_classes.join(group)
        columns.active[number] = (
            equivalence_class not in self.inadmissible and group not in self.limit_blocked
        )
        self._fill(number, waiting)
        self._forget_order()
        return bool(columns.active[number])

    def _fill(self, number: int, waiting: PendingWorkload) -> None:
        """Write what decides the priority of a workload into its row."""
        record, columns = self.multifactor.pending[waiting.workload.key], self._columns
        columns.fixed[number] = record.fixed
        columns.age_from[number] = record.age_from
        columns.association[number] = record.member.association
        columns.is_set[number] = record.set_to is not None
        columns.set_to[number] = record.set_to or 0
        columns.tier[number] = record.tier
        columns.submitted[number] = waiting.workload.position_time

    @override
    def drop(self, waiting: PendingWorkload) -> None:
        """Remove a workload."""
        row = _row(waiting)
        waiting.slot = None
        self._rows[row.number] = None
        self._columns.active[row.number] = False
        self._free.append(row.number)
        self.drop_preemptor(waiting.workload.key)
        if self._classes.leave(row.equivalence_class):
            self.inadmissible.pop(row.equivalence_class, None)
        if self._limit_classes.leave(row.group):
            self.limit_blocked.pop(row.group, None)

    # --- setting aside ---------------------------------------------------------------------------

    @override
    def set_aside(self, equivalence_class: EquivalenceClass, blockers: tuple[Blocker, ...]) -> None:
        """Set an equivalence class aside as inadmissible; later ones of that class join it."""
        self.inadmissible[equivalence_class] = blockers
        self._columns.active[
            self._columns.equivalence_class == self._classes.of(equivalence_class)
        ] = False

    def block(self, group: LimitClass, blockers: tuple[Blocker, ...]) -> None:
        """Set a class aside that has reached a limit; later ones of that class join it."""
        self.limit_blocked[group] = blockers
        self._columns.active[self._columns.group == self._limit_classes.of(group)] = False

    @override
    def wake(self, equivalence_class: EquivalenceClass) -> bool:
        """Bring an inadmissible equivalence class back; False if it was not set aside."""
        if self.inadmissible.pop(equivalence_class, None) is None:
            return False
        self._revive(self._columns.equivalence_class == self._classes.of(equivalence_class))
        return True

    def unblock(self, group: LimitClass) -> bool:
        """Bring a limit-blocked class back; False if it was not set aside."""
        if self.limit_blocked.pop(group, None) is None:
            return False
        self._revive(self._columns.group == self._limit_classes.of(group))
        return True

    def _revive(self, rows: Bools) -> None:
        """Make rows active again, unless something else sets them aside."""
        for number in np.flatnonzero(rows).tolist():
            waiting = self._rows[number] if number < len(self._rows) else None
            if waiting is not None:
                row = _row(waiting)
                active = (
                    row.equivalence_class not in self.inadmissible
                    and row.group not in self.limit_blocked
                )
                self._columns.active[number] = active
        self._next = 0

    # --- order -----------------------------------------------------------------------------------

    @override
    def head(self, preemptor: PendingWorkload | None) -> PendingWorkload | None:
        """Return the next to evaluate: the entry of `self.preemptor` if it is given, in a queue."""
        if preemptor is not None and preemptor.slot is not None:
            return preemptor
        number = self._first(besides=None)
        return self._rows[number] if number is not None else None

    def after(self, head: PendingWorkload) -> PendingWorkload | None:
        """Return the next to evaluate if the head were gone."""
        number = self._first(besides=_row(head).number)
        return self._rows[number] if number is not None else None

    def key(self, waiting: PendingWorkload) -> PriorityKey:
        """Return what orders workloads of several queues."""
        return self._key(_row(waiting).number)

    def _key(self, number: int) -> PriorityKey:
        waiting = self._rows[number]
        assert waiting is not None, "the row is taken"
        workload = waiting.workload
        return (
            -int(self._columns.tier[number]),
            -int(self._priorities()[number]),
            workload.position_time,
            workload.submit_options.number,
            workload.submit_options.task,
            workload.uid,
        )

    def _first(self, *, besides: int | None) -> int | None:
        """Find the first active row: by one pass, or in order if asked before at this instant."""
        if len(self) <= 1:  # there is nothing to compare
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
        """Return all rows in priority order."""
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
        if equal.any():  # the rest of the key decides, which no column has
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
        """Return the priority of now, by row."""
        stamp = self.multifactor.stamp()
        if self._ranked is not None and self._ranked[0] == stamp:
            return self._ranked[1]
        if self._edition != self.multifactor.edition:
            self._edition = self.multifactor.edition
            for number, waiting in enumerate(self._rows):
                if waiting is not None:
                    self._fill(number, waiting)
        columns, shares = self._columns, self.multifactor.fair_shares()
        ranked = priorities(
            columns.fixed,
            columns.age_from,
            shares[columns.association],
            self.multifactor.rules,
            self.multifactor.now,
        )
        self._forget_order()
        self._ranked = (stamp, np.where(columns.is_set, columns.set_to, ranked))
        return self._ranked[1]

    def _forget_order(self) -> None:
        self._ranked, self._order, self._asked, self._next = None, None, False, 0

    # --- reading ---------------------------------------------------------------------------------

    @override
    def in_order(self) -> list[PendingWorkload]:
        """Return all workloads, set aside or not, in priority order."""
        if len(self) <= 1:  # the only one, whatever its priority
            return [one for one in self._rows if one is not None]
        self._priorities()
        if self._order is None:
            self._order, self._next = self._sorted(), 0
        found = [one for number in self._order if (one := self._rows[number]) is not None]
        if self.preemptor is not None:
            found.sort(key=lambda one: one.workload.key != self.preemptor)
        return found

    @override
    def limit_blocked_heads(self) -> list[tuple[PendingWorkload, tuple[Blocker, ...]]]:
        """Return the first workload of every limit-blocked class and its blockers."""
        found: dict[LimitClass, PendingWorkload] = {}
        for waiting in self.in_order():
            if _row(waiting).group in self.limit_blocked:
                found.setdefault(_row(waiting).group, waiting)
        return [(waiting, self.limit_blocked[group]) for group, waiting in found.items()]

    @override
    def blockers_of(self, waiting: PendingWorkload) -> tuple[Blocker, ...] | None:
        """Return why a workload is not evaluated for now; None if it is."""
        row = _row(waiting)
        return self.inadmissible.get(row.equivalence_class) or self.limit_blocked.get(row.group)

    @override
    def __len__(self) -> int:
        """Return how many workloads are pending."""
        return len(self._rows) - len(self._free)


def _row(waiting: PendingWorkload) -> Row:
    row = waiting.slot
    assert isinstance(row, Row), f"{waiting.workload.key} is in no queue in priority order"
    return row
