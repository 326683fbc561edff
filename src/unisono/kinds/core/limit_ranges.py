"""LimitRanges: what they fill in for a container, and what they forbid.

Kubernetes completes a LimitRange when it is created, then a pod's containers, then checks them:

    in an item of type Container    default <- max        defaultRequest <- default <- min
    in a container                  limit <- default      request <- own limit <- defaultRequest
    for a container, for a pod      min <= request, limit <= max, limit <= ratio x request

Where several LimitRanges speak, the first by name fills in, and all of them check. A pod that
breaks one could never be created, so waiting does not mend it (spec quota §3, §6).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from unisono.kinds.decode import Schema
from unisono.kinds.meta import ObjectMeta
from unisono.kinds.notes import Notes
from unisono.kinds.quantity import NANO, Nano, Quantity, check_not_negative, first_of, nano, written


class LimitRangeItem(Schema, frozen=True, kw_only=True):
    """Bounds and defaults for one type of object."""

    type: str
    max: Mapping[str, Quantity] = {}
    min: Mapping[str, Quantity] = {}
    default: Mapping[str, Quantity] = {}
    default_request: Mapping[str, Quantity] = {}
    max_limit_request_ratio: Mapping[str, Quantity] = {}


class LimitRangeSpec(Schema, frozen=True, kw_only=True):
    """The items of a limit range."""

    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(Schema, frozen=True, kw_only=True):
    """How small and how large the containers and pods of a namespace may be."""

    api_version: str = "v1"
    kind: str = "LimitRange"
    metadata: ObjectMeta = ObjectMeta()
    spec: LimitRangeSpec = LimitRangeSpec()


class Needs(NamedTuple):
    """What a container or a pod asks for and what it may not exceed, in nano-units."""

    requests: Nano
    limits: Nano


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """One item of a LimitRange, completed, in nano-units."""

    limit_range: str
    type: str
    min: Nano
    max: Nano
    ratio: Nano
    default: Nano
    default_request: Nano


class NamespaceLimits(msgspec.Struct, frozen=True):
    """All that the LimitRanges of one namespace say."""

    bounds: tuple[Bound, ...] = ()


NO_LIMITS = NamespaceLimits()


def namespace_limits(limit_ranges: Iterable[LimitRange]) -> NamespaceLimits:
    """Gather the LimitRanges of one namespace."""
    in_order = sorted(limit_ranges, key=lambda limit_range: limit_range.metadata.name)
    return NamespaceLimits(
        tuple(
            _completed(limit_range.metadata.name, item)
            for limit_range in in_order
            for item in limit_range.spec.limits
        )
    )


def _completed(name: str, item: LimitRangeItem) -> Bound:
    """Fill in an item's defaults as the API server does."""
    default, default_request = nano(item.default), nano(item.default_request)
    if item.type == "Container":
        default = first_of(default, nano(item.max))
        default_request = first_of(first_of(default_request, default), nano(item.min))
    return Bound(
        limit_range=name,
        type=item.type,
        min=nano(item.min),
        max=nano(item.max),
        ratio=nano(item.max_limit_request_ratio),
        default=default,
        default_request=default_request,
    )


def with_defaults(needs: Needs, limits: NamespaceLimits) -> Needs:
    """Return what a container asks for once its namespace has had its say."""
    requests = first_of(needs.requests, needs.limits)
    ceilings = needs.limits
    for bound in limits.bounds:
        if bound.type == "Container":
            requests = first_of(requests, bound.default_request)
            ceilings = first_of(ceilings, bound.default)
    return Needs(requests, ceilings)


def violations(what: str, type_: str, needs: Needs, limits: NamespaceLimits) -> Iterator[str]:
    """Say where something of type Container or Pod leaves the bounds of its namespace."""
    for bound in limits.bounds:
        if bound.type == type_:
            for complaint in _complaints(needs, bound):
                yield f"{what} {complaint} (LimitRange {bound.limit_range})"


def _complaints(needs: Needs, bound: Bound) -> Iterator[str]:
    for name, least in sorted(bound.min.items()):
        if name not in needs.requests:
            yield f"requests no {name}; at least {written(least, name)} must be requested"
        elif (lowest := min(needs.requests[name], needs.limits.get(name, least))) < least:
            yield f"asks for {written(lowest, name)}; the minimum is {written(least, name)}"
    for name, most in sorted(bound.max.items()):
        if name not in needs.limits:
            yield f"has no limit for {name}; the maximum is {written(most, name)}"
        elif (most_asked := max(needs.limits[name], needs.requests.get(name, 0))) > most:
            yield f"asks for {written(most_asked, name)}; the maximum is {written(most, name)}"
    for name, ratio in sorted(bound.ratio.items()):
        request, limit = needs.requests.get(name, 0), needs.limits.get(name, 0)
        if request <= 0 or limit <= 0:
            yield f"needs both a request and a limit for {name}"
        elif limit * NANO > ratio * request:
            yield (
                f"has a limit of {written(limit, name)} for a request of {written(request, name)};"
                f" at most {ratio / NANO:g} times the request is allowed"
            )


def check_limit_range(limit_range: LimitRange, notes: Notes) -> None:
    """Report amounts and bounds that Kubernetes would refuse."""
    for index, item in enumerate(limit_range.spec.limits):
        _check_limit_range_item(item, f"spec.limits[{index}]", notes)


def _check_limit_range_item(item: LimitRangeItem, path: str, notes: Notes) -> None:
    """Report bounds that contradict each other: min, default request, default and max must rise."""
    rising = (
        ("min", item.min),
        ("defaultRequest", item.default_request),
        ("default", item.default),
        ("max", item.max),
    )
    for name, resources in (*rising, ("maxLimitRequestRatio", item.max_limit_request_ratio)):
        check_not_negative(resources, f"{path}.{name}", notes)
    for place, (lower_name, lower) in enumerate(rising):
        for upper_name, upper in rising[place + 1 :]:
            for resource in sorted(lower.keys() & upper.keys()):
                if lower[resource].nano > upper[resource].nano:
                    at = f"{path}.{lower_name}[{resource}]"
                    more = f"is {lower[resource].text}, more than {upper_name}"
                    notes.problem(at, f"{more}, which is {upper[resource].text}")
