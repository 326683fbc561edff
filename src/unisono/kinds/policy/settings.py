"""The operator's choices in the form that the rest of `kinds` and the engine read.

A Policy and a Configuration may be given together; what the Policy says wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import msgspec

from unisono.engine.model import policy as engine
from unisono.engine.model import selection as engine_selection
from unisono.engine.model.names import ResourceName
from unisono.engine.model.selection import selects
from unisono.kinds.decode import decode
from unisono.kinds.meta import NAMESPACE_LABEL, Json, selector_of
from unisono.kinds.policy.advance_reservations import reservations_of
from unisono.kinds.policy.multifactor import multifactor_rules_of
from unisono.kinds.policy.notifications import Notifications
from unisono.kinds.policy.provisioning import (
    BuyingTimes,
    Provisioning,
    buying_times,
    provisioning_of,
)
from unisono.kinds.policy.scheduling import SchedulingPolicy
from unisono.kinds.policy.schema import (
    AdmissionFairSharing,
    Backfill,
    Configuration,
    DefaultQueue,
    FairSharing,
    Placement,
    Policy,
    PriorityClassRule,
    Resources,
    WaitForPodsReady,
)
from unisono.kinds.resource_rules import NO_RULES, ResourceRules, Transformation
from unisono.kinds.scalar import seconds_ms

EVERY_CLASS = "*"
# Where Kueue and Unisono live; jobs there are never queued unless a selector says so.
_UNMANAGED = ("kube-system", "kueue-system", "unisono-system")


class QueueRule(msgspec.Struct, frozen=True):
    """The queue of jobs that name none, in the namespaces that a selector takes."""

    namespaces: engine_selection.LabelSelector
    queue: str


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The operator's choices, in the form that the rest of `kinds` and the engine read."""

    policy: engine.Policy = engine.Policy()
    rules: ResourceRules = NO_RULES
    buying: BuyingTimes = BuyingTimes()  # how long purchases of machines may take
    manages_unqueued: bool = False  # also jobs without a queue name are held back
    managed_namespaces: engine_selection.LabelSelector = engine_selection.LabelSelector(
        (engine_selection.Requirement(NAMESPACE_LABEL, "NotIn", _UNMANAGED),)
    )
    default_queues: tuple[QueueRule, ...] = ()  # of jobs that name none; the first that fits
    priority_classes: tuple[PriorityClassRule, ...] = ()  # which users may name which
    notifications: Notifications | None = None  # mails and webhooks about events

    def default_queue(self, namespace_labels: Mapping[str, str]) -> str:
        """Return the queue that jobs of a namespace are in without naming it; empty if none."""
        labels = dict(namespace_labels)
        fitting = (rule.queue for rule in self.default_queues if selects(rule.namespaces, labels))
        return next(fitting, "")

    def class_rules(self, name: str) -> list[PriorityClassRule]:
        """Return the rules for a priority class; those for all only if none is for it alone."""
        own = [rule for rule in self.priority_classes if name in rule.names]
        return own or [rule for rule in self.priority_classes if EVERY_CLASS in rule.names]


DEFAULTS = Settings()


def settings_of(
    configuration: Configuration | None,
    policy: Policy | None,
    scheduling: SchedulingPolicy | None = None,
) -> Settings:
    """Return what the documents say, with defaults for what they do not."""
    settings = DEFAULTS
    for document in (configuration, policy):
        if document is not None:
            settings = _with_sections(settings, document)
    if policy is not None:
        strict = policy.compat.strict
        changed = msgspec.structs.replace(
            settings.policy,
            strict=strict,
            anti_thrash=policy.preemption.anti_thrash and not strict,
            placement=_placement(policy.placement),
            backfill=None if policy.backfill is None else _backfill(policy.backfill),
            reservations=reservations_of(policy.reservations),
            provisioning=provisioning_of(policy.provisioning or Provisioning()),
        )
        times = buying_times(policy.provisioning or Provisioning())
        settings = msgspec.structs.replace(
            settings,
            policy=changed,
            buying=times,
            default_queues=tuple(map(_queue_rule, policy.default_queues)),
            priority_classes=policy.priority_classes,
            notifications=policy.notifications,
        )
    if scheduling is not None:
        with_rules = msgspec.structs.replace(
            settings.policy, multifactor=multifactor_rules_of(scheduling)
        )
        settings = msgspec.structs.replace(settings, policy=with_rules)
    return settings


def _with_sections(settings: Settings, document: Configuration | Policy) -> Settings:
    """Put the sections that a document has over what is there."""
    policy = settings.policy
    is_old = document.api_version.endswith("/v1beta1")
    if document.fair_sharing is not None:
        policy = msgspec.structs.replace(
            policy, fair_sharing=_fair_sharing(document.fair_sharing, is_old=is_old)
        )
    if document.admission_fair_sharing is not None:
        policy = msgspec.structs.replace(
            policy, admission_fair_sharing=_admission_fair_sharing(document.admission_fair_sharing)
        )
    if document.wait_for_pods_ready is not None:
        policy = msgspec.structs.replace(
            policy, pods_ready=_pods_ready(document.wait_for_pods_ready, is_old=is_old)
        )
    changed: dict[str, Any] = {}
    if document.resources is not None:
        ignores = document.resources.quota_check_strategy == "IgnoreUndeclared"
        policy = msgspec.structs.replace(policy, undeclared="Ignore" if ignores else "Block")
        changed["rules"] = _rules(document.resources)
    if document.manage_jobs_without_queue_name is not None:
        changed["manages_unqueued"] = document.manage_jobs_without_queue_name
    if document.managed_jobs_namespace_selector is not None:
        changed["managed_namespaces"] = selector_of(document.managed_jobs_namespace_selector)
    return msgspec.structs.replace(settings, policy=policy, **changed)


def _queue_rule(rule: DefaultQueue) -> QueueRule:
    if rule.namespace_selector is not None:
        return QueueRule(selector_of(rule.namespace_selector), rule.queue)
    clauses = (engine_selection.Requirement(NAMESPACE_LABEL, "In", rule.namespaces),)
    return QueueRule(engine_selection.LabelSelector(clauses if rule.namespaces else ()), rule.queue)


def _is_on(enable: bool | None, *, is_old: bool) -> bool:
    """A section is switched on by being there; in v1beta1 it has to say so."""
    return bool(enable) if is_old else enable is not False


def _fair_sharing(section: FairSharing, *, is_old: bool) -> engine.FairSharing | None:
    if not _is_on(section.enable, is_old=is_old):
        return None
    if not section.preemption_strategies:
        return engine.FairSharing()
    return engine.FairSharing(strategies=section.preemption_strategies)


def _admission_fair_sharing(section: AdmissionFairSharing) -> engine.AdmissionFairSharing:
    default = engine.AdmissionFairSharing()
    half_life, sampling = section.usage_half_life_time, section.usage_sampling_interval
    return engine.AdmissionFairSharing(
        half_life_ms=default.half_life_ms if half_life is None else half_life.ms,
        sampling_ms=default.sampling_ms if sampling is None else sampling.ms,
        weights_milli=tuple(
            sorted(
                (ResourceName(name), round(Fraction(str(weight)) * 1000))
                for name, weight in section.resource_weights.items()
            )
        ),
    )


def _pods_ready(section: WaitForPodsReady, *, is_old: bool) -> engine.PodsReady | None:
    if not _is_on(section.enable, is_old=is_old):
        return None
    # Kueue waited five minutes by default as long as v1beta1 was current.
    default_ms = 5 * 60 * 1000 if is_old else engine.PodsReady().timeout_ms
    again = section.requeuing_strategy
    return engine.PodsReady(
        timeout_ms=default_ms if section.timeout is None else section.timeout.ms,
        recovery_timeout_ms=None
        if section.recovery_timeout is None
        else section.recovery_timeout.ms,
        block_admission=section.block_admission,
        requeue_by=again.timestamp,
        backoff_limit=again.backoff_limit_count,
        backoff_base_ms=seconds_ms(again.backoff_base_seconds),
        backoff_max_ms=seconds_ms(again.backoff_max_seconds),
    )


def _placement(section: Placement) -> engine.Placement:
    levels = () if isinstance(section.levels, str) else section.levels
    return engine.Placement(
        scoring=section.scoring,
        levels=levels,
        gpu_mode=section.default_gpu_mode,
        wait_for_leaving_ms=section.wait_for_leaving.ms if section.wait_for_leaving else 0,
    )


def _backfill(section: Backfill) -> engine.Backfill:
    default = engine.Backfill()
    window, resolution, limit = section.window, section.resolution, section.default_limit
    return engine.Backfill(
        dates=section.dates or None,
        window_ms=default.window_ms if window is None else window.ms,
        resolution_ms=default.resolution_ms if resolution is None else resolution.ms,
        most_tested=section.most_tested,
        most_per_queue=section.most_per_queue,
        shortest_first=section.shortest_first,
        default_limit_ms=default.default_limit_ms if limit is None else limit.ms,
    )


def _rules(section: Resources) -> ResourceRules:
    return ResourceRules(
        exclude_prefixes=section.exclude_resource_prefixes,
        transformations=tuple(
            Transformation(
                input=one.input,
                strategy=one.strategy,
                multiply_by=one.multiply_by,
                outputs=tuple(sorted(one.outputs.items())),
            )
            for one in section.transformations
        ),
    )


def counting_policy(policies: Iterable[Json]) -> Json | None:
    """Return the Policy that counts if there are several: the first by name."""
    return min(policies, key=lambda one: str(one["metadata"]["name"]), default=None)


def settings_from(policy: Mapping[str, object] | None) -> Settings:
    """Return the operator's choices; a policy that cannot be read counts as none."""
    if policy is None:
        return DEFAULTS
    manifest, _ = decode(Policy, policy, ignore_unknown=True)
    return settings_of(None, manifest)


def is_managed(settings: Settings, namespace_labels: Mapping[str, str]) -> bool:
    """Say whether jobs of a namespace are ours at all."""
    return selects(settings.managed_namespaces, dict(namespace_labels))
