"""ClusterState: the engine's picture of the cluster, kept by events, never rebuilt.

`apply` takes one change and costs what it changes. What makes a cycle cheap is kept here too:
every blocked workload is filed under what would unblock it (`wake_index.py`), and a queue sleeps
while nothing changes in its cohort tree (`active_queues.py`). A plan is applied by `apply_plan.py`;
`snapshots.py` writes the state down.

Pending workloads:
    waiting       every workload without quota
    held          of those: what the workload itself holds back (gated, on hold, ...)
    local_queues  LocalQueues; one that leads nowhere keeps its workloads out of pending queues
    queues        ClusterQueues with their pending queues
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from unisono.engine.model.explanation import Blocker, Held
from unisono.engine.model.names import Instant, LocalQueueKey, QueueName, WorkloadKey
from unisono.engine.model.policy import Policy
from unisono.engine.model.provisioning import Offerings
from unisono.engine.model.queue import LocalQueue
from unisono.engine.model.workload import AdmittedWorkload, Workload
from unisono.engine.state import changes
from unisono.engine.state.active_queues import ActiveQueues
from unisono.engine.state.advance_reservations import AdvanceReservations
from unisono.engine.state.changes import TimePassed, WorkloadGone, WorkloadHolds, WorkloadWaits
from unisono.engine.state.cluster_queue import ClusterQueueState, LocalQueueState, Running
from unisono.engine.state.cohort_trees import CohortTrees, charges_of, recharge
from unisono.engine.state.config import Config
from unisono.engine.state.dependencies import Arrays, Dependencies
from unisono.engine.state.features import PriorityOrder, subscribers
from unisono.engine.state.gang_request import GangRequests
from unisono.engine.state.lifecycle import (
    EvictionTriggers,
    as_candidate,
    is_plain,
    own_blocker,
    reminders,
)
from unisono.engine.state.local_queue_usage import LocalQueueUsage
from unisono.engine.state.nodes import NodeState
from unisono.engine.state.pending_queue import HeapQueue, PendingWorkload, equivalence_class_of
from unisono.engine.state.purchases import NodeHolders
from unisono.engine.state.quota_tree import charge
from unisono.engine.state.timeline import Timeline
from unisono.engine.state.timers import NODES, Timers
from unisono.engine.state.transaction import Charges


class ClusterState:
    """Everything the engine knows."""

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        now: Instant = Instant(0),
        priority_order: Callable[[ClusterState], PriorityOrder] | None = None,
    ) -> None:
        """Know nothing yet; `unisono.engine.cluster` gives a state the order of the rules."""
        self.version = 0
        self.listener: Callable[[changes.Change], None] | None = None  # gets every change
        # False: explanations are not requested, so that the fast path does not make them.
        self.explains = True
        # The workload that a cycle is deciding about: if deciding fails, this says on which one.
        self.evaluating: WorkloadKey | None = None
        self.now = now
        self.config = Config(policy or Policy())
        self.cohort_trees = CohortTrees(self.config)
        self.queues = self.cohort_trees.queues  # all ClusterQueues
        self.waiting: dict[WorkloadKey, PendingWorkload] = {}
        self.running: dict[WorkloadKey, Running] = {}
        self.local_queues: dict[LocalQueueKey, LocalQueueState] = {}
        self.held: dict[WorkloadKey, Blocker] = {}
        self.moved: dict[WorkloadKey, None] = {}  # of those: for another reason than explained
        # Stopped ClusterQueues and LocalQueues with workloads that may have to be evicted.
        self.stopped: dict[ClusterQueueState | LocalQueueState, None] = {}
        self.local_queue_usage = LocalQueueUsage(self.config)
        self.timers = Timers()
        self.nodes = NodeState(self.config, self.timers)
        self.reserved = AdvanceReservations(self.config, self.timers)
        self.reserved.remind(now)
        self.gang_requests = GangRequests()
        self.local_queues_of: dict[QueueName, dict[LocalQueueKey, None]] = {}
        self.stale_local_queues: dict[LocalQueueKey, None] = {}
        self.everything_stale = False
        self.eviction_triggers = EvictionTriggers(self.config, self.timers)
        self.timeline = Timeline(self.policy.backfill)
        self.active_queues = ActiveQueues(self.queues, self.head_of)
        self.arrays = Arrays()
        self.dependencies = Dependencies(self.waiting, self.running)
        self.node_holders = NodeHolders()
        self.priority_order = PriorityOrder() if priority_order is None else priority_order(self)
        # These get what happens to workloads; what else they are asked stands where it is
        # needed. Events are most of the work: each reaches only the features that act on it.
        # Not among them, and called by name: the timeline and the active queues, which follow
        # pending queues (a workload may enter and leave those while it stays pending), and the
        # eviction triggers, because what they answer may wake every queue.
        features = (self.node_holders, self.priority_order, self.arrays, self.dependencies)
        self._on_entered = subscribers("entered", features)
        self._on_left = subscribers("left", features)
        self._on_started = subscribers("started", features)
        self._on_changed = subscribers("changed", features)
        self._on_ended = subscribers("ended", features)
        # What rules have worked out from all this and may use again in the next cycle, by its
        # type. It decides nothing: without it the same plans are made, only later.
        self.derived: dict[type, object] = {}

    @property
    def policy(self) -> Policy:
        """What the operator chose."""
        return self.config.policy

    # --- events ----------------------------------------------------------------------------------

    def apply(self, change: changes.Change) -> None:
        """Take one change into account."""
        if isinstance(change, TimePassed):  # these are most of what happens
            self.advance(change.now)
        elif isinstance(change, WorkloadWaits):
            self.submit(change.workload)
        elif isinstance(change, WorkloadGone):
            self.remove(change.key)
        else:
            self._notify(change)
            if isinstance(change, WorkloadHolds):
                _reconfigure(self)
                self._take_running(change.admitted)
            else:
                _take_in(self, change)

    def advance(self, now: Instant) -> None:
        """Move the clock; this and the next two are `apply`, without a value for the change."""
        self._notify(TimePassed(now) if self.listener is not None else None)
        _reconfigure(self)
        self.now = max(self.now, now)
        if self.local_queue_usage.decayed is not None:
            for name in self.local_queue_usage.sample(self.now, self.local_queues):
                cq = self.local_queues[name].cq
                if cq is not None:
                    self.active_queues.wake_queue(cq)
        self.priority_order.time_passed()
        if self.timers.is_due(self.now):
            for due in self.timers.due(self.now):
                self._come_due(due)

    def _come_due(self, due: WorkloadKey) -> None:
        """Evaluate again what waited for an instant: nodes, a hold or a back-off, a deadline."""
        waiting, running = self.waiting.get(due), self.running.get(due)
        if due == NODES:
            self.timeline.invalidate()
            self.active_queues.nodes_changed()
            self.reserved.remind(self.now)
        elif waiting is not None:
            self._reevaluate(waiting)
        elif running is not None:
            self.eviction_triggers.check(running, self.now)
            self.active_queues.admitted_changed(running.cq.tree)

    def submit(self, workload: Workload) -> None:
        """Take in a workload that is pending: a new one, one that changed, or an evicted one."""
        self._notify(WorkloadWaits(workload) if self.listener is not None else None)
        _reconfigure(self)
        if workload.key in self.running:
            self._remove_running(workload.key)
            _reconfigure(self)  # a deleted queue goes with its last admitted workload
        self._add_pending(workload)

    def remove(self, key: WorkloadKey) -> None:
        """Forget a workload that is finished or deleted."""
        self._notify(WorkloadGone(key) if self.listener is not None else None)
        _reconfigure(self)
        self._remove(key)

    def _notify(self, change: changes.Change | None) -> None:
        """Count a change, and notify the listener."""
        if self.listener is not None and change is not None:
            self.listener(change)
        self.version += 1

    # --- workloads -------------------------------------------------------------------------------

    def _add_pending(self, workload: Workload) -> None:
        """Take in a pending workload: into a pending queue, unless something holds it back."""
        key = workload.key
        was_held = bool(self.held) and isinstance(self.held.get(key), Held)
        known = self.waiting.get(key)
        if known is not None:
            if known.workload == workload:
                return
            self._remove_pending(key)
        request = self.gang_requests.take_again(workload)
        if request is None:
            if self.gang_requests.read_selectors_of(workload):
                self.requeue_all()
            request = self.gang_requests.take(workload)
            if request.pod_sets is not workload.pod_sets and request.pod_sets == workload.pod_sets:
                # Equal pod sets are kept once.
                workload = msgspec.structs.replace(workload, pod_sets=request.pod_sets)
        if request.shares and self.nodes.open_devices(request.shares):
            self.timeline.invalidate()
        alone = self.nodes.table.is_held_for(key)
        subclass = self.reserved.subclass_of(workload) + self.node_holders.subclass_of(workload)
        waiting = self.waiting[key] = PendingWorkload(
            workload, request, alone=alone, subclass=subclass
        )
        lq = self.local_queue(waiting.queue)
        lq.waiting[key] = waiting
        plain = is_plain(workload)
        for feature in self._on_entered:
            if feature.is_on or not plain:
                feature.entered(workload, was_held=was_held)
        order = self.priority_order
        if plain and (not order.is_on or order.blocker(key) is None):
            waiting.is_plain = workload.max_execution_ms is None
            if lq.cq is not None:
                self.enqueue(waiting, lq.cq)
            return
        blocker = self.blocker_of(workload)
        if blocker is not None:
            self.held[key] = blocker
        elif lq.cq is not None:
            self.enqueue(waiting, lq.cq)
        for instant in reminders(workload):
            if instant > self.now:
                self.timers.remind(instant, key)
        for instant in self.dependencies.reminders(workload, self.now) if workload.depends else ():
            self.timers.remind(instant, key)

    def blocker_of(self, workload: Workload) -> Blocker | None:
        """Return what keeps a pending workload out of every pending queue."""
        found = own_blocker(workload, self.now) or self.priority_order.blocker(workload.key)
        if found is None and workload.depends:
            found = self.dependencies.blocker(workload, self.now)
        if found is not None:  # an array's limit counts only tasks that nothing else holds back
            self.arrays.left(workload)
            return found
        return self.arrays.join(workload) if workload.array else None

    def enqueue(self, waiting: PendingWorkload, cq: ClusterQueueState) -> None:
        """Put a pending workload into a pending queue."""
        self.timeline.entered(waiting, cq)
        if cq.pending.push(waiting):
            self.active_queues.wake_queue(cq)

    def isolate(self, key: WorkloadKey) -> None:
        """Give a workload a class of its own: nodes are held for it, unlike for its equals."""
        waiting = self.waiting.get(key)
        if waiting is not None and not waiting.alone:
            workload = waiting.workload
            self._remove_pending(key)
            self._add_pending(workload)

    def reservations_changed(self) -> None:
        """Take in other advance reservations: equivalence classes depend on them."""
        self.reserved.renew(self.now)
        self.requeue_all()

    def requeue_all(self) -> None:
        """Put every pending workload into its equivalence class anew."""
        for waiting in [*self.waiting.values()]:
            self._remove_pending(waiting.workload.key)
            self._add_pending(waiting.workload)

    def _remove_pending(self, key: WorkloadKey) -> None:
        """Forget a pending workload."""
        waiting = self.waiting.get(key)
        if waiting is None:
            return
        del self.waiting[key]
        if self.held:
            self.held.pop(key, None)
            self.moved.pop(key, None)
        lq = self.local_queues[waiting.queue]
        del lq.waiting[key]
        if waiting.slot is not None and lq.cq is not None:
            if lq.cq.pending.preemptor == key:  # the nodes it kept are free for all
                self.active_queues.nodes_changed()
            self.dequeue(waiting, lq.cq)
        for feature in self._on_left:
            if feature.is_on:
                feature.left(waiting.workload)
        self.gang_requests.give_back(waiting.request)
        if not lq.waiting:
            self._tidy(lq)

    def dequeue(self, waiting: PendingWorkload, cq: ClusterQueueState) -> None:
        """Take a pending workload out of its pending queue."""
        self.timeline.left(waiting, cq)
        cq.pending.drop(waiting)
        if (
            cq.tree.wakes.has_blocked_classes
            and (equivalence_class := equivalence_class_of(waiting)) not in cq.pending.inadmissible
        ):
            cq.tree.wakes.forget((cq.spec.name, equivalence_class))
        if cq.head_wait is not None and cq.head_wait[0] == waiting.key:
            cq.head_wait = None
            self.active_queues.unblock_head(cq)
            self.active_queues.wake_queue(cq)

    def _take_running(self, admitted: AdmittedWorkload) -> None:
        """Take in a workload that holds quota, or what changed about it."""
        key = admitted.workload.key
        if self.gang_requests.read_selectors_of(admitted.workload):
            self.requeue_all()
        self._remove_pending(key)
        known = self.running.get(key)
        if known is not None and known.admitted.admission.queue == admitted.admission.queue:
            self._update(known, admitted)
            return
        self._remove_running(key)
        cq = self.cohort_trees.orphan(admitted.admission.queue)
        charges = charges_of(admitted.workload, admitted.admission, cq.spec, cq.node)
        self._add_running(Running(admitted, cq, charges))
        self.timeline.invalidate()
        self.active_queues.wake_tree(cq.tree)

    def _update(self, known: Running, admitted: AdmittedWorkload) -> None:
        """Take in what changed about a running workload; what it no longer uses is free."""
        old, known.admitted = known.admitted, admitted
        known.is_plain = False
        self.timeline.ended(known)
        self.timeline.started(known, admitted.running_since)
        freed = recharge(known)
        if old.admission != admitted.admission:
            self.nodes.remove_pods(known)
            self.nodes.add_pods(known)
            self.active_queues.nodes_changed()
        for feature in self._on_changed:
            feature.changed(known)
        self.note_triggers(known)
        if freed:
            self.active_queues.freed(known.cq.tree, freed)
        if as_candidate(old) != as_candidate(admitted):
            self.active_queues.admitted_changed(known.cq.tree)

    def _add_running(self, running: Running, *, fits: bool = False) -> None:
        """Charge a running workload's quota and nodes; `fits`: a plan found the nodes."""
        key, cq = running.key, running.cq
        self.running[key] = cq.running[key] = running
        lq = self.local_queue(running.queue)
        lq.running[key] = running
        for cell, amount in running.charges:
            charge(cell, amount)
        self.nodes.add_pods(running, fits=fits)
        self.timeline.started(running, running.since)
        plain = running.is_plain
        for feature in self._on_started:
            if feature.is_on or not plain:
                feature.started(running)
        self.note_triggers(running)
        if cq.blocker is not None:
            self.stopped[cq] = None
        if lq.blocker is not None:
            self.stopped[lq] = None

    def start(
        self,
        waiting: PendingWorkload,
        admitted: AdmittedWorkload,
        cq: ClusterQueueState,
        charges: Charges,
        *,
        fits: bool,
    ) -> None:
        """Start a pending workload; `fits`: no other workload is on its nodes."""
        self._remove_pending(waiting.key)
        running = Running(admitted, cq, charges)
        running.is_plain = waiting.is_plain
        self._add_running(running, fits=fits)

    def finish(self, key: WorkloadKey) -> None:
        """Remove a workload whose successor takes over its quota."""
        self._remove(key)

    def note_triggers(self, running: Running) -> None:
        """Keep track of what may end a running workload."""
        if self.eviction_triggers.not_ready or not running.admitted.ready:
            self.note_readiness(running)
        self.eviction_triggers.note(running, self.now)

    def note_readiness(self, running: Running) -> None:
        """Keep track of admitted workloads whose pods are not ready yet (blockAdmission)."""
        if self.eviction_triggers.note_readiness(running):
            self._wake_all()

    def _wake_all(self) -> None:
        for cq in self.queues.values():
            self.active_queues.wake_queue(cq)

    def _remove(self, key: WorkloadKey) -> None:
        """Forget a workload that is finished or deleted."""
        waiting, running = self.waiting.get(key), self.running.get(key)
        if running is not None:
            self._remove_running(key)
        if waiting is not None:
            self._remove_pending(key)
            self.dependencies.gone(waiting.workload, self.now)
        if running is not None and self.dependencies.is_on:
            self.dependencies.gone(running.admitted.workload, self.now)

    def _remove_running(self, key: WorkloadKey) -> None:
        """Free a workload's quota and nodes, and wake what may use them."""
        running = self.running.get(key)
        if running is None:
            return
        del self.running[key]
        cq, lq = running.cq, self.local_queues[running.queue]
        del cq.running[key]
        del lq.running[key]
        self.timeline.ended(running)
        self.eviction_triggers.forget(key)
        for cell, amount in running.charges:
            charge(cell, -amount)
        if self.nodes.remove_pods(running):
            self.active_queues.nodes_changed()
        self.active_queues.freed(cq.tree, running.charges)
        for feature in self._on_ended:
            if feature.is_on:
                feature.ended(running)
        if self.eviction_triggers.not_ready and self.eviction_triggers.no_longer_unready(key):
            self._wake_all()
        if cq.spec.terminating:
            self.drop_if_unused(cq)
        if not lq.running:
            self._tidy(lq)

    def _tidy(self, lq: LocalQueueState) -> None:
        """Forget a LocalQueue that does not exist and that no workload names any more."""
        if not (lq.waiting or lq.running) and lq.key not in self.config.local_queues:
            self.local_queues.pop(lq.key, None)
            self.stopped.pop(lq, None)

    def drop_if_unused(self, cq: ClusterQueueState) -> None:
        """Forget a deleted ClusterQueue, or one that never was, with its last workload."""
        name = cq.spec.name
        if cq.spec.terminating and not cq.running:
            self.config.queues.pop(name, None)
            self.stale_local_queues.update(self.local_queues_of.get(name, {}))
            self.cohort_trees.drop_queue(name)
            self.active_queues.ready.pop(cq, None)
            self.stopped.pop(cq, None)

    # --- consequences ----------------------------------------------------------------------------

    def refresh(self) -> None:
        """Draw the consequences of what was configured and of what came free."""
        _reconfigure(self)
        if self.priority_order.is_on:
            for key in self.priority_order.reconsidered():
                self._reevaluate(self.waiting[key])
        while self.dependencies.affected or self.arrays.unsettled:
            for key in [*self.dependencies.settle(), *self.arrays.settle()]:
                if key in self.waiting:
                    self._reevaluate(self.waiting[key])
        self.active_queues.settle()

    def _reevaluate(self, waiting: PendingWorkload) -> None:
        """Evaluate a pending workload again: an instant or an end that it waited for has come."""
        key = waiting.workload.key
        cq = self.local_queues[waiting.workload.queue].cq
        blocker = self.blocker_of(waiting.workload)
        for instant in self.dependencies.reminders(waiting.workload, self.now):
            self.timers.remind(instant, key)
        if blocker is not None:
            if waiting.slot is not None and cq is not None:
                self.dequeue(waiting, cq)
            if self.held.get(key) != blocker:
                self.moved[key] = None
            self.held[key] = blocker
        elif key in self.held:
            del self.held[key]
            self.moved.pop(key, None)
            if cq is not None:
                self.enqueue(waiting, cq)
        elif cq is not None:
            self.active_queues.make_admissible(cq, equivalence_class_of(waiting))
            self.active_queues.unblock_head(cq)
            self.active_queues.wake_queue(cq)

    def local_queue(self, key: LocalQueueKey) -> LocalQueueState:
        """Return what is known of a LocalQueue, which need not exist yet."""
        lq = self.local_queues.get(key)
        if lq is None:
            lq = self.local_queues[key] = LocalQueueState(key)
            _open_or_shut(self, lq)
        return lq

    def renew_pending_queue(self, cq: ClusterQueueState) -> None:
        """Give a ClusterQueue the sort of pending queue that its spec and the policy ask for."""
        known, ranking = cq.pending, None
        if self.priority_order.is_on:
            cq.pending = self.priority_order.pending_queue(known)
        else:
            ranking = self.local_queue_usage.ranking(cq.spec)
            is_right = isinstance(known, HeapQueue) and (known.usage_of is None) == (
                ranking is None
            )
            if not is_right:
                cq.pending = HeapQueue(usage_of=ranking, preemptor=known.preemptor)
        if cq.pending is not known:
            for waiting in known.in_order():
                cq.pending.push(waiting)
        cq.pending.usage_of = ranking
        self.priority_order.queue_changed(cq)

    # --- look-ups for the cycle ------------------------------------------------------------------

    def head_of(self, cq: ClusterQueueState) -> PendingWorkload | None:
        """Return the workload that a queue would start next."""
        preemptor = cq.pending.preemptor
        return cq.pending.head(self.waiting.get(preemptor) if preemptor else None)


# --- configuration -------------------------------------------------------------------------------

# Objects are taken in one by one. Their consequences are drawn when they are asked for
# (`_reconfigure`), so that many edits cost what one does.


def _take_in(state: ClusterState, change: changes.Rarer) -> None:
    """Take in anything but time and what happens to workloads."""
    match change:
        case changes.NodeSet() | changes.NodeGone() | changes.PodOnNode() | changes.PodGone():
            _change_nodes(state, change)
        case changes.OfferingsSet(offerings):
            _set_offerings(state, offerings)
        case changes.ResultSet(result):
            state.dependencies.finish(result)
        case changes.UsageSet(record):
            # Recorded before the clock was set back: it decays from now on.
            at = min(record.at, state.now)
            state.priority_order.load_usage(msgspec.structs.replace(record, at=at))
        case changes.LocalQueueSet(local_queue):
            _set_local_queue(state, local_queue)
        case changes.LocalQueueGone(key):
            state.config.local_queues.pop(key, None)
            state.stale_local_queues[key] = None
        case _:
            _configure(state, change)


def _change_nodes(state: ClusterState, change: changes.NodeChange) -> None:
    state.nodes.apply(change)
    state.priority_order.node_changed(change)
    if isinstance(change, changes.PodOnNode):
        rules = change.pod.anti_affinity
        if state.gang_requests.read_selectors(rules):
            state.requeue_all()
    state.timeline.invalidate()
    state.active_queues.nodes_changed()
    if isinstance(change, changes.NodeSet) and change.node.held_for:
        state.isolate(WorkloadKey(change.node.held_for))


def _configure(state: ClusterState, change: changes.Configured) -> None:
    """Take in what is configured."""
    config = state.config
    match change:
        case changes.QueueSet(queue):
            if config.queues.get(queue.name) != queue:
                config.queues[queue.name] = queue
                state.cohort_trees.set_queue(queue)
                state.stale_local_queues.update(state.local_queues_of.get(queue.name, {}))
        case changes.QueueGone(name):
            if name in config.queues:
                _close_queue(state, name)
        case changes.CohortSet(cohort):
            if config.cohorts.get(cohort.name) != cohort:
                config.cohorts[cohort.name] = cohort
                state.cohort_trees.set_cohort(cohort)
        case changes.CohortGone(name):
            if config.cohorts.pop(name, None) is not None:
                state.cohort_trees.clear_cohort(name)
        case changes.PolicySet(policy):
            reserved, config.policy = config.policy.reservations, policy
            state.local_queue_usage.use_policy()
            state.priority_order.policy_changed(policy)
            if reserved != policy.reservations:
                state.reservations_changed()
            state.everything_stale = True
        case _:
            config.set_shared(change)
            state.everything_stale = True


def _set_offerings(state: ClusterState, offerings: Offerings | None) -> None:
    """Take in what can be bought: now, or when stock is back, it may help what lacks nodes."""
    if offerings == state.config.offerings:
        return
    state.config.offerings = offerings
    for outage in offerings.outages if offerings is not None else ():
        for due in (outage.fewer_from, outage.until):
            if due > state.now:
                state.timers.remind(due, NODES)
    state.timeline.invalidate()
    state.active_queues.nodes_changed()


def _close_queue(state: ClusterState, name: QueueName) -> None:
    """Delete a queue: no workload may enter, and it is gone with its last admitted workload."""
    closed = msgspec.structs.replace(state.config.queues[name], terminating=True)
    state.config.queues[name] = closed
    state.cohort_trees.set_queue(closed)
    state.stale_local_queues.update(state.local_queues_of.get(name, {}))
    _reconfigure(state)
    state.drop_if_unused(state.queues[name])


def _set_local_queue(state: ClusterState, local_queue: LocalQueue) -> None:
    """Take in where a local queue leads."""
    old = state.config.local_queues.get(local_queue.key)
    if old == local_queue:
        return
    if old is not None:
        state.local_queues_of[old.queue].pop(old.key, None)
    state.local_queues_of.setdefault(local_queue.queue, {})[local_queue.key] = None
    state.config.local_queues[local_queue.key] = local_queue
    state.local_queue_usage.note(local_queue)
    state.stale_local_queues[local_queue.key] = None


def _reconfigure(state: ClusterState) -> None:
    """Draw the consequences of what was configured; free when nothing was."""
    if state.node_holders.is_new:
        state.node_holders.is_new = False
        state.requeue_all()
    if not (state.everything_stale or state.cohort_trees.stale or state.stale_local_queues):
        return
    if state.everything_stale:
        state.everything_stale = False
        state.timeline = Timeline(state.policy.backfill)
        state.timeline.rebuild(state.running.values(), state.local_queues.values())
        state.cohort_trees.mark_everything()
        state.stale_local_queues.update(dict.fromkeys(state.local_queues))
    if state.cohort_trees.stale:
        for cq in state.cohort_trees.relink():
            _reopen(state, cq)
    if state.stale_local_queues:
        stale, state.stale_local_queues = state.stale_local_queues, {}
        for key in stale:
            if key in state.local_queues:
                _open_or_shut(state, state.local_queues[key])


def _open_or_shut(state: ClusterState, lq: LocalQueueState) -> None:
    """Find out where a local queue leads now, and move its workloads accordingly."""
    lq.blocker = state.config.local_blocker(lq.key)
    local_queue = state.config.local_queues.get(lq.key)
    is_open = local_queue is not None and lq.blocker is None
    cq = state.queues[local_queue.queue] if local_queue and is_open else None
    if cq is not lq.cq:
        for waiting in lq.waiting.values():
            if waiting.slot is not None and lq.cq is not None:
                state.dequeue(waiting, lq.cq)
        lq.cq = cq
        for key, waiting in lq.waiting.items():
            if cq is not None and key not in state.held:
                state.enqueue(waiting, cq)
    elif cq is not None and cq.pending.usage_of is not None:
        state.active_queues.wake_queue(cq)  # its weight may put another workload first
    state.stopped.pop(lq, None)
    if lq.blocker is not None and lq.running:
        state.stopped[lq] = None


def _reopen(state: ClusterState, cq: ClusterQueueState) -> None:
    """Evaluate a queue again as if for the first time."""
    state.timeline.invalidate()
    state.timeline.reopened(cq)
    state.timeline.forget_counts(cq)
    cq.derived.clear()
    cq.blocked_by_head = False
    cq.head_wait = None
    state.renew_pending_queue(cq)
    for equivalence_class in [*cq.pending.inadmissible]:
        state.active_queues.make_admissible(cq, equivalence_class)
    for running in cq.running.values():
        state.note_triggers(running)
    state.active_queues.reopen(cq)
    state.stopped.pop(cq, None)
    if cq.blocker is not None and cq.running:
        state.stopped[cq] = None
