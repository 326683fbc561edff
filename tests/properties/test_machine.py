"""The engine under any sequence of events: every promise holds after every step.

The machine submits, finishes and deletes workloads, edits, moves, stops and deletes what they
queue in, lets time pass, and runs cycles whenever it likes; victims leave when it likes. Whatever
happens, the laws of `tests.support.state_laws` hold. The most telling one is `nothing_was_missed`:
a state in which everything sleeps must be one in which a state that forgot what sleeps would do
nothing either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from tests.support import state_laws
from tests.support.effort import effort
from tests.support.strategies import (
    COHORTS,
    GROUPS,
    LOCAL_QUEUES,
    PARENTS,
    QUEUES,
    SECOND,
    STYLES,
    WEIGHTS,
    F,
    G,
    Groups,
    cohorts,
    flavors,
    mostly,
    policies,
    preemption_rules,
    queues,
    workloads,
    worlds,
)
from unisono.engine.audit.quota_tree import Node, queue_node
from unisono.engine.audit.snapshot_index import SnapshotIndex
from unisono.engine.cluster import new_cluster, restore
from unisono.engine.dry_run import give_up, leave
from unisono.engine.model.names import CohortName, Instant, LocalQueueKey, QueueName, WorkloadKey
from unisono.engine.model.plan import Plan
from unisono.engine.model.queue import LocalQueue, StopPolicy
from unisono.engine.model.snapshot import AdmissionCheck, Namespace
from unisono.engine.model.workload import CheckState
from unisono.engine.state import changes
from unisono.engine.state.cluster_queue import Running
from unisono.engine.state.snapshots import snapshot

pytestmark = pytest.mark.slow

replace = msgspec.structs.replace
V = TypeVar("V")

PICKS = st.integers(0, 15)  # which of those that are there
STOPS: tuple[StopPolicy, ...] = ("None", "Hold", "HoldAndDrain")


def pick(choices: Mapping[WorkloadKey, V], number: int) -> V:
    """Return one of several, by number."""
    return choices[sorted(choices)[number % len(choices)]]


class EngineMachine(RuleBasedStateMachine):
    """One cluster, and what we know about it without asking the engine."""

    def __init__(self) -> None:
        super().__init__()
        self.state = new_cluster()
        self.now = Instant(100 * SECOND)
        self.submitted: set[WorkloadKey] = set()
        self.gone: set[WorkloadKey] = set()
        self.is_settled = False
        self.groups = GROUPS
        self.grown: set[Node] = set()  # trees with admissions since all were awake

    def apply(self, change: changes.Change) -> None:
        self.state.apply(change)
        self.is_settled = False

    @initialize(style=st.sampled_from(STYLES), size=st.integers(0, 8), data=st.data())
    def begin(self, style: Groups, size: int, data: st.DataObject) -> None:
        """Start with a cluster that is in use."""
        self.groups = style
        world = data.draw(worlds(groups=style))
        self.state = restore(replace(world, now=self.now))
        for _ in range(size):
            self.submit(data)
        self.settle()

    # --- workloads -------------------------------------------------------------------------------

    @rule(data=st.data())
    def submit(self, data: st.DataObject) -> None:
        workload = data.draw(
            workloads(f"w{len(self.submitted)}", local_queues=self._local_queues())
        )
        self.submitted.add(workload.key)
        self.apply(changes.WorkloadWaits(workload))

    def _local_queues(self) -> tuple[LocalQueueKey, ...]:
        """Return where something may be submitted; the last one perhaps leads nowhere."""
        return (*sorted(self.state.config.local_queues), LOCAL_QUEUES[-1])

    @rule(data=st.data(), times=st.integers(2, 4))
    def submit_equals(self, data: st.DataObject, times: int) -> None:
        """Submit several of one shape: they share a line and a verdict."""
        first = data.draw(workloads("first", local_queues=self._local_queues()))
        for _ in range(times):
            name = f"w{len(self.submitted)}"
            workload = replace(first, key=WorkloadKey(f"ns/{name}"), uid=name)
            self.submitted.add(workload.key)
            self.apply(changes.WorkloadWaits(workload))

    @precondition(lambda self: self.state.running)
    @rule(number=PICKS, more=st.integers(1, 3))
    def grow(self, number: int, more: int) -> None:
        """An elastic job wants more pods: a new slice that replaces the old one."""
        old = pick(self.state.running, number).admitted.workload
        name = f"w{len(self.submitted)}"
        first, *rest = old.pod_sets
        workload = replace(
            old,
            key=WorkloadKey(f"ns/{name}"),
            uid=name,
            pod_sets=(replace(first, count=first.count + more, min_count=None), *rest),
            replaces=old.key,
            reclaimable=(),
        )
        self.submitted.add(workload.key)
        self.apply(changes.WorkloadWaits(workload))

    @precondition(lambda self: self.state.running)
    @rule(number=PICKS)
    def finish(self, number: int) -> None:
        self._end(pick(self.state.running, number).admitted.workload.key)

    @precondition(lambda self: self.state.waiting)
    @rule(number=PICKS)
    def delete(self, number: int) -> None:
        self._end(pick(self.state.waiting, number).workload.key)

    def _end(self, key: WorkloadKey) -> None:
        self.gone.add(key)
        self.apply(changes.WorkloadGone(key))

    @precondition(lambda self: self.state.waiting)
    @rule(number=PICKS, priority=st.integers(0, 2), active=mostly(True, False))
    def edit_waiting(self, number: int, priority: int, active: bool) -> None:
        workload = pick(self.state.waiting, number).workload
        self.apply(changes.WorkloadWaits(replace(workload, priority=priority, active=active)))

    @precondition(lambda self: self.state.waiting)
    @rule(number=PICKS, state=st.sampled_from(("Pending", "Ready", "Retry")), after=PICKS)
    def hold_back(self, number: int, state: str, after: int) -> None:
        """Let a check speak, and keep the workload out of the line for some seconds."""
        workload = pick(self.state.waiting, number).workload
        check = CheckState("prov", state)  # type: ignore[arg-type]  # three of its literals
        until = Instant(self.now + after * SECOND) if after else None
        self.apply(changes.WorkloadWaits(replace(workload, checks=(check,), requeue_at=until)))

    @precondition(lambda self: self.state.running)
    @rule(number=PICKS, priority=st.integers(0, 2))
    def reprioritise(self, number: int, priority: int) -> None:
        admitted = pick(self.state.running, number).admitted
        workload = replace(admitted.workload, priority=priority)
        self.apply(changes.WorkloadHolds(replace(admitted, workload=workload)))

    @precondition(lambda self: self.state.running)
    @rule(number=PICKS)
    def lose_a_pod(self, number: int) -> None:
        """One more pod of the first set is done for good."""
        admitted = pick(self.state.running, number).admitted
        first = admitted.admission.pod_sets[0]
        done = dict(admitted.workload.reclaimable)
        done[first.name] = min(first.count, done.get(first.name, 0) + 1)
        workload = replace(admitted.workload, reclaimable=tuple(sorted(done.items())))
        self.apply(changes.WorkloadHolds(replace(admitted, workload=workload)))

    @precondition(lambda self: self.state.running)
    @rule(number=PICKS, ready=mostly(True, False))
    def report_readiness(self, number: int, ready: bool) -> None:
        admitted = pick(self.state.running, number).admitted
        self.apply(changes.WorkloadHolds(replace(admitted, ready=ready, may_start=True)))

    def _evicting(self) -> dict[WorkloadKey, Running]:
        return {key: each for key, each in self.state.running.items() if each.admitted.evicting}

    @precondition(lambda self: self._evicting())
    @rule(number=PICKS)
    def one_leaves(self, number: int) -> None:
        leave(self.state, pick(self._evicting(), number).admitted.workload.key, self.now)
        self.is_settled = False

    @rule()
    def those_told_give_up_pods(self) -> None:
        for key in sorted(k for k, each in self.state.running.items() if each.admitted.keeps):
            give_up(self.state, key)
            self.is_settled = False

    @precondition(lambda self: self._evicting())
    @rule()
    def all_victims_leave(self) -> None:
        for key in sorted(self._evicting()):
            leave(self.state, key, self.now)
        self.is_settled = False

    # --- configuration ---------------------------------------------------------------------------
    # Few rules that each do many things: half of all steps should be about workloads.

    @precondition(lambda self: self.state.config.queues)
    @rule(number=PICKS, data=st.data())
    def edit_queue(self, number: int, data: st.DataObject) -> None:
        """Change one thing about a queue: its quota, its cohort, whether it is stopped."""
        known = self.state.config.queues
        queue = known[sorted(known)[number % len(known)]]
        match data.draw(st.sampled_from(("quota", "rules", "stop", "cohort", "kind of quota"))):
            case "quota":
                queue = replace(queue, groups=data.draw(self.groups))
            case "rules":
                queue = replace(queue, preemption=data.draw(preemption_rules()))
            case "stop":
                queue = replace(queue, stop=data.draw(st.sampled_from(STOPS)))
            case "cohort":
                queue = replace(queue, cohort=data.draw(st.sampled_from((*COHORTS, None))))
            case _:
                queue = replace(queue, groups=data.draw(GROUPS))
        self.apply(changes.QueueSet(queue))

    @rule(name=st.sampled_from(QUEUES), data=st.data())
    def create_or_delete_queue(self, name: QueueName, data: st.DataObject) -> None:
        queue = self.state.config.queues.get(name)
        if queue is None or queue.terminating:
            self.apply(changes.QueueSet(data.draw(queues(name, groups=self.groups))))
        elif data.draw(st.booleans()):
            self.apply(changes.QueueSet(replace(queue, terminating=True)))
        else:
            self.apply(changes.QueueGone(name))

    @rule(name=st.sampled_from(COHORTS), data=st.data())
    def configure_cohort(self, name: CohortName, data: st.DataObject) -> None:
        """Create a cohort, change its quota or its parent (perhaps into a cycle), or delete it."""
        parents = PARENTS[name] if data.draw(mostly(True, False)) else (*COHORTS, None)
        cohort = data.draw(cohorts(name, groups=self.groups, parents=parents))
        there = data.draw(mostly(True, False))
        self.apply(changes.CohortSet(cohort) if there else changes.CohortGone(name))

    @rule(key=st.sampled_from(LOCAL_QUEUES), stop=mostly(*STOPS, "Gone"), weight=WEIGHTS)
    def configure_local_queue(self, key: LocalQueueKey, stop: str, weight: int) -> None:
        if stop == "Gone":
            self.apply(changes.LocalQueueGone(key))
            return
        changed = LocalQueue(
            key=key,
            queue=QueueName(key[3]),
            stop=stop,  # type: ignore[arg-type]  # "Gone" was handled above
            weight_milli=weight,
        )
        self.apply(changes.LocalQueueSet(changed))

    @rule(data=st.data())
    def configure_surroundings(self, data: st.DataObject) -> None:
        """Change what belongs to no queue: a flavor, the namespace, the check, the policy."""
        change: changes.Change
        match data.draw(st.sampled_from(("policy", "flavor", "namespace", "check"))):
            case "flavor":
                flavor = data.draw(st.sampled_from((F, G)).flatmap(flavors))
                there = data.draw(mostly(True, False))
                change = changes.FlavorSet(flavor) if there else changes.FlavorGone(flavor.name)
            case "namespace":
                team = data.draw(mostly("a", "b"))
                change = changes.NamespaceSet(Namespace("ns", (("team", team),)))
            case "check":
                change = changes.CheckSet(AdmissionCheck("prov", data.draw(mostly(True, False))))
            case _:
                change = changes.PolicySet(data.draw(policies()))
        self.apply(change)

    # --- time and decisions ----------------------------------------------------------------------

    @rule(seconds=st.sampled_from((1, 10, 60, 90, 300, 3600)))
    def wait(self, seconds: int) -> None:
        self.now = Instant(self.now + seconds * SECOND)
        self.apply(changes.TimePassed(self.now))

    @rule()
    def cycle(self) -> None:
        made = state_laws.decided(self.state, self.now)
        self._note(made)
        self.is_settled = not state_laws.carried_out(self.state, made)

    @rule()
    def settle(self) -> None:
        for made in state_laws.settle(self.state, self.now):
            self._note(made)
        self.is_settled = True

    @rule()
    def wake_everything(self) -> None:
        """A state woken as a whole and one that is restored awake decide alike, byte for byte."""
        self.apply(changes.PolicySet(self.state.policy))
        self.grown.clear()
        fresh = state_laws.awake(snapshot(self.state))
        found, expected = (
            state_laws.settle(self.state, self.now),
            state_laws.settle(fresh, self.now),
        )
        for made in found:
            self._note(made)
        self.is_settled = True
        assert msgspec.json.encode(found) == msgspec.json.encode(expected)

    def _note(self, made: Plan) -> None:
        tree = SnapshotIndex(snapshot(self.state)).tree
        for admit in made.admissions:
            self.grown.add(tree.root(queue_node(admit.admission.queue)))
            if admit.replaces is not None:
                self.gone.add(admit.replaces)

    # --- promises --------------------------------------------------------------------------------

    @invariant()
    def the_tree_adds_up(self) -> None:
        state_laws.check_tree(self.state)

    @invariant()
    def no_workload_is_lost(self) -> None:
        waiting, admitted = set(self.state.waiting), set(self.state.running)
        assert not waiting & admitted
        assert waiting | admitted == self.submitted - self.gone

    @invariant()
    def no_workload_waits_without_a_reason(self) -> None:
        state_laws.check_explanations(self.state)

    @invariant()
    def the_next_plan_is_sound(self) -> None:
        state_laws.decided(self.state, self.now)

    @invariant()
    def a_snapshot_says_everything(self) -> None:
        state_laws.check_snapshot(self.state, self.now)

    @invariant()
    def nothing_was_missed(self) -> None:
        if self.is_settled:
            state_laws.check_nothing_was_missed(self.state, self.now, grown=self.grown)


TestEngine = EngineMachine.TestCase
TestEngine.settings = effort(60, steps=30)
