"""Policy and Configuration as they are written: what is refused, what is ignored."""

from __future__ import annotations

import pytest

from tests.support.manifests import problems, warnings

POLICY = "apiVersion: unisono.dev/v1\nkind: Policy\n"
V1BETA1 = "apiVersion: config.kueue.x-k8s.io/v1beta1\nkind: Configuration\n"
V1BETA2 = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"


@pytest.mark.parametrize("head", [POLICY, V1BETA1, V1BETA2])
def test_a_configuration_needs_neither_name_nor_content(head: str) -> None:
    assert problems(head) == warnings(head) == []
    assert problems(head + "metadata: {name: x}\n") == []


@pytest.mark.parametrize("head", [POLICY, V1BETA1, V1BETA2])
@pytest.mark.parametrize(
    ("body", "path"),
    [
        ("fairSharing: {preemptionStrategies: [Best]}", "fairSharing.preemptionStrategies[0]"),
        (
            "fairSharing: {preemptionStrategies: [LessThanInitialShare, LessThanInitialShare]}",
            "fairSharing.preemptionStrategies",
        ),
        (
            "fairSharing: {preemptionStrategies:"
            " [LessThanInitialShare, LessThanOrEqualToFinalShare]}",
            "fairSharing.preemptionStrategies",
        ),
        (
            "admissionFairSharing: {usageHalfLifeTime: -1s}",
            "admissionFairSharing.usageHalfLifeTime",
        ),
        (
            "admissionFairSharing: {usageSamplingInterval: 0s}",
            "admissionFairSharing.usageSamplingInterval",
        ),
        (
            "admissionFairSharing: {resourceWeights: {cpu: -1}}",
            "admissionFairSharing.resourceWeights[cpu]",
        ),
        (
            "admissionFairSharing: {resourceWeights: {cpu: heavy}}",
            "admissionFairSharing.resourceWeights[cpu]",
        ),
        ("waitForPodsReady: {timeout: 0s}", "waitForPodsReady.timeout"),
        ("waitForPodsReady: {timeout: 5}", "waitForPodsReady.timeout"),
        ("waitForPodsReady: {recoveryTimeout: -1s}", "waitForPodsReady.recoveryTimeout"),
        (
            "waitForPodsReady: {requeuingStrategy: {timestamp: Never}}",
            "waitForPodsReady.requeuingStrategy.timestamp",
        ),
        (
            "waitForPodsReady: {requeuingStrategy: {backoffLimitCount: -1}}",
            "waitForPodsReady.requeuingStrategy.backoffLimitCount",
        ),
        (
            "resources: {transformations: [{input: a}, {input: a}]}",
            "resources.transformations[1].input",
        ),
        (
            "resources: {transformations: [{input: a, strategy: Drop}]}",
            "resources.transformations[0].strategy",
        ),
        ("resources: {quotaCheckStrategy: Ignore}", "resources.quotaCheckStrategy"),
        (
            "managedJobsNamespaceSelector: {matchLabels: {'a b': c}}",
            "managedJobsNamespaceSelector.matchLabels[a b]",
        ),
        ("fairSharin: {}", "fairSharin"),
        ("manageJobsWithoutQueueName: sure", "manageJobsWithoutQueueName"),
    ],
)
def test_what_is_refused(head: str, body: str, path: str) -> None:
    assert [found for found, _ in problems(head + body)] == [path]


def test_what_does_not_exist_is_unknown() -> None:
    assert problems(POLICY + "purchases: {}") == [("purchases", "unknown field")]
    assert problems(POLICY + "spec: {backfill: {}}") == [
        ("spec", "unknown field; this kind has no spec: its fields stand beside kind")
    ]


def test_what_is_ours_is_unknown_to_kueue() -> None:
    assert problems(V1BETA2 + "compat: {strict: true}") == [("compat", "unknown field")]
    assert problems(V1BETA2 + "placement: {}") == [("placement", "unknown field")]


@pytest.mark.parametrize(
    ("body", "path", "message"),
    [
        ("scoring: best", "placement.scoring", "must be one of"),
        ("defaultGpuMode: required", "placement.defaultGpuMode", "must be one of"),
        ("levels: rack", "placement.levels", 'must be auto or a list of node labels, not "rack"'),
        ("levels: [a, ''], scoring: fgd", "placement.levels[1]", '"" is not a valid key'),
        ("levels: [a, b, a]", "placement.levels[2]", '"a" stands twice'),
        (
            "levels: [kubernetes.io/hostname, rack]",
            "placement.levels[0]",
            "kubernetes.io/hostname can only be the last level",
        ),
        ("maxDomainTries: 3", "placement.maxDomainTries", "unknown field"),
    ],
)
def test_placement_is_checked(body: str, path: str, message: str) -> None:
    ((found, said),) = problems(POLICY + f"placement: {{{body}}}")
    assert found == path
    assert said.startswith(message)


def test_sections_are_switched_on_by_being_there_since_v1beta2() -> None:
    for section in ("fairSharing", "waitForPodsReady"):
        body = f"{section}: {{enable: true}}"
        assert problems(V1BETA1 + body) == []
        assert [path for path, _ in problems(V1BETA2 + body)] == [f"{section}.enable"]


def test_what_only_concerns_kueue_itself_is_accepted() -> None:
    body = """
namespace: kueue-system
health: {healthProbeBindAddress: ':8081'}
metrics: {bindAddress: ':8443'}
webhook: {port: 9443}
leaderElection: {leaderElect: true}
controller: {groupKindConcurrency: {Pod: 5}}
clientConnection: {qps: 50, burst: 100}
internalCertManagement: {enable: false}
integrations: {frameworks: [batch/job]}
objectRetentionPolicies: {workloads: {afterFinished: 1h}}
multiKueue: {gcInterval: 1m}
"""
    assert problems(V1BETA1 + body) == warnings(V1BETA1 + body) == []


def test_feature_gates_that_differ_from_what_we_do_are_named() -> None:
    body = "featureGates: {PartialAdmission: false, TopologyAwareScheduling: true, Other: true}"
    assert warnings(V1BETA2 + body) == [("FieldIgnored", "featureGates.PartialAdmission")]


def test_resources_of_claims_are_not_counted_yet() -> None:
    body = "resources: {deviceClassMappings: [{name: gpu}]}"
    assert warnings(V1BETA2 + body) == [("FieldIgnored", "resources.deviceClassMappings")]


def test_another_version_is_refused_by_name() -> None:
    ((path, message),) = problems("apiVersion: config.kueue.x-k8s.io/v1\nkind: Configuration\n")
    assert path == "apiVersion"
    assert "known are config.kueue.x-k8s.io/v1beta2, config.kueue.x-k8s.io/v1beta1" in message


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ("defaultQueues: [{}]", "defaultQueues[0].queue"),
        ("defaultQueues: [{queue: Not_One}]", "defaultQueues[0].queue"),
        ("defaultQueues: [{queue: ''}]", "defaultQueues[0].queue"),
        (
            "defaultQueues: [{queue: q, namespaces: [a], namespaceSelector: {}}]",
            "defaultQueues[0].namespaces",
        ),
        (
            "defaultQueues: [{queue: q, namespaceSelector: {matchLabels: {'a b': c}}}]",
            "defaultQueues[0].namespaceSelector.matchLabels[a b]",
        ),
        ("priorityClasses: [{users: [a]}]", "priorityClasses[0].names"),
        ("priorityClasses: [{names: []}]", "priorityClasses[0].names"),
        ("priorityClasses: [{names: [a], user: b}]", "priorityClasses[0].user"),
    ],
)
def test_rules_for_tenants_that_cannot_be_read(body: str, path: str) -> None:
    assert path in [one for one, _ in problems(f"apiVersion: unisono.dev/v1\nkind: Policy\n{body}")]
