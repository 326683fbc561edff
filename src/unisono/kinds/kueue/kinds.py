"""The kinds of `kueue.x-k8s.io`, version by version. Newer versions come first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from unisono.kinds.kueue import flavors, queues, workloads
from unisono.kinds.kueue.queue_rules import check_cohort, check_local_queue, check_queue
from unisono.kinds.kueue.versions import upgrade_cohort, upgrade_queue, upgrade_workload
from unisono.kinds.kueue.workload_rules import check_workload
from unisono.kinds.notes import Notes
from unisono.kinds.registry import Kind

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
