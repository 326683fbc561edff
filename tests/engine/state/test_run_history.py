"""What earlier runs say about the next one."""

from __future__ import annotations

import random

import pytest

from tests.support.quota_builders import job
from unisono.engine.model.names import Instant
from unisono.engine.state.run_history import (
    LEAST_RUNS,
    MOST_RUNS,
    MOST_SORTS,
    History,
    alike,
    pattern_of,
    with_limit,
)

KIND = alike(job("w", "q", 4), "train-1")


def learned(*minutes: int) -> History:
    """Return a history of runs, one after the other."""
    history = History()
    for place, ran in enumerate(minutes):
        history.note(KIND, uid=str(place), ended_at=Instant(place), ran_ms=ran)
    return history


def test_few_runs_say_nothing() -> None:
    assert learned(*range(1, LEAST_RUNS)).expected_ms(KIND) is None
    assert learned(*range(1, LEAST_RUNS + 1)).expected_ms(KIND) == LEAST_RUNS


def test_nine_of_ten_were_over_by_then() -> None:
    assert learned(*range(1, 11)).expected_ms(KIND) == 9
    assert learned(*range(1, 21)).expected_ms(KIND) == 18


def test_only_the_last_runs_count() -> None:
    assert learned(*[900] * 50, *[5] * MOST_RUNS).expected_ms(KIND) == 5


def test_the_order_of_runs_and_repeating_them_change_nothing() -> None:
    runs = [(Instant(at), str(at), at * 7 % 31) for at in range(40)]
    answers = set()
    for seed in range(5):
        history = History()
        for ended_at, uid, ran in random.Random(seed).sample(runs, len(runs)) + runs[-3:]:
            history.note(KIND, uid=uid, ended_at=ended_at, ran_ms=ran)
        answers.add(history.expected_ms(KIND))
    assert len(answers) == 1


def test_memory_is_bounded() -> None:
    history = History()
    for place in range(MOST_SORTS + 5):
        for run in range(LEAST_RUNS):
            kind = alike(job("w", "q", 4), f"job-{'x' * place}")
            history.note(kind, uid=str(run), ended_at=Instant(place), ran_ms=1)
    assert history.expected_ms(alike(job("w", "q", 4), "job-")) is None
    assert history.expected_ms(alike(job("w", "q", 4), f"job-{'x' * MOST_SORTS}")) == 1


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("train-bert-20260131-x7k2p", "train-bert-#"),
        ("sweep-lr-17", "sweep-lr-#"),
        ("eval-3f9c2ab", "eval"),
        ("t5-large", "t#-large"),
        ("nightly", "nightly"),
    ],
)
def test_names_of_one_job_have_one_pattern(name: str, pattern: str) -> None:
    assert pattern_of(name) == pattern


def test_the_limit_of_the_queue_comes_before_history() -> None:
    history = learned(60, 60, 60)
    silent = job("w", "q", 4)
    found = with_limit(silent, owner="train-9", default_ms=None, history=history)
    assert (found.time_limit_ms, found.limit_from) == (60, "history")
    found = with_limit(silent, owner="train-9", default_ms=5, history=history)
    assert (found.time_limit_ms, found.limit_from) == (5, "queue")
    assert with_limit(found, owner="train-9", default_ms=7, history=history) is found
