"""ClusterQueues, Cohorts and LocalQueues: what is refused, what is forgiven, the engine's form."""

from __future__ import annotations

from unisono.engine.model import queue as engine
from unisono.engine.model import selection as engine_selection
from unisono.engine.model.names import (
    CPU,
    CohortName,
    FlavorName,
    Instant,
    LocalQueueKey,
    QueueName,
)
from unisono.engine.model.resources import Amounts, amounts
from unisono.kinds.kueue.queues import (
    BorrowWithinCohort,
    ClusterQueue,
    ClusterQueueSpec,
    Cohort,
    ConsumedStatus,
    FairSharing,
    FlavorFungibility,
    LocalQueue,
    LocalQueueFairSharingStatus,
    Preemption,
)
from unisono.kinds.kueue.quota_rules import check_groups, groups_of
from unisono.kinds.meta import check_selector, selector_of, wrong_with_subdomain
from unisono.kinds.notes import Notes
from unisono.kinds.quantity import NANO
from unisono.kinds.scalar import seconds_ms

MICRO = 10**6
_MAX_CHECKS = 64  # what Kueue allows in one strategy


def check_queue(queue: ClusterQueue, notes: Notes, *, cohort_field: str = "cohortName") -> None:
    """Report everything about a ClusterQueue; `cohort_field` is its name in the user's version."""
    spec = queue.spec
    path = f"spec.{cohort_field}"
    _check_reference(spec.cohort_name, path, notes)
    check_groups(
        spec.resource_groups, notes, is_queue=True, parent=spec.cohort_name, parent_field=path
    )
    _check_namespaces(spec, notes)
    _check_preemption(spec.preemption or Preemption(), notes)
    _check_fungibility(spec.flavor_fungibility or FlavorFungibility(), notes)
    _check_admission_checks(spec, notes)
    _check_weight(spec.fair_sharing, notes)
    if spec.concurrent_admission_policy is not None:
        message = "has no effect yet; ignored"
        notes.warn("FieldIgnored", "spec.concurrentAdmissionPolicy", message)


def check_cohort(cohort: Cohort, notes: Notes, *, parent_field: str = "parentName") -> None:
    """Report everything about a Cohort that can be seen without the others."""
    spec = cohort.spec
    path = f"spec.{parent_field}"
    _check_reference(spec.parent_name, path, notes)
    check_groups(
        spec.resource_groups, notes, is_queue=False, parent=spec.parent_name, parent_field=path
    )
    _check_weight(spec.fair_sharing, notes)


def check_local_queue(local_queue: LocalQueue, notes: Notes) -> None:
    """Report everything about a LocalQueue that can be seen without the others."""
    name = local_queue.spec.cluster_queue
    if not name:
        notes.problem("spec.clusterQueue", "is required")
    _check_reference(name, "spec.clusterQueue", notes)
    _check_weight(local_queue.spec.fair_sharing, notes)


def _check_reference(name: str, path: str, notes: Notes) -> None:
    wrong = wrong_with_subdomain(name) if name else ""
    if wrong:
        notes.problem(path, wrong)


def _check_namespaces(spec: ClusterQueueSpec, notes: Notes) -> None:
    if spec.namespace_selector is not None:
        for problem in check_selector(spec.namespace_selector, "spec.namespaceSelector"):
            notes.problem(problem.path, problem.message)
    elif notes.strict:
        message = "is absent: the queue takes workloads from no namespace; write {} for all"
        notes.warn("MissingNamespaceSelector", "spec.namespaceSelector", message)
    else:
        message = "is absent: read as {} (all namespaces); Kueue would admit nothing"
        notes.warn("MissingNamespaceSelector", "spec.namespaceSelector", message)


def _check_preemption(preemption: Preemption, notes: Notes) -> None:
    borrow = preemption.borrow_within_cohort or BorrowWithinCohort()
    if borrow.policy != "Never" and preemption.reclaim_within_cohort == "Never":
        message = f"{borrow.policy} needs reclaimWithinCohort other than Never"
        notes.problem("spec.preemption.borrowWithinCohort.policy", message)
    if preemption.min_runtime_seconds is not None and notes.strict:
        notes.problem("spec.preemption.minRuntimeSeconds", "unknown field")


def _check_fungibility(fungibility: FlavorFungibility, notes: Notes) -> None:
    if fungibility.preference is not None and not _prefers(fungibility):
        message = "has no effect unless whenCanBorrow and whenCanPreempt are TryNextFlavor"
        notes.warn("FieldIgnored", "spec.flavorFungibility.preference", message)


def _prefers(fungibility: FlavorFungibility) -> bool:
    """A preference only counts when every flavor is looked at."""
    return (
        fungibility.when_can_borrow == "TryNextFlavor"
        and fungibility.when_can_preempt == "TryNextFlavor"
    )


def _check_admission_checks(spec: ClusterQueueSpec, notes: Notes) -> None:
    if spec.admission_checks_strategy is None:
        return
    path = "spec.admissionChecksStrategy.admissionChecks"
    rules = spec.admission_checks_strategy.admission_checks
    if len(rules) > _MAX_CHECKS:
        notes.problem(path, f"has {len(rules)} checks; at most {_MAX_CHECKS} are allowed")
    seen: set[str] = set()
    for index, rule in enumerate(rules):
        if rule.name in seen:
            notes.problem(f"{path}[{index}].name", f'"{rule.name}" stands twice')
        seen.add(rule.name)
        _check_reference(rule.name, f"{path}[{index}].name", notes)


def _check_weight(sharing: FairSharing | None, notes: Notes) -> None:
    if sharing is None or sharing.weight is None:
        return
    weight, path = sharing.weight, "spec.fairSharing.weight"
    if weight.nano < 0:
        notes.problem(path, f"is {weight.text}; it cannot be negative")
    elif weight.nano == 1:
        notes.problem(path, f"is {weight.text}; it must be 0 or more than 1n")
    elif weight.nano % (NANO // engine.MILLI):
        message = f"is {weight.text}; rounded up to thousandths"
        notes.warn("WeightRounded", path, message)


# ---- engine values -------------------------------------------------------------------------------


def queue_of(queue: ClusterQueue, *, strict: bool) -> engine.ClusterQueue:
    """Return the engine's form of a ClusterQueue that passed its checks."""
    spec = queue.spec
    checks = spec.admission_checks_strategy
    scope = spec.admission_scope
    return engine.ClusterQueue(
        name=QueueName(queue.metadata.name),
        cohort=CohortName(spec.cohort_name) if spec.cohort_name else None,
        groups=groups_of(spec.resource_groups, has_parent=bool(spec.cohort_name)),
        strategy=spec.queueing_strategy,
        namespace_selector=_namespaces(spec, strict=strict),
        fungibility=_fungibility(spec.flavor_fungibility or FlavorFungibility()),
        preemption=_preemption(spec.preemption or Preemption()),
        checks=tuple(
            engine.CheckRule(rule.name, tuple(FlavorName(name) for name in rule.on_flavors))
            for rule in (checks.admission_checks if checks else ())
        ),
        stop=spec.stop_policy,
        weight_milli=_weight_milli(spec.fair_sharing),
        usage_based_admission=(
            scope is not None and scope.admission_mode == "UsageBasedAdmissionFairSharing"
        ),
        terminating=queue.metadata.deletion_timestamp is not None,
    )


def cohort_of(cohort: Cohort) -> engine.Cohort:
    """Return the engine's form of a Cohort that passed its checks."""
    spec = cohort.spec
    return engine.Cohort(
        name=CohortName(cohort.metadata.name),
        parent=CohortName(spec.parent_name) if spec.parent_name else None,
        groups=groups_of(spec.resource_groups, has_parent=bool(spec.parent_name)),
        weight_milli=_weight_milli(spec.fair_sharing),
    )


def local_queue_of(local_queue: LocalQueue, namespace: str) -> engine.LocalQueue:
    """Return the engine's form of a LocalQueue that passed its checks."""
    spec = local_queue.spec
    sharing = local_queue.status.fair_sharing or LocalQueueFairSharingStatus()
    consumed = sharing.admission_fair_sharing_status or ConsumedStatus()
    return engine.LocalQueue(
        key=LocalQueueKey(f"{namespace}/{local_queue.metadata.name}"),
        queue=QueueName(spec.cluster_queue),
        stop=spec.stop_policy,
        weight_milli=_weight_milli(spec.fair_sharing),
        consumed_micro=_consumed_micro(consumed),
        consumed_at=consumed.last_update.instant if consumed.last_update else Instant(0),
    )


def _consumed_micro(consumed: ConsumedStatus) -> Amounts:
    """Return recorded consumption in millionths of an engine amount."""
    return amounts(
        {
            name: amount.nano if name == CPU else amount.nano * MICRO // NANO
            for name, amount in consumed.consumed_resources.items()
        }
    )


def _namespaces(spec: ClusterQueueSpec, *, strict: bool) -> engine_selection.LabelSelector | None:
    """An absent selector matches everything; in strict mode nothing, as in Kueue (§2.3)."""
    if spec.namespace_selector is None:
        return None if strict else engine_selection.LabelSelector()
    return selector_of(spec.namespace_selector)


def _fungibility(fungibility: FlavorFungibility) -> engine.FlavorFungibility:
    preference = fungibility.preference if _prefers(fungibility) else None
    return engine.FlavorFungibility(
        when_can_borrow=fungibility.when_can_borrow,
        when_can_preempt=fungibility.when_can_preempt,
        preference=preference or "",
    )


def _preemption(preemption: Preemption) -> engine.PreemptionRules:
    borrow = preemption.borrow_within_cohort or BorrowWithinCohort()
    return engine.PreemptionRules(
        within_queue=preemption.within_cluster_queue,
        reclaim=preemption.reclaim_within_cohort,
        borrow=engine.BorrowWithinCohort(
            policy=borrow.policy, max_priority_threshold=borrow.max_priority_threshold
        ),
        min_runtime_ms=seconds_ms(preemption.min_runtime_seconds or 0),
    )


def _weight_milli(sharing: FairSharing | None) -> int:
    if sharing is None or sharing.weight is None:
        return engine.MILLI
    return sharing.weight.milli
