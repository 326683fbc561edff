"""May a workload preempt at all, and is every victim needed? (spec quota §7–§9, §18)

Each victim on its own is checked in `victims`; that the preemptor fits afterwards, in `quota`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from unisono.engine.audit.node_occupancy import with_only
from unisono.engine.audit.nodes import has_room, is_plain
from unisono.engine.audit.preemption_case import PreemptionCase, cases_of
from unisono.engine.audit.shrinking import smaller_release, was_requested
from unisono.engine.audit.snapshot_index import SnapshotIndex
from unisono.engine.audit.victims import check_victims
from unisono.engine.audit.violation import Rule, Violation
from unisono.engine.model.names import WorkloadKey
from unisono.engine.model.plan import Plan
from unisono.engine.model.workload import AdmittedWorkload


def check_preemptions(index: SnapshotIndex, plan: Plan) -> Iterator[Violation]:
    """Check every preemption of a known workload."""
    for case in cases_of(index, plan):
        yield from _check_permission(case)
        yield from check_victims(case)
        yield from _check_needless(case)


def _broken(rule: Rule, case: PreemptionCase, message: str) -> Violation:
    return Violation(rule=rule, workload=case.workload.key, queue=case.queue.name, message=message)


def _check_permission(case: PreemptionCase) -> Iterator[Violation]:
    """May this workload, with this shortage, preempt?"""
    policy = case.index.policy
    if not case.preemption.victims:
        yield _broken("no-victims", case, "it preempts and names no victims")
    backoff = case.workload.may_preempt_at
    has_new_victims = any(
        not was_requested(victim, case.victims[victim.workload])
        for victim in case.preemption.victims
        if victim.workload in case.victims
    )
    if policy.anti_thrash and not policy.strict and backoff is not None:
        if backoff > case.now and has_new_victims:
            message = f"may preempt from {backoff} on, and now is {case.now}"
            yield _broken("preemption-backoff", case, message)
    rules = case.queue.preemption
    if rules.borrow.policy != "Never" or (policy.fair_sharing and rules.reclaim != "Never"):
        return
    for flavor_resource in sorted(case.lacked()):
        amount = case.charge.amounts[flavor_resource]
        nominal = case.index.tree.limits(case.node, flavor_resource).nominal
        _, may_reclaim = case.earlier.level(case.node, flavor_resource, amount)
        if nominal < amount and not may_reclaim:
            message = (
                f"lacks {flavor_resource.resource} of {flavor_resource.flavor} and wants {amount}, "
                f"more than its nominal quota {nominal}, and may not preempt while borrowing"
            )
            yield _broken("preemption-forbidden", case, message)


def _check_needless(case: PreemptionCase) -> Iterator[Violation]:
    """Would the preemptor start with one victim still there?

    Reprieve (§8, §9) leaves no victim that could stay, given the usage that the preemptor was
    evaluated with. That usage is unknown, so a victim is called needless only if it was so at
    every moment at which the evaluation may have been.

    An attempt that forbids borrowing (§8) also ends only when the queue does not borrow. Which
    attempt succeeded is not in the plan. If the queue borrows even with all victims of the plan
    gone, or with fair sharing, it was one that allows it; otherwise a victim is called needless
    only if the preemptor would fit without it and without borrowing. Victims that are being
    evicted already are not counted: sparing them changes nothing.

    A victim may be needed for its nodes alone. One that could shrink must not be evicted whole, or
    give up more pods, if fewer would have been enough (placement §8.7).
    """
    if case.is_hidden:
        return
    may_borrow = case.index.policy.fair_sharing is not None or case.borrows(case.vacated)
    for victim in case.preemption.victims:
        if victim.workload not in case.victims or was_requested(
            victim, case.victims[victim.workload]
        ):
            continue
        others = {key: each for key, each in case.victims.items() if key != victim.workload}
        if _would_start(case, others, may_borrow=may_borrow):
            message = f"{victim.workload} could stay: {len(others)} other victims are enough"
            yield _broken("victim-needless", case, message)
            continue
        less = smaller_release(victim, case.index.admitted_workloads[victim.workload])
        if case.index.policy.strict or less is None:
            continue
        if _would_start(case, {**others, victim.workload: less}, may_borrow=may_borrow):
            message = f"{victim.workload} could keep more of its pods"
            yield _broken("victim-needless", case, message)


def _would_start(
    case: PreemptionCase, leaving: Mapping[WorkloadKey, AdmittedWorkload], *, may_borrow: bool
) -> bool:
    """Say whether the preemptor would surely have started with only these victims gone."""
    if not _would_be_placed(case, leaving):
        return False
    left = [case.without(usage, leaving=leaving.values()) for usage in case.moments]
    return all(
        usage.fits(case.charge) and (may_borrow or not case.borrows(usage)) for usage in left
    )


def _would_be_placed(case: PreemptionCase, leaving: Mapping[WorkloadKey, AdmittedWorkload]) -> bool:
    """Say whether the preemptor could surely be placed with only these victims gone.

    Its own nodes prove it, if they would have had room in the snapshot. Only a single pod set
    without rules between pods is checked: where placement is a search, it may have missed this.
    """
    nodes_of_spared = [
        assigned.nodes
        for key in case.victims
        for assigned in case.index.admitted_workloads[key].admission.pod_sets
        if key not in leaving or leaving[key] != case.victims[key]
    ]
    if not any(nodes_of_spared):
        return True
    if len(case.workload.pod_sets) > 1 or not is_plain(case.workload.pod_sets[0]):
        return False
    occupancy = with_only(case.index, case.preemption, leaving)
    return not occupancy.with_anti_affinity and all(
        has_room(occupancy, case.workload, placement)
        for placement in occupancy.added.get(case.workload.key, ())
    )
