"""Why workloads wait that no cycle examines.

A plan explains whom it examined. Somebody at a shut door (no such queue, a stopped one) is not
examined, nor is the second of two equal workloads when the first was refused. They are explained
when they come, and again when their door opens or shuts.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.explain.waiting import filed
from unisono.engine.model.explanation import BehindInQueue, Blocker, Explanation
from unisono.engine.model.names import LocalQueueKey, WorkloadKey
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.doors import Door


class Unexamined:
    """Remembers who came since the last look, and how doors stood then."""

    def __init__(self, state: ClusterState) -> None:
        """Look at a state."""
        self._state = state
        self._came: dict[WorkloadKey, None] = {}
        self._doors: dict[LocalQueueKey, Blocker | None] = {}
        self._may_have_moved = False

    def came(self, key: WorkloadKey) -> None:
        """Note that a workload is new or changed."""
        self._came[key] = None

    def configured(self) -> None:
        """Note that doors may have opened or shut."""
        self._may_have_moved = True

    def explanations(self) -> Iterator[Explanation]:
        """Yield what is known of those who came, are held otherwise, or whose door moved."""
        self._state.refresh()
        keys, self._came = {**self._came, **self._state.moved}, {}
        self._state.moved.clear()
        if self._may_have_moved:
            self._may_have_moved = False
            for gone in self._doors.keys() - self._state.doors.keys():
                del self._doors[gone]
            for door in self._state.doors.values():
                blocker = _blocker(door)
                if self._doors.get(door.key) != blocker:
                    self._doors[door.key] = blocker
                    keys.update(dict.fromkeys(door.waiting))
                    yield from self._in_line(door)
        for key in keys:
            waiting = self._state.waiting.get(key)
            if waiting is None:
                continue
            door = self._state.door(waiting.workload.queue)
            self._doors.setdefault(door.key, _blocker(door))
            found = filed(self._state, key)
            if found is not None:
                yield found

    def _in_line(self, door: Door) -> Iterator[Explanation]:
        """Tell those behind an open door where they stand, if nothing else is known of them."""
        if door.book is None or door.book.blocker is not None:
            return
        queue, order = door.book.spec.name, door.book.pending.in_order()
        for position, waiting in enumerate(order):
            key = waiting.workload.key
            if key in door.waiting and filed(self._state, key) is None:
                behind = BehindInQueue(queue=queue, head=order[0].workload.key, position=position)
                yield Explanation(workload=key, queue=queue, blockers=(behind,))


def _blocker(door: Door) -> Blocker | None:
    if door.book is None:
        return door.blocker
    return door.book.blocker
