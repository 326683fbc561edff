"""May a workload preempt, may each victim be preempted, is each needed? (spec quota §7–§9, §18)

Every victim must also be one that this workload may preempt, for the reason given. That the
preemptor fits afterwards is checked in `quota`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from unisono.engine.audit.node_occupancy import with_only
from unisono.engine.audit.nodes import has_capacity, is_plain
from unisono.engine.audit.preemption_case import PreemptionCase, cases_of
from unisono.engine.audit.quota_tree import Node, QuotaUsage, Share, queue_node
from unisono.engine.audit.shrinking import smaller_release, was_requested, why_not_shrinkable
from unisono.engine.audit.snapshot_index import SnapshotIndex, admitted_at
from unisono.engine.audit.violation import Rule, Violation
from unisono.engine.model.names import QueueName, WorkloadKey
from unisono.engine.model.plan import Plan, Victim
from unisono.engine.model.resources import FlavorResource
from unisono.engine.model.workload import AdmittedWorkload, Workload


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
        has_capacity(occupancy, case.workload, placement)
        for placement in occupancy.added.get(case.workload.key, ())
    )


# --- victims --------------------------------------------------------------------------------------


def check_victims(case: PreemptionCase) -> Iterator[Violation]:
    """Check every known victim of one preemption."""
    for victim in case.preemption.victims:
        admitted = case.victims.get(victim.workload)
        if admitted is None:
            continue
        for rule, message in _check_victim(case, victim, admitted):
            yield Violation(
                rule=rule,
                workload=victim.workload,
                queue=admitted.admission.queue,
                message=f"victim of {case.workload.key} ({victim.reason}): {message}",
            )


def _check_victim(
    case: PreemptionCase, victim: Victim, admitted: AdmittedWorkload
) -> Iterator[tuple[Rule, str]]:
    before = case.index.admitted_workloads[victim.workload]
    requested = was_requested(victim, before)
    if victim.already_evicting != requested:
        yield "victim-flag", f"already_evicting is {victim.already_evicting}"
    if case.index.policy.strict and victim.keeps is not None and not requested:
        yield "victim-part", "in strict mode victims do not shrink"
    if why := why_not_shrinkable(victim, before):
        yield "victim-part", why
    if why := _why_protected(case, admitted, requested=requested):
        yield "victim-protected", why
    is_placed = any(each.nodes for each in admitted.admission.pod_sets)
    uses_needed = case.needed().intersection(case.index.held(admitted).amounts)
    if not uses_needed and not (case.index.has_nodes and is_placed):
        yield "victim-unrelated", "it uses nothing that the preemptor lacks"
    if why := _why_not_allowed(case, victim, admitted):
        yield "victim-rule", why
        return
    if victim.reason == "InClusterQueue":
        return
    if why := _why_within_quota(case, admitted):
        yield "victim-within-quota", why
    if why := _why_not_that_reason(case, victim, admitted):
        yield "victim-reason", why
    elif victim.reason == "InCohortFairSharing" and (why := _why_unfair(case, admitted)):
        yield "victim-unfair", why


def _why_protected(case: PreemptionCase, admitted: AdmittedWorkload, *, requested: bool) -> str:
    """A victim is not in an inactive queue, ran its minimum, and is not its own predecessor."""
    queue = case.index.queues.get(admitted.admission.queue)
    if queue is None:
        return f"its queue {admitted.admission.queue} does not exist"
    if why := case.index.why_closed(queue):
        return f"queue {queue.name} is inactive: {why}"
    label = queue.preemption.victims_have
    sets = admitted.workload.pod_sets
    if label is not None and not requested and any(label not in one.labels for one in sets):
        return f"not all of its pods have the label {label[0]}={label[1]}"
    is_foreign = admitted.admission.queue != case.queue.name
    if is_foreign and not queue.preemption.may_be_reclaimed and not requested:
        return f"nothing is reclaimed from {queue.name}"
    if case.workload.replaces == admitted.workload.key:
        return "it is the slice that the preemptor grows out of"
    if admitted.may_start and not requested and not case.index.policy.strict:
        ran_ms = case.now - admitted_at(admitted)
        if ran_ms < queue.preemption.min_runtime_ms:
            return f"admitted {ran_ms} ms ago, protected for {queue.preemption.min_runtime_ms} ms"
    return ""


def _why_not_allowed(case: PreemptionCase, victim: Victim, admitted: AdmittedWorkload) -> str:
    """Check the preemption rules of the preemptor's queue: §8, and §9 with fair sharing."""
    rules = case.queue.preemption
    preemptor, other = case.workload, admitted.workload
    same_queue = admitted.admission.queue == case.queue.name
    if victim.reason == "InClusterQueue":
        if not same_queue:
            return f"it is in {admitted.admission.queue}, the preemptor in {case.queue.name}"
        if rules.within_queue == "LowerPriority" and _is_lower(other, preemptor):
            return ""
        if rules.within_queue == "LowerOrNewerEqualPriority" and (
            _is_lower(other, preemptor) or _is_newer_equal(other, preemptor)
        ):
            return ""
        return _compared(f"withinClusterQueue {rules.within_queue}", preemptor, other)
    if same_queue:
        return "it is in the preemptor's own queue"
    if case.index.tree.sides(case.node, queue_node(admitted.admission.queue)) is None:
        return f"{admitted.admission.queue} is in another cohort tree than {case.queue.name}"
    if rules.reclaim == "Never" or (
        rules.reclaim == "LowerPriority" and not _is_lower(other, preemptor)
    ):
        return _compared(f"reclaimWithinCohort {rules.reclaim}", preemptor, other)
    return ""


def _is_lower(other: Workload, preemptor: Workload) -> bool:
    return other.priority < preemptor.priority


def _is_newer_equal(other: Workload, preemptor: Workload) -> bool:
    return other.priority == preemptor.priority and other.position_time > preemptor.position_time


def _compared(rule: str, preemptor: Workload, other: Workload) -> str:
    return (
        f"{rule}: preemptor has priority {preemptor.priority} since {preemptor.position_time}, "
        f"victim {other.priority} since {other.position_time}"
    )


def _why_within_quota(case: PreemptionCase, admitted: AdmittedWorkload) -> str:
    """A queue, or a cohort above it, that uses no more than its own quota is not reclaimed from.

    Checked with the most that they can have used. Classical preemption checks again before every
    victim (§8), so one of a queue's victims must be above its quota with all the others gone.
    """
    if case.is_hidden:
        return ""
    flavor_resources = case.needed()
    node = queue_node(admitted.admission.queue)
    fair = case.index.policy.fair_sharing is not None
    below_common = [node] if fair else _below_common(case, node)
    for each in below_common:
        if not any(_is_over(usage, each, flavor_resources) for usage in case.moments):
            return f"{each.kind} {each.name} uses no more than its own quota"
    if not fair and not _is_over_until_the_last(case, admitted.admission.queue, flavor_resources):
        return f"{node.name} was back within its own quota before its last victim"
    return ""


def _below_common(case: PreemptionCase, node: Node) -> list[Node]:
    """List the nodes from a victim's queue up to just below the first cohort shared with it."""
    ours = case.index.tree.path(case.node)
    return [each for each in case.index.tree.path(node) if each not in ours]


def _is_over(usage: QuotaUsage, node: Node, flavor_resources: set[FlavorResource]) -> bool:
    return any(
        usage.is_borrowing_with(node, flavor_resource, 0) for flavor_resource in flavor_resources
    )


def _is_over_until_the_last(
    case: PreemptionCase, queue: QueueName, flavor_resources: set[FlavorResource]
) -> bool:
    node = queue_node(queue)
    charges = [
        case.index.held(each) for each in case.victims.values() if each.admission.queue == queue
    ]
    left = [usage.after(released=charges) for usage in case.moments]
    return any(
        usage.is_borrowing_with(node, flavor_resource, charge.amounts.get(flavor_resource, 0))
        for usage in left
        for charge in charges
        for flavor_resource in flavor_resources
    )


def _why_not_that_reason(case: PreemptionCase, victim: Victim, admitted: AdmittedWorkload) -> str:
    """Say why the reason given does not apply, or nothing."""
    fair = case.index.policy.fair_sharing is not None
    match victim.reason:
        case "InCohortFairSharing":
            if not fair:
                return "fair sharing is off"
            borrowed = any(case.borrows(usage) for usage in case.moments)
            if not borrowed and not _was_admitted_partially(case):
                return f"{case.queue.name} does not borrow, so it reclaims"
        case "InCohortReclaimWhileBorrowing":
            if fair:
                return "fair sharing ignores borrowWithinCohort"
            return _why_not_while_borrowing(case, admitted.workload)
        case "InCohortReclamation":
            if fair and not _may_be_nominal(case):
                return f"{case.queue.name} would borrow everything that it lacks"
            if not fair and not _has_right_to_reclaim(case, admitted):
                return f"{case.queue.name} would borrow"
        case "InClusterQueue":
            pass
    return ""


def _was_admitted_partially(case: PreemptionCase) -> bool:
    """Say whether placement gave the preemptor fewer pods than its victims were chosen for."""
    asked = {pod_set.name: pod_set.count for pod_set in case.workload.pod_sets}
    return any(each.count < asked[each.name] for each in case.preemption.admission.pod_sets)


def _why_not_while_borrowing(case: PreemptionCase, other: Workload) -> str:
    borrow = case.queue.preemption.borrow
    if borrow.policy == "Never":
        return "borrowWithinCohort is Never"
    if not _is_lower(other, case.workload):
        return _compared("borrowWithinCohort LowerPriority", case.workload, other)
    threshold = borrow.max_priority_threshold
    if threshold is not None and other.priority > threshold:
        return f"priority {other.priority} is above maxPriorityThreshold {threshold}"
    return ""


def _may_be_nominal(case: PreemptionCase) -> bool:
    return any(
        not case.vacated.is_borrowing_with(
            case.node, flavor_resource, case.charge.amounts[flavor_resource]
        )
        for flavor_resource in case.needed()
    )


def _has_right_to_reclaim(case: PreemptionCase, admitted: AdmittedWorkload) -> bool:
    """Classical: the queue ends without borrowing, or a cohort on its side owns enough (§8).

    The second is the hierarchical advantage: below the first cohort that preemptor and victim
    share there is a cohort whose subtree can hold what the levels under it cannot.
    """
    if not case.borrows(case.vacated):
        return True
    shared = case.index.tree.path(queue_node(admitted.admission.queue))
    rest = dict(case.charge.amounts)
    for each in case.index.tree.path(case.node):
        if each in shared:
            return False
        if not any(case.earlier.is_borrowing_with(each, *item) for item in rest.items()):
            return True
        for flavor_resource, amount in rest.items():
            rest[flavor_resource] = max(
                0, amount - case.earlier.local_available(each, flavor_resource)
            )
    return False


def _why_unfair(case: PreemptionCase, admitted: AdmittedWorkload) -> str:
    """Compare shares as the strategies do, each side at its most favourable (§9).

    The victim's side is taken with all of its other victims still there, because they may have
    been chosen later. Only for the first preemption of a tree, whose usage is known, and not in
    strict mode: Kueue does not check again after reprieve (§18.3).
    """
    fair = case.index.policy.fair_sharing
    if fair is None or case.index.policy.strict or not case.is_first or case.is_hidden:
        return ""
    tree = case.index.tree
    sides = tree.sides(case.node, queue_node(admitted.admission.queue))
    assert sides is not None, "the victim's tree was checked before"
    ours, theirs = sides
    beyond = [
        case.index.held(each)
        for each in case.victims.values()
        if theirs not in tree.path(queue_node(each.admission.queue))
    ]
    share = case.without(case.earlier).after(charged=[case.charge]).share(ours)
    with_victim = case.earlier.after(released=beyond)
    initial = with_victim.share(theirs)
    final = with_victim.after(released=[case.index.held(admitted)]).share(theirs)
    if "LessThanInitialShare" in fair.strategies and share < initial:
        return ""
    if "LessThanOrEqualToFinalShare" in fair.strategies and share <= final:
        return ""
    return (
        f"share of {ours.name} {_shown(share)}, of {theirs.name} {_shown(initial)} "
        f"with the victim and {_shown(final)} without"
    )


def _shown(share: Share) -> str:
    return "infinite" if share.is_infinite else f"{float(share.value):.1f}"
