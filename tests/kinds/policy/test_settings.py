"""What the operator chose, as engine policy and rules."""

from __future__ import annotations

from tests.support.manifests import only
from unisono.engine.model.policy import (
    AdmissionFairSharing,
    FairSharing,
    Placement,
    PodsReady,
    Policy,
)
from unisono.engine.model.selection import selects
from unisono.kinds.policy.settings import DEFAULTS, Settings, is_managed, settings_from, settings_of

POLICY = "apiVersion: unisono.dev/v1\nkind: Policy\n"
V1BETA1 = "apiVersion: config.kueue.x-k8s.io/v1beta1\nkind: Configuration\n"
V1BETA2 = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"


def of_policy(body: str) -> Settings:
    return settings_of(None, only(POLICY + body))


def of_configuration(body: str, head: str = V1BETA2) -> Settings:
    return settings_of(only(head + body), None)


def test_nothing_said_means_the_defaults() -> None:
    assert settings_of(None, None) == DEFAULTS
    assert of_policy("") == of_configuration("") == DEFAULTS
    assert DEFAULTS.policy == Policy()


def test_fair_sharing() -> None:
    assert of_policy("fairSharing: {}").policy.fair_sharing == FairSharing()
    assert of_configuration("fairSharing: {}").policy.fair_sharing == FairSharing()
    alone = "fairSharing: {preemptionStrategies: [LessThanInitialShare]}"
    assert of_policy(alone).policy.fair_sharing == FairSharing(strategies=("LessThanInitialShare",))
    assert of_policy("fairSharing: {enable: false}").policy.fair_sharing is None


def test_placement() -> None:
    assert of_policy("placement: {levels: auto}").policy.placement == Placement()
    chosen = of_policy(
        "placement: {scoring: fgd, levels: [zone, rack], defaultGpuMode: unconstrained}"
    )
    assert chosen.policy.placement == Placement(
        scoring="fgd", levels=("zone", "rack"), gpu_mode="unconstrained"
    )


def test_v1beta1_sections_have_to_be_enabled() -> None:
    assert of_configuration("fairSharing: {}", V1BETA1).policy.fair_sharing is None
    enabled = of_configuration("fairSharing: {enable: true}", V1BETA1)
    assert enabled.policy.fair_sharing == FairSharing()
    assert of_configuration("waitForPodsReady: {timeout: 1m}", V1BETA1).policy.pods_ready is None
    ready = of_configuration("waitForPodsReady: {enable: true}", V1BETA1).policy.pods_ready
    assert ready == PodsReady(timeout_ms=5 * 60 * 1000)


def test_wait_for_pods_ready() -> None:
    assert of_configuration("waitForPodsReady: {}").policy.pods_ready == PodsReady()
    body = """
waitForPodsReady:
  timeout: 10m
  recoveryTimeout: 0s
  blockAdmission: true
  requeuingStrategy:
    {timestamp: Creation, backoffLimitCount: 2, backoffBaseSeconds: 10, backoffMaxSeconds: 100}
"""
    assert of_policy(body).policy.pods_ready == PodsReady(
        timeout_ms=600_000,
        recovery_timeout_ms=0,
        block_admission=True,
        requeue_by="Creation",
        backoff_limit=2,
        backoff_base_ms=10_000,
        backoff_max_ms=100_000,
    )


def test_admission_fair_sharing() -> None:
    assert of_policy("admissionFairSharing: {}").policy.admission_fair_sharing == (
        AdmissionFairSharing()
    )
    body = """
admissionFairSharing:
  usageHalfLifeTime: 1h
  usageSamplingInterval: 1m
  resourceWeights: {nvidia.com/gpu: 1, cpu: 0.05, memory: 0}
"""
    found = of_policy(body).policy.admission_fair_sharing
    assert found is not None
    assert (found.half_life_ms, found.sampling_ms) == (3_600_000, 60_000)
    assert found.weights_milli == (("cpu", 50), ("memory", 0), ("nvidia.com/gpu", 1000))


def test_resources() -> None:
    body = """
resources:
  excludeResourcePrefixes: [networking.example.com/]
  quotaCheckStrategy: IgnoreUndeclared
  transformations:
  - {input: a, strategy: Replace, multiplyBy: b, outputs: {z: 1, credits: '0.5'}}
"""
    found = of_configuration(body)
    assert found.policy.undeclared == "Ignore"
    assert found.rules.exclude_prefixes == ("networking.example.com/",)
    (rule,) = found.rules.transformations
    assert (rule.input, rule.strategy, rule.multiply_by) == ("a", "Replace", "b")
    assert [(name, quantity.text) for name, quantity in rule.outputs] == [
        ("credits", "0.5"),
        ("z", "1"),
    ]


def test_which_namespaces_are_managed() -> None:
    def managed(settings: Settings, name: str) -> bool:
        return selects(settings.managed_namespaces, {"kubernetes.io/metadata.name": name})

    assert managed(DEFAULTS, "team-a")
    assert not managed(DEFAULTS, "kube-system")
    assert not managed(DEFAULTS, "kueue-system")
    chosen = of_policy(
        "managedJobsNamespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ml}}"
    )
    assert managed(chosen, "ml")
    assert not managed(chosen, "team-a")
    assert of_policy("manageJobsWithoutQueueName: true").manages_unqueued


def test_strict_mode_switches_our_rules_off() -> None:
    assert of_policy("preemption: {antiThrash: false}").policy == Policy(anti_thrash=False)
    strict = of_policy("compat: {strict: true}").policy
    assert strict == Policy(strict=True, anti_thrash=False)


def test_a_policy_wins_over_a_configuration_section_by_section() -> None:
    configuration = only(
        V1BETA2 + "fairSharing: {}\nwaitForPodsReady: {timeout: 1m}\n"
        "manageJobsWithoutQueueName: true\n"
    )
    policy = only(POLICY + "waitForPodsReady: {timeout: 2m}\ncompat: {strict: true}\n")
    found = settings_of(configuration, policy)
    assert found.policy.fair_sharing == FairSharing()
    assert found.policy.pods_ready == PodsReady(timeout_ms=120_000)
    assert found.policy.strict
    assert found.manages_unqueued


def test_managed_namespaces() -> None:
    label = "kubernetes.io/metadata.name"
    assert is_managed(DEFAULTS, {label: "team"})
    assert not is_managed(DEFAULTS, {label: "kube-system"})


def test_a_policy_that_cannot_be_read_counts_as_none() -> None:
    assert settings_from(None) == DEFAULTS
    assert settings_from({"manageJobsWithoutQueueName": "maybe"}) == DEFAULTS
    policy = {"apiVersion": "unisono.dev/v1", "kind": "Policy", "manageJobsWithoutQueueName": True}
    assert settings_from(policy).manages_unqueued
