"""What one pod asks for: containers, sidecars, init containers, pod-level resources, overhead.

A pod goes through stages, and needs as much of each resource as its hungriest stage:

    init containers run one after another; one with restartPolicy Always (a sidecar) keeps running
    stage i    sidecars started before it, and init container i
    last       all sidecars, and all containers

`spec.resources` (pod level) replaces the result for cpu, memory and huge pages; `spec.overhead`
comes on top. Annotations may ask for a part of a GPU (`gpu_parts`). Exact in nano-units, rounded
once. Spec placement §5.1 and quota §3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import msgspec

from unisono.engine.model.resources import Amounts
from unisono.kinds.core.gpu_parts import PART_RESOURCES, PART_WORDS, whole_gpus, with_parts
from unisono.kinds.core.limit_ranges import (
    NO_LIMITS,
    NamespaceLimits,
    Needs,
    violations,
    with_defaults,
)
from unisono.kinds.core.schema import Container, PodSpec, ResourceList, ResourceRequirements
from unisono.kinds.quantity import Nano, beyond, first_of, highest, nano, rounded, total, written
from unisono.kinds.resource_rules import NO_RULES, ResourceRules, charged

# What Kueue's messages begin with when it refuses what the pods of a workload ask for.
INVALID_RESOURCES = "resources validation failed"
OUTSIDE_LIMIT_RANGE = "resources didn't satisfy LimitRange constraints"


class PodCost(msgspec.Struct, frozen=True, kw_only=True):
    """What one pod costs, and why no such pod can ever be created, if that is so."""

    requests: Amounts  # what it takes of a node
    charged: Amounts  # what it takes of quota
    misconfigured: str = ""
    verdict: str = ""  # what Kueue calls it: one of the two above, or nothing


class PodCosting(msgspec.Struct, frozen=True, kw_only=True):
    """Everything besides the pod itself that decides what it costs."""

    limits: NamespaceLimits = NO_LIMITS
    rules: ResourceRules = NO_RULES
    # RuntimeClass name -> what each of its pods uses besides its containers.
    runtime_overhead: Mapping[str, ResourceList] = {}


PLAIN_COSTING = PodCosting()
_NONE: Mapping[str, str] = {}

# Thousands of jobs ask for the same: so many different costs are remembered, less than a megabyte.
_MOST_KNOWN = 1024
_known: dict[object, PodCost] = {}


def pod_cost(
    spec: PodSpec, costing: PodCosting = PLAIN_COSTING, annotations: Mapping[str, str] = _NONE
) -> PodCost:
    """Return what one pod of this spec asks for and is charged for."""
    if costing != PLAIN_COSTING or spec.resources is not None or spec.overhead:
        return _worked_out(spec, costing, annotations)
    asked = (
        tuple(map(_asked, spec.containers)),
        tuple(map(_asked, spec.init_containers)),
        tuple((key, annotations[key]) for key in PART_WORDS if key in annotations),
    )
    cost = _known.get(asked)
    if cost is None:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        cost = _known[asked] = _worked_out(spec, costing, annotations)
    return cost


def _asked(container: Container) -> object:
    """Return all of a container that its cost depends on."""
    resources = container.resources
    return (
        container.name,
        container.restart_policy,
        tuple(resources.requests.items()),
        tuple(resources.limits.items()),
    )


def _worked_out(spec: PodSpec, costing: PodCosting, annotations: Mapping[str, str]) -> PodCost:
    containers = _completed(spec.containers, costing.limits)
    init_containers = _completed(spec.init_containers, costing.limits)
    needs = _pod_needs(spec, containers, init_containers)
    invalid = [
        *_above_limits(spec.containers, containers),
        *_above_limits(spec.init_containers, init_containers),
        *_pod_level_faults(spec, containers, init_containers),
    ]
    outside = [
        *_outside_bounds(spec.containers, containers, costing.limits),
        *_outside_bounds(spec.init_containers, init_containers, costing.limits),
        *violations("a pod", "Pod", needs, costing.limits),
    ]
    overhead = nano(_overhead(spec, costing.runtime_overhead))
    asked = total((needs.requests, overhead))
    requests, wrong_part = with_parts(asked, annotations)
    counted = requests
    if any(
        rule.input in PART_RESOURCES and rule.input in asked
        for rule in costing.rules.transformations
    ):
        # The operator says what such a resource costs: quota counts it as it is written. On nodes
        # what cannot be read as a part takes whole GPUs.
        counted = asked
        if wrong_part:
            requests, wrong_part = with_parts(whole_gpus(asked), annotations)
    return PodCost(
        requests=rounded(requests),
        charged=rounded(charged(counted, costing.rules)),
        misconfigured="; ".join(
            chain(invalid, outside, filter(None, [wrong_part]), beyond(requests))
        ),
        verdict=INVALID_RESOURCES if invalid else OUTSIDE_LIMIT_RANGE if outside else "",
    )


def staged(containers: Sequence[Nano], init_containers: Sequence[tuple[Nano, bool]]) -> Nano:
    """Return the need of the hungriest stage; the flag marks sidecars.

    >>> staged([{"cpu": 2}], [({"cpu": 1}, True), ({"cpu": 4}, False)])
    {'cpu': 5}
    """
    sidecars: Nano = {}
    stages: list[Nano] = []
    for resources, is_sidecar in init_containers:
        stages.append(total((sidecars, resources)))
        if is_sidecar:
            sidecars = stages[-1]
    return highest([*stages, total((sidecars, *containers))])


def _needs(resources: ResourceRequirements) -> Needs:
    return Needs(nano(resources.requests), nano(resources.limits))


def _completed(containers: Sequence[Container], limits: NamespaceLimits) -> list[Needs]:
    return [with_defaults(_needs(container.resources), limits) for container in containers]


def _aggregate(spec: PodSpec, containers: Sequence[Needs], inits: Sequence[Needs]) -> Needs:
    flags = [container.is_sidecar for container in spec.init_containers]
    return Needs(
        staged(
            [needs.requests for needs in containers],
            [(needs.requests, flag) for needs, flag in zip(inits, flags, strict=True)],
        ),
        staged(
            [needs.limits for needs in containers],
            [(needs.limits, flag) for needs, flag in zip(inits, flags, strict=True)],
        ),
    )


def _pod_needs(spec: PodSpec, containers: Sequence[Needs], inits: Sequence[Needs]) -> Needs:
    """Put pod-level resources over what the containers sum up to.

    A LimitRange's defaults for containers count only where the pod itself says nothing.
    """
    below = _aggregate(spec, containers, inits)
    own = _pod_level(spec)
    return Needs(first_of(own.requests, below.requests), first_of(own.limits, below.limits))


def _pod_level(spec: PodSpec) -> Needs:
    """Return what the pod as a whole is given.

    A limit alone becomes the request only where no container requests anything. This is what the
    API server fills in, before any LimitRange is looked at.
    """
    if spec.resources is None:
        return Needs({}, {})
    own = _needs(spec.resources)
    written = _aggregate(
        spec, _completed(spec.containers, NO_LIMITS), _completed(spec.init_containers, NO_LIMITS)
    ).requests
    filled_in = {name: written.get(name, limit) for name, limit in own.limits.items()}
    return Needs(first_of(own.requests, filled_in), own.limits)


def _overhead(spec: PodSpec, runtime_overhead: Mapping[str, ResourceList]) -> ResourceList:
    return spec.overhead or runtime_overhead.get(spec.runtime_class_name or "", {})


def _above_limits(containers: Sequence[Container], needs: Sequence[Needs]) -> Iterator[str]:
    for container, needed in zip(containers, needs, strict=True):
        yield from _above_limit(f"container {container.name}", needed)


def _outside_bounds(
    containers: Sequence[Container], needs: Sequence[Needs], limits: NamespaceLimits
) -> Iterator[str]:
    for container, needed in zip(containers, needs, strict=True):
        yield from violations(f"container {container.name}", "Container", needed, limits)


def _pod_level_faults(
    spec: PodSpec, containers: Sequence[Needs], inits: Sequence[Needs]
) -> Iterator[str]:
    if spec.resources is None:
        return
    own = _pod_needs(spec, containers, inits)
    yield from _above_limit("the pod", own)
    below = _aggregate(spec, containers, inits).requests
    for name, request in sorted(_pod_level(spec).requests.items()):
        if below.get(name, 0) > request:
            asked = written(below[name], name)
            yield f"the containers ask for {asked}, the whole pod only for {written(request, name)}"


def _above_limit(what: str, needs: Needs) -> Iterator[str]:
    for name, request in sorted(needs.requests.items()):
        if name in needs.limits and request > needs.limits[name]:
            limit = written(needs.limits[name], name)
            yield f"{what} requests {written(request, name)}; its limit is {limit}"
