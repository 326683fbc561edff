"""The kinds of `kueue.x-k8s.io`, version by version, and old versions to the stored one and back.

    ClusterQueue   cohort                         cohortName
                   admissionChecks: [a]           admissionChecksStrategy: [{name: a}]
                   Borrow, Preempt                MayStopSearch
    Cohort         parent (v1alpha1)              parentName
    Workload       priorityClassName + -Source    priorityClassRef
                   …PastExexcutionTime…           …PastExecutionTime…
                   topologyAssignment.domains     .slices

Going up loses nothing that has a meaning. Going down writes the newest words that the old version
knows, so up(down(x)) == x for every object that the old version can express. `convert` does the
same for plain dictionaries. Spec quota §1, "v1beta1 -> v1beta2"; scenario 72.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec

from unisono.kinds.kueue import flavors, queues, workloads
from unisono.kinds.kueue.queue_rules import check_cohort, check_local_queue, check_queue
from unisono.kinds.kueue.topology_assignment import compressed, expanded
from unisono.kinds.kueue.workload_rules import check_workload
from unisono.kinds.notes import Notes
from unisono.kinds.registry import Kind

V1BETA1 = "kueue.x-k8s.io/v1beta1"
V1BETA2 = "kueue.x-k8s.io/v1beta2"

_OLD_WORDS = {"Borrow": "MayStopSearch", "Preempt": "MayStopSearch"}
_SOURCES: dict[str, tuple[str, str]] = {
    "kueue.x-k8s.io/workloadpriorityclass": ("kueue.x-k8s.io", "WorkloadPriorityClass"),
    "scheduling.k8s.io/priorityclass": ("scheduling.k8s.io", "PriorityClass"),
}


# ---- ClusterQueue ------------------------------------------------------------------------------


def upgrade_queue(old: queues.ClusterQueueV1Beta1) -> queues.ClusterQueue:
    """Return a v1beta1 ClusterQueue as v1beta2."""
    spec = old.spec
    strategy = spec.admission_checks_strategy
    if spec.admission_checks and strategy is None:
        rules = tuple(queues.AdmissionCheckRule(name=name) for name in spec.admission_checks)
        strategy = queues.AdmissionChecksStrategy(admission_checks=rules)
    return queues.ClusterQueue(
        api_version=V1BETA2,
        metadata=old.metadata,
        spec=queues.ClusterQueueSpec(
            resource_groups=spec.resource_groups,
            cohort_name=spec.cohort,
            queueing_strategy=spec.queueing_strategy,
            namespace_selector=spec.namespace_selector,
            flavor_fungibility=_upgrade_fungibility(spec.flavor_fungibility),
            preemption=spec.preemption,
            admission_checks_strategy=strategy,
            stop_policy=spec.stop_policy,
            fair_sharing=spec.fair_sharing,
            admission_scope=spec.admission_scope,
        ),
        status=_without(old.status, "pendingWorkloadsStatus"),
    )


def downgrade_queue(new: queues.ClusterQueue) -> queues.ClusterQueueV1Beta1:
    """Return a v1beta2 ClusterQueue as v1beta1."""
    spec = new.spec
    return queues.ClusterQueueV1Beta1(
        api_version=V1BETA1,
        metadata=new.metadata,
        spec=queues.ClusterQueueSpecV1Beta1(
            resource_groups=spec.resource_groups,
            cohort=spec.cohort_name,
            queueing_strategy=spec.queueing_strategy,
            namespace_selector=spec.namespace_selector,
            flavor_fungibility=_downgrade_fungibility(spec.flavor_fungibility),
            preemption=spec.preemption,
            admission_checks_strategy=spec.admission_checks_strategy,
            stop_policy=spec.stop_policy,
            fair_sharing=spec.fair_sharing,
            admission_scope=spec.admission_scope,
        ),
        status=new.status,
    )


def _upgrade_fungibility(
    old: queues.FlavorFungibilityV1Beta1 | None,
) -> queues.FlavorFungibility | None:
    if old is None:
        return None
    borrow = _OLD_WORDS.get(old.when_can_borrow, old.when_can_borrow)
    preempt = _OLD_WORDS.get(old.when_can_preempt, old.when_can_preempt)
    return queues.FlavorFungibility(
        when_can_borrow="TryNextFlavor" if borrow == "TryNextFlavor" else "MayStopSearch",
        when_can_preempt="TryNextFlavor" if preempt == "TryNextFlavor" else "MayStopSearch",
        preference=old.preference,
    )


def _downgrade_fungibility(
    new: queues.FlavorFungibility | None,
) -> queues.FlavorFungibilityV1Beta1 | None:
    if new is None:
        return None
    return queues.FlavorFungibilityV1Beta1(
        when_can_borrow="Borrow" if new.when_can_borrow == "MayStopSearch" else "TryNextFlavor",
        when_can_preempt="Preempt" if new.when_can_preempt == "MayStopSearch" else "TryNextFlavor",
        preference=new.preference,
    )


def _without(status: Any, field: str) -> Any:
    if not isinstance(status, dict):
        return status
    return {key: value for key, value in status.items() if key != field}


# ---- Cohort ------------------------------------------------------------------------------------


def upgrade_cohort(old: queues.CohortV1Alpha1) -> queues.Cohort:
    """Return a v1alpha1 Cohort as v1beta2."""
    return queues.Cohort(
        api_version=V1BETA2,
        metadata=old.metadata,
        spec=queues.CohortSpec(
            parent_name=old.spec.parent,
            resource_groups=old.spec.resource_groups,
            fair_sharing=old.spec.fair_sharing,
        ),
        status=old.status,
    )


# ---- Workload ----------------------------------------------------------------------------------


def upgrade_workload(old: workloads.WorkloadV1Beta1) -> workloads.Workload:
    """Return a v1beta1 Workload as v1beta2."""
    spec, status = old.spec, old.status
    return workloads.Workload(
        api_version=V1BETA2,
        metadata=old.metadata,
        spec=workloads.WorkloadSpec(
            pod_sets=spec.pod_sets,
            queue_name=spec.queue_name,
            priority_class_ref=_priority_class_ref(spec),
            priority=spec.priority,
            active=spec.active,
            maximum_execution_time_seconds=spec.maximum_execution_time_seconds,
        ),
        status=workloads.WorkloadStatus(
            **{
                **_fields(status),
                "admission": _with_topology(status.admission, compressed),
            }
        ),
    )


def downgrade_workload(new: workloads.Workload) -> workloads.WorkloadV1Beta1:
    """Return a v1beta2 Workload as v1beta1."""
    spec, status = new.spec, new.status
    name, source = _priority_class_source(spec.priority_class_ref)
    return workloads.WorkloadV1Beta1(
        api_version=V1BETA1,
        metadata=new.metadata,
        spec=workloads.WorkloadSpecV1Beta1(
            pod_sets=spec.pod_sets,
            queue_name=spec.queue_name,
            priority_class_name=name,
            priority_class_source=source,
            priority=spec.priority,
            active=spec.active,
            maximum_execution_time_seconds=spec.maximum_execution_time_seconds,
        ),
        status=workloads.WorkloadStatusV1Beta1(
            **{
                **_fields(status),
                "admission": _with_topology(status.admission, expanded),
            }
        ),
    )


def _fields(status: msgspec.Struct) -> dict[str, Any]:
    """List the fields of a status; the versions have the same ones under our names."""
    return {name: getattr(status, name) for name in status.__struct_fields__}


def _priority_class_ref(spec: workloads.WorkloadSpecV1Beta1) -> workloads.PriorityClassRef | None:
    if not spec.priority_class_name:
        return None
    # A class without a source was written by hand; Kueue's own kind is the likelier one.
    source = spec.priority_class_source or "kueue.x-k8s.io/workloadpriorityclass"
    group, kind = _SOURCES[source]
    # The table holds exactly the literals of the struct.
    return workloads.PriorityClassRef(
        group=cast(Any, group), kind=cast(Any, kind), name=spec.priority_class_name
    )


def _priority_class_source(
    reference: workloads.PriorityClassRef | None,
) -> tuple[str, workloads.PriorityClassSource]:
    if reference is None:
        return "", ""
    if reference.kind == "PriorityClass":
        return reference.name, "scheduling.k8s.io/priorityclass"
    return reference.name, "kueue.x-k8s.io/workloadpriorityclass"


def _with_topology(
    admission: workloads.Admission | None, convert: Any
) -> workloads.Admission | None:
    if admission is None:
        return None
    assignments = tuple(
        msgspec.structs.replace(one, topology_assignment=convert(one.topology_assignment))
        for one in admission.pod_set_assignments
    )
    return msgspec.structs.replace(admission, pod_set_assignments=assignments)


# ---- what the registry lists ---------------------------------------------------------------------

GROUP = "kueue.x-k8s.io"


def _check_old_queue(queue: queues.ClusterQueueV1Beta1, notes: Notes) -> None:
    if queue.spec.admission_checks and queue.spec.admission_checks_strategy is not None:
        message = "and admissionChecksStrategy exclude each other; keep admissionChecksStrategy"
        notes.problem("spec.admissionChecks", message)
    check_queue(upgrade_queue(queue), notes, cohort_field="cohort")


def _check_old_cohort(cohort: queues.CohortV1Alpha1, notes: Notes) -> None:
    check_cohort(upgrade_cohort(cohort), notes, parent_field="parent")


def _check_old_workload(workload: workloads.WorkloadV1Beta1, notes: Notes) -> None:
    check_workload(upgrade_workload(workload), notes)


def _kind(
    struct: type[msgspec.Struct],
    kind: str,
    *versions: str,
    namespaced: bool = False,
    check: Callable[[Any, Notes], None] | None = None,
    upgrade: Callable[[Any], Any] | None = None,
) -> tuple[Kind, ...]:
    return tuple(
        Kind(
            group=GROUP,
            version=version,
            kind=kind,
            struct=struct,
            namespaced=namespaced,
            check=check,
            upgrade=upgrade,
        )
        for version in versions
    )


KINDS: tuple[Kind, ...] = (
    *_kind(
        flavors.ResourceFlavor,
        "ResourceFlavor",
        "v1beta2",
        "v1beta1",
        check=flavors.check_flavor,
    ),
    *_kind(queues.ClusterQueue, "ClusterQueue", "v1beta2", check=check_queue),
    *_kind(
        queues.ClusterQueueV1Beta1,
        "ClusterQueue",
        "v1beta1",
        check=_check_old_queue,
        upgrade=upgrade_queue,
    ),
    *_kind(queues.Cohort, "Cohort", "v1beta2", "v1beta1", check=check_cohort),
    *_kind(
        queues.CohortV1Alpha1,
        "Cohort",
        "v1alpha1",
        check=_check_old_cohort,
        upgrade=upgrade_cohort,
    ),
    *_kind(
        queues.LocalQueue,
        "LocalQueue",
        "v1beta2",
        "v1beta1",
        namespaced=True,
        check=check_local_queue,
    ),
    *_kind(workloads.Workload, "Workload", "v1beta2", namespaced=True, check=check_workload),
    *_kind(
        workloads.WorkloadV1Beta1,
        "Workload",
        "v1beta1",
        namespaced=True,
        check=_check_old_workload,
        upgrade=upgrade_workload,
    ),
    *_kind(flavors.WorkloadPriorityClass, "WorkloadPriorityClass", "v1beta2", "v1beta1"),
    *_kind(
        flavors.AdmissionCheck,
        "AdmissionCheck",
        "v1beta2",
        "v1beta1",
        check=flavors.check_admission_check,
    ),
    *_kind(
        flavors.Topology,
        "Topology",
        "v1beta2",
        "v1beta1",
        "v1alpha1",
        check=flavors.check_topology,
    ),
)
