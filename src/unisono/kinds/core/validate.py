"""What Kubernetes would refuse in a pod template, with the path of each fault.

Only rules that touch what a decision reads; the rest of a pod is the business of whoever runs it.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.kinds.core.schema import (
    Affinity,
    Container,
    NodeSelectorRequirement,
    PodSpec,
    PodTemplateSpec,
    ResourceList,
    Toleration,
)
from unisono.kinds.core.selection import NODE_NAME_FIELD
from unisono.kinds.core.topology import check_topology
from unisono.kinds.decode import Problem

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def check_pod_template(template: PodTemplateSpec, path: str) -> Iterator[Problem]:
    """Yield the faults of a pod template that stands at `path`."""
    yield from check_topology(template.metadata.annotations, f"{path}.metadata.annotations")
    yield from check_pod_spec(template.spec, f"{path}.spec")


def check_pod_spec(spec: PodSpec, path: str) -> Iterator[Problem]:
    """Yield the faults of a pod spec that stands at `path`."""
    if not spec.containers:
        yield Problem(f"{path}.containers", "is required: a pod needs at least one container")
    yield from _check_containers(spec.init_containers, f"{path}.initContainers")
    yield from _check_containers(spec.containers, f"{path}.containers")
    if spec.resources is not None:
        yield from check_amounts(spec.resources.requests, f"{path}.resources.requests")
        yield from check_amounts(spec.resources.limits, f"{path}.resources.limits")
        for part in ("requests", "limits"):
            for name in getattr(spec.resources, part):
                if not _is_pod_level(name):
                    yield Problem(
                        f"{path}.resources.{part}[{name}]",
                        "only cpu, memory and hugepages can be set for a whole pod",
                    )
    yield from check_amounts(spec.overhead, f"{path}.overhead")
    yield from check_affinity(spec.affinity, f"{path}.affinity")
    yield from check_tolerations(spec.tolerations, f"{path}.tolerations")


def _is_pod_level(resource: str) -> bool:
    return resource in ("cpu", "memory") or resource.startswith("hugepages-")


def _check_containers(containers: tuple[Container, ...], path: str) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, container in enumerate(containers):
        at = f"{path}[{index}]"
        if container.name in seen:
            yield Problem(f"{at}.name", f'"{container.name}" is used twice')
        seen.add(container.name)
        yield from check_amounts(container.resources.requests, f"{at}.resources.requests")
        yield from check_amounts(container.resources.limits, f"{at}.resources.limits")


def check_amounts(resources: ResourceList, path: str) -> Iterator[Problem]:
    """Yield negative amounts."""
    for name, quantity in resources.items():
        if quantity.nano < 0:
            yield Problem(f"{path}[{name}]", f"is {quantity.text}; it must not be negative")


def check_tolerations(tolerations: tuple[Toleration, ...], path: str) -> Iterator[Problem]:
    """Yield the faults of tolerations."""
    for index, toleration in enumerate(tolerations):
        if not toleration.key and toleration.operator != "Exists":
            yield Problem(f"{path}[{index}].operator", "must be Exists when key is empty")
        if toleration.operator == "Exists" and toleration.value:
            yield Problem(f"{path}[{index}].value", "must be empty when operator is Exists")


def check_affinity(affinity: Affinity | None, path: str) -> Iterator[Problem]:
    """Yield the faults of a required node affinity."""
    if affinity is None or affinity.node_affinity is None:
        return
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    if required is None:
        return
    at = f"{path}.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    if not required.node_selector_terms:
        yield Problem(at, "is required: there must be at least one term")
    for index, term in enumerate(required.node_selector_terms):
        for number, clause in enumerate(term.match_expressions):
            yield from _check_clause(clause, f"{at}[{index}].matchExpressions[{number}]")
        for number, clause in enumerate(term.match_fields):
            yield from _check_field_clause(clause, f"{at}[{index}].matchFields[{number}]")


def _check_clause(clause: NodeSelectorRequirement, path: str) -> Iterator[Problem]:
    values = len(clause.values)
    match clause.operator:
        case "In" | "NotIn" if values == 0:
            yield Problem(f"{path}.values", f"{clause.operator} needs at least one value")
        case "Exists" | "DoesNotExist" if values:
            yield Problem(f"{path}.values", f"must be empty for {clause.operator}")
        case "Gt" | "Lt" if values != 1:
            yield Problem(f"{path}.values", f"{clause.operator} needs exactly one value")


def _check_field_clause(clause: NodeSelectorRequirement, path: str) -> Iterator[Problem]:
    if clause.key != NODE_NAME_FIELD:
        yield Problem(f"{path}.key", f"only {NODE_NAME_FIELD} can be matched")
    if clause.operator not in ("In", "NotIn"):
        yield Problem(f"{path}.operator", "must be In or NotIn")
    elif len(clause.values) != 1:
        yield Problem(f"{path}.values", "needs exactly one value")
