"""What would unblock which workloads: the wake index of one cohort tree (ADR 0003).

A blocked equivalence class is filed under the flavor-resources it was short of, with the shortage.
Availability can grow by no more than what is freed in the tree, so nothing filed is evaluated
before at least its shortage has been freed since. What also depends on victims, or on how several
pod sets share, is filed under "anything freed" (None). No shortages at all means that only
configuration can help; configuration changes wake all sleepers without asking this index.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from unisono.engine.model.names import QueueName
from unisono.engine.model.resources import FlavorResource
from unisono.engine.state.pending_queue import EquivalenceClass

# A queue, and an equivalence class in it; None stands for the stalled head of a StrictFIFO queue.
Sleeper = tuple[QueueName, EquivalenceClass | None]
Shortages = tuple[tuple[FlavorResource, int], ...] | None


# How much a sleeper's queue may use of a flavor-resource now.
Room = Callable[[Sleeper, FlavorResource], int]


class _Entry(NamedTuple):
    """One flavor-resource that a sleeper waits for."""

    threshold: int  # of what was freed in the tree: no need to look before
    ticket: int
    sleeper: Sleeper
    flavor_resource: FlavorResource
    # What its queue must be able to use. Freed quota may have been taken by others meanwhile; None
    # if something else than room counts as well, so that only a real examination can tell.
    target: int | None


class Wakes:
    """Sleepers of one tree, filed by what they wait for."""

    __slots__ = (
        "_by_flavor_resource",
        "_count",
        "_filed",
        "_freed",
        "_on_admitted",
        "_on_anything",
        "_release",
        "_stirred",
    )

    def __init__(self) -> None:
        self._count = 0
        self._release = False  # something was freed since `due` was last asked
        self._freed: dict[FlavorResource, int] = {}
        self._stirred: dict[FlavorResource, None] = {}  # of which something was freed since
        self._by_flavor_resource: dict[FlavorResource, list[_Entry]] = {}
        self._on_anything: dict[Sleeper, None] = {}
        self._on_admitted: dict[Sleeper, None] = {}  # what runs, and how, matters to them as well
        # The newest filing of each sleeper: an entry that is not part of it is void.
        self._filed: dict[Sleeper, dict[FlavorResource, _Entry]] = {}

    def file(
        self,
        sleeper: Sleeper,
        shortages: Shortages,
        *,
        admitted_workloads: bool = False,
        room: Room | None = None,
    ) -> None:
        """File a sleeper under what it was short of; with `room` if nothing but room counts."""
        self.forget(sleeper)
        if admitted_workloads:
            self._on_admitted[sleeper] = None
        if shortages is None:
            self._on_anything[sleeper] = None
            return
        self._filed[sleeper] = {}
        for flavor_resource, short in shortages:
            target = None if room is None else room(sleeper, flavor_resource) + short
            self._enter(sleeper, flavor_resource, max(1, short), target)

    def _enter(
        self, sleeper: Sleeper, flavor_resource: FlavorResource, short: int, target: int | None
    ) -> None:
        self._count += 1  # a ticket an entry, so that no comparison goes any further
        threshold = self._freed.get(flavor_resource, 0) + short
        entry = _Entry(threshold, self._count, sleeper, flavor_resource, target)
        entries = self._by_flavor_resource.setdefault(flavor_resource, [])
        if len(entries) > 2 * len(self._filed) + 64:
            entries[:] = [old for old in entries if self._is_live(old)]
            heapq.heapify(entries)
        heapq.heappush(entries, entry)
        self._filed[sleeper][flavor_resource] = entry

    def shortages(self, sleeper: Sleeper, room: Room) -> Shortages:
        """Return what still has to be freed before a sleeper wakes, as `file` takes it."""
        filed = self._filed.get(sleeper)
        if filed is None:
            return None
        return tuple(
            (
                flavor_resource,
                entry.threshold - self._freed.get(flavor_resource, 0)
                if entry.target is None
                else entry.target - room(sleeper, flavor_resource),
            )
            for flavor_resource, entry in filed.items()
        )

    @property
    def has_sleepers(self) -> bool:
        """Say whether any sleeper is filed."""
        return bool(self._filed or self._on_anything or self._on_admitted)

    def forget(self, sleeper: Sleeper) -> None:
        """Drop a sleeper that left or was woken by something else."""
        self._filed.pop(sleeper, None)
        self._on_anything.pop(sleeper, None)
        self._on_admitted.pop(sleeper, None)

    def admitted_changed(self) -> Iterator[Sleeper]:
        """Note that a workload may be preempted that could not be, and yield what to wake."""
        woken = list({**self._on_anything, **self._on_admitted})
        for sleeper in woken:
            self.forget(sleeper)
        yield from woken

    def watches_admitted(self, sleeper: Sleeper) -> bool:
        """Say whether what runs matters to a sleeper, besides how much is free."""
        return sleeper in self._on_admitted

    def free(self, charges: Iterable[tuple[FlavorResource, int]]) -> None:
        """Note that usage went away; `due` says which sleepers that concerns."""
        self._release = True
        freed, stirred = self._freed, self._stirred
        for flavor_resource, amount in charges:
            freed[flavor_resource] = freed.get(flavor_resource, 0) + amount
            stirred[flavor_resource] = None

    def due(self, room: Room) -> Iterator[Sleeper]:
        """Yield what to wake after everything that was freed."""
        if self._release:
            self._release = False
            for sleeper in list(self._on_anything):
                self.forget(sleeper)
                yield sleeper
        stirred, self._stirred = self._stirred, {}
        for flavor_resource in stirred:
            freed = self._freed[flavor_resource]
            entries = self._by_flavor_resource.get(flavor_resource, [])
            while entries and entries[0].threshold <= freed:
                entry = heapq.heappop(entries)
                if not self._is_live(entry):
                    continue
                missing = 0
                if entry.target is not None:
                    missing = entry.target - room(entry.sleeper, flavor_resource)
                if missing > 0:  # what was freed is taken again, or lies out of its reach
                    self._enter(entry.sleeper, flavor_resource, missing, entry.target)
                    continue
                self.forget(entry.sleeper)
                yield entry.sleeper

    def _is_live(self, entry: _Entry) -> bool:
        """Say whether the entry belongs to its sleeper's newest filing."""
        return self._filed.get(entry.sleeper, {}).get(entry.flavor_resource) is entry
