"""Root causes of what is pending: diagnosed beside the cycles, a little at a time.

A diagnosis runs cycles on copies of the cluster (`engine/diagnosis`), which is too much for a
scheduling cycle. After a step of the scheduler a snapshot is taken for workloads that have been
explained for some seconds: at first, when their facts change or what was named is gone, and else
every ten seconds if the cluster has changed. A controller of its own works on the snapshot, in the
last lane, and pauses after every trial: cycles and all other controllers go on meanwhile. What was
found is compared with the cluster as it is then, and dropped if it names what has gone since. One
snapshot serves a few diagnoses, and the next waits in proportion to what they cost. In a large
cluster there are none; the facts of the cycles stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from unisono.control.actions import Breathe, Json, Steps, Wake
from unisono.control.scheduler.start_estimates import without_times
from unisono.control.view import View
from unisono.engine.cluster import new_cluster
from unisono.engine.diagnosis import diagnosed
from unisono.engine.diagnosis.trial import Budget
from unisono.engine.model.diagnosis import Ahead, Diagnosis, Holder, Until
from unisono.engine.model.explanation import Blocker, Explanation
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import snapshot
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

Report = Callable[[str, Exception], None]  # where it was, and what

NAME = "root-causes"
KEY = Key("", "diagnoses")
# Most workloads start sooner than that, and their root cause is never read.
PATIENCE_MS = 3_000
# How old a diagnosis may get on a cluster that changes; with many to make, their cost delays them.
PAUSE_MS = 10_000
# After a diagnosis that raised: it would again, and each time is reported.
FAILED_PAUSE_MS = 3_600_000
# Objects (nodes, pods, workloads) of the cluster. A trial copies all of them, some ten microseconds
# each, and a diagnosis has some dozen trials.
MOST_OBJECTS = 1_000
# Copied objects of one snapshot's diagnoses, a tenth of a second or two; one that has begun may
# finish.
ROUND_OBJECTS = 6_000
ONE_OBJECTS = 40_000
# The next snapshot waits so long for each object that was copied: a few percent of the time.
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


@dataclass(slots=True, frozen=True)
class _Round:
    """What is to be diagnosed, and the cluster as it was when that was decided."""

    state: ClusterState  # that the snapshot is of
    recorded: Snapshot
    version: int
    now: Instant
    # In the order in which they were due, with the facts of that time.
    facts: Mapping[WorkloadKey, tuple[Blocker, ...]]


class RootCauses:
    """Diagnoses pending workloads, and remembers what was found.

    The scheduler calls `refresh` after its steps and wakes this controller when it says so.
    """

    name = NAME
    watches: Sequence[Kind] = ()

    def __init__(
        self, report: Callable[[str, Exception], None] = lambda where, error: None
    ) -> None:
        """Begin with nothing known; `report` is called with exceptions."""
        self._report = report
        self._state = new_cluster()
        self._known: dict[WorkloadKey, _Known] = {}
        self._next = Instant(0)  # not before then, so that they stay a small part of the time
        self._due: Instant | None = None
        self._is_too_large = False  # the cluster, for any diagnosis
        self._round: _Round | None = None  # waits to be worked on, or is

    def use(self, state: ClusterState) -> None:
        """Diagnose on this state from now on."""
        self._state = state

    def of(self, key: WorkloadKey) -> Diagnosis | None:
        """Return what is known about one workload; None: it was not diagnosed yet."""
        if self._is_too_large:  # what was published of a smaller one is withdrawn
            return Diagnosis(workload=key, queue=None, verdict="unknown")
        known = self._known.get(key)
        return known.found if known is not None else None

    def refresh(self, now: Instant, explanations: Mapping[WorkloadKey, Explanation]) -> bool:
        """Look at what is due, between two steps of the scheduler; say whether there is work."""
        waiting = self._state.waiting
        for key in [key for key in self._known if key not in explanations or key not in waiting]:
            del self._known[key]
        self._is_too_large = self._size() > MOST_OBJECTS
        if self._is_too_large:
            self._known.clear()
            self._due = self._round = None
            return False
        for key in explanations:
            if key in waiting:
                self._known.setdefault(key, _Known(seen_at=now))
        if self._round is not None and self._round.state is self._state:
            self._due = None  # until that is through
            return True
        queue = sorted(
            (due, key)
            for key, known in self._known.items()
            if (due := self._due_of(known, explanations[key])) is not None
        )
        self._due = max(queue[0][0], self._next) if queue else None
        if self._due is None or self._due > now:
            return False
        keys = [key for at, key in queue if at <= now]
        self._round = _Round(
            state=self._state,
            recorded=snapshot(self._state),
            version=self._state.version,
            now=now,
            facts={key: without_times(explanations[key].blockers) for key in keys},
        )
        self._due = None
        return True

    def next_due(self) -> Instant | None:
        """Return when to look again; None: not before something happens."""
        return self._due

    # ---- the controller --------------------------------------------------------------------------

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """Only the scheduler wakes it."""
        return ()

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Make the diagnoses that are due; after each trial everything else may go on."""
        this, left, spent = self._round, ROUND_OBJECTS, 0
        if this is None:
            return
        for one in this.facts:
            if left <= 0:
                break
            budget = Budget(objects=ONE_OBJECTS)
            work = diagnosed(this.recorded, one, this.now, budget=budget)
            found, has_failed = None, False
            while self._is_wanted(this, one):
                try:
                    next(work)
                except StopIteration as end:
                    found = end.value
                    break
                except Exception as error:  # noqa: BLE001 (on copies: the state is sound)
                    self._report("root causes", error)
                    has_failed = True
                    break
                yield Breathe()
            cost = ONE_OBJECTS - budget.objects
            left, spent = left - cost, spent + cost
            if self._is_wanted(this, one) and self._record(this, one, found, has_failed=has_failed):
                namespace, _, name = one.partition("/")
                yield Wake("explainer", namespace, name)
        if self._round is this:
            self._round = None
            self._next = Instant(this.now + max(1_000, int(spent * _MS_AN_OBJECT)))
            yield Wake("scheduler", "", "cycle")  # which says when the next are due

    def _is_wanted(self, this: _Round, key: WorkloadKey) -> bool:
        """Say whether a diagnosis is still about the state, and a workload that waits there."""
        is_current = this is self._round and this.state is self._state
        return is_current and key in self._known and key in self._state.waiting

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

    def _record(
        self, this: _Round, key: WorkloadKey, found: Diagnosis | None, *, has_failed: bool
    ) -> bool:
        """Remember what was found, unless that has passed meanwhile; say whether it is news."""
        known, before = self._known[key], self.of(key)
        if self._is_over(found):  # as if it had come now: another one is made after some seconds
            known.found = None if self._is_over(known.found) else known.found
            known.facts, known.seen_at = None, this.now
        else:
            known.found, known.at, known.has_failed = found, this.now, has_failed
            known.version, known.facts = this.version, this.facts[key]
        return _told(before) != _told(known.found)


def _told(found: Diagnosis | None) -> object:
    """Return what of a diagnosis is published: how many trials it took is not."""
    if found is None or found.verdict in ("unknown", "starts-now"):
        return None
    return found.verdict, found.in_the_way, found.ways, found.nearest
