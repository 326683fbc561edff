"""What would unblock which workloads: the wake index of one cohort tree (ADR 0003).

A blocked equivalence class is filed under the flavor-resources it was short of, with the shortage.
Availability can grow by no more than what is freed in the tree, so nothing filed is evaluated
before at least its shortage has been freed since. What also depends on victims, or on how several
pod sets share, is filed under "anything freed" (None). No shortages at all means that only
configuration can help; configuration changes wake all of them without asking this index.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from unisono.engine.model.names import QueueName
from unisono.engine.model.resources import FlavorResource
from unisono.engine.state.pending_queue import EquivalenceClass

# A queue, and an equivalence class in it; None: the head that blocks a StrictFIFO queue.
BlockedClass = tuple[QueueName, EquivalenceClass | None]
Shortages = tuple[tuple[FlavorResource, int], ...] | None


# How much a blocked class's queue may use of a flavor-resource now.
AvailableTo = Callable[[BlockedClass, FlavorResource], int]


class _Entry(NamedTuple):
    """One flavor-resource that a blocked class waits for."""

    threshold: int  # of what was freed in the tree: no need to look before
    ticket: int
    blocked_class: BlockedClass
    flavor_resource: FlavorResource
    # What its queue must be able to use. Freed quota may have been taken by others meanwhile; None
    # if something else than quota counts as well, so that only an evaluation can say.
    target: int | None


class Wakes:
    """Blocked classes of one tree, filed by what they wait for."""

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
        self._on_anything: dict[BlockedClass, None] = {}
        # What runs, and how, matters to these as well.
        self._on_admitted: dict[BlockedClass, None] = {}
        # The newest filing of each blocked class: an entry that is not part of it is void.
        self._filed: dict[BlockedClass, dict[FlavorResource, _Entry]] = {}

    def file(
        self,
        blocked_class: BlockedClass,
        shortages: Shortages,
        *,
        admitted_workloads: bool = False,
        available_to: AvailableTo | None = None,
    ) -> None:
        """File a blocked class under what it was short of; `available_to` if only that counts."""
        self.forget(blocked_class)
        if admitted_workloads:
            self._on_admitted[blocked_class] = None
        if shortages is None:
            self._on_anything[blocked_class] = None
            return
        self._filed[blocked_class] = {}
        for flavor_resource, short in shortages:
            target = None
            if available_to is not None:
                target = available_to(blocked_class, flavor_resource) + short
            self._enter(blocked_class, flavor_resource, max(1, short), target)

    def _enter(
        self,
        blocked_class: BlockedClass,
        flavor_resource: FlavorResource,
        short: int,
        target: int | None,
    ) -> None:
        self._count += 1  # a ticket an entry, so that no comparison goes any further
        threshold = self._freed.get(flavor_resource, 0) + short
        entry = _Entry(threshold, self._count, blocked_class, flavor_resource, target)
        entries = self._by_flavor_resource.setdefault(flavor_resource, [])
        if len(entries) > 2 * len(self._filed) + 64:
            entries[:] = [old for old in entries if self._is_live(old)]
            heapq.heapify(entries)
        heapq.heappush(entries, entry)
        self._filed[blocked_class][flavor_resource] = entry

    def shortages(self, blocked_class: BlockedClass, available_to: AvailableTo) -> Shortages:
        """Return what still has to be freed before a blocked class wakes, as `file` takes it."""
        filed = self._filed.get(blocked_class)
        if filed is None:
            return None
        return tuple(
            (
                flavor_resource,
                entry.threshold - self._freed.get(flavor_resource, 0)
                if entry.target is None
                else entry.target - available_to(blocked_class, flavor_resource),
            )
            for flavor_resource, entry in filed.items()
        )

    @property
    def has_blocked_classes(self) -> bool:
        """Say whether any blocked class is filed."""
        return bool(self._filed or self._on_anything or self._on_admitted)

    def forget(self, blocked_class: BlockedClass) -> None:
        """Drop a blocked class that left or was woken by something else."""
        self._filed.pop(blocked_class, None)
        self._on_anything.pop(blocked_class, None)
        self._on_admitted.pop(blocked_class, None)

    def admitted_changed(self) -> Iterator[BlockedClass]:
        """Note that a workload may be preempted that could not be, and yield what to wake."""
        woken = list({**self._on_anything, **self._on_admitted})
        for blocked_class in woken:
            self.forget(blocked_class)
        yield from woken

    def watches_admitted(self, blocked_class: BlockedClass) -> bool:
        """Say whether what runs matters to a blocked class, besides how much is free."""
        return blocked_class in self._on_admitted

    def free(self, charges: Iterable[tuple[FlavorResource, int]]) -> None:
        """Note that usage went away; `due` says which blocked classes that concerns."""
        self._release = True
        freed, stirred = self._freed, self._stirred
        for flavor_resource, amount in charges:
            freed[flavor_resource] = freed.get(flavor_resource, 0) + amount
            stirred[flavor_resource] = None

    def due(self, available_to: AvailableTo) -> Iterator[BlockedClass]:
        """Yield what to wake after everything that was freed."""
        if self._release:
            self._release = False
            for blocked_class in list(self._on_anything):
                self.forget(blocked_class)
                yield blocked_class
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
                    missing = entry.target - available_to(entry.blocked_class, flavor_resource)
                if missing > 0:  # what was freed is taken again, or lies out of its reach
                    self._enter(entry.blocked_class, flavor_resource, missing, entry.target)
                    continue
                self.forget(entry.blocked_class)
                yield entry.blocked_class

    def _is_live(self, entry: _Entry) -> bool:
        """Say whether the entry belongs to its blocked class's newest filing."""
        return self._filed.get(entry.blocked_class, {}).get(entry.flavor_resource) is entry
