"""Old versions to the stored one and back (spec quota, scenario 72)."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from unisono.kinds.decode import decode, encode
from unisono.kinds.kueue import queues, workloads
from unisono.kinds.kueue.kinds import (
    downgrade_queue,
    downgrade_workload,
    upgrade_cohort,
    upgrade_queue,
    upgrade_workload,
)


def old_queue(spec: dict[str, Any], status: Any = None) -> queues.ClusterQueueV1Beta1:
    raw = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "spec": spec}
    made, problems = decode(queues.ClusterQueueV1Beta1, {**raw, "status": status})
    assert made is not None, problems
    return made


def test_scenario_72() -> None:
    old = old_queue(
        {
            "cohort": "x",
            "admissionChecks": ["p"],
            "flavorFungibility": {"whenCanBorrow": "Borrow"},
        }
    )
    new = encode(upgrade_queue(old))
    assert (new["apiVersion"], new["kind"]) == ("kueue.x-k8s.io/v1beta2", "ClusterQueue")
    assert new["spec"]["cohortName"] == "x"
    assert new["spec"]["admissionChecksStrategy"] == {"admissionChecks": [{"name": "p"}]}
    upgraded = upgrade_queue(old)
    assert upgraded.api_version == "kueue.x-k8s.io/v1beta2"
    assert upgraded.spec.flavor_fungibility is not None
    assert upgraded.spec.flavor_fungibility.when_can_borrow == "MayStopSearch"
    back = downgrade_queue(upgraded)
    assert back.api_version == "kueue.x-k8s.io/v1beta1"
    assert back.spec.cohort == "x"


def test_a_status_field_that_no_longer_exists_is_dropped() -> None:
    status = {"pendingWorkloadsStatus": {}, "pendingWorkloads": 3}
    assert upgrade_queue(old_queue({}, status)).status == {"pendingWorkloads": 3}
    assert upgrade_queue(old_queue({}, "odd")).status == "odd"


old_specs = st.fixed_dictionaries(
    {},
    optional={
        "cohort": st.sampled_from(["x", ""]),
        "queueingStrategy": st.sampled_from(["StrictFIFO", "BestEffortFIFO"]),
        "namespaceSelector": st.sampled_from([{}, {"matchLabels": {"a": "b"}}]),
        "flavorFungibility": st.fixed_dictionaries(
            {},
            optional={
                "whenCanBorrow": st.sampled_from(["Borrow", "MayStopSearch", "TryNextFlavor"]),
                "whenCanPreempt": st.sampled_from(["Preempt", "MayStopSearch", "TryNextFlavor"]),
                "preference": st.sampled_from(["BorrowingOverPreemption"]),
            },
        ),
        "preemption": st.sampled_from([{"reclaimWithinCohort": "Any"}]),
        "admissionChecks": st.lists(st.sampled_from(["p", "q"]), max_size=2),
        "stopPolicy": st.sampled_from(["None", "Hold", "HoldAndDrain"]),
        "fairSharing": st.sampled_from([{"weight": "2"}]),
        "admissionScope": st.sampled_from([{"admissionMode": "NoAdmissionFairSharing"}]),
        "resourceGroups": st.sampled_from(
            [[{"flavors": ["a"], "resources": [{"name": "gpu", "nominalQuota": "1"}]}]]
        ),
    },
)


@given(old_specs)
def test_up_down_up_changes_nothing(spec: dict[str, Any]) -> None:
    new = upgrade_queue(old_queue(spec))
    down = downgrade_queue(new)
    again, problems = decode(queues.ClusterQueueV1Beta1, encode(down))
    assert problems == []
    assert again is not None
    assert upgrade_queue(down) == new


def test_a_cohort_of_the_first_version() -> None:
    raw = {"apiVersion": "kueue.x-k8s.io/v1alpha1", "kind": "Cohort", "spec": {"parent": "org"}}
    old, _ = decode(queues.CohortV1Alpha1, raw)
    assert old is not None
    new = upgrade_cohort(old)
    assert new.spec.parent_name == "org"
    assert new.api_version == "kueue.x-k8s.io/v1beta2"


def old_workload(spec: dict[str, Any], status: dict[str, Any]) -> workloads.WorkloadV1Beta1:
    raw = {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "spec": spec,
        "status": status,
    }
    made, problems = decode(workloads.WorkloadV1Beta1, raw)
    assert made is not None, problems
    return made


def test_a_workload_up_and_down() -> None:
    old = old_workload(
        {
            "queueName": "lq",
            "priorityClassName": "high",
            "priorityClassSource": "scheduling.k8s.io/priorityclass",
            "priority": 7,
            "active": False,
            "maximumExecutionTimeSeconds": 60,
        },
        {
            "accumulatedPastExexcutionTimeSeconds": 5,
            "admission": {
                "clusterQueue": "q",
                "podSetAssignments": [
                    {
                        "name": "main",
                        "topologyAssignment": {
                            "levels": ["rack", "host"],
                            "domains": [
                                {"values": ["r1", "n1"], "count": 2},
                                {"values": ["r1", "n2"], "count": 1},
                            ],
                        },
                    }
                ],
            },
            "requeueState": {"count": 2},
        },
    )
    new = upgrade_workload(old)
    assert new.spec.priority_class_ref == workloads.PriorityClassRef(
        group="scheduling.k8s.io", kind="PriorityClass", name="high"
    )
    assert new.status.accumulated_past_execution_time_seconds == 5
    assert "accumulatedPastExecutionTimeSeconds" in encode(new)["status"]
    assert new.status.admission is not None
    assert "slices" in new.status.admission.pod_set_assignments[0].topology_assignment
    assert new.spec.active is False
    assert downgrade_workload(new) == old
    assert "accumulatedPastExexcutionTimeSeconds" in encode(downgrade_workload(new))["status"]


def test_a_priority_class_without_a_source_is_kueues() -> None:
    new = upgrade_workload(old_workload({"priorityClassName": "high"}, {}))
    assert new.spec.priority_class_ref is not None
    assert new.spec.priority_class_ref.kind == "WorkloadPriorityClass"
    down = downgrade_workload(new)
    assert down.spec.priority_class_source == "kueue.x-k8s.io/workloadpriorityclass"
    assert upgrade_workload(down) == new


def test_a_workload_that_says_nothing() -> None:
    old = old_workload({}, {})
    assert downgrade_workload(upgrade_workload(old)) == old
