"""What LimitRanges fill in and forbid."""

from __future__ import annotations

from tests.support.manifests import check, read
from unisono.kinds.core.limit_ranges import (
    NO_LIMITS,
    NamespaceLimits,
    Needs,
    namespace_limits,
    violations,
    with_defaults,
)
from unisono.kinds.quantity import NANO


def limits(*items: str, name: str = "bounds") -> NamespaceLimits:
    listed = "\n".join(f"  - {item}" for item in items)
    return namespace_limits(
        [
            read(
                "apiVersion: v1\nkind: LimitRange\n"
                f"metadata: {{name: {name}}}\nspec:\n  limits:\n{listed}\n"
            )
        ]
    )


def cpu(request: int | None = None, limit: int | None = None) -> Needs:
    return Needs(
        {} if request is None else {"cpu": request * NANO},
        {} if limit is None else {"cpu": limit * NANO},
    )


def test_nothing_is_filled_in_without_a_limit_range() -> None:
    assert with_defaults(cpu(), NO_LIMITS) == cpu()
    assert with_defaults(cpu(limit=2), NO_LIMITS) == cpu(2, 2)


def test_the_api_servers_own_defaults_come_first() -> None:
    """Max gives the default limit, that gives the default request; min only where neither is."""
    assert with_defaults(cpu(), limits("{type: Container, max: {cpu: 8}}")) == cpu(8, 8)
    assert with_defaults(cpu(), limits("{type: Container, min: {cpu: 1}}")) == cpu(1)
    both = limits("{type: Container, min: {cpu: 1}, max: {cpu: 8}}")
    assert with_defaults(cpu(), both) == cpu(8, 8)
    own = limits("{type: Container, defaultRequest: {cpu: 2}, default: {cpu: 4}, max: {cpu: 8}}")
    assert with_defaults(cpu(), own) == cpu(2, 4)


def test_what_the_container_says_wins() -> None:
    own = limits("{type: Container, defaultRequest: {cpu: 2}, default: {cpu: 4}}")
    assert with_defaults(cpu(request=1), own) == cpu(1, 4)
    assert with_defaults(cpu(limit=3), own) == cpu(3, 3)


def test_items_of_other_types_fill_in_nothing() -> None:
    assert with_defaults(cpu(), limits("{type: Pod, max: {cpu: 8}}")) == cpu()


def test_the_first_limit_range_by_name_fills_in() -> None:
    documents = [
        read(
            "apiVersion: v1\nkind: LimitRange\n"
            f"metadata: {{name: {name}}}\n"
            f"spec: {{limits: [{{type: Container, defaultRequest: {{cpu: {amount}}}}}]}}\n"
        )
        for name, amount in (("zebra", 1), ("ant", 2))
    ]
    assert with_defaults(cpu(), namespace_limits(documents)) == cpu(2)


def complaints(needs: Needs, bounds: NamespaceLimits, type_: str = "Container") -> list[str]:
    return list(violations("container c", type_, needs, bounds))


def test_min_is_for_requests_and_limits() -> None:
    bounds = limits("{type: Container, min: {cpu: 2}}")
    assert complaints(cpu(2, 2), bounds) == []
    assert complaints(cpu(1), bounds) == [
        "container c asks for 1 cpu; the minimum is 2 cpu (LimitRange bounds)"
    ]
    assert complaints(cpu(), bounds) == [
        "container c requests no cpu; at least 2 cpu must be requested (LimitRange bounds)"
    ]


def test_max_needs_a_limit() -> None:
    bounds = limits("{type: Container, max: {cpu: 4}}")
    assert complaints(cpu(4, 4), bounds) == []
    assert complaints(cpu(1, 5), bounds) == [
        "container c asks for 5 cpu; the maximum is 4 cpu (LimitRange bounds)"
    ]
    assert complaints(cpu(1), bounds) == [
        "container c has no limit for cpu; the maximum is 4 cpu (LimitRange bounds)"
    ]


def test_the_ratio_of_limit_to_request() -> None:
    bounds = limits('{type: Container, maxLimitRequestRatio: {cpu: "1.5"}}')
    assert complaints(cpu(2, 3), bounds) == []
    assert complaints(cpu(1, 2), bounds) == [
        "container c has a limit of 2 cpu for a request of 1 cpu; at most 1.5 times the request is"
        " allowed (LimitRange bounds)"
    ]
    assert complaints(cpu(1), bounds) == [
        "container c needs both a request and a limit for cpu (LimitRange bounds)"
    ]


def test_bounds_of_another_type_do_not_count() -> None:
    assert complaints(cpu(9), limits("{type: Pod, max: {cpu: 4}}")) == []


def test_a_limit_range_must_not_contradict_itself() -> None:
    text = """
apiVersion: v1
kind: LimitRange
metadata: {name: bounds}
spec:
  limits:
  - {type: Container, min: {cpu: 4}, default: {cpu: 3}, max: {cpu: 2, memory: -1}}
"""
    assert check(text) == [
        ("spec.limits[0].max[memory]", "is -1; it must not be negative"),
        ("spec.limits[0].min[cpu]", "is 4, more than default, which is 3"),
        ("spec.limits[0].min[cpu]", "is 4, more than max, which is 2"),
        ("spec.limits[0].default[cpu]", "is 3, more than max, which is 2"),
    ]
