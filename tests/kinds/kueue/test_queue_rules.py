"""ClusterQueues, Cohorts and LocalQueues: rules, defaults and engine values."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.manifests import only, problems, warnings
from unisono.engine.model import queue as engine
from unisono.engine.model.names import Instant
from unisono.engine.model.selection import LabelSelector, Requirement
from unisono.kinds.kueue.queue_rules import cohort_of, local_queue_of, queue_of


def queue(spec: str = "namespaceSelector: {}", version: str = "v1beta2", meta: str = "") -> str:
    return (
        f"apiVersion: kueue.x-k8s.io/{version}\nkind: ClusterQueue\n"
        f"metadata: {{name: q{meta}}}\nspec: {{{spec}}}\n"
    )


def made(spec: str, *, strict: bool = False, **where: str) -> engine.ClusterQueue:
    return queue_of(only(queue(f"namespaceSelector: {{}}, {spec}", **where)), strict=strict)


def test_defaults_of_a_queue() -> None:
    found = queue_of(only(queue()), strict=False)
    assert found == engine.ClusterQueue(name=found.name, namespace_selector=LabelSelector())
    assert found.strategy == "BestEffortFIFO"
    assert found.fungibility.when_can_borrow == "MayStopSearch"
    assert found.fungibility.when_can_preempt == "TryNextFlavor"
    assert found.preemption == engine.PreemptionRules()
    assert found.weight_milli == 1000


def test_everything_that_a_queue_can_say() -> None:
    found = made(
        "cohortName: team, queueingStrategy: StrictFIFO, stopPolicy: HoldAndDrain,"
        " flavorFungibility: {whenCanBorrow: TryNextFlavor, whenCanPreempt: TryNextFlavor,"
        " preference: PreemptionOverBorrowing},"
        " preemption: {withinClusterQueue: LowerOrNewerEqualPriority, reclaimWithinCohort: Any,"
        " borrowWithinCohort: {policy: LowerPriority, maxPriorityThreshold: 100},"
        " minRuntimeSeconds: 90},"
        " admissionChecksStrategy:"
        " {admissionChecks: [{name: prov, onFlavors: [f]}, {name: other}]},"
        " fairSharing: {weight: '0.5'},"
        " admissionScope: {admissionMode: UsageBasedAdmissionFairSharing}",
        meta=", deletionTimestamp: '2026-01-01T00:00:00Z'",
    )
    assert found.cohort == "team"
    assert found.strategy == "StrictFIFO"
    assert found.stop == "HoldAndDrain"
    assert found.fungibility == engine.FlavorFungibility(
        when_can_borrow="TryNextFlavor",
        when_can_preempt="TryNextFlavor",
        preference="PreemptionOverBorrowing",
    )
    assert found.preemption == engine.PreemptionRules(
        within_queue="LowerOrNewerEqualPriority",
        reclaim="Any",
        borrow=engine.BorrowWithinCohort(policy="LowerPriority", max_priority_threshold=100),
        min_runtime_ms=90_000,
    )
    assert [(rule.name, rule.on_flavors) for rule in found.checks] == [
        ("prov", ("f",)),
        ("other", ()),
    ]
    assert found.weight_milli == 500
    assert found.usage_based_admission
    assert found.terminating


@pytest.mark.parametrize(("version", "field"), [("v1beta1", "cohort"), ("v1beta2", "cohortName")])
def test_the_cohort_has_another_name_in_each_version(version: str, field: str) -> None:
    assert made(f"{field}: team", version=version).cohort == "team"
    ((path, message),) = problems(queue(f"namespaceSelector: {{}}, {field}: Team", version))
    assert path == f"spec.{field}"
    assert "not a valid name" in message
    other = "cohortName" if field == "cohort" else "cohort"
    assert problems(queue(f"{other}: team", version)) == [
        (f"spec.{other}", f'unknown field; did you mean "{field}"?')
    ]


def test_old_words_of_v1beta1() -> None:
    found = made(
        "flavorFungibility: {whenCanBorrow: Borrow, whenCanPreempt: Preempt},"
        " admissionChecks: [a, b]",
        version="v1beta1",
    )
    assert found.fungibility.when_can_borrow == "MayStopSearch"
    assert found.fungibility.when_can_preempt == "MayStopSearch"
    assert [rule.name for rule in found.checks] == ["a", "b"]
    assert problems(queue("flavorFungibility: {whenCanBorrow: Borrow}"))[0][0] == (
        "spec.flavorFungibility.whenCanBorrow"
    )


def test_checks_stand_in_one_place_only() -> None:
    text = queue(
        "namespaceSelector: {}, admissionChecks: [a],"
        " admissionChecksStrategy: {admissionChecks: [{name: a}]}",
        "v1beta1",
    )
    assert [path for path, _ in problems(text)] == ["spec.admissionChecks"]


# ---- namespaces --------------------------------------------------------------------------------


def test_a_missing_namespace_selector_means_all_namespaces_with_a_warning() -> None:
    text = queue("")
    assert problems(text) == []
    assert warnings(text) == [("MissingNamespaceSelector", "spec.namespaceSelector")]
    assert queue_of(only(text), strict=False).namespace_selector == LabelSelector()


def test_in_strict_mode_it_means_none_as_in_kueue() -> None:
    text = queue("")
    assert problems(text, strict=True) == []
    assert warnings(text, strict=True) == [("MissingNamespaceSelector", "spec.namespaceSelector")]
    assert queue_of(only(text), strict=True).namespace_selector is None


def test_a_namespace_selector_is_taken_over() -> None:
    found = queue_of(only(queue("namespaceSelector: {matchLabels: {team: a}}")), strict=False)
    assert found.namespace_selector == LabelSelector((Requirement("team", "In", ("a",)),))


# ---- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ("preemption: {borrowWithinCohort: {policy: LowerPriority}}", "borrowWithinCohort.policy"),
        (
            "preemption: {reclaimWithinCohort: Never, borrowWithinCohort: {policy: LowerPriority}}",
            "spec.preemption.borrowWithinCohort.policy",
        ),
        ("preemption: {withinClusterQueue: Any}", "spec.preemption.withinClusterQueue"),
        ("preemption: {reclaimWithinCohort: Sometimes}", "spec.preemption.reclaimWithinCohort"),
        ("preemption: {minRuntimeSeconds: -1}", "spec.preemption.minRuntimeSeconds"),
        ("queueingStrategy: FIFO", "spec.queueingStrategy"),
        ("stopPolicy: Stop", "spec.stopPolicy"),
        ("fairSharing: {weight: -1}", "spec.fairSharing.weight"),
        ("fairSharing: {weight: 1n}", "spec.fairSharing.weight"),
        ("fairSharing: {weight: 1e-9}", "spec.fairSharing.weight"),
        ("fairSharing: {weight: heavy}", "spec.fairSharing.weight"),
        ("admissionScope: {}", "spec.admissionScope.admissionMode"),
        ("admissionScope: {admissionMode: Fair}", "spec.admissionScope.admissionMode"),
        (
            "admissionChecksStrategy: {admissionChecks: [{name: a}, {name: a}]}",
            "spec.admissionChecksStrategy.admissionChecks[1].name",
        ),
        (
            "namespaceSelector: {matchExpressions: [{key: a, operator: In}]}",
            "spec.namespaceSelector.matchExpressions[0].values",
        ),
        ("resourceGroup: []", "spec.resourceGroup"),
        ("resourceGroups: {}", "spec.resourceGroups"),
    ],
)
def test_what_is_refused(spec: str, path: str) -> None:
    ((found, _),) = problems(queue(spec))
    assert found.endswith(path)


def test_borrowing_preemption_may_be_never_beside_reclaim_never() -> None:
    assert problems(queue("preemption: {borrowWithinCohort: {policy: Never}}")) == []


def test_our_own_fields_are_unknown_in_strict_mode() -> None:
    assert problems(queue("preemption: {minRuntimeSeconds: 5}"), strict=True) == [
        ("spec.preemption.minRuntimeSeconds", "unknown field")
    ]


@pytest.mark.parametrize(
    ("weight", "milli"), [("0", 0), ("1", 1000), ("2.5", 2500), ("100m", 100), ("0.0001", 1)]
)
def test_weights_count_in_thousandths(weight: str, milli: int) -> None:
    assert made(f"fairSharing: {{weight: '{weight}'}}").weight_milli == milli
    text = queue(f"namespaceSelector: {{}}, fairSharing: {{weight: '{weight}'}}")
    rounded = [("WeightRounded", "spec.fairSharing.weight")] if weight == "0.0001" else []
    assert warnings(text) == rounded


def test_a_preference_only_counts_when_every_flavor_is_tried() -> None:
    spec = "flavorFungibility: {whenCanBorrow: TryNextFlavor, %s preference: %s}"
    ignored = spec % ("whenCanPreempt: MayStopSearch,", "PreemptionOverBorrowing")
    assert made(ignored).fungibility.preference == ""
    assert warnings(queue(f"namespaceSelector: {{}}, {ignored}")) == [
        ("FieldIgnored", "spec.flavorFungibility.preference")
    ]
    counted = spec % ("", "BorrowingOverPreemption")
    assert made(counted).fungibility.preference == "BorrowingOverPreemption"


def test_alpha_fields_are_named_as_ignored() -> None:
    assert warnings(queue("namespaceSelector: {}, concurrentAdmissionPolicy: {a: 1}")) == [
        ("FieldIgnored", "spec.concurrentAdmissionPolicy")
    ]


# ---- cohorts and local queues ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "field"),
    [("v1alpha1", "parent"), ("v1beta1", "parentName"), ("v1beta2", "parentName")],
)
def test_a_cohort_knows_its_parent(version: str, field: str) -> None:
    text = (
        f"apiVersion: kueue.x-k8s.io/{version}\nkind: Cohort\nmetadata: {{name: c}}\n"
        f"spec: {{{field}: org, fairSharing: {{weight: 2}}}}\n"
    )
    found = cohort_of(only(text))
    assert (found.name, found.parent, found.weight_milli) == ("c", "org", 2000)
    assert problems(text.replace("org", "Org"))[0][0] == f"spec.{field}"
    assert cohort_of(only(text.replace("org", "''"))).parent is None


def local_queue(spec: str, status: str = "{}") -> str:
    return (
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\n"
        f"metadata: {{name: lq, namespace: team}}\nspec: {{{spec}}}\nstatus: {status}\n"
    )


def local(text: str) -> Any:
    return local_queue_of(only(text), "team")


def test_a_local_queue_leads_to_a_cluster_queue() -> None:
    found = local(local_queue("clusterQueue: q, stopPolicy: Hold, fairSharing: {weight: 4}"))
    assert (found.key, found.queue, found.stop, found.weight_milli) == (
        "team/lq",
        "q",
        "Hold",
        4000,
    )
    assert problems(local_queue("")) == [("spec.clusterQueue", "is required")]
    assert problems(local_queue("clusterQueue: ''")) == [("spec.clusterQueue", "is required")]
    assert problems(local_queue("clusterQueue: Q"))[0][0] == "spec.clusterQueue"


def test_recorded_consumption_is_taken_over() -> None:
    status = (
        "{fairSharing: {admissionFairSharingStatus: {consumedResources:"
        " {cpu: 1500m, nvidia.com/gpu: '2.5'}, lastUpdate: '1970-01-01T00:00:10Z'}},"
        " flavorUsage: []}"
    )
    found = local(local_queue("clusterQueue: q", status))
    assert found.consumed_micro == (("cpu", 1_500_000_000), ("nvidia.com/gpu", 2_500_000))
    assert found.consumed_at == Instant(10_000)
