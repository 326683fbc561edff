"""Multifactor priority within the state: limit-blocked workloads, and how large the cluster is.

Nothing here exists while `policy.multifactor` is None.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from unisono.engine.model.explanation import Blocker, LimitReached
from unisono.engine.model.multifactor import Factors, UsageRecord
from unisono.engine.model.names import Instant, NodeName, QueueName, WorkloadKey
from unisono.engine.model.node import Node
from unisono.engine.model.overriding import override
from unisono.engine.model.policy import Policy
from unisono.engine.model.workload import Workload
from unisono.engine.ordering.limit_counters import Scope
from unisono.engine.ordering.multifactor import MultifactorPriority
from unisono.engine.ordering.multifactor_queue import LimitClass, MultifactorQueue, Row
from unisono.engine.ordering.tres import Tres, milli, tres_name
from unisono.engine.state import changes
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.cluster_queue import ClusterQueueState, Running
from unisono.engine.state.features import Accruing, PriorityOrder
from unisono.engine.state.pending_queue import PendingQueue, PendingWorkload

EVERYWHERE = ""  # the size of the whole cluster; a partition's is under its name

# A ClusterQueue, and a class of its workloads under the same limits that reached one of them.
_LimitBlocked = tuple[QueueName, LimitClass]


def multifactor_of(state: ClusterState) -> MultifactorPriority | None:
    """Return the multifactor priority of a state; None if its policy asks for none."""
    order = state.priority_order
    return order.multifactor if isinstance(order, MultifactorOrder) else None


def priority_factors(state: ClusterState, key: WorkloadKey) -> Factors | None:
    """Return the parts of a pending workload's priority; None without multifactor priority."""
    multifactor = multifactor_of(state)
    return multifactor.factors(key) if multifactor is not None else None


def account_and_qos(state: ClusterState, key: WorkloadKey) -> tuple[str, str] | None:
    """Return the account and QOS of a pending or running workload; empty where it has none."""
    multifactor = multifactor_of(state)
    return multifactor.account_and_qos(key) if multifactor is not None else None


class MultifactorOrder(PriorityOrder):
    """The priority order of a state whose policy may ask for multifactor priority."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self.multifactor: MultifactorPriority | None = None
        self._blocked_by: dict[Scope, dict[_LimitBlocked, None]] = {}
        # Limits on usage, by when it will have decayed below them; the number ends every tie.
        self._decaying: list[tuple[Instant, int, _LimitBlocked]] = []
        self._filed = 0
        self._sizes: dict[NodeName, tuple[Node, Tres]] = {}
        self._stale_sizes = True
        self._use_policy()

    def _use_policy(self) -> None:
        """Set up the priority that the policy asks for; earlier usage is kept."""
        rules, now = self._state.policy.multifactor, self._state.now
        known = self.multifactor.usage.settled(now) if self.multifactor is not None else ()
        self.multifactor = MultifactorPriority(rules, now) if rules is not None else None
        self.is_on = rules is not None
        self._blocked_by, self._decaying, self._stale_sizes = {}, [], True
        for record in known:
            self.load_usage(record)

    # --- workloads -------------------------------------------------------------------------------

    @override
    def entered(self, workload: Workload, *, was_held: bool) -> None:
        """Give a pending workload a priority."""
        if self.multifactor is not None:
            self.multifactor.enter(workload, was_held=was_held)

    @override
    def left(self, workload: Workload) -> None:
        """Forget a workload that is no longer pending."""
        if self.multifactor is not None:
            self.multifactor.leave(workload.key)

    @override
    def started(self, running: Running) -> None:
        """Count a workload for limits and usage."""
        if self.multifactor is not None:
            self.multifactor.start(running.admitted)

    @override
    def changed(self, running: Running) -> None:
        """Count a workload anew; evaluate those again that its limits blocked."""
        if self.multifactor is not None:
            self._relieve(self.multifactor.change(running.admitted))

    @override
    def ended(self, running: Running) -> None:
        """Count a workload no longer; evaluate those again that its limits blocked."""
        if self.multifactor is not None:
            self._relieve(self.multifactor.stop(running.key))

    # --- what happens besides workloads ----------------------------------------------------------

    @override
    def policy_changed(self, policy: Policy) -> None:
        """Begin or end the priority order, or change its rules: all workloads queue anew."""
        state = self._state
        if (self.multifactor.rules if self.multifactor else None) == policy.multifactor:
            return
        # What follows from a change is no change of its own.
        listener, state.listener = state.listener, None
        pending = [one.workload for one in state.waiting.values()]
        preemptors = {cq: cq.pending.preemptor for cq in state.queues.values()}
        for workload in pending:
            state.apply(changes.WorkloadGone(workload.key))
        self._use_policy()
        for cq, key in preemptors.items():
            state.renew_pending_queue(cq)
            cq.pending.preemptor = key
        for running in state.running.values():
            self.started(running)
        for workload in pending:
            state.apply(changes.WorkloadWaits(workload))
        state.listener = listener

    @override
    def time_passed(self) -> None:
        """Evaluate those again whose usage has decayed, and queues with another head by now."""
        state, multifactor = self._state, self.multifactor
        if multifactor is None:
            return
        multifactor.now = max(multifactor.now, state.now)
        while self._decaying and self._decaying[0][0] <= state.now:
            self._unblock(heapq.heappop(self._decaying)[2])
        for cq in state.queues.values():
            if cq.head_wait is not None:
                head = state.head_of(cq)
                if head is not None and head.workload.key != cq.head_wait[0]:
                    state.active_queues.wake_queue(cq)

    @override
    def node_changed(self, change: changes.NodeChange) -> None:
        """Keep the sizes of nodes, which priorities may be relative to; pods do not matter."""
        match change:
            case changes.NodeSet(node):
                old = self._sizes.get(node.name)
                size = _size(node)
                if old is None or old[1] != size or old[0].labels != node.labels:
                    self._stale_sizes = True
                self._sizes[node.name] = (node, size)
            case changes.NodeGone(name):
                if self._sizes.pop(name, None) is not None:
                    self._stale_sizes = True
            case _:
                pass

    @override
    def queue_changed(self, cq: ClusterQueueState) -> None:
        """Evaluate limit-blocked workloads again; nominal quota sizes a cluster without nodes."""
        self._stale_sizes = True
        if isinstance(cq.pending, MultifactorQueue):
            for group in [*cq.pending.limit_blocked]:
                self._unblock((cq.spec.name, group))

    # --- what the state asks ---------------------------------------------------------------------

    @override
    def pending_queue(self, known: PendingQueue) -> PendingQueue:
        """Return a queue in priority order: the known one if it is of the same rules."""
        assert self.multifactor is not None, "the policy asks for a priority order"
        if isinstance(known, MultifactorQueue) and known.multifactor is self.multifactor:
            return known
        return MultifactorQueue(self.multifactor, preemptor=known.preemptor)

    @override
    def blocker(self, key: WorkloadKey) -> Blocker | None:
        """Return what about its account, limits or a hold keeps a workload out of every queue."""
        if self.multifactor is None:
            return None
        return self.multifactor.pending[key].blocker or self.multifactor.submit_slots.refusal(key)

    @override
    def reconsidered(self) -> list[WorkloadKey]:
        """Bring sizes and submit slots up to date; return whose blocker changed."""
        if self.multifactor is None:
            return []
        if self._stale_sizes:
            self._stale_sizes = False
            self.multifactor.resize(self._totals(self.multifactor))
        return self.multifactor.settle_slots()

    # --- limits ----------------------------------------------------------------------------------

    @override
    def block_by_limit(
        self, cq: ClusterQueueState, waiting: PendingWorkload, blockers: tuple[Blocker, ...]
    ) -> None:
        """Set a class of workloads aside, filed under the limits that it has reached."""
        pending, row = cq.pending, waiting.slot
        assert isinstance(pending, MultifactorQueue), "only a priority order has limits"
        assert isinstance(row, Row), f"{waiting.key} is in no pending queue"
        pending.drop_preemptor(waiting.key)
        pending.block(row.group, blockers)
        for blocker in blockers:
            if isinstance(blocker, LimitReached):
                self._file(blocker, (cq.spec.name, row.group))

    def _file(self, reached: LimitReached, blocked: _LimitBlocked) -> None:
        assert reached.per in ("group", "user", "account"), "waiting helps against no other limit"
        scope = (reached.owner, reached.per, reached.member)
        self._blocked_by.setdefault(scope, {})[blocked] = None
        if reached.until is not None:
            self._filed += 1
            heapq.heappush(self._decaying, (reached.until, self._filed, blocked))

    def _relieve(self, scopes: Iterable[Scope]) -> None:
        """Evaluate all again that limits of these scopes blocked: less counts there now."""
        for scope in scopes:
            for blocked in self._blocked_by.pop(scope, ()):
                self._unblock(blocked)

    def _unblock(self, blocked: _LimitBlocked) -> None:
        name, group = blocked
        cq = self._state.queues.get(name)
        if (
            cq is not None
            and isinstance(cq.pending, MultifactorQueue)
            and cq.pending.unblock(group)
        ):
            self._state.active_queues.wake_queue(cq)

    # --- snapshots -------------------------------------------------------------------------------

    @override
    def usage(self) -> tuple[UsageRecord, ...]:
        """Return what accounts, users and QOS have used."""
        return self.multifactor.usage.records() if self.multifactor is not None else ()

    @override
    def load_usage(self, record: UsageRecord) -> None:
        """Go on from recorded usage."""
        if self.multifactor is not None:
            self.multifactor.load_usage(record)

    @override
    def accruing(self) -> Accruing:
        """Return since when workloads gain age, of those that needed a slot for it."""
        return self.multifactor.submit_slots.accruing() if self.multifactor is not None else ()

    @override
    def load_accruing(self, accruing: Accruing) -> None:
        """Go on from recorded starts of age."""
        if self.multifactor is not None:
            self.multifactor.load_accruing(accruing)

    # --- sizes -----------------------------------------------------------------------------------

    def _totals(self, multifactor: MultifactorPriority) -> dict[str, Tres]:
        """Return the size of the cluster and of each partition that has nodes of its own."""
        rules = multifactor.rules
        if rules.totals:
            return {EVERYWHERE: dict(rules.totals)}
        if not self._sizes:
            return {EVERYWHERE: self._nominal_quota()}
        totals = {EVERYWHERE: _sum(size for _, size in self._sizes.values())}
        for partition in rules.partitions:
            if partition.node_labels:
                wanted = set(partition.node_labels)
                totals[partition.name] = _sum(
                    size for node, size in self._sizes.values() if wanted <= set(node.labels)
                )
        return totals

    def _nominal_quota(self) -> Tres:
        """Return all nominal quota: the size of a cluster whose nodes are not known."""
        total: Tres = {}
        config = self._state.config
        queues = [group for queue in config.queues.values() for group in queue.groups]
        cohorts = [group for cohort in config.cohorts.values() for group in cohort.groups]
        for group in (*queues, *cohorts):
            own = [quota for flavor in group.flavors for quota in flavor.resources]
            for quota in (*own, *(group.pool or ())):
                name = tres_name(quota.resource)
                total[name] = total.get(name, 0) + milli(quota.resource, quota.nominal)
        return total


def _size(node: Node) -> Tres:
    size: Tres = {"node": 1000}
    for resource, amount in node.allocatable:
        name = tres_name(resource)
        size[name] = size.get(name, 0) + milli(resource, amount)
    return size


def _sum(sizes: Iterable[Tres]) -> Tres:
    total: Tres = {}
    for size in sizes:
        for name, amount in size.items():
            total[name] = total.get(name, 0) + amount
    return total
