"""Seeds with faults: a few every time, thousands in `make test-all`.

To see one again: `python -m tests.faults --seed N --trace` (CONTRIBUTING.md).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.faults.run import run

QUICK = 12
MANY = 2400
_EACH = 20


def check(seeds: range) -> None:
    """Run seeds; tell the story of the first that breaks a promise."""
    for seed in seeds:
        outcome = run(seed)
        assert not outcome.broken, outcome.story


@pytest.mark.parametrize("first", range(0, QUICK, 4))
def test_a_few_clusters_in_trouble(first: int) -> None:
    check(range(first, first + 4))


def test_pods_that_were_sent_to_a_node_are_not_sent_to_another() -> None:
    """Their places went to others before the view showed them, and a node was booked twice."""
    check(range(179, 180))


@pytest.mark.slow
def test_an_admission_is_not_repeated_after_a_quota_cut() -> None:
    """Its PATCH was refused with a 500, sent again, and accepted: 13 of 8 GPUs were used."""
    check(range(50_131, 50_132))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(QUICK, MANY, _EACH))
def test_many_clusters_in_trouble(
    first: int, record_property: Callable[[str, object], None]
) -> None:
    seeds = range(first, min(first + _EACH, MANY))
    check(seeds)
    record_property("runs", len(seeds))


def test_a_seed_repeats_itself() -> None:
    first, second = run(3), run(3)
    assert first.trace == second.trace
    assert len(first.trace) > 50
