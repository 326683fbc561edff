"""Times and durations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unisono.kinds.scalar import Duration, Timestamp, duration_ms, instant_ms

zones = st.builds(
    lambda minutes: timezone(timedelta(minutes=minutes)), st.integers(-14 * 60, 14 * 60)
)


@given(st.datetimes(timezones=zones).filter(lambda moment: 1 < moment.year < 9999))
def test_instants_agree_with_the_calendar(moment: datetime) -> None:
    text = moment.isoformat()
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    assert instant_ms(text) == since // timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:01z", 1000),
        ("1970-01-01t00:00:00.123456789Z", 123),
        ("2026-01-31T12:00:00+09:00", 1769828400000),
        ("2024-02-29T00:00:00Z", 1709164800000),
    ],
)
def test_instants(text: str, expected: int) -> None:
    assert instant_ms(text) == expected
    assert Timestamp.from_raw(text) == Timestamp(text, Timestamp.from_raw(text).instant)


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "2026-01-31", "2026-01-31 12:00:00Z", "2026-01-31T12:00:00", "1e9"],
)
def test_what_is_no_instant(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time; write it like"):
        instant_ms(text)


@pytest.mark.parametrize("text", ["2026-02-30T00:00:00Z", "2026-01-01T25:00:00Z"])
def test_days_that_do_not_exist(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time that exists"):
        instant_ms(text)


@pytest.mark.parametrize("raw", [1, True, None, []])
def test_scalars_want_strings(raw: object) -> None:
    with pytest.raises(ValueError, match="must be a time"):
        Timestamp.from_raw(raw)
    with pytest.raises(ValueError, match="must be a duration"):
        Duration.from_raw(raw)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("90s", 90_000),
        ("5m", 300_000),
        ("1h30m", 5_400_000),
        ("1.5h", 5_400_000),
        (".5s", 500),
        ("100us", 1),  # rounded up
        ("100µs", 1),
        ("1ns", 1),
        ("-2s", -2000),
        ("168h0m0s", 7 * 24 * 3_600_000),
        ("1ms", 1),
    ],
)
def test_durations(text: str, expected: int) -> None:
    assert duration_ms(text) == expected
    assert Duration.from_raw(text).to_raw() == text


@pytest.mark.parametrize(
    "text", ["", "5", "5 m", "m", "5d", "1h-30m", "-", "1h30", "9" * 100 + "s"]
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration; write it like"):
        duration_ms(text)


def test_a_duration_has_an_end() -> None:
    with pytest.raises(ValueError, match="292 years"):
        duration_ms("99999999h")
