"""Buckets and growing delays."""

from __future__ import annotations

import doctest
import random

import pytest

from unisono.kube import leader_election, mapping, rate_limit
from unisono.kube.rate_limit import Backoff, TokenBucket


@pytest.mark.parametrize("module", [leader_election, mapping, rate_limit])
def test_examples_in_docstrings(module: object) -> None:
    tried = doctest.testmod(module)  # type: ignore[arg-type]  # they are modules
    assert tried.attempted > 0
    assert tried.failed == 0


def test_a_bucket_never_holds_more_than_its_burst() -> None:
    bucket = TokenBucket(rate=10, burst=2)
    assert [bucket.take(100.0) for _ in range(2)] == [0.0, 0.0]
    assert bucket.take(100.0) == pytest.approx(0.1)
    assert [bucket.take(900.0) for _ in range(2)] == [0.0, 0.0]
    assert bucket.take(900.0) > 0


def test_a_clock_that_goes_back_takes_nothing_away() -> None:
    bucket = TokenBucket(rate=1, burst=2)
    bucket.take(100.0)
    assert bucket.take(50.0) == 0.0


def test_a_reservation_stands_in_line() -> None:
    bucket = TokenBucket(rate=10, burst=1)
    assert [bucket.reserve(0.0) for _ in range(4)] == pytest.approx([0, 0.1, 0.2, 0.3])


def test_delays_double_up_to_their_limit() -> None:
    growth = Backoff(first_s=0.5, most_s=10)
    delays = [growth.delay(failures, random.Random(1)) for failures in (1, 2, 3, 6, 1000)]
    assert delays == [0.5, 1.0, 2.0, 10.0, 10.0]


@pytest.mark.parametrize(("jitter", "least", "most"), [(1.0, 4.0, 8.0), (-0.5, 2.0, 4.0)])
def test_jitter_stretches_or_shortens(jitter: float, least: float, most: float) -> None:
    growth = Backoff(first_s=4, most_s=100, jitter=jitter)
    random_source = random.Random(3)
    drawn = [growth.delay(1, random_source) for _ in range(200)]
    assert least <= min(drawn) < max(drawn) <= most
    assert max(drawn) - min(drawn) > (most - least) * 0.9
