"""Root causes of what is pending: diagnosed beside the cycles, a little at a time.

A diagnosis runs cycles on copies of the cluster (`engine/diagnosis`), which is too much for a
scheduling cycle. It is made after the cycles of a step, for workloads that have been explained for
some seconds: at first, when their facts change or what was named is gone, and else every ten
seconds if the cluster has changed. One step makes a few, and the next waits in proportion to what
they cost. In a large cluster there are none; the facts of the cycles stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from unisono.control.scheduler.start_estimates import without_times
from unisono.engine.cluster import new_cluster
from unisono.engine.diagnosis import diagnose
from unisono.engine.diagnosis.trial import Budget
from unisono.engine.model.diagnosis import Ahead, Diagnosis, Holder, Until
from unisono.engine.model.explanation import Blocker, Explanation
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import snapshot

# Most workloads start sooner than that, and their root cause is never read.
PATIENCE_MS = 3_000
# How old a diagnosis may get on a cluster that changes; with many to make, their cost delays them.
PAUSE_MS = 10_000
# After a diagnosis that raised: it would again, and each time is reported.
FAILED_PAUSE_MS = 3_600_000
# Objects (nodes, pods, workloads) of the cluster. A trial copies all of them, some ten microseconds
# each, and a diagnosis has some dozen trials.
MOST_OBJECTS = 1_000
# Copied objects of one step, a tenth of a second or two; a diagnosis that has begun may finish.
STEP_OBJECTS = 6_000
ONE_OBJECTS = 40_000
# The next step waits so long for each object that was copied: a few percent of the time.
_MS_AN_OBJECT = 0.4


@dataclass(slots=True)
class _Known:
    """The newest diagnosis of a workload, and what it was made from."""

    seen_at: Instant  # when its explanation was first seen
    facts: tuple[Blocker, ...] | None = None  # None: there is no diagnosis yet
    version: int = -1
    at: Instant = Instant(0)
    found: Diagnosis | None = None
    has_failed: bool = False


class RootCauses:
    """Diagnoses pending workloads, and remembers what was found."""

    def __init__(self) -> None:
        """Begin with nothing known."""
        self._state = new_cluster()
        self._known: dict[WorkloadKey, _Known] = {}
        self._next = Instant(0)  # not before then, so that they stay a small part of the time
        self._due: Instant | None = None
        self._is_too_large = False  # the cluster, for any diagnosis
        self._examined: WorkloadKey | None = None  # now
        self._changed: list[WorkloadKey] = []  # of this step

    def use(self, state: ClusterState) -> None:
        """Diagnose on this state from now on."""
        self._state = state

    def of(self, key: WorkloadKey) -> Diagnosis | None:
        """Return what is known about one workload; None: it was not diagnosed yet."""
        if self._is_too_large:  # what was published of a smaller one is withdrawn
            return Diagnosis(workload=key, queue=None, verdict="unknown")
        known = self._known.get(key)
        return known.found if known is not None else None

    def refresh(
        self, now: Instant, explanations: Mapping[WorkloadKey, Explanation]
    ) -> list[WorkloadKey]:
        """Make the diagnoses that are due, as far as the step allows; return what is new.

        If one raises, `set_aside` lets all others be made.
        """
        self._changed = []
        waiting = self._state.waiting
        for key in [key for key in self._known if key not in explanations or key not in waiting]:
            del self._known[key]
        self._is_too_large = self._size() > MOST_OBJECTS
        if self._is_too_large:
            self._known.clear()
            self._due = None
            return []
        for key in explanations:
            if key in waiting:
                self._known.setdefault(key, _Known(seen_at=now))
        queue = sorted(
            (due, key)
            for key, known in self._known.items()
            if (due := self._due_of(known, explanations[key])) is not None
        )
        if queue and queue[0][0] <= now and self._next <= now:
            self._diagnose([key for due, key in queue if due <= now], now, explanations)
            queue = [entry for entry in queue if self._known[entry[1]].at != now]
        self._due = max(queue[0][0], self._next) if queue else None
        return self._changed

    def set_aside(
        self, now: Instant, explanations: Mapping[WorkloadKey, Explanation]
    ) -> list[WorkloadKey]:
        """Let the diagnosis that raised rest, so that the others go on; return what is new."""
        key, self._examined = self._examined, None
        known = self._known.get(key) if key is not None else None
        self._next = self._due = Instant(now + (PAUSE_MS if known is None else 1_000))
        if key is not None and known is not None:
            self._record(key, None, now, explanations)
            known.has_failed = True
        return self._changed

    def next_due(self) -> Instant | None:
        """Return when to look again; None: not before something happens."""
        return self._due

    def _size(self) -> int:
        state = self._state
        return (
            len(state.waiting)
            + len(state.running)
            + len(state.nodes.table.row_of)
            + len(state.nodes.pods)
        )

    def _due_of(self, known: _Known, explanation: Explanation) -> Instant | None:
        """Return when a workload is to be diagnosed; None: it has its diagnosis."""
        if known.facts is None:
            return Instant(known.seen_at + PATIENCE_MS)
        if known.facts != without_times(explanation.blockers) or self._is_over(known.found):
            return Instant(known.at + PATIENCE_MS)
        pause = FAILED_PAUSE_MS if known.has_failed else PAUSE_MS
        return Instant(known.at + pause) if known.version != self._state.version else None

    def _is_over(self, found: Diagnosis | None) -> bool:
        """Say whether something that a diagnosis names is gone: it must not be told any more."""
        state = self._state
        for cause in found.in_the_way if found is not None else ():
            match cause:
                case Holder(workload=name) if name not in state.running:
                    return True
                case Ahead(workload=name) if name not in state.waiting:
                    return True
                case Until(instant=instant) if instant <= state.now:
                    return True
                case _:
                    pass
        return False

    def _diagnose(
        self,
        keys: list[WorkloadKey],
        now: Instant,
        explanations: Mapping[WorkloadKey, Explanation],
    ) -> None:
        recorded, left = snapshot(self._state), STEP_OBJECTS
        spent = 0
        for key in keys:
            if left <= 0:
                break
            budget = Budget(objects=ONE_OBJECTS)
            self._examined = key
            found = diagnose(recorded, key, now, budget=budget)
            self._examined = None
            cost = ONE_OBJECTS - budget.objects
            left, spent = left - cost, spent + cost
            self._record(key, found, now, explanations)
        self._next = Instant(now + max(1_000, int(spent * _MS_AN_OBJECT)))

    def _record(
        self,
        key: WorkloadKey,
        found: Diagnosis | None,
        now: Instant,
        explanations: Mapping[WorkloadKey, Explanation],
    ) -> None:
        known = self._known[key]
        if _told(known.found) != _told(found):
            self._changed.append(key)
        known.found, known.at, known.has_failed = found, now, False
        known.version = self._state.version
        known.facts = without_times(explanations[key].blockers)


def _told(found: Diagnosis | None) -> object:
    """Return what of a diagnosis is published: how many trials it took is not."""
    if found is None or found.verdict in ("unknown", "starts-now"):
        return None
    return found.verdict, found.in_the_way, found.ways, found.nearest
