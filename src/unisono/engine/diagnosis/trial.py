"""Trials: copies of one cluster without some of what is in the way, and the next cycles in them.

A trial restores the snapshot, lets causes be gone (`removal.py`) and runs cycles until the workload
is admitted or nothing changes any more. As in a dry run, evicted workloads leave at once and are
pending again. Trials cost a copy of the cluster each, so that they have a budget.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from unisono.engine.cluster import restore
from unisono.engine.cycle import plan
from unisono.engine.diagnosis.in_steps import InSteps
from unisono.engine.diagnosis.removal import remove, starts_awaited
from unisono.engine.dry_run import give_up, leave
from unisono.engine.model.diagnosis import Cause, MissingNodes
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.node import repaired
from unisono.engine.model.plan import evictions, shrinks
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import PodSet, Workload
from unisono.engine.state.apply_plan import apply_plan
from unisono.engine.state.changes import TimePassed
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import snapshot

replace = msgspec.structs.replace

# Without the two rules against preemption loops, cycles may never stop to change something. A cycle
# starts at least one workload otherwise, or sets one aside.
_CYCLES_EACH = 3
_CYCLES_MORE = 50
# What work costs beside copies, in objects: a cycle, and each queue in it, which may search for
# victims; a pod set, with every flavor that is tried for it; each of its terms, tolerations and
# rules, which are compared with nodes.
_CYCLE = 16
_QUEUE = 12
_POD_SET = 12
_POD_RULE = 8


class OutOfBudget(Exception):
    """No trial is left; the caller says that it does not know."""


@dataclass(slots=True)
class Budget:
    """How much may be tried: objects of copied clusters, summed over all trials.

    A workload, node or pod costs some ten microseconds in a copy, and about as much in its cycles.
    A manifest may make one workload cost as much as thousands: `Trials.cost_of` says how much.
    """

    objects: int = 300_000
    trials: int = 0  # that were run

    def spend(self, objects: int) -> None:
        """Count one trial; raise if there is no budget for it."""
        self.charge(objects)
        self.trials += 1

    def charge(self, objects: int) -> None:
        """Count work that is no trial; raise if there is no budget for it."""
        if objects > self.objects:
            raise OutOfBudget
        self.objects -= objects


class Trials:
    """What would happen to one pending workload if causes were gone."""

    def __init__(self, recorded: Snapshot, key: WorkloadKey, now: Instant, budget: Budget) -> None:
        self.recorded = recorded
        self.key = key
        self.now = max(now, recorded.now)
        self.budget = budget
        self._known: dict[frozenset[Cause], bool] = {}
        flavors = {
            queue.name: max((len(group.flavors) for group in queue.groups), default=1)
            for queue in recorded.queues
        }
        self._flavors_of_queue = {
            local.key: flavors.get(local.queue, 1) for local in recorded.local_queues
        }
        self._size = (
            64  # what a copy of nothing costs
            + len(recorded.nodes)
            + len(recorded.pods)
            + len(recorded.admitted_workloads)
            + len(recorded.queues)
            + len(recorded.cohorts)
            + sum(map(self.cost_of, recorded.waiting))
        )

        self._cycle = _CYCLE + _QUEUE * len({one.queue for one in recorded.waiting})

    def cost_of(self, workload: Workload) -> int:
        """Return what evaluating a workload once costs, in objects; most cost one."""
        return _weight(workload, self._flavors_of_queue.get(workload.queue, 1))

    def without(self, causes: Iterable[Cause]) -> ClusterState:
        """Return a copy of the cluster without causes, before any cycle."""
        causes = tuple(causes)
        added = sum(one.count for one in causes if isinstance(one, MissingNodes))
        self.budget.spend(self._size + added)
        state = restore(self.recorded)
        state.apply(TimePassed(self.now))
        remove(state, self.key, causes)
        return state

    def alone(self, conditions: Iterable[Cause]) -> Trials:
        """Return trials on the empty, healthy cluster, with some conditions put right."""
        return Trials(snapshot(self.emptied(conditions)), self.key, self.now, self.budget)

    def emptied(self, conditions: Iterable[Cause]) -> ClusterState:
        """Return the empty, healthy cluster with some conditions put right, before any cycle.

        Emptied as a value: while workloads leave, the state drops queues that are being deleted.
        """
        world = self.recorded
        own = tuple(one for one in world.waiting if one.key == self.key)
        started = [r for one in own for r in starts_awaited(one, world.admitted_workloads)]
        empty = replace(
            world,
            waiting=own,
            results=(*world.results, *started),
            admitted_workloads=(),
            preemptors=(),
            pods=(),
            nodes=tuple(map(repaired, world.nodes)),
            verdicts=(),
            shared_verdicts=(),
            asleep=(),
        )
        return Trials(empty, self.key, self.now, self.budget).without(conditions)

    def starts(self, causes: Iterable[Cause]) -> InSteps[bool]:
        """Say whether it starts in the next cycles without these causes."""
        chosen = frozenset(causes)
        known = self._known.get(chosen)
        if known is None:
            # In one order, whatever the caller's: the same question has one answer.
            yield
            known = self._known[chosen] = yield from self.starts_in(self.without(causes))
        return known

    def starts_in(self, state: ClusterState) -> InSteps[bool]:
        """Run cycles until the workload is admitted, or nothing changes; say whether it was."""
        for _ in range(_CYCLES_MORE + _CYCLES_EACH * len(state.waiting)):
            yield
            self.budget.charge(self._cycle)
            made = plan(state, state.now)
            if any(admit.workload == self.key for admit in made.admissions):
                return True
            if not apply_plan(state, made):
                return False
            due = {one.workload: one for one in made.evictions_due}
            for eviction in evictions(made):
                leave(state, eviction.workload, state.now, due.get(eviction.workload))
            for shrink in shrinks(made):
                give_up(state, shrink.workload)
        return False


def _weight(workload: Workload, flavors: int) -> int:
    rules = sum(map(_rules_of, workload.pod_sets)) + len(workload.depends)
    return 1 + max(1, flavors) * (_POD_SET * max(0, len(workload.pod_sets) - 1) + rules)


def _rules_of(pod_set: PodSet) -> int:
    terms = (*pod_set.affinity, *(one.term for one in pod_set.preferred))
    pods = (*pod_set.affinity_to, *pod_set.anti_affinity, *pod_set.spread)
    plain = (pod_set.node_selector, pod_set.tolerations, pod_set.host_ports, pod_set.volumes)
    return sum(map(len, terms)) + sum(map(len, plain)) + _POD_RULE * len(pods)
