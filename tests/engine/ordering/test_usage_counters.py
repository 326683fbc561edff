"""Usage decays exactly, or step by step as in Slurm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unisono.engine.model.multifactor import MultifactorRules
from unisono.engine.model.names import Instant
from unisono.engine.ordering.tres import MICRO
from unisono.engine.ordering.usage import (
    ExactCounters,
    UsageCounters,
    counters_for,
    last_reset,
)

HALF_HOUR = 1_800_000
MINUTE = 60_000
CYCLE = Instant(100 * MINUTE)


def counters(*, compat: bool, period: int = MINUTE, half_life: int = HALF_HOUR) -> UsageCounters:
    return counters_for(
        MultifactorRules(half_life_ms=half_life, compat=compat, calc_period_ms=period)
    )


def ran(one: UsageCounters, rate: float, since: int, until: int | None = None) -> int:
    """Charge a new counter, in seconds before the calculation; return its number."""
    number, start = one.add(), Instant(CYCLE - since * 1000)
    one.start(number, round(rate * MICRO), start, start)
    if until is not None:
        end = Instant(CYCLE - until * 1000)
        one.stop(number, round(rate * MICRO), start, end)
    return number


@pytest.mark.parametrize(("compat", "expected"), [(True, 5457.1), (False, 5484.5)])
def test_212_a_second_for_the_26_seconds_before_a_cycle(compat: bool, expected: float) -> None:
    one = counters(compat=compat)
    assert one.value(ran(one, 212, since=26), CYCLE) == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize(("compat", "expected"), [(True, 404.5), (False, 410.8)])
def test_32_a_second_for_13_seconds_that_ended_26_before_it(compat: bool, expected: float) -> None:
    one = counters(compat=compat)
    assert one.value(ran(one, 32, since=39, until=26), CYCLE) == pytest.approx(expected, abs=0.05)


def test_slurm_s_numbers_stand_still_between_cycles() -> None:
    one = counters(compat=True)
    number = ran(one, 212, since=26)
    assert one.value(number, Instant(CYCLE - 1)) == 0
    assert one.value(number, CYCLE) == one.value(number, Instant(CYCLE + MINUTE - 1))


def test_many_cycles_at_once_are_as_many_cycles() -> None:
    one, other = counters(compat=True), counters(compat=True)
    number, same = ran(one, 7, since=90), ran(other, 7, since=90)
    for minute in range(1, 50):
        now = Instant(CYCLE + minute * MINUTE)
        other.write(same, other.value(same, now), now)
    end = Instant(CYCLE + 49 * MINUTE)
    assert one.value(number, end) == pytest.approx(other.value(same, end))


def test_half_is_left_after_a_half_life() -> None:
    one = counters(compat=False)
    number = one.add()
    one.write(number, 1000.0, CYCLE)
    assert one.value(number, Instant(CYCLE + HALF_HOUR)) == 500.0


def test_without_a_half_life_nothing_decays() -> None:
    one = counters(compat=False, half_life=0)
    number = ran(one, 5, since=100)
    assert one.value(number, CYCLE) == 500.0


def test_late_events_count_from_the_beginning() -> None:
    early, late = counters(compat=False), counters(compat=False)
    number, same = ran(early, 10, since=600), late.add()
    late.start(same, 10 * MICRO, Instant(CYCLE - 600_000), Instant(CYCLE - 60_000))
    assert late.value(same, CYCLE) == pytest.approx(early.value(number, CYCLE))


def test_when_it_will_be_below_a_limit() -> None:
    for compat in (False, True):
        one = counters(compat=compat)
        number = one.add()
        one.write(number, 1000.0, CYCLE)
        at = one.below_at(number, 300.0, CYCLE)
        assert at is not None
        assert one.value(number, at) < 300.0
        assert one.value(number, Instant(at - MINUTE)) >= 300.0 - 1e-9


def test_what_goes_on_running_may_never_be_below() -> None:
    one = counters(compat=False)
    number = ran(one, 100, since=36_000)
    assert one.below_at(number, 1000.0, CYCLE) is None


@pytest.mark.parametrize(
    ("period", "day"),
    [
        ("daily", "2026-05-14"),
        ("weekly", "2026-05-10"),
        ("monthly", "2026-05-01"),
        ("quarterly", "2026-04-01"),
        ("yearly", "2026-01-01"),
    ],
)
def test_usage_may_start_anew(period: str, day: str) -> None:
    from datetime import UTC, datetime

    now = Instant(round(datetime(2026, 5, 14, 15, 30, tzinfo=UTC).timestamp() * 1000))
    start = Instant(round(datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp() * 1000))
    assert last_reset(period, now) == start  # type: ignore[arg-type]  # one of the words
    one = ExactCounters(MultifactorRules(reset=period, half_life_ms=0))  # type: ignore[arg-type]
    number = one.add()
    one.write(number, 1e9, Instant(start - 1000))
    one.start(number, MICRO, Instant(start - 1000), Instant(start - 1000))
    assert one.value(number, Instant(start + 5000)) == 5.0


@given(
    rates=st.lists(st.integers(0, 500), min_size=1, max_size=5),
    steps=st.lists(st.integers(1, 5_000_000), min_size=1, max_size=6),
)
def test_looking_in_between_changes_nothing(rates: list[int], steps: list[int]) -> None:
    """Decay is additive in time: any number of readings written down in between agree."""
    once, often = counters(compat=False), counters(compat=False)
    number, same = once.add(), often.add()
    for rate in rates:
        for one, counter in ((once, number), (often, same)):
            one.start(counter, rate * MICRO, Instant(0), Instant(0))
    now = Instant(0)
    for step in steps:
        now = Instant(now + step)
        often.write(same, often.value(same, now), now)
    assert often.value(same, now) == pytest.approx(once.value(number, now), rel=1e-9)
