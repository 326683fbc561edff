"""`diagnose`: what keeps one pending workload from starting, and what would have to change.

    1. starts now?    with nothing changed, the next cycles start it
    2. conditions     what keeps the workload itself out of its queue, one after the other
    3. a date         with the conditions gone, one instant may be enough
    4. empty cluster  alone on healthy nodes: if it does not start even then, it never will, unless
                      the cluster gets what it lacks
    5. holders        of those with quota, of pods and of nodes that are out: a minimal part whose
                      absence lets it start if no other workload is pending
    6. ahead          of those, the ones that would go first
    7. deletion       until no element can be left out any more
    8. never          what the empty cluster lacks (`lacking.py`)

Beside that, every flavor is tried on its own (`ways.py`), so that each has its reason and numbers.
Every step is a trial on a copy (`trial.py`); the state that is asked about is not changed. When the
budget is out the verdict is `unknown` and nothing is marked: a guess is never reported as a fact.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from unisono.engine.diagnosis.candidates import (
    dates,
    holders,
    nodes_out,
    other_pods,
    others_ahead,
    own_conditions,
)
from unisono.engine.diagnosis.in_steps import InSteps, finished
from unisono.engine.diagnosis.lacking import lacking
from unisono.engine.diagnosis.minimal import preferred_subset, without_needless
from unisono.engine.diagnosis.removal import CLOSED
from unisono.engine.diagnosis.trial import Budget, OutOfBudget, Trials
from unisono.engine.diagnosis.ways import ways
from unisono.engine.explain.waiting import explanation
from unisono.engine.model import explanation as facts
from unisono.engine.model.diagnosis import (
    Basis,
    Cause,
    Condition,
    Diagnosis,
    Holder,
    MissingQuota,
    OtherPod,
    Until,
    Verdict,
    Way,
)
from unisono.engine.model.explanation import Blocker
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import snapshot

# Waiting does not put these right: the workload itself, what it is entitled to, or what is
# configured has to change.
_HOPELESS = (
    facts.QueueMissing,
    facts.QueueInactive,
    facts.NamespaceNotSelected,
    facts.Misconfigured,
    facts.NotEntitled,
    facts.DeadlineMissed,
    facts.DependencyNeverSatisfied,
    facts.LimitReached,
)


def diagnose(
    of: ClusterState | Snapshot,
    key: WorkloadKey,
    now: Instant | None = None,
    *,
    budget: Budget | None = None,
) -> Diagnosis | None:
    """Say what keeps a pending workload from starting; None if it is not pending.

    To diagnose several workloads, take one snapshot and hand it in.
    """
    return finished(diagnosed(of, key, now, budget=budget))


def diagnosed(
    of: ClusterState | Snapshot,
    key: WorkloadKey,
    now: Instant | None = None,
    *,
    budget: Budget | None = None,
) -> InSteps[Diagnosis | None]:
    """Say the same, in steps; the last one returns it."""
    recorded = snapshot(of) if isinstance(of, ClusterState) else of
    trials = Trials(recorded, key, now or recorded.now, budget or Budget())
    case: _Case | None = None
    try:
        state = trials.without(())
        if key not in state.waiting:
            return None
        case = _Case(trials, state)
        yield from case.prepare(state)
        verdict, causes = yield from case.solved()
    except OutOfBudget:
        verdict, causes = "unknown", []
    local = next(
        (one for one in recorded.local_queues if case and one.key == case.local_queue), None
    )
    starts_at, basis = _start(verdict, causes, case.recorded if case else (), trials.now)
    return Diagnosis(
        workload=key,
        queue=local.queue if local is not None else None,
        verdict=verdict,
        in_the_way=tuple(causes),
        ways=case.ways if case and verdict != "starts-now" else (),
        nearest=_nearest(case.ways, causes) if case and verdict != "starts-now" else None,
        starts_at=starts_at,
        basis=basis,
        trials=trials.budget.trials,
    )


class _Case:
    """One pending workload, and everything that could be in its way."""

    def __init__(self, trials: Trials, state: ClusterState) -> None:
        key = trials.key
        self._trials = trials
        self.local_queue = state.waiting[key].workload.queue
        why = explanation(state, key)
        self.recorded: tuple[Blocker, ...] = why.blockers if why is not None else ()
        self._dates = dates(state, key, self.recorded)
        self._holders = holders(state, key)
        self._pods = other_pods(state)
        self._nodes = nodes_out(state)
        self._ahead = others_ahead(state, key)
        self.ways: tuple[Way, ...] = ()
        self._conditions: list[Cause] = []

    def prepare(self, state: ClusterState) -> InSteps[None]:
        """Find the ways, and the conditions of the workload itself."""
        if state.waiting[self._trials.key].slot is not None:  # else it is evaluated nowhere
            self.ways = yield from self._ways(state)
        self._conditions = own_conditions(state, self._trials.key)  # last: it changes the state

    def _ways(self, state: ClusterState) -> InSteps[tuple[Way, ...]]:
        """Return all ways to start it; none if there is no budget for all."""
        trials = self._trials
        each = trials.cost_of(state.waiting[trials.key].workload) + len(state.nodes.table) // 4
        try:
            empty = self._empty_cluster()
            charge = partial(trials.budget.charge, each)
            return (yield from ways(state, trials.key, empty, charge=charge))
        except OutOfBudget:
            return ()

    def _empty_cluster(self) -> ClusterState | None:
        """Return the cluster as it is at its best; None if machines or a date could better it."""
        if self._trials.recorded.offerings is not None:
            return None
        if any(date.what in ("advance reservation", "stock") for date in self._dates):
            return None
        try:
            return self._trials.emptied(())
        except OutOfBudget:
            return None

    def solved(self) -> InSteps[tuple[Verdict, list[Cause]]]:
        """Return the verdict, and a minimal sufficient set."""
        trials, own = self._trials, self._conditions
        if (yield from trials.starts([])):
            return "starts-now", []
        if not any(map(_is_hopeless, own)):
            if own and (yield from trials.starts(own)):
                return "later", (yield from without_needless(own, trials.starts))
            for date in self._dates:
                if (yield from trials.starts([*own, date])):
                    return "later", (yield from without_needless([*own, date], trials.starts))
            needed = yield from self._date_on_the_empty_cluster()
            if needed is not None:
                return "later", (yield from self._minimal([*own, *needed]))
        hopeless = [cause for cause in own if _is_hopeless(cause)]
        lifted = [cause for cause in own if cause not in hopeless]
        found = yield from lacking(trials.alone(lifted), hopeless, self._dates)
        return ("never", found) if found else ("unknown", [])

    def _date_on_the_empty_cluster(self) -> InSteps[list[Cause] | None]:
        """Return the date that it needs alone on healthy nodes: none, perhaps; None: never."""
        alone = [*self._conditions, *self._everything()]
        if (yield from self._trials.starts(alone)):
            return []
        for date in self._dates:
            if (yield from self._trials.starts([*alone, date])):
                return [date]
        return None

    def _everything(self) -> list[Cause]:
        return [*self._nodes, *self._pods, *self._holders, *self._ahead]

    def _minimal(self, always: list[Cause]) -> InSteps[list[Cause]]:
        """Return a minimal sufficient set; everything together is enough."""
        trials = self._trials
        places: list[Cause] = [*self._pods_that_leave(), *self._holders, *self._pods_that_stay()]
        places += self._nodes
        alone = [*always, *self._ahead]
        taken = yield from preferred_subset(alone, places, trials.starts)
        ahead = yield from preferred_subset([*always, *taken], self._ahead, trials.starts)
        found: Sequence[Cause] = [*always, *taken, *ahead]
        if not (yield from trials.starts(found)):
            found = [*always, *self._everything()]
        return (yield from without_needless(found, trials.starts))

    def _pods_that_leave(self) -> list[OtherPod]:
        return [pod for pod in self._pods if pod.leaves_at is not None]

    def _pods_that_stay(self) -> list[OtherPod]:
        return [pod for pod in self._pods if pod.leaves_at is None]


def _is_hopeless(cause: Cause) -> bool:
    """Say whether only another workload, or another configuration, puts a condition right."""
    if not isinstance(cause, Condition) or not isinstance(cause.blocker, _HOPELESS):
        return False
    fact = cause.blocker
    return not (isinstance(fact, facts.NotEntitled) and fact.code in CLOSED)


def _nearest(tried: Sequence[Way], causes: Sequence[Cause]) -> int | None:
    """Return the way that opens when the causes are gone: the one with most of their flavors."""
    named: dict[str, int] = {}
    for cause in causes:
        match cause:
            case Holder(amounts=amounts):
                for flavor in dict.fromkeys(one.flavor for one in amounts):
                    named[flavor] = named.get(flavor, 0) + 1
            case MissingQuota(flavor=flavor):
                named[flavor] = named.get(flavor, 0) + 1
            case _:
                pass
    scores = [
        sum(named.get(flavor, 0) for flavor in {name for _, _, name in way.flavors})
        for way in tried
    ]
    best = max(scores, default=0)
    if best:
        return scores.index(best)
    return 0 if len(tried) == 1 else None


def _start(
    verdict: Verdict, causes: Sequence[Cause], recorded: tuple[Blocker, ...], now: Instant
) -> tuple[Instant | None, Basis | None]:
    """Return when it starts: as reserved, or when what is in its way is over at the latest."""
    for fact in recorded:
        if isinstance(fact, facts.Planned) and fact.start > now:
            return fact.start, "reserved"
    if verdict == "starts-now":
        return now, "limits"
    instants: list[Instant] = []
    for cause in causes:
        match cause:
            case Until(instant=instant):
                instants.append(instant)
            case Holder(ends=int(ends)) if ends > now:
                instants.append(Instant(ends))
            case OtherPod(leaves_at=int(leaves)) if leaves > now:
                instants.append(Instant(leaves))
            case _:
                return None, None
    return (max(instants), "limits") if instants and verdict == "later" else (None, None)
