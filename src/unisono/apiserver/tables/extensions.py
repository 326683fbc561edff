"""What extends or guards the API: definitions, webhooks, policies, services, flow control."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unisono.apiserver.tables.printer import (
    AGE,
    CREATED_AT,
    NAME,
    NONE,
    UNSET,
    Cell,
    Content,
    Printer,
    column,
    count_of,
    inside,
    of,
    printer,
    selector_text,
)
from unisono.apiserver.times import UNKNOWN


def _versions(definition: Mapping[str, Any], now: float) -> Content:
    versions = inside(definition, "spec", "versions") or ()
    return ",".join(version.get("name", "") for version in versions if version.get("served", True))


def _param_kind(policy: Mapping[str, Any], now: float) -> Content:
    kind = inside(policy, "spec", "paramKind")
    return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else UNSET


def _param_ref(binding: Mapping[str, Any], now: float) -> Content:
    reference = inside(binding, "spec", "paramRef") or {}
    if reference.get("name"):
        return f"{reference.get('namespace') or '*'}/{reference['name']}"
    return selector_text(reference["selector"]) if reference.get("selector") else UNSET


def _policies(name: str, field: str, description: str) -> Printer:
    return printer(
        NAME,
        column(name, count_of("spec", field), description, type="integer"),
        column("ParamKind", _param_kind, "Which kind of object its parameters are."),
        AGE,
    )


def _service(api_service: Mapping[str, Any], now: float) -> Content:
    service = inside(api_service, "spec", "service")
    return f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local"


def _available(api_service: Mapping[str, Any], now: float) -> Content:
    for condition in inside(api_service, "status", "conditions") or ():
        if condition.get("type") == "Available":
            status = str(condition.get("status", ""))
            reason = condition.get("reason")
            return f"{status} ({reason})" if reason and status != "True" else status
    return "Unknown"


def _is_dangling(flow: Mapping[str, Any], now: float) -> Content:
    for condition in inside(flow, "status", "conditions") or ():
        if condition.get("type") == "Dangling":
            return str(condition.get("status", ""))
    return "?"


def _queuing(field: str) -> Cell:
    return of("spec", "limited", "limitResponse", "queuing", field, absent=NONE)


DEFINITIONS = printer(
    NAME,
    column("Scope", of("spec", "scope"), "Whether its objects live in namespaces."),
    column("Versions", _versions, "In which versions they are served."),
    CREATED_AT,
)

WEBHOOKS = printer(
    NAME, column("Webhooks", count_of("webhooks"), "How many there are.", type="integer"), AGE
)

VALIDATING_POLICIES = _policies("Validations", "validations", "How many rules it has.")
MUTATING_POLICIES = _policies("Mutations", "mutations", "How many changes it makes.")

POLICY_BINDINGS = printer(
    NAME,
    column("PolicyName", of("spec", "policyName"), "Which policy it puts into force."),
    column("ParamRef", _param_ref, "With which parameters."),
    AGE,
)

API_SERVICES = printer(
    NAME,
    column("Service", _service, "The service of this part of the API."),
    column("Available", _available, "Whether that one answers."),
    AGE,
)

FLOW_SCHEMAS = printer(
    NAME,
    column("PriorityLevel", of("spec", "priorityLevelConfiguration", "name"), "Its level."),
    column("MatchingPrecedence", of("spec", "matchingPrecedence", absent=0), "Lower goes first."),
    column(
        "DistinguisherMethod",
        of("spec", "distinguisherMethod", "type", absent=NONE),
        "By what requests are told apart.",
    ),
    AGE,
    column("MissingPL", _is_dangling, "Whether its level does not exist."),
)

PRIORITY_LEVELS = printer(
    NAME,
    column("Type", of("spec", "type"), "Limited, or exempt from limits."),
    column(
        "NominalConcurrencyShares",
        of("spec", "limited", "nominalConcurrencyShares", absent=NONE),
        "Its part of all requests that may be under way.",
    ),
    column("Queues", _queuing("queues"), "How many queues it has."),
    column("HandSize", _queuing("handSize"), "Among how many of them a flow is spread."),
    column("QueueLengthLimit", _queuing("queueLengthLimit"), "How many may wait in each."),
    AGE,
)


# ---- autoscalers ---------------------------------------------------------------------------------


# So many measures stand in a cell, then "+ 1 more...".
_MOST_MEASURES = 2

# Under which name the details of a metric stand, by its type.
_DETAILS = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}
_OF_RESOURCES = ("Resource", "ContainerResource")


def _reference(scaler: Mapping[str, Any], now: float) -> Content:
    target = inside(scaler, "spec", "scaleTargetRef") or {}
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def _targets(scaler: Mapping[str, Any], now: float) -> Content:
    spec, status = scaler.get("spec") or {}, scaler.get("status") or {}
    percentage = spec.get("targetCPUUtilizationPercentage")
    if percentage is not None:  # autoscaling/v1 knows nothing but the processor
        current = status.get("currentCPUUtilizationPercentage")
        return f"cpu: {UNKNOWN if current is None else f'{current}%'}/{percentage}%"
    metrics, measured = spec.get("metrics") or [], status.get("currentMetrics") or []
    if not metrics:
        return NONE
    texts = [
        _measure(metric, measured[at] if at < len(measured) else {})
        for at, metric in enumerate(metrics)
    ]
    shown = ", ".join(texts[:_MOST_MEASURES])
    more = len(texts) - _MOST_MEASURES
    return f"{shown} + {more} more..." if more > 0 else shown


def _measure(metric: Mapping[str, Any], measured: Mapping[str, Any]) -> str:
    kind = metric.get("type", "")
    details = _DETAILS.get(kind)
    if details is None:
        return "<unknown type>"
    wanted = metric.get(details) or {}
    target = wanted.get("target") or {}
    current = (measured.get(details) or {}).get("current") or {}
    if kind in _OF_RESOURCES:
        if "averageValue" in target:
            amounts = f"{current.get('averageValue', UNKNOWN)}/{target['averageValue']}"
        else:
            used, limit = current.get("averageUtilization"), target.get("averageUtilization")
            amounts = (
                f"{UNKNOWN if used is None else f'{used}%'}/"
                f"{'<auto>' if limit is None else f'{limit}%'}"
            )
        return f"{wanted.get('name', '')}: {amounts}"
    if "averageValue" in target:
        suffix = "" if kind == "Pods" else " (avg)"
        return f"{current.get('averageValue', UNKNOWN)}/{target['averageValue']}{suffix}"
    return f"{current.get('value', UNKNOWN)}/{target.get('value', '0')}"


def _fewest(scaler: Mapping[str, Any], now: float) -> Content:
    fewest = inside(scaler, "spec", "minReplicas")
    return UNSET if fewest is None else str(fewest)


AUTOSCALERS = printer(
    NAME,
    column("Reference", _reference, "What is scaled."),
    column("Targets", _targets, "What is measured, and what it should be."),
    column("MinPods", _fewest, "Never fewer replicas than this."),
    column("MaxPods", of("spec", "maxReplicas", absent=0), "Never more."),
    column("Replicas", of("status", "currentReplicas", absent=0), "How many there are."),
    AGE,
)
