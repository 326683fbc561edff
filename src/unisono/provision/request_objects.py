"""ProvisioningRequests, the PodTemplates that they name, and the admission checks that ask so.

    <workload>-<check>-<attempt>            the request, attempts counted from 1
    ppt-<request>-<pod set>                 what its pods look like

Names and contents are those of Kueue, so that tools for one work with the other. Spec
provisioning §5.13.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from unisono.control import names
from unisono.control.actions import Json, Patch, Ref, Steps
from unisono.control.conditions import find, with_condition
from unisono.control.controller import own_key
from unisono.control.jobs.workload import REQUEST_PREFIX, owner_reference
from unisono.control.view import View
from unisono.kinds.kueue.flavors import PROVISIONING
from unisono.kinds.quantity import Quantity
from unisono.kinds.times import TIME_LIMIT, limit_ms
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

CONSUME = "autoscaling.x-k8s.io/consume-provisioning-request"
CLASS = "autoscaling.x-k8s.io/provisioning-class-name"
VALID_UNTIL = "ValidUntilSeconds"
MAX_RUN = "maxRunDurationSeconds"
# Flex-start nodes of GKE live a week at most.
LONGEST_RUN = 604_800
MANAGED = {"kueue.x-k8s.io/managed": "true"}
_LONGEST_PREFIX = 247
_HASH = 5


def limited(name: str) -> str:
    """Cut a name that is too long for an object, so that it stays unique.

    >>> limited("job-train-abc-sample-prov-1"), len(limited("a" * 300))
    ('job-train-abc-sample-prov-1', 253)
    """
    if len(name) <= _LONGEST_PREFIX:
        return name
    digest = hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()
    return f"{name[:_LONGEST_PREFIX]}-{digest[:_HASH]}"


def request_name(workload: str, check: str, attempt: int) -> str:
    """Return the name of an attempt.

    >>> request_name("job-train-abc", "sample-prov", 2)
    'job-train-abc-sample-prov-2'
    """
    return limited(f"{workload}-{check}-{attempt}")


@dataclass(frozen=True, slots=True)
class PodSets:
    """Pod sets that are asked for as one: the first one's template, and how many pods."""

    names: tuple[str, ...]
    template: Json
    count: int


def sets_asked_for(workload: Json, config: RequestConfig, view: View) -> list[PodSets]:
    """Return what a request has to ask for; nothing if nothing of it is managed."""
    found: dict[str, PodSets] = {}
    for one, assigned in _assigned(workload):
        template = _as_admitted(one["template"], assigned, view)
        if config.managed_resources and not _uses(template, config.managed_resources):
            continue
        key = _alike(template, config, one["name"])
        old = found.get(key)
        count = int(assigned.get("count") or one["count"])
        if not count:
            continue
        found[key] = (
            PodSets((one["name"],), template, count)
            if old is None
            else PodSets((*old.names, one["name"]), old.template, old.count + count)
        )
    return list(found.values())


def _assigned(workload: Json) -> Iterator[tuple[Json, Json]]:
    """Yield every pod set with what it was given."""
    admission = (workload.get("status") or {}).get("admission") or {}
    given = {one["name"]: one for one in admission.get("podSetAssignments") or ()}
    for one in workload["spec"].get("podSets") or ():
        yield one, given.get(one["name"], {})


def _as_admitted(template: Json, assigned: Json, view: View) -> Json:
    """Return a template with what its flavors add."""
    spec = dict(template.get("spec") or {})
    selector = dict(spec.get("nodeSelector") or {})
    tolerations = list(spec.get("tolerations") or ())
    for name in dict.fromkeys((assigned.get("flavors") or {}).values()):
        flavor = (view.get(names.FLAVOR, name) or {}).get("spec") or {}
        selector |= flavor.get("nodeLabels") or flavor.get("nodeSelector") or {}
        tolerations += [one for one in flavor.get("tolerations") or () if one not in tolerations]
    if selector:
        spec["nodeSelector"] = selector
    if tolerations:
        spec["tolerations"] = tolerations
    return {**template, "spec": spec}


def _containers(template: Json) -> list[Json]:
    spec = template.get("spec") or {}
    return [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]


def _uses(template: Json, resources: Sequence[str]) -> bool:
    for container in _containers(template):
        wanted = container.get("resources") or {}
        asked = {**(wanted.get("limits") or {}), **(wanted.get("requests") or {})}
        if any(Quantity.from_raw(asked.get(name, 0)).amount(name) for name in resources):
            return True
    return False


def _alike(template: Json, config: RequestConfig, name: str) -> str:
    """Return the same text for pod sets that are asked for as one."""
    spec = template.get("spec") or {}
    match config.pod_set_merge_policy:
        case "IdenticalPodTemplates":
            return json.dumps(template, sort_keys=True)
        case "IdenticalWorkloadSchedulingRequirements":
            parts = (
                [one.get("resources") for one in _containers(template)],
                *(
                    spec.get(field)
                    for field in ("nodeSelector", "tolerations", "affinity", "resourceClaims")
                ),
            )
            return json.dumps(parts, sort_keys=True)
        case _:
            return name


def parameters_of(workload: Json, config: RequestConfig, valid_for: float) -> dict[str, str]:
    """Return what the class wants to know: what the job says wins over what the config says."""
    own = workload["metadata"].get("annotations") or {}
    made: dict[str, str] = {}
    if config.provisioning_class_name == _ATOMIC and valid_for < float("inf"):
        made[VALID_UNTIL] = str(int(valid_for))
    limit = run_seconds(workload)
    if config.provisioning_class_name == QUEUED and limit is not None:
        made[MAX_RUN] = str(limit)
    made |= config.parameters
    for key, text in own.items():
        if key.startswith(REQUEST_PREFIX):
            made[key.removeprefix(REQUEST_PREFIX)] = text
    return made


def run_seconds(workload: Json) -> int | None:
    """Return how long a workload runs at most, if it says so."""
    longest = workload["spec"].get("maximumExecutionTimeSeconds")
    if longest:
        return int(longest)
    text = (workload["metadata"].get("annotations") or {}).get(TIME_LIMIT, "")
    try:
        limit = limit_ms(text) if text else None
    except ValueError:
        return None
    return None if limit is None else -(-limit // 1000)


def templates_of(workload: Json, request: str, sets: Sequence[PodSets]) -> list[Json]:
    """Return the PodTemplates of a request."""
    return [
        {
            "apiVersion": "v1",
            "kind": "PodTemplate",
            "metadata": {
                "name": limited(f"ppt-{request}-{one.names[0]}"),
                "namespace": workload["metadata"]["namespace"],
                "labels": MANAGED,
                "ownerReferences": [owner_reference(workload)],
            },
            "template": one.template,
        }
        for one in sets
    ]


def request_of(
    workload: Json,
    request: str,
    config: RequestConfig,
    sets: Sequence[PodSets],
    parameters: Mapping[str, str],
) -> Json:
    """Return a request for all pods of a workload."""
    spec: Json = {
        "provisioningClassName": config.provisioning_class_name,
        "podSets": [
            {
                "podTemplateRef": {"name": limited(f"ppt-{request}-{one.names[0]}")},
                "count": one.count,
            }
            for one in sets
        ],
    }
    if parameters:
        spec["parameters"] = dict(parameters)
    return {
        "apiVersion": names.PROVISIONING_REQUEST.api_version,
        "kind": names.PROVISIONING_REQUEST.kind,
        "metadata": {
            "name": request,
            "namespace": workload["metadata"]["namespace"],
            "labels": MANAGED,
            "ownerReferences": [owner_reference(workload)],
        },
        "spec": spec,
    }


def updates_of(request: Json, config: RequestConfig, sets: Sequence[PodSets]) -> list[Json]:
    """Return what pods get so that they alone use the nodes of a request."""
    details = (request.get("status") or {}).get("provisioningClassDetails") or {}
    selector = {
        one.key: details[one.value_from_provisioning_class_detail]
        for one in config.pod_set_updates.node_selector
        if one.value_from_provisioning_class_detail in details
    }
    return [
        {
            "name": name,
            "annotations": {
                CONSUME: request["metadata"]["name"],
                CLASS: request["spec"]["provisioningClassName"],
            },
            **({"nodeSelector": selector} if selector else {}),
        }
        for one in sets
        for name in one.names
    ]


# ---- admission checks ----------------------------------------------------------------------------
#
# Admission checks that ask an autoscaler for nodes, and how they ask.
#
#     AdmissionCheck.spec.controllerName: kueue.x-k8s.io/provisioning-request
#                        .parameters ───▶ ProvisioningRequestConfig
#
# Classes: `check-capacity.autoscaling.x-k8s.io` asks whether there is room, `best-effort-atomic-
# scale-up.autoscaling.x-k8s.io` also adds nodes, `queued-provisioning.gke.io` waits in a queue of
# the cloud until it has all of them. A check whose configuration can be used is `Active`. Spec
# provisioning §5.13.

_ATOMIC = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
QUEUED = "queued-provisioning.gke.io"
_Merging = Literal["", "IdenticalPodTemplates", "IdenticalWorkloadSchedulingRequirements"]


class _RetryStrategy(msgspec.Struct, frozen=True, rename="camel"):
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


class _Detail(msgspec.Struct, frozen=True, rename="camel"):
    """A node label that pods get, and which word of the request's status is its value."""

    key: str
    value_from_provisioning_class_detail: str = ""


class _Updates(msgspec.Struct, frozen=True, rename="camel"):
    """What pods get once the nodes are there."""

    node_selector: tuple[_Detail, ...] = ()


class RequestConfig(msgspec.Struct, frozen=True, rename="camel"):
    """The spec of a ProvisioningRequestConfig."""

    provisioning_class_name: str
    parameters: dict[str, str] = {}
    managed_resources: tuple[str, ...] = ()
    retry_strategy: _RetryStrategy = _RetryStrategy()
    pod_set_merge_policy: _Merging = ""
    pod_set_updates: _Updates = _Updates()


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
