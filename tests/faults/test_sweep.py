"""A death at every write of a gang's life, for every kind; `make test-all` says how many."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.faults.jobs import JOB_KINDS
from tests.faults.sweep import live, sweep


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("sort", JOB_KINDS)
def test_a_death_at_every_write(
    sort: str, after: bool, record_property: Callable[[str, object], None]
) -> None:
    points = sweep(sort, after=after)
    record_property("points", points)
    assert points > 40


@pytest.mark.parametrize("sort", JOB_KINDS)
def test_a_whole_life(sort: str) -> None:
    outcome = live(sort, at=0, after=False)
    assert not outcome.broken, outcome.story
    assert outcome.deaths == 0
