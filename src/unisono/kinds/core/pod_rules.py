"""What a pod demands of the pods around it: its ports, pod affinity and anti-affinity, spread.

    hostPort (with hostNetwork: every port)         one such pod a node
    podAffinity, podAntiAffinity, required          same value of a node label as those pods, or not
    topologySpreadConstraints, DoNotSchedule        about as many pods for each value of the label

`matchLabelKeys` means "like me in these labels" and becomes part of the selector. A selector that
is absent speaks of no pod, an empty one of all. Preferred terms and ScheduleAnyway only ever
express a preference; they have no effect. Spec placement §5.2, §5.5 and §5.6.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from unisono.engine.model.node import HostPort, PodRule, PodSelector, SpreadRule
from unisono.engine.model.selection import LabelSelector, Requirement, selects
from unisono.kinds.core.schema import PodAffinity, PodAffinityTerm, PodSpec
from unisono.kinds.decode import Problem
from unisono.kinds.meta import NAMESPACE_LABEL, NOTHING, selector_of
from unisono.kinds.meta import LabelSelector as LabelSelectorManifest
from unisono.kinds.registry import Context


class PodRules(msgspec.Struct, frozen=True, kw_only=True):
    """All rules of a pod about other pods, as engine values."""

    host_ports: tuple[HostPort, ...] = ()
    affinity_to: tuple[PodRule, ...] = ()
    anti_affinity: tuple[PodRule, ...] = ()
    spread: tuple[SpreadRule, ...] = ()


def pod_rules(spec: PodSpec, labels: Mapping[str, str], context: Context) -> PodRules:
    """Return the rules of a pod with these labels; selectors of namespaces are looked up."""
    affinity = spec.affinity
    near = affinity.pod_affinity if affinity is not None else None
    away = affinity.pod_anti_affinity if affinity is not None else None
    return PodRules(
        host_ports=host_ports(spec),
        affinity_to=_affinity_rules(near, labels, context),
        anti_affinity=_affinity_rules(away, labels, context),
        spread=_spread_rules(spec, labels),
    )


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """Return the ports that a pod takes on its node.

    Init containers are gone before the others start; a sidecar is not.
    """
    sidecars = (one for one in spec.init_containers if one.is_sidecar)
    found = {
        HostPort(number, port.protocol or "TCP", "" if port.host_ip == "0.0.0.0" else port.host_ip)
        for container in (*spec.containers, *sidecars)
        for port in container.ports
        if (number := port.host_port or (port.container_port if spec.host_network else 0))
    }
    return tuple(sorted(found, key=lambda port: (port.port, port.protocol, port.address)))


def label_keys(spec: PodSpec) -> Iterator[str]:
    """Yield every label key of pods that a pod's own rules look at."""
    selectors: list[LabelSelectorManifest | None] = []
    for constraint in spec.topology_spread_constraints:
        selectors.append(constraint.label_selector)
        yield from constraint.match_label_keys
    affinity = spec.affinity
    for pods in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ():
        for term in pods.required_during_scheduling_ignored_during_execution if pods else ():
            selectors.append(term.label_selector)
            yield from (*term.match_label_keys, *term.mismatch_label_keys)
    for selector in selectors:
        if selector is not None:
            yield from selector.match_labels
            yield from (clause.key for clause in selector.match_expressions)


def ignored(spec: PodSpec) -> Iterator[Problem]:
    """Yield what a pod says about spreading that has no effect; paths start at the spec."""
    for index, one in enumerate(spec.topology_spread_constraints):
        if one.when_unsatisfiable != "DoNotSchedule":
            continue
        at = f"topologySpreadConstraints[{index}]"
        if one.node_affinity_policy == "Ignore":
            message = "Ignore has no effect: nodes that the pod cannot use do not count"
            yield Problem(f"{at}.nodeAffinityPolicy", message)
        if one.node_taints_policy == "Honor":
            message = "Honor has no effect: tainted nodes count"
            yield Problem(f"{at}.nodeTaintsPolicy", message)


def _affinity_rules(
    affinity: PodAffinity | None, labels: Mapping[str, str], context: Context
) -> tuple[PodRule, ...]:
    if affinity is None:
        return ()
    return tuple(
        PodRule(_pods_of(term, labels, context), term.topology_key)
        for term in affinity.required_during_scheduling_ignored_during_execution
    )


def _pods_of(term: PodAffinityTerm, labels: Mapping[str, str], context: Context) -> PodSelector:
    pods = _like_me(term.label_selector, labels, term.match_label_keys, term.mismatch_label_keys)
    chosen = term.namespace_selector
    if chosen is None:
        return PodSelector(pods, tuple(sorted(set(term.namespaces))))
    if not chosen.match_labels and not chosen.match_expressions:
        return PodSelector(pods, every_namespace=True)
    found = {*term.namespaces, *_selected(selector_of(chosen), context)}
    # No namespaces would mean the pod's own; a selector that finds none means no pod at all.
    return PodSelector(pods if found else NOTHING, tuple(sorted(found)))


def _selected(selector: LabelSelector, context: Context) -> Iterator[str]:
    """Yield the namespaces that a selector matches.

    Those that were given have labels. The pod's own, and those that the selector itself names, may
    be known by nothing but their names.
    """
    labels: dict[str, Mapping[str, str]] = {context.namespace: {}}
    for clause in selector.requirements:
        if clause.key == NAMESPACE_LABEL and clause.operator == "In":
            labels.update({value: {} for value in clause.values})
    for namespace in context.every("Namespace"):
        labels[namespace.metadata.name] = namespace.metadata.labels
    for name, own in labels.items():
        if selects(selector, {**own, NAMESPACE_LABEL: name}):
            yield name


def _spread_rules(spec: PodSpec, labels: Mapping[str, str]) -> tuple[SpreadRule, ...]:
    return tuple(
        SpreadRule(
            selector=PodSelector(_like_me(one.label_selector, labels, one.match_label_keys)),
            topology_key=one.topology_key,
            max_skew=one.max_skew,
            min_domains=1 if one.min_domains is None else one.min_domains,
        )
        for one in spec.topology_spread_constraints
        if one.when_unsatisfiable == "DoNotSchedule"
    )


def _like_me(
    selector: LabelSelectorManifest | None,
    labels: Mapping[str, str],
    match: Sequence[str],
    mismatch: Sequence[str] = (),
) -> LabelSelector:
    """Put the pod's own label values into a selector; keys that it does not have are left out.

    A pod that comes from an API server has them there already, so nothing is added twice.
    """
    if selector is None:
        return NOTHING
    clauses = list(selector_of(selector).requirements)
    like = [Requirement(key, "In", (labels[key],)) for key in match if key in labels]
    unlike = [Requirement(key, "NotIn", (labels[key],)) for key in mismatch if key in labels]
    clauses.extend(clause for clause in (*like, *unlike) if clause not in clauses)
    return LabelSelector(tuple(clauses))
