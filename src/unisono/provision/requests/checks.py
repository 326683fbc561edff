"""Admission checks that ask an autoscaler for nodes, and how they ask.

    AdmissionCheck.spec.controllerName: kueue.x-k8s.io/provisioning-request
                       .parameters ───▶ ProvisioningRequestConfig

Classes: `check-capacity.autoscaling.x-k8s.io` asks whether there is room, `best-effort-atomic-
scale-up.autoscaling.x-k8s.io` also adds nodes, `queued-provisioning.gke.io` waits in a queue of the
cloud until it has all of them. A check whose configuration can be used is `Active`. Spec
provisioning §5.13.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from unisono.control import names
from unisono.control.actions import Json, Patch, Ref, Steps
from unisono.control.conditions import find, with_condition
from unisono.control.controller import own_key
from unisono.control.view import View
from unisono.kinds.kueue.flavors import PROVISIONING
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

ATOMIC = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
QUEUED = "queued-provisioning.gke.io"
Merging = Literal["", "IdenticalPodTemplates", "IdenticalWorkloadSchedulingRequirements"]


class RetryStrategy(msgspec.Struct, frozen=True, rename="camel"):
    """When to ask again."""

    backoff_limit_count: int = 3
    backoff_base_seconds: int = 60
    backoff_max_seconds: int = 1800

    def pause(self, attempt: int) -> int:
        """Return how long to wait after an attempt that failed, in seconds.

        >>> [RetryStrategy().pause(attempt) for attempt in (1, 2, 3, 9)]
        [60, 120, 240, 1800]
        """
        return min(self.backoff_base_seconds << min(attempt - 1, 20), self.backoff_max_seconds)


class Detail(msgspec.Struct, frozen=True, rename="camel"):
    """A node label that pods get, and which word of the request's status is its value."""

    key: str
    value_from_provisioning_class_detail: str = ""


class Updates(msgspec.Struct, frozen=True, rename="camel"):
    """What pods get once the nodes are there."""

    node_selector: tuple[Detail, ...] = ()


class RequestConfig(msgspec.Struct, frozen=True, rename="camel"):
    """The spec of a ProvisioningRequestConfig."""

    provisioning_class_name: str
    parameters: dict[str, str] = {}
    managed_resources: tuple[str, ...] = ()
    retry_strategy: RetryStrategy = RetryStrategy()
    pod_set_merge_policy: Merging = ""
    pod_set_updates: Updates = Updates()


def is_ours(check: Json | None) -> bool:
    """Say whether a check is performed by asking an autoscaler."""
    return check is not None and check["spec"].get("controllerName") == PROVISIONING


def config_of(check: Json, view: View) -> RequestConfig | str:
    """Return how a check asks for nodes, or what is wrong with it."""
    reference = check["spec"].get("parameters")
    if not reference:
        return "it names no ProvisioningRequestConfig"
    if reference.get("kind") != names.REQUEST_CONFIG.kind:
        return f"its parameters are a {reference.get('kind')}, not a ProvisioningRequestConfig"
    found = view.get(names.REQUEST_CONFIG, reference["name"])
    if found is None:
        return f"there is no ProvisioningRequestConfig {reference['name']}"
    try:
        return msgspec.convert(found["spec"], RequestConfig, strict=False)
    except msgspec.ValidationError as error:
        return f"ProvisioningRequestConfig {reference['name']}: {error}"


class RequestChecks:
    """Keeps the condition of one check."""

    name = "provisioning-checks"
    watches: Sequence[Kind] = (names.ADMISSION_CHECK, names.REQUEST_CONFIG)

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A check of ours, or all of them if a configuration changes."""
        if kind == names.ADMISSION_CHECK:
            if is_ours(obj):
                yield own_key(obj)
            return
        yield from (own_key(check) for check in view.all(names.ADMISSION_CHECK) if is_ours(check))

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Write whether the check knows how to ask."""
        check = view.get(names.ADMISSION_CHECK, key.name)
        if check is None or not is_ours(check) or "deletionTimestamp" in check["metadata"]:
            return
        config = config_of(check, view)
        conditions = (check.get("status") or {}).get("conditions")
        old = find(conditions, "Active")
        if isinstance(config, str):
            made = with_condition(
                conditions, "Active", "False", "BadParametersRef", config, now=now
            )
        else:
            text = "The admission check is active"
            made = with_condition(conditions, "Active", "True", "Active", text, now=now)
        if old is None or find(made, "Active") != old:
            yield Patch(Ref.to(check), {"status": {"conditions": made}}, "status")
