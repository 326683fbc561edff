"""One preemption with everything that its rules need, and how certain that is.

A plan tells what was decided, not at which moment of the cycle. By spec quota §6 a preemptor is
evaluated against the snapshot, or, if an earlier preemption took the same victims, against what the
cycle had made of it by then. So there is not one usage but several, and a rule may only report what
is wrong with all of them:

    moments   the most that can have been in use when the preemptor was evaluated:
              in the snapshot, and after the earlier preemptions; with all admissions in both
    earlier   the least: the victims of earlier preemptions released, nothing charged
    vacated   the least at the end: all victims of the plan released, nothing charged

Usage only ever lowers what is available, so what fits with the most in use fits with less.

Quota that is held back is not in a plan at all: for a workload that found no victims (§6), or for
an earlier preemptor that still waits (§18.2a). With backfill a preemptor is placed on nodes as
earlier decisions of the cycle left them (spec backfill §3). `is_hidden`: this cannot be ruled
out; rules that depend on it then report nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from unisono.engine.audit.quota_tree import Charge, Node, QuotaUsage, queue_node
from unisono.engine.audit.snapshot_index import SnapshotIndex
from unisono.engine.model.explanation import QuotaExhausted
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import Plan, Preempt
from unisono.engine.model.queue import ClusterQueue
from unisono.engine.model.resources import FlavorResource
from unisono.engine.model.workload import AdmittedWorkload, Workload


@dataclass(frozen=True, slots=True)
class PreemptionCase:
    """A preemptor, its victims, and the usages that it may have been evaluated with.

    Made by `cases_of` alone; every rule about preemption gets all of it as one argument.
    """

    index: SnapshotIndex
    preemption: Preempt
    workload: Workload
    queue: ClusterQueue
    charge: Charge
    victims: dict[WorkloadKey, AdmittedWorkload]
    now: Instant
    moments: tuple[QuotaUsage, QuotaUsage]
    earlier: QuotaUsage
    vacated: QuotaUsage
    is_first: bool  # the first preemption of its cohort tree in this plan
    is_hidden: bool

    @property
    def node(self) -> Node:
        """The preemptor's queue in the tree."""
        return queue_node(self.queue.name)

    def without(
        self, usage: QuotaUsage, *, leaving: Iterable[AdmittedWorkload] | None = None
    ) -> QuotaUsage:
        """Return the usage after these have left; by default all victims of this preemption."""
        evicted = self.victims.values() if leaving is None else leaving
        return usage.after(released=[self.index.held(each) for each in evicted])

    def needed(self) -> set[FlavorResource]:
        """Collect the flavor-resources that the preemptor may have lacked: a superset.

        With nodes in the cluster it may have lacked only nodes; then all of them count.
        """
        return {
            flavor_resource
            for flavor_resource, amount in self.charge.amounts.items()
            if self.is_hidden
            or self.index.has_nodes
            or any(amount > usage.available(self.node, flavor_resource) for usage in self.moments)
        }

    def lacked(self) -> set[FlavorResource]:
        """Collect the flavor-resources that the preemptor surely lacked: a subset."""
        return {
            flavor_resource
            for flavor_resource, amount in self.charge.amounts.items()
            if amount > self.earlier.available(self.node, flavor_resource)
        }

    def borrows(self, usage: QuotaUsage) -> bool:
        """Say whether the preemptor would make its queue borrow."""
        return any(
            usage.is_borrowing_with(self.node, flavor_resource, amount)
            for flavor_resource, amount in self.charge.amounts.items()
        )


def cases_of(index: SnapshotIndex, plan: Plan) -> Iterator[PreemptionCase]:
    """Yield a case for every preemption whose workload and queue are known."""
    tree = index.tree
    victims = index.victims(plan.preemptions)
    vacated = _without(index, index.usage, victims)
    holding_back = _roots_of_unclaimed(index, victims)
    has_backfill = index.policy.backfill is not None and index.has_nodes
    has_earlier_decisions = has_backfill and bool(plan.admissions or len(plan.preemptions) > 1)
    earlier = index.usage
    in_snapshot = in_order = index.usage.after(charged=index.charges(plan.admissions))
    seen: set[Node] = set()
    for preemption in plan.preemptions:
        workload = index.waiting.get(preemption.workload)
        queue = index.queues.get(preemption.admission.queue)
        if workload is None or queue is None:
            continue
        root = tree.root(queue_node(queue.name))
        charge = index.charge(workload, preemption.admission)
        # A slice that grows counts on what it replaces, in every usage.
        old = [] if workload.replaces in victims else index.replaced(workload)
        own = index.victims((preemption,))
        yield PreemptionCase(
            index=index,
            preemption=preemption,
            workload=workload,
            queue=queue,
            charge=charge,
            victims=own,
            now=plan.now,
            moments=(in_snapshot.after(released=old), in_order.after(released=old)),
            earlier=earlier.after(released=old),
            vacated=vacated.after(released=old),
            is_first=root not in seen,
            is_hidden=has_earlier_decisions
            or root in holding_back
            or (root in seen and _may_hold_back(index, plan, root)),
        )
        earlier = _without(index, earlier, own)
        in_order = _without(index, in_order, own).after(charged=[charge], released=old)
        seen.add(root)


def _without(
    index: SnapshotIndex, usage: QuotaUsage, leaving: Mapping[WorkloadKey, AdmittedWorkload]
) -> QuotaUsage:
    return usage.after(released=[index.held(admitted) for admitted in leaving.values()])


def _roots_of_unclaimed(
    index: SnapshotIndex, victims: Mapping[WorkloadKey, AdmittedWorkload]
) -> set[Node]:
    """Return the trees with evictions under way that no preemption of this plan counts on.

    They may be for a preemptor that the plan does not mention.
    """
    return {
        index.tree.root(queue_node(admitted.admission.queue))
        for key, admitted in index.admitted_workloads.items()
        if (admitted.evicting or admitted.keeps is not None) and key not in victims
    }


def _may_hold_back(index: SnapshotIndex, plan: Plan, root: Node) -> bool:
    """Say whether quota may have been held back in the tree for a workload that waits.

    A workload that found no victims, or counts on those of another, reserves what it waits for.
    This concerns only preemptors evaluated again after an earlier preemption took their victims.
    """
    preemptors = {preemption.workload for preemption in plan.preemptions}
    for wait in plan.waits:
        queue = wait.explanation.queue
        if wait.explanation.workload in preemptors or queue is None:
            continue
        tried = any(
            isinstance(blocker, QuotaExhausted) and blocker.tried_preemption
            for blocker in wait.explanation.blockers
        )
        if (tried or wait.outcome == "sticky") and index.tree.root(queue_node(queue)) == root:
            return True
    return False
