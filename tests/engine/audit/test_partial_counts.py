"""Which counts partial admission can end up with: asked by arithmetic, not step by step."""

from __future__ import annotations

from itertools import product

import pytest

from unisono.engine.audit.admission import is_partial_count
from unisono.engine.model.workload import PodSet


def every_step(pod_sets: tuple[PodSet, ...]) -> list[dict[str, int]]:
    """List the counts of each step, as the specification words it (quota §14)."""
    spare = {one.name: one.count - (one.min_count or one.count) for one in pod_sets}
    steps = sum(spare.values())
    return [
        {one.name: one.count - spare[one.name] * step // max(1, steps) for one in pod_sets}
        for step in range(steps + 1)
    ]


@pytest.mark.parametrize(("count", "least"), [(1, 1), (4, 1), (5, 3), (6, 6), (3, None)])
def test_it_says_what_trying_every_step_says(count: int, least: int | None) -> None:
    sets = (
        PodSet(name="a", count=count, min_count=least),
        PodSet(name="b", count=7, min_count=2),
    )
    listed = every_step(sets)
    for a, b in product(range(-1, 8), repeat=2):
        given = {"a": a, "b": b}
        assert is_partial_count(sets, given) == (given in listed), given


def test_two_thousand_million_steps_take_no_time() -> None:
    sets = (PodSet(name="a", count=2**31 - 1, min_count=1), PodSet(name="b", count=9, min_count=3))
    assert is_partial_count(sets, {"a": 2**31 - 1, "b": 9})
    assert is_partial_count(sets, {"a": 1, "b": 3})
    assert not is_partial_count(sets, {"a": 1, "b": 9})
