"""ProvisioningRequests and the PodTemplates that they name: what they are called, what they say.

    <workload>-<check>-<attempt>            the request, attempts counted from 1
    ppt-<request>-<pod set>                 what its pods look like

Names and contents are those of Kueue, so that tools for one work with the other. Spec
provisioning §5.13.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.jobs.workload import REQUEST_PREFIX, owner_reference
from unisono.control.view import View
from unisono.kinds.quantity import Quantity
from unisono.kinds.times import TIME_LIMIT, limit_ms
from unisono.provision.requests.checks import ATOMIC, QUEUED, RequestConfig

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
    if config.provisioning_class_name == ATOMIC and valid_for < float("inf"):
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
