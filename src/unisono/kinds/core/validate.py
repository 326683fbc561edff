"""What Kubernetes would refuse in a pod template, with the path of each fault.

Only rules that touch what a decision reads; the rest of a pod is for its kubelet.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.kinds.core.schema import (
    Affinity,
    Container,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinityTerm,
    PodSpec,
    PodTemplateSpec,
    ResourceList,
    Toleration,
    TopologySpreadConstraint,
)
from unisono.kinds.core.selection import NODE_NAME_FIELD
from unisono.kinds.core.topology import check_topology
from unisono.kinds.decode import Problem
from unisono.kinds.meta import LabelSelector, check_selector, wrong_with_label_key

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


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
    yield from _check_spread(spec.topology_spread_constraints, f"{path}.topologySpreadConstraints")
    if spec.host_network:
        yield from _check_host_ports(spec.containers, f"{path}.containers")


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
    """Yield the faults of affinity to nodes and to other pods."""
    if affinity is None:
        return
    if affinity.node_affinity is not None:
        nodes = affinity.node_affinity
        required = nodes.required_during_scheduling_ignored_during_execution
        at = f"{path}.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
        if required is not None and not required.node_selector_terms:
            yield Problem(at, "is required: there must be at least one term")
        for index, term in enumerate(required.node_selector_terms if required else ()):
            yield from _check_node_term(term, f"{at}[{index}]")
        preferred = nodes.preferred_during_scheduling_ignored_during_execution
        for index, one in enumerate(preferred):
            at = f"{path}.nodeAffinity.{_PREFERRED}[{index}].preference"
            yield from _check_node_term(one.preference, at)
    for name, pods in (
        ("podAffinity", affinity.pod_affinity),
        ("podAntiAffinity", affinity.pod_anti_affinity),
    ):
        if pods is None:
            continue
        for index, near in enumerate(pods.required_during_scheduling_ignored_during_execution):
            yield from _check_pod_term(near, f"{path}.{name}.{_REQUIRED}[{index}]")
        for index, liked in enumerate(pods.preferred_during_scheduling_ignored_during_execution):
            at = f"{path}.{name}.{_PREFERRED}[{index}].podAffinityTerm"
            yield from _check_pod_term(liked.pod_affinity_term, at)


def _check_node_term(term: NodeSelectorTerm, path: str) -> Iterator[Problem]:
    for number, clause in enumerate(term.match_expressions):
        yield from _check_clause(clause, f"{path}.matchExpressions[{number}]")
    for number, clause in enumerate(term.match_fields):
        yield from _check_field_clause(clause, f"{path}.matchFields[{number}]")


def _check_pod_term(term: PodAffinityTerm, path: str) -> Iterator[Problem]:
    yield from _check_key(term.topology_key, f"{path}.topologyKey")
    yield from _check_selector(term.label_selector, f"{path}.labelSelector")
    yield from _check_selector(term.namespace_selector, f"{path}.namespaceSelector")
    if term.label_selector is None:
        for name, keys in (
            ("matchLabelKeys", term.match_label_keys),
            ("mismatchLabelKeys", term.mismatch_label_keys),
        ):
            if keys:
                yield Problem(f"{path}.{name}", "needs a labelSelector beside it")
    for key in sorted({*term.match_label_keys} & {*term.mismatch_label_keys}):
        message = f'"{key}" stands in matchLabelKeys as well; no pod can match'
        yield Problem(f"{path}.mismatchLabelKeys", message)


def _check_spread(
    constraints: tuple[TopologySpreadConstraint, ...], path: str
) -> Iterator[Problem]:
    seen: set[tuple[str, str]] = set()
    for index, one in enumerate(constraints):
        at = f"{path}[{index}]"
        yield from _check_key(one.topology_key, f"{at}.topologyKey")
        yield from _check_selector(one.label_selector, f"{at}.labelSelector")
        if one.match_label_keys and one.label_selector is None:
            yield Problem(f"{at}.matchLabelKeys", "needs a labelSelector beside it")
        if one.min_domains is not None and one.when_unsatisfiable != "DoNotSchedule":
            yield Problem(f"{at}.minDomains", "needs whenUnsatisfiable: DoNotSchedule")
        if (one.topology_key, one.when_unsatisfiable) in seen:
            message = f"there is already a constraint {one.when_unsatisfiable} for this key"
            yield Problem(f"{at}.topologyKey", message)
        seen.add((one.topology_key, one.when_unsatisfiable))


def _check_key(key: str, path: str) -> Iterator[Problem]:
    wrong = wrong_with_label_key(key)
    if wrong:
        yield Problem(path, f"must be the key of a node label: {wrong}")


def _check_selector(selector: LabelSelector | None, path: str) -> Iterator[Problem]:
    if selector is not None:
        yield from check_selector(selector, path)


def _check_host_ports(containers: tuple[Container, ...], path: str) -> Iterator[Problem]:
    """On the host's network a container port *is* a host port."""
    for index, container in enumerate(containers):
        for number, port in enumerate(container.ports):
            if port.host_port not in (0, port.container_port):
                at = f"{path}[{index}].ports[{number}].hostPort"
                message = f"is {port.host_port}; with hostNetwork it must be the containerPort"
                yield Problem(at, f"{message}, {port.container_port}")


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
