"""How many explanations are written while there is better to do."""

from __future__ import annotations

from unisono.control.scheduler.explainer import (
    BUSY_PER_SECOND,
    MOST_AT_ONCE,
    QUIET_PER_SECOND,
    ExplanationRate,
)
from unisono.kube.form import Key

_LONG_AGO = -1e9


def told(rate: ExplanationRate, count: int, now: float, admitted_at: float) -> int:
    """Have so many ask at once; return how many are told."""
    keys = [Key("default", str(number)) for number in range(count)]
    for key in keys:
        list(rate.put_off(key, now, admitted_at))
    return sum(not rate.has_put_off(key) for key in keys)


def test_some_are_told_at_once_and_the_others_as_time_passes() -> None:
    rate = ExplanationRate()
    assert told(rate, 200, 1000.0, _LONG_AGO) == MOST_AT_ONCE
    assert told(rate, 200, 1000.1, _LONG_AGO) == QUIET_PER_SECOND / 10
    assert told(rate, 200, 1001.1, 1001.0) == BUSY_PER_SECOND


def test_updates_that_are_put_off_are_written_once_it_is_quiet() -> None:
    rate = ExplanationRate()
    told(rate, 50, 1000.0, 1000.0)
    key = Key("default", "late")
    (again,) = rate.put_off(key, 1000.0, 1000.0)
    assert rate.has_put_off(key)
    assert list(rate.put_off(key, again.at, 1000.0)) == []  # type: ignore[union-attr]  # an Again
    assert not rate.has_put_off(key)


def test_a_late_admission_keeps_it_busy() -> None:
    rate = ExplanationRate()
    told(rate, 50, 1000.0, 1000.0)
    told(rate, 200, 1005.0, 1005.0)  # a long step admits still, and began at 1000
    assert told(rate, 200, 1006.0, 1000.0) == BUSY_PER_SECOND


def test_an_unchanged_explanation_uses_no_token() -> None:
    rate = ExplanationRate()
    assert told(rate, 50, 1000.0, 1000.0) == MOST_AT_ONCE
    rate.give_back()
    assert told(rate, 2, 1000.0, 1000.0) == 1
