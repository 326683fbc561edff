"""From pod templates to the pod sets of a workload: the last step of every job kind.

A job kind says which templates it has and how many pods of each; everything else about a pod set
(requests, node selection, rules about other pods, topology) follows from the template in the same
way for all kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from unisono.engine.model.names import ResourceName
from unisono.engine.model.resources import MAX_AMOUNT, MAX_COUNT, MAX_TOTAL, Amounts, amounts
from unisono.engine.model.workload import PodSet
from unisono.kinds.core.device_claims import device_claims
from unisono.kinds.core.gpu_parts import with_models
from unisono.kinds.core.limit_ranges import namespace_limits
from unisono.kinds.core.pod_rules import ignored, pod_rules
from unisono.kinds.core.requests import PLAIN_COSTING, PodCosting, pod_cost
from unisono.kinds.core.schema import PodTemplateSpec, ResourceList
from unisono.kinds.core.selection import (
    affinity_terms,
    labels_of,
    preferred_terms,
    tolerations_of,
)
from unisono.kinds.core.topology import (
    GROUP,
    SEVERAL_LAYERS,
    SLICE_SIZE,
    layers_of,
    topology_request,
)
from unisono.kinds.core.validate import check_pod_template
from unisono.kinds.core.volumes import reaches, within_reach
from unisono.kinds.digits import whole_number
from unisono.kinds.notes import Notes
from unisono.kinds.quantity import format_amount
from unisono.kinds.registry import Context
from unisono.kinds.resource_rules import NO_RULES

_FEW = MAX_TOTAL // MAX_AMOUNT  # pods that cannot reach the bound together, whatever they ask for


class TemplateSet(msgspec.Struct, frozen=True, kw_only=True):
    """So many pods of one template."""

    name: str
    count: int
    min_count: int | None = None
    template: PodTemplateSpec
    path: str  # where the template stands in the manifest; empty for a pod, which is its own
    labels: Mapping[str, str] = {}  # what the job's controller adds to those of the template


def pod_sets(sets: Iterable[TemplateSet], context: Context) -> tuple[PodSet, ...]:
    """Return the pod sets of a workload, in the order given; note pods that can never be.

    A set scaled to nothing is left out: it needs neither quota nor a place.
    """
    costing = costing_of(context)
    made = tuple(_pod_set(one, costing, context) for one in sets if one.count > 0)
    return _countable(made, context.notes)


def empty_sets(sets: Iterable[TemplateSet], context: Context) -> tuple[PodSet, ...]:
    """Return the sets that are scaled to nothing, each as one pod of it.

    What is wrong with pods that are not wanted is no fault of the workload, and not told.
    """
    empty = [msgspec.structs.replace(one, count=1, min_count=None) for one in sets if not one.count]
    if not empty:
        return ()
    notes = context.notes
    faults, warnings = len(notes.faults), len(notes.warnings)
    costing = costing_of(context)
    made = tuple(_pod_set(one, costing, context) for one in empty)
    del notes.faults[faults:], notes.warnings[warnings:]
    return made


def _countable(sets: tuple[PodSet, ...], notes: Notes) -> tuple[PodSet, ...]:
    """Cut requests of which all pods together ask for more than is counted, and say which.

    Such a workload never runs; what is left of its requests keeps every sum within 64 bits.
    """
    if sum(one.count for one in sets) <= _FEW:
        return sets  # no single request is so large that fewer pods reach the bound
    left: dict[str, int] = {}

    def cut(requests: Amounts, count: int, name: str) -> Amounts:
        kept: dict[ResourceName, int] = {}
        for resource, amount in requests:
            most = left.setdefault(resource, MAX_TOTAL)
            kept[resource] = min(amount, most // count)
            left[resource] = most - kept[resource] * count
            if kept[resource] < amount:
                asked = f"{count} x {format_amount(amount, resource)} {resource}"
                limit = format_amount(MAX_TOTAL, resource)
                notes.misconfigured(
                    f"pod set {name}: asks for {asked}; no cluster has more than {limit}: ask for"
                    " less, or for fewer pods"
                )
        return amounts(kept)

    made: list[PodSet] = []
    for one in sets:
        charged = cut(one.requests, one.count, one.name)
        on_nodes = one.node_requests
        if on_nodes is not None:
            on_nodes = amounts({name: min(each, MAX_TOTAL // one.count) for name, each in on_nodes})
        if charged == one.requests and on_nodes == one.node_requests:
            made.append(one)
        else:
            cut_down = msgspec.structs.replace(one, requests=charged, node_requests=on_nodes)
            made.append(cut_down)
    return tuple(made)


def costing_of(context: Context) -> PodCosting:
    """Gather what decides the cost of pods in the namespace that is being read."""
    ranges = context.every("LimitRange", namespace=context.namespace)
    overheads = _runtime_overheads(context)
    if not ranges and not overheads and context.rules == NO_RULES:
        return PLAIN_COSTING  # as nearly everywhere
    return PodCosting(
        limits=namespace_limits(ranges), rules=context.rules, runtime_overhead=overheads
    )


def _runtime_overheads(context: Context) -> dict[str, ResourceList]:
    return {
        runtime.metadata.name: runtime.overhead.pod_fixed
        for runtime in context.every("RuntimeClass")
        if runtime.overhead is not None
    }


def _pod_set(one: TemplateSet, costing: PodCosting, context: Context) -> PodSet:
    spec, annotations = one.template.spec, one.template.metadata.annotations
    labels = {**one.template.metadata.labels, **one.labels}
    volumes = reaches(spec, context)
    near = pod_rules(spec, labels, context)
    cost = pod_cost(spec, costing, annotations)
    if cost.misconfigured:
        verdict = f"{cost.verdict}: " if cost.verdict else ""
        context.notes.misconfigured(f"{verdict}pod set {one.name}: {cost.misconfigured}")
    for claimed in device_claims(spec, context):
        context.notes.misconfigured(f"pod set {one.name}: {claimed.message}")
        path = f"{one.path}.spec.{claimed.path}".removeprefix(".")
        context.notes.warn("DevicesNotAllocated", path, f"{claimed.message}; it waits")
    if len(layers_of(annotations)) > 1:
        context.notes.misconfigured(f"pod set {one.name}: {SEVERAL_LAYERS}")
    for without_effect in ignored(spec):
        path = f"{one.path}.spec.{without_effect.path}".removeprefix(".")
        context.notes.warn("FieldIgnored", path, without_effect.message)
    return PodSet(
        name=one.name,
        count=one.count,
        min_count=one.min_count,
        requests=cost.charged,
        node_requests=None if cost.requests == cost.charged else cost.requests,
        node_selector=labels_of(spec.node_selector),
        affinity=within_reach(with_models(affinity_terms(spec.affinity), annotations), volumes),
        tolerations=tolerations_of(spec.tolerations),
        topology=topology_request(annotations),
        group=annotations.get(GROUP, ""),
        preferred=preferred_terms(spec.affinity),
        labels=labels_of(labels),
        host_ports=near.host_ports,
        affinity_to=near.affinity_to,
        anti_affinity=near.anti_affinity,
        spread=near.spread,
        volumes=volumes,
    )


def check_template_sets(sets: Iterable[TemplateSet], notes: Notes) -> None:
    """Report what is wrong with the templates and with the names of the sets."""
    seen: dict[str, str] = {}
    for one in sets:
        for problem in check_pod_template(one.template, one.path):
            notes.problem(problem.path.removeprefix("."), problem.message)
        if one.count > MAX_COUNT:
            notes.problem(one.path, f"makes {one.count} pods; one set has {MAX_COUNT} at most")
        if one.name in seen:
            notes.problem(one.path, f'the name "{one.name}" is already used by {seen[one.name]}')
        seen.setdefault(one.name, one.path)
        size = whole_number(one.template.metadata.annotations.get(SLICE_SIZE))
        if size is not None and size > one.count:
            at = f"{one.path}.metadata.annotations[{SLICE_SIZE}]".removeprefix(".")
            notes.problem(at, f"is {size}; the pod set has only {one.count} pods")


def first_priority_class(sets: Iterable[TemplateSet]) -> str:
    """Return the priority class of the first template that names one."""
    return next((name for one in sets if (name := one.template.spec.priority_class_name)), "")


def first_scheduler(sets: Iterable[TemplateSet]) -> str:
    """Return the scheduler of the first template that names one."""
    return next((name for one in sets if (name := one.template.spec.scheduler_name)), "")
