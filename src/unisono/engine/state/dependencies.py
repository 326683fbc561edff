"""What holds a job back on account of other jobs: dependencies (spec backfill §11), arrays (§9).

Whether a dependency is satisfied is always computed from the jobs that exist and from recorded
results, so that a state restored from a snapshot says the same.

Nothing is recorded before the first workload with a dependency (`is_on`): most clusters have none.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping
from dataclasses import dataclass, field

from unisono.engine.model.explanation import (
    ArrayLimit,
    Blocker,
    DependencyNeverSatisfied,
    DependencyPending,
)
from unisono.engine.model.names import Instant, WorkloadKey, namespace_of
from unisono.engine.model.overriding import override
from unisono.engine.model.workload import Dependency, Result, Workload
from unisono.engine.state.cluster_queue import Running
from unisono.engine.state.features import Feature
from unisono.engine.state.pending_queue import PendingWorkload
from unisono.engine.state.run_history import pattern_of

# Results that are kept, the newest; a dependency on an older one waits for a new job of that name.
# A day of a busy cluster.
MOST_RESULTS = 10_000

_Verdict = DependencyPending | DependencyNeverSatisfied | None


class Dependencies(Feature):
    """Jobs that exist or are over, and the workloads that depend on them."""

    def __init__(
        self, waiting: Mapping[WorkloadKey, PendingWorkload], running: Mapping[WorkloadKey, Running]
    ) -> None:
        self._waiting, self._running = waiting, running  # all workloads, as the state has them
        self._there: dict[str, dict[WorkloadKey, Workload]] = {}  # by the name of their job
        # By what singletons share; None until a workload asks to be one.
        self._alike: dict[str, dict[WorkloadKey, Workload]] | None = None
        self._sorts: dict[WorkloadKey, str] = {}
        self._started: dict[WorkloadKey, Instant] = {}
        self._results: dict[str, Result] = {}
        self._waiting_for: dict[str, dict[WorkloadKey, None]] = {}
        self.affected: dict[WorkloadKey, None] = {}  # dependents to evaluate again

    # --- what happens ----------------------------------------------------------------------------

    @override
    def entered(self, workload: Workload, *, was_held: bool) -> None:
        """Take in a pending workload."""
        if not self.is_on:
            if workload.depends:
                self._begin()
            else:
                return
        self._started.pop(workload.key, None)
        if not workload.depends:
            self._note(workload)
            return
        if self._alike is None and any(each.kind == "singleton" for each in workload.depends):
            self._compare_all()
        self._note(workload)
        for each in workload.depends:
            self._waiting_for.setdefault(self._awaited(each, workload), {})[workload.key] = None

    @override
    def started(self, running: Running) -> None:
        """Take in a workload that runs."""
        if not self.is_on:
            return
        admitted = running.admitted
        self._note(admitted.workload)
        self._started.setdefault(admitted.workload.key, admitted.running_since)
        if self._waiting_for:
            self._affect(admitted.workload)

    def finish(self, result: Result) -> None:
        """Record the result of a job; the newest of a name counts."""
        known = self._results.pop(result.job, None)
        if known is not None and known.ended_at > result.ended_at:
            result = known
        self._results[result.job] = result
        if len(self._results) > MOST_RESULTS:
            del self._results[next(iter(self._results))]
        self.affected.update(self._waiting_for.get(result.job, {}))

    def gone(self, workload: Workload, now: Instant) -> None:
        """Forget a workload; to its dependents, one that left no result was cancelled."""
        if not self.is_on:
            return
        key, job = workload.key, workload.job_name
        started = self._started.pop(key, None)
        _remove(self._there, job, key)
        if self._alike is not None:
            _remove(self._alike, self._sort(workload), key)
        if not self._waiting_for:  # no workload depends on anything
            self._sorts.pop(key, None)
            return
        for each in workload.depends:
            name = self._awaited(each, workload)
            self._waiting_for.get(name, {}).pop(key, None)
            if not self._waiting_for.get(name):
                self._waiting_for.pop(name, None)
        known = self._results.get(job)
        is_news = known is None or known.ended_at < workload.created_at
        if job not in self._there and is_news and job in self._waiting_for:
            over = Result(job=job, succeeded=False, ended_at=now, started_at=started)
            self.finish(over)
        self._affect(workload)
        self._sorts.pop(key, None)

    def settle(self) -> list[WorkloadKey]:
        """Return the dependents to evaluate again."""
        affected, self.affected = self.affected, {}
        return [*affected]

    def results(self) -> tuple[Result, ...]:
        """Return all results, the newest last."""
        return tuple(self._results.values())

    def _begin(self) -> None:
        """Record all workloads, now that one has a dependency."""
        self.is_on = True
        for waiting in self._waiting.values():
            self._note(waiting.workload)
        for key, running in self._running.items():
            self._note(running.admitted.workload)
            self._started[key] = running.since

    def _note(self, workload: Workload) -> None:
        key, there = workload.key, self._there.get(workload.job_name)
        if there is None:
            there = self._there[workload.job_name] = {}
        is_new = key not in there
        there[key] = workload
        if self._alike is not None:
            self._alike.setdefault(self._sort(workload), {})[key] = workload
        if is_new and self._waiting_for:
            self._affect(workload)

    def _compare_all(self) -> None:
        """Record what singletons share, now that there is one."""
        self._alike = {}
        for there in self._there.values():
            for key, workload in there.items():
                self._alike.setdefault(self._sort(workload), {})[key] = workload

    def _affect(self, workload: Workload) -> None:
        names = (workload.job_name, self._sort(workload))
        for name in names if self._alike is not None else names[:1]:
            self.affected.update(self._waiting_for.get(name, {}))

    # --- questions -------------------------------------------------------------------------------

    def blocker(self, workload: Workload, now: Instant) -> Blocker | None:
        """Return what a workload still waits for, or waits for in vain."""
        if not workload.depends:
            return None
        verdicts = [self._verdict(each, workload, now) for each in workload.depends]
        never = [one for one in verdicts if isinstance(one, DependencyNeverSatisfied)]
        pending = [one for one in verdicts if isinstance(one, DependencyPending)]
        if workload.depends_on_any:
            if None in verdicts:
                return None
            return pending[0] if pending else never[0]
        return never[0] if never else pending[0] if pending else None

    def there(self, job: str) -> list[WorkloadKey]:
        """Return the workloads of a job that are not over."""
        return sorted(self._there.get(job, ()))

    def is_over(self, job: str) -> bool:
        """Say whether a job has ended, and none of that name has come since."""
        return job in self._results and job not in self._there

    def reminders(self, workload: Workload, now: Instant) -> tuple[Instant, ...]:
        """Return the instants at which a dependency is satisfied by time."""
        found = (
            self._due(each) for each in workload.depends if each.kind == "after" and each.delay_ms
        )
        return tuple(due for due in found if due is not None and due > now)

    def _verdict(self, each: Dependency, workload: Workload, now: Instant) -> _Verdict:
        pending = DependencyPending(kind=each.kind, on=each.on)
        if each.kind == "singleton":
            mine = (workload.created_at, workload.uid)
            others = (self._alike or {}).get(self._sort(workload), {}).values()
            before = sorted(one.key for one in others if (one.created_at, one.uid) < mine)
            return DependencyPending(kind=each.kind, on=before[0]) if before else None
        if each.kind == "after":
            due = self._due(each)
            return None if due is not None and due <= now else pending
        result = self._results.get(each.on)
        if each.on in self._there or result is None:
            return pending
        if each.kind == "afterany" or result.succeeded == (each.kind == "afterok"):
            return None
        return DependencyNeverSatisfied(kind=each.kind, on=each.on)

    def _due(self, each: Dependency) -> Instant | None:
        """Return when `after` is satisfied, once that is known."""
        there = self._there.get(each.on, {})
        starts = [self._started[key] for key in there if key in self._started]
        result = self._results.get(each.on)
        if not there and result is not None:
            starts = [result.ended_at if result.started_at is None else result.started_at]
        return Instant(min(starts) + each.delay_ms) if starts else None

    def _sort(self, workload: Workload) -> str:
        """Name what workloads share of which one runs at a time: namespace, user, kind of name."""
        known = self._sorts.get(workload.key)
        if known is None:
            pattern = pattern_of(workload.job_name.partition("/")[2])
            known = f"{namespace_of(workload.key)}/{workload.submit_options.user}/~{pattern}"
            self._sorts[workload.key] = known
        return known

    def _awaited(self, each: Dependency, workload: Workload) -> str:
        return self._sort(workload) if each.kind == "singleton" else each.on


def _remove(index: dict[str, dict[WorkloadKey, Workload]], name: str, key: WorkloadKey) -> None:
    group = index.get(name)
    if group is not None:
        group.pop(key, None)
        if not group:
            del index[name]


# --- job arrays -----------------------------------------------------------------------------------

# Tasks of which only so many may run at a time.
#
# Only as many pending tasks are in the pending queue as may still start; the others are held back.
# So no rule has to know about arrays, and no cycle can start too many.


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
        slots = max(0, self.tasks[0][-1] - len(self.running))
        return [task[-2] for task in self.tasks[:slots]]


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
    options = workload.submit_options
    place = (-workload.priority, workload.position_time, options.number, options.task, workload.uid)
    return (*place, workload.key, workload.array_limit)
