"""What the operator chose: our `Policy`, or Kueue's `Configuration`, as they are written.

    apiVersion: unisono.dev/v1                     apiVersion: config.kueue.x-k8s.io/v1beta1|v1beta2
    kind: Policy                                   kind: Configuration
    fairSharing, admissionFairSharing,             the same sections; v1beta1 also needs
    waitForPodsReady, resources,                   `enable: true` in the first and the third
    manageJobsWithoutQueueName,
    managedJobsNamespaceSelector
    preemption: {antiThrash: false}                (ours only: spec quota §18.2)
    placement: {scoring, levels, …}                (ours only: spec placement §8.13)
    backfill: {dates, window, …}                   (ours only: spec backfill §3)
    reservations: [{name, start, …}]               (ours only: spec backfill §8)
    provisioning: {packing, spot, …}               (ours only: spec provisioning §5.19)
    defaultQueues: [{namespaces, queue}]           (ours only: jobs that name no queue)
    priorityClasses: [{names, users, …}]           (ours only: which users may name which class)
    notifications: {mail, rules, …}                (ours only: mails and webhooks about events)
    compat: {strict: true}                         (ours only: Kueue's behaviour everywhere)

Sections of a Configuration that only concern how Kueue itself runs are accepted and have no
effect. What it all means is worked out in `settings`. Spec quota §3, §10, §13, §16, §17.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from unisono.engine.model import policy as engine
from unisono.engine.model.node import HOSTNAME
from unisono.kinds.decode import Schema
from unisono.kinds.meta import (
    LabelSelector,
    ObjectMeta,
    check_selector,
    wrong_with_label_key,
    wrong_with_subdomain,
)
from unisono.kinds.notes import Notes
from unisono.kinds.policy.advance_reservations import Reservation, check_reservations
from unisono.kinds.policy.notifications import Notifications, check_notifications
from unisono.kinds.policy.provisioning import Provisioning, check_provisioning
from unisono.kinds.quantity import Quantity
from unisono.kinds.registry import Kind
from unisono.kinds.scalar import Duration

# Feature gates that change decisions, with the value that we implement.
_GATES = {
    "AdmissionFairSharing": True,
    "AdmissionGatedBy": True,
    "ConcurrentAdmission": False,
    "ElasticJobsViaWorkloadSlices": True,
    "FairSharingPreemptWithinNominal": True,
    "FairSharingPrioritizeNonBorrowing": True,
    "FlavorFungibility": True,
    "PartialAdmission": True,
    "PrioritizePreemptorWorkloads": False,
    "PriorityBoost": True,
    "PrioritySortingWithinCohort": True,
    "QuotaCheckStrategy": True,
    "RecomputeAssignmentUponPreemptionTargetsOverlap": True,
    "ReclaimablePods": True,
    "SchedulingEquivalenceHashing": True,
    "TASBalancedPlacement": False,
    "TASProfileMixed": True,
    "TopologyAwareScheduling": True,
    "WorkloadPriorityClassDefaulting": True,
}


class FairSharing(Schema, frozen=True, kw_only=True):
    """Queues with the largest share give way first."""

    enable: bool | None = None
    preemption_strategies: tuple[engine.FairStrategy, ...] = ()


class AdmissionFairSharing(Schema, frozen=True, kw_only=True):
    """Recent usage of local queues decides the order."""

    usage_half_life_time: Duration | None = None
    usage_sampling_interval: Duration | None = None
    resource_weights: Mapping[str, float] = {}


class RequeuingStrategy(Schema, frozen=True, kw_only=True):
    """When a workload is requeued after its pods did not become ready."""

    timestamp: Literal["Eviction", "Creation"] = "Eviction"
    backoff_limit_count: Annotated[int, Meta(ge=0)] | None = None
    backoff_base_seconds: Annotated[int, Meta(ge=0)] = 60
    backoff_max_seconds: Annotated[int, Meta(ge=0)] = 3600


class WaitForPodsReady(Schema, frozen=True, kw_only=True):
    """A gang must be ready in time, or it goes back to its queue."""

    enable: bool | None = None
    timeout: Duration | None = None
    recovery_timeout: Duration | None = None
    block_admission: bool = False
    requeuing_strategy: RequeuingStrategy = RequeuingStrategy()


class ResourceTransformation(Schema, frozen=True, kw_only=True):
    """How one resource is counted as others."""

    input: str
    strategy: Literal["Retain", "Replace"] = "Retain"
    multiply_by: str = ""
    outputs: Mapping[str, Quantity] = {}


class Resources(Schema, frozen=True, kw_only=True):
    """Which resources count, and as what."""

    exclude_resource_prefixes: tuple[str, ...] = ()
    transformations: Annotated[tuple[ResourceTransformation, ...], Meta(max_length=64)] = ()
    quota_check_strategy: Literal["BlockUndeclared", "IgnoreUndeclared"] = "BlockUndeclared"
    device_class_mappings: Any = None


class PreemptionPolicy(Schema, frozen=True, kw_only=True):
    """Our own rules about preemption."""

    anti_thrash: Annotated[
        bool, Meta(description="Two rules that keep workloads from evicting each other for ever.")
    ] = True


class Placement(Schema, frozen=True, kw_only=True):
    """How pods are put on nodes."""

    scoring: Annotated[
        Literal["auto", "leftover", "binpack", "spread", "fgd", "spare", "none"],
        Meta(description="Which of equally good nodes to take."),
    ] = "auto"
    levels: Annotated[
        tuple[str, ...] | str,
        Meta(description="Node labels that make topology levels, widest first; auto: known ones."),
    ] = "auto"
    default_gpu_mode: Annotated[
        Literal["preferred", "unconstrained"],
        Meta(description="Whether pods with GPUs that ask for no topology stay together."),
    ] = "preferred"
    wait_for_leaving: Annotated[
        Duration | None,
        Meta(description="Wait for pods that end within this time before others have to leave."),
    ] = None


class Backfill(Schema, frozen=True, kw_only=True):
    """Waiting workloads get reservations; others start first as long as none is delayed."""

    dates: Annotated[
        int,
        Meta(ge=0, description="How many get a date at a time: 1 is EASY, 0 (all) conservative."),
    ] = 0
    window: Annotated[
        Duration | None, Meta(description="Dates further away are only given to the first ten.")
    ] = None
    resolution: Annotated[
        Duration | None, Meta(description="What dates are rounded to once there are many.")
    ] = None
    most_tested: Annotated[
        int, Meta(ge=0, description="How many waiting workloads one pass looks at; 0: all.")
    ] = 0
    most_per_queue: Annotated[
        int, Meta(ge=0, description="How many of them may come from one local queue; 0: all.")
    ] = 0
    shortest_first: Annotated[
        bool, Meta(description="Of those that may go first, the shortest before the others.")
    ] = False
    default_limit: Annotated[
        Duration | None,
        Meta(description="How long a workload is thought to run that does not say so."),
    ] = None


class DefaultQueue(Schema, frozen=True, kw_only=True):
    """The queue of jobs that name none, in some namespaces; the first rule that fits counts."""

    namespaces: Annotated[
        tuple[str, ...], Meta(description="Names of namespaces; without and no selector: all.")
    ] = ()
    namespace_selector: Annotated[
        LabelSelector | None, Meta(description="Namespaces by their labels, instead of names.")
    ] = None
    queue: Annotated[str, Meta(description="A LocalQueue of the job's namespace.")]


class PriorityClassRule(Schema, frozen=True, kw_only=True):
    """Which users may name some priority classes; classes without a rule are open to all users."""

    names: Annotated[
        tuple[str, ...],
        Meta(
            min_length=1,
            description="PriorityClasses and WorkloadPriorityClasses; *: all without a rule.",
        ),
    ]
    users: Annotated[tuple[str, ...], Meta(description="Users by name.")] = ()
    groups: Annotated[tuple[str, ...], Meta(description="Groups of users.")] = ()
    namespaces: Annotated[
        tuple[str, ...], Meta(description="Namespaces in which all users may name them.")
    ] = ()


class Compat(Schema, frozen=True, kw_only=True):
    """How much to be like Kueue."""

    strict: Annotated[
        bool, Meta(description="Switch off every deliberate difference from Kueue.")
    ] = False


class Policy(Schema, frozen=True, kw_only=True):
    """Everything that changes decisions (unisono.dev/v1)."""

    api_version: str
    kind: str
    metadata: ObjectMeta = ObjectMeta()
    fair_sharing: FairSharing | None = None
    admission_fair_sharing: AdmissionFairSharing | None = None
    wait_for_pods_ready: WaitForPodsReady | None = None
    resources: Resources | None = None
    manage_jobs_without_queue_name: bool | None = None
    managed_jobs_namespace_selector: LabelSelector | None = None
    preemption: PreemptionPolicy = PreemptionPolicy()
    placement: Placement = Placement()
    backfill: Backfill | None = None
    reservations: tuple[Reservation, ...] = ()
    provisioning: Provisioning | None = None
    default_queues: Annotated[tuple[DefaultQueue, ...], Meta(max_length=1000)] = ()
    priority_classes: Annotated[tuple[PriorityClassRule, ...], Meta(max_length=1000)] = ()
    notifications: Notifications | None = None
    compat: Compat = Compat()


class Configuration(Schema, frozen=True, kw_only=True):
    """Kueue's configuration file (config.kueue.x-k8s.io)."""

    api_version: str
    kind: str
    metadata: ObjectMeta = ObjectMeta()
    fair_sharing: FairSharing | None = None
    admission_fair_sharing: AdmissionFairSharing | None = None
    wait_for_pods_ready: WaitForPodsReady | None = None
    resources: Resources | None = None
    manage_jobs_without_queue_name: bool | None = None
    managed_jobs_namespace_selector: LabelSelector | None = None
    feature_gates: Mapping[str, bool] = {}
    # How Kueue itself runs; nothing here changes a decision.
    namespace: str | None = None
    webhook: Any = None
    metrics: Any = None
    health: Any = None
    pprof_bind_address: str | None = None
    leader_election: Any = None
    controller: Any = None
    cache_namespaces: Any = msgspec.field(default=None, name="cacheNamespace")
    sync_period: Any = None
    graceful_shut_down: Any = msgspec.field(default=None, name="gracefulShutDown")
    internal_cert_management: Any = None
    client_connection: Any = None
    integrations: Any = None
    queue_visibility: Any = None
    visibility_server: Any = None
    multi_kueue: Any = None
    object_retention_policies: Any = None
    tls: Any = None


# ---- rules -------------------------------------------------------------------------------------


def _check(document: Configuration | Policy, notes: Notes) -> None:
    is_kueues = isinstance(document, Configuration)
    newest = not document.api_version.endswith("/v1beta1")
    sections = (
        ("fairSharing", document.fair_sharing),
        ("waitForPodsReady", document.wait_for_pods_ready),
    )
    for name, section in sections:
        if section is not None and section.enable is not None and newest and is_kueues:
            message = "v1beta2 has no such field: the section is switched on by being there"
            notes.problem(f"{name}.enable", message)
    if document.fair_sharing is not None:
        _check_strategies(document.fair_sharing.preemption_strategies, notes)
    if document.admission_fair_sharing is not None:
        _check_admission_fair_sharing(document.admission_fair_sharing, notes)
    if document.wait_for_pods_ready is not None:
        _check_pods_ready(document.wait_for_pods_ready, notes)
    if document.resources is not None:
        _check_resources(document.resources, notes)
    if document.managed_jobs_namespace_selector is not None:
        path = "managedJobsNamespaceSelector"
        for problem in check_selector(document.managed_jobs_namespace_selector, path):
            notes.problem(problem.path, problem.message)
    if isinstance(document, Configuration):
        _check_gates(document.feature_gates, notes)
    else:
        _check_placement(document.placement, notes)
        if document.backfill is not None:
            _check_backfill(document.backfill, notes)
        check_reservations(document.reservations, notes)
        for index, rule in enumerate(document.default_queues):
            _check_default_queue(rule, f"defaultQueues[{index}]", notes)
        if document.provisioning is not None:
            check_provisioning(document.provisioning, notes)
        if document.notifications is not None:
            check_notifications(document.notifications, notes)


def _check_default_queue(rule: DefaultQueue, path: str, notes: Notes) -> None:
    wrong = wrong_with_subdomain(rule.queue)
    if wrong:
        notes.problem(f"{path}.queue", wrong)
    if rule.namespace_selector is not None:
        if rule.namespaces:
            notes.problem(f"{path}.namespaces", "cannot stand beside namespaceSelector")
        for problem in check_selector(rule.namespace_selector, f"{path}.namespaceSelector"):
            notes.problem(problem.path, problem.message)


def _check_backfill(section: Backfill, notes: Notes) -> None:
    durations = (
        ("window", section.window),
        ("resolution", section.resolution),
        ("defaultLimit", section.default_limit),
    )
    for name, duration in durations:
        if duration is not None and duration.ms <= 0:
            notes.problem(f"backfill.{name}", "must be more than 0")


def _check_strategies(strategies: tuple[engine.FairStrategy, ...], notes: Notes) -> None:
    if strategies == ("LessThanInitialShare", "LessThanOrEqualToFinalShare") or len(
        strategies
    ) > len(set(strategies)):
        message = "can be either strategy alone, or LessThanOrEqualToFinalShare before the other"
        notes.problem("fairSharing.preemptionStrategies", message)


def _check_admission_fair_sharing(section: AdmissionFairSharing, notes: Notes) -> None:
    path = "admissionFairSharing"
    if section.usage_half_life_time is not None and section.usage_half_life_time.ms < 0:
        notes.problem(f"{path}.usageHalfLifeTime", "cannot be negative")
    if section.usage_sampling_interval is not None and section.usage_sampling_interval.ms <= 0:
        notes.problem(f"{path}.usageSamplingInterval", "must be more than 0")
    for name, weight in section.resource_weights.items():
        if weight < 0:
            notes.problem(f"{path}.resourceWeights[{name}]", f"is {weight}; it cannot be negative")


def _check_pods_ready(section: WaitForPodsReady, notes: Notes) -> None:
    if section.timeout is not None and section.timeout.ms <= 0:
        notes.problem("waitForPodsReady.timeout", "must be more than 0")
    if section.recovery_timeout is not None and section.recovery_timeout.ms < 0:
        notes.problem("waitForPodsReady.recoveryTimeout", "cannot be negative")


def _check_resources(section: Resources, notes: Notes) -> None:
    seen: set[str] = set()
    for index, one in enumerate(section.transformations):
        if one.input in seen:
            path = f"resources.transformations[{index}].input"
            notes.problem(path, f'"{one.input}" stands twice')
        seen.add(one.input)
    if section.device_class_mappings is not None:
        message = "has no effect yet; ignored"
        notes.warn("FieldIgnored", "resources.deviceClassMappings", message)


def _check_placement(section: Placement, notes: Notes) -> None:
    if section.wait_for_leaving is not None and section.wait_for_leaving.ms < 0:
        notes.problem("placement.waitForLeaving", "cannot be negative")
    if isinstance(section.levels, str):
        if section.levels != "auto":
            message = f'must be auto or a list of node labels, not "{section.levels}"'
            notes.problem("placement.levels", message)
        return
    seen: set[str] = set()
    for index, label in enumerate(section.levels):
        path = f"placement.levels[{index}]"
        wrong = wrong_with_label_key(label)
        if wrong:
            notes.problem(path, wrong)
        if label in seen:
            notes.problem(path, f'"{label}" stands twice')
        seen.add(label)
        if label == HOSTNAME and index < len(section.levels) - 1:
            notes.problem(path, f"{HOSTNAME} can only be the last level")


def _check_gates(gates: Mapping[str, bool], notes: Notes) -> None:
    for name, value in gates.items():
        if name in _GATES and value != _GATES[name]:
            state = "on" if _GATES[name] else "off"
            message = f"is always {state} here; ignored"
            notes.warn("FieldIgnored", f"featureGates.{name}", message)


KINDS: tuple[Kind, ...] = (
    Kind(
        group="unisono.dev",
        version="v1",
        kind="Policy",
        struct=Policy,
        namespaced=False,
        is_named=False,
        check=_check,
    ),
    *(
        Kind(
            group="config.kueue.x-k8s.io",
            version=version,
            kind="Configuration",
            struct=Configuration,
            namespaced=False,
            is_named=False,
            check=_check,
        )
        for version in ("v1beta2", "v1beta1")
    ),
)
