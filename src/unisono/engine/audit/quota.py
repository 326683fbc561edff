"""Does everything fit: admissions at once, and preemptors after their victims have left?

The first is checked with every admitted workload still there, evicted ones included, so that no
queue, cohort or pool is over its limit even for a moment. The second is checked with the plan's
victims gone, and only those: a preemption happens only if the preemptor can then really start.

One check of the final usage is enough, in whatever order the plan was made. A charge that fits
lowers what its queue may still use by exactly its amount, and what an ancestor may still use not
below zero; victims that leave only add. So if each step fitted, nothing that was charged is
negative.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from unisono.engine.audit.quota_tree import QuotaUsage, queue_node
from unisono.engine.audit.snapshot_index import Decided, SnapshotIndex, started_by
from unisono.engine.audit.violation import Rule, Violation
from unisono.engine.model.names import WorkloadKey
from unisono.engine.model.plan import Admit, Plan
from unisono.engine.model.resources import FlavorResource


def check_quota(index: SnapshotIndex, plan: Plan) -> Iterator[Violation]:
    """Check usage after the admissions, then after the preemptions with their victims gone."""
    replaced = {admit.replaces for admit in plan.admissions if admit.replaces is not None}
    after_admissions = _usage_after(index, plan.admissions, replaced)
    victims = index.victims(plan.preemptions)
    vacated = index.usage.after(released=[index.held(each) for each in victims.values()])
    promised = _usage_after(index, started_by(plan), ())
    for admit in plan.admissions:
        yield from _check_available("over-quota", index, after_admissions, admit)
        yield from _check_borrow_level(index, vacated, promised, admit)
    if not plan.preemptions and not plan.awaits:
        return
    starting = started_by(plan)
    for decided in starting:
        workload = None if isinstance(decided, Admit) else index.waiting.get(decided.workload)
        if workload is not None and workload.replaces is not None:
            replaced.add(workload.replaces)
    after_preemptions = _usage_after(index, starting, replaced - victims.keys()).after(
        released=[index.held(each) for each in victims.values()]
    )
    for decided in starting:
        yield from _check_available("preemption-short", index, after_preemptions, decided)


def _usage_after(
    index: SnapshotIndex, coming: Iterable[Decided], leaving: Iterable[WorkloadKey]
) -> QuotaUsage:
    released = [
        index.held(index.admitted_workloads[key])
        for key in leaving
        if key in index.admitted_workloads
    ]
    return index.usage.after(charged=index.charges(coming), released=released)


def _growth(index: SnapshotIndex, decided: Decided) -> dict[FlavorResource, int]:
    """Return by how much the queue's use grows: a slice gives back what it replaces."""
    workload = index.waiting[decided.workload]
    growth = dict(index.charge(workload, decided.admission).amounts)
    for old in index.replaced(workload):
        if old.queue == decided.admission.queue:
            for flavor_resource in growth:
                growth[flavor_resource] -= old.amounts.get(flavor_resource, 0)
    return growth


def _check_available(
    rule: Rule, index: SnapshotIndex, usage: QuotaUsage, decided: Decided
) -> Iterator[Violation]:
    queue = decided.admission.queue
    if decided.workload not in index.waiting or queue not in index.queues:
        return
    for flavor_resource, amount in sorted(_growth(index, decided).items()):
        available = usage.available(queue_node(queue), flavor_resource)
        # A slice that does not grow causes no over-use, though it may inherit some.
        if amount > 0 and available < 0:
            yield Violation(
                rule=rule,
                workload=decided.workload,
                queue=queue,
                message=f"charged {amount} {flavor_resource.resource} of {flavor_resource.flavor}; "
                f"that leaves {queue} {-available} over what it may use",
            )


def _check_borrow_level(
    index: SnapshotIndex, vacated: QuotaUsage, promised: QuotaUsage, admit: Admit
) -> Iterator[Violation]:
    """Level 0 means within the queue's own quota.

    Only the border between 0 and more is checked, and only where victims from this very queue
    cannot have moved it. With backfill several workloads of a queue may start at once; then it is
    enough that the queue borrows with all of them charged, preemptors included.
    """
    queue = admit.admission.queue
    if admit.workload not in index.waiting or queue not in index.queues:
        return
    node = queue_node(queue)
    growth = _growth(index, admit)
    has_cohort = index.tree.parent(node) is not None
    if admit.borrow_level > 0:
        if any(index.usage.is_borrowing_with(node, *each) for each in growth.items()):
            return
        if index.policy.backfill is not None and any(
            promised.is_borrowing_with(node, flavor_resource, 0) for flavor_resource in growth
        ):
            return
        message = f"level {admit.borrow_level}, but it is within its own quota"
    else:
        if not has_cohort or not any(
            vacated.is_borrowing_with(node, *each) for each in growth.items()
        ):
            return
        message = "level 0, but it is more than its own quota"
    yield Violation(rule="borrow-level", workload=admit.workload, queue=queue, message=message)
