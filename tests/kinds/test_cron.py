"""Schedules: what they name, across months, leap years and changes of the clock."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unisono.kinds.cron import Due, due, parse_schedule, wrong_with_zone, zone_named


def at(text: str, zone: str = "UTC") -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp())


def times(schedule: str, since: str, count: int, zone: str = "UTC") -> list[str]:
    """Return the next times as the clock on the wall shows them."""
    found, place = [], ZoneInfo(zone)
    time: int | None = at(since, zone)
    for _ in range(count):
        assert time is not None
        time = parse_schedule(schedule).after(time, place)
        if time is None:
            found.append("never")
            break
        found.append(datetime.fromtimestamp(time, place).strftime("%Y-%m-%d %H:%M %z"))
    return found


@pytest.mark.parametrize(
    ("schedule", "since", "expected"),
    [
        ("*/20 * * * *", "2026-01-31T23:30:00", ["2026-01-31 23:40", "2026-02-01 00:00"]),
        ("0 0 * * *", "2026-02-28T00:00:00", ["2026-03-01 00:00", "2026-03-02 00:00"]),
        ("5 4 * * sun", "2026-01-01T00:00:00", ["2026-01-04 04:05", "2026-01-11 04:05"]),
        ("0 0 29 2 *", "2026-01-01T00:00:00", ["2028-02-29 00:00", "2032-02-29 00:00"]),
        ("0 22 1,15 */6 *", "2026-01-02T00:00:00", ["2026-01-15 22:00", "2026-07-01 22:00"]),
        # Day and weekday both named: either is enough. `*/2` names days, `*` and `?` do not.
        ("0 0 13 * fri", "2026-01-01T00:00:00", ["2026-01-02 00:00", "2026-01-09 00:00"]),
        ("0 0 13 * ?", "2026-01-01T00:00:00", ["2026-01-13 00:00", "2026-02-13 00:00"]),
        ("0 0 */20 * mon", "2026-01-02T00:00:00", ["2026-01-05 00:00", "2026-01-12 00:00"]),
        (
            "40/15 9-10 * JAN-mar Mon",
            "2026-01-05T09:41:00",
            ["2026-01-05 09:55", "2026-01-05 10:40"],
        ),
        ("@weekly", "2026-01-01T00:00:00", ["2026-01-04 00:00", "2026-01-11 00:00"]),
        ("@yearly", "2026-01-01T00:00:00", ["2027-01-01 00:00", "2028-01-01 00:00"]),
        ("@every 90m", "2026-01-01T00:00:07", ["2026-01-01 01:30", "2026-01-01 03:00"]),
        ("0 0 31 2 *", "2026-01-01T00:00:00", ["never"]),
    ],
)
def test_names_these_times(schedule: str, since: str, expected: list[str]) -> None:
    found = times(schedule, since, len(expected))
    assert [one.removesuffix(" +0000") for one in found] == expected


def test_a_leap_day_is_found_eight_years_later() -> None:
    assert times("0 0 29 2 *", "2096-03-01T00:00:00", 1) == ["2104-02-29 00:00 +0000"]


def test_a_skipped_time_does_not_come_and_a_repeated_one_comes_twice() -> None:
    # 2026-03-29 in Berlin: 02:00 is 03:00. 2026-10-25: 03:00 is 02:00 again.
    assert times("30 2 * * *", "2026-03-28T00:00:00", 2, "Europe/Berlin") == [
        "2026-03-28 02:30 +0100",
        "2026-03-30 02:30 +0200",
    ]
    assert times("30 2 * * *", "2026-10-25T00:00:00", 3, "Europe/Berlin") == [
        "2026-10-25 02:30 +0200",
        "2026-10-25 02:30 +0100",
        "2026-10-26 02:30 +0100",
    ]


def test_a_day_without_midnight_begins_at_one() -> None:
    # Cairo, 2024-04-26: 00:00 is 01:00.
    assert times("0 * 26 4 *", "2024-04-25T22:00:00", 2, "Africa/Cairo") == [
        "2024-04-26 01:00 +0300",
        "2024-04-26 02:00 +0300",
    ]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Asia/Seoul", ""),
        ("UTC", ""),
        ("", "must be nil or non-empty string"),
        ("Local", "must be an explicit time zone as defined in https://www.iana.org/time-zones"),
        ("../etc/passwd", "unknown time zone ../etc/passwd"),
        ("/etc/localtime", "unknown time zone /etc/localtime"),
        ("Asia", "unknown time zone Asia"),
        ("x\0y", "unknown time zone x\0y"),
    ],
)
def test_zones(name: str, why: str) -> None:
    assert wrong_with_zone(name) == why
    assert (zone_named(name) is None) == bool(why and name)


@given(
    minute=st.sampled_from(("*", "*/7", "3", "58/1", "0,1")),
    hour=st.sampled_from(("*", "*/5", "2", "0-3")),
    day=st.sampled_from(("*", "1", "*/13", "29,31")),
    weekday=st.sampled_from(("*", "mon", "1-3")),
    zone=st.sampled_from(("UTC", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe")),
    since=st.integers(1_760_000_000, 1_780_000_000),
    length=st.integers(0, 2 * 24 * 3600),
)
def test_what_is_due_is_what_a_walk_over_all_minutes_finds(
    minute: str, hour: str, day: str, weekday: str, zone: str, since: int, length: int
) -> None:
    """Count by hand: every minute, asked of the clock on the wall."""
    schedule, place = parse_schedule(f"{minute} {hour} {day} * {weekday}"), ZoneInfo(zone)
    found = []
    for time in range((since // 60 + 1) * 60, since + length + 1, 60):
        local = datetime.fromtimestamp(time, place)
        is_day, is_weekday = local.day in schedule.days, local.isoweekday() % 7 in schedule.weekdays
        either = day != "*" and weekday != "*"
        matches = (is_day or is_weekday) if either else (is_day and is_weekday)
        if matches and local.hour in schedule.hours and local.minute in schedule.minutes:
            found.append(time)
    said = due(schedule, place, since, since + length)
    assert said.latest == (found[-1] if found else None)
    assert (said.missed > 0) == bool(found)
    assert said.next is None or said.next > since + length


def test_years_of_missed_times_are_found_at_once() -> None:
    every_minute, now = parse_schedule("* * * * *"), at("2026-01-01T00:00:30")
    assert due(every_minute, UTC, 0, now) == Due(now - 30, (now - 30) // 60, now + 30)
    # The first two times are a minute apart, all later ones years.
    rare = parse_schedule("0,1 0 1 1 *")
    assert due(rare, UTC, at("2010-06-01T00:00:00"), now).latest == now - 30
    assert due(parse_schedule("@every 7s"), UTC, 0, 100) == Due(98, 14, 105)


def test_times_beyond_all_dates_are_never() -> None:
    assert parse_schedule("* * * * *").after(at("9999-12-31T00:00:00"), UTC) is None
