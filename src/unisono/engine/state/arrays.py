"""Job arrays: tasks of which only so many may run at a time (spec backfill §9).

Only as many pending tasks are in the pending queue as may still start; the others are held back.
So no rule has to know about arrays, and no cycle can start too many.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field

from unisono.engine.model.explanation import ArrayLimit
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.overriding import override
from unisono.engine.model.workload import Workload
from unisono.engine.state.cluster_queue import Running
from unisono.engine.state.features import Feature

# Order of the tasks of an array: priority, time, job id, task, uid; then key and limit.
_Task = tuple[int, Instant, int, int, str, WorkloadKey, int]


@dataclass(slots=True)
class _Array:
    """Tasks that run, those that nothing else holds back, and of these those in the queue."""

    running: dict[WorkloadKey, None] = field(default_factory=dict)
    tasks: list[_Task] = field(default_factory=list)
    queued: set[WorkloadKey] = field(default_factory=set)

    def first(self) -> list[WorkloadKey]:
        """Return the tasks that may be in the queue; the limit is that of the first task."""
        if not self.tasks:
            return []
        room = max(0, self.tasks[0][-1] - len(self.running))
        return [task[-2] for task in self.tasks[:room]]


class Arrays(Feature):
    """All arrays with pending or running tasks."""

    def __init__(self) -> None:
        self._arrays: dict[str, _Array] = {}
        self.unsettled: dict[str, None] = {}  # arrays whose tasks in the queue may have to change

    def join(self, workload: Workload) -> ArrayLimit | None:
        """Take in a pending task that nothing else holds back; return the limit if that does."""
        if not workload.array:
            return None
        array = self._array(workload)
        task = _task(workload)
        if task not in array.tasks:
            insort(array.tasks, task)
        if workload.key in array.first():
            array.queued.add(workload.key)
            return None
        array.queued.discard(workload.key)
        return ArrayLimit(array=workload.array, limit=workload.array_limit)

    @override
    def left(self, workload: Workload) -> None:
        """Forget a task that is no longer pending, or that something else holds back."""
        if workload.array and workload.array in self._arrays:
            array = self._array(workload)
            array.queued.discard(workload.key)
            if (task := _task(workload)) in array.tasks:
                array.tasks.remove(task)

    @override
    def started(self, running: Running) -> None:
        """Count a task that runs."""
        if not running.is_plain and (workload := running.admitted.workload).array:
            self._array(workload).running[workload.key] = None

    @override
    def ended(self, running: Running) -> None:
        """Count a task no longer."""
        if not running.is_plain and (workload := running.admitted.workload).array in self._arrays:
            self._array(workload).running.pop(workload.key, None)

    def settle(self) -> list[WorkloadKey]:
        """Return the tasks to evaluate again: those that may be in the queue now, or no longer."""
        found: list[WorkloadKey] = []
        unsettled, self.unsettled = self.unsettled, {}
        for name in unsettled:
            array = self._arrays[name]
            first = array.first()
            found += sorted(array.queued.difference(first))
            found += [key for key in first if key not in array.queued]
            if not array.running and not array.tasks:
                del self._arrays[name]
        self.is_on = bool(self._arrays)
        return found

    def _array(self, workload: Workload) -> _Array:
        self.unsettled[workload.array] = None
        array = self._arrays.get(workload.array)
        if array is None:
            array = self._arrays[workload.array] = _Array()
            self.is_on = True
        return array


def _task(workload: Workload) -> _Task:
    turn = workload.turn
    place = (-workload.priority, workload.position_time, turn.number, turn.task, workload.uid)
    return (*place, workload.key, workload.array_limit)
