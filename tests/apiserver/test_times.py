"""How ages are written, at the borders of each unit."""

from __future__ import annotations

import pytest

from unisono.apiserver.times import age, duration

MINUTE, HOUR, DAY = 60, 3600, 86400
YEAR = 365 * DAY


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (121, "2m1s"),
        (10 * MINUTE - 1, "9m59s"),
        (10 * MINUTE, "10m"),
        (10 * MINUTE + 59, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 59, "3h"),
        (3 * HOUR + MINUTE, "3h1m"),
        (8 * HOUR - 1, "7h59m"),
        (8 * HOUR + 30 * MINUTE, "8h"),
        (48 * HOUR - 1, "47h"),
        (2 * DAY, "2d"),
        (2 * DAY + HOUR, "2d1h"),
        (8 * DAY - 1, "7d23h"),
        (8 * DAY + 5 * HOUR, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + DAY, "2y1d"),
        (8 * YEAR - 1, "7y364d"),
        (8 * YEAR, "8y"),
        (20 * YEAR, "20y"),
        (0.9, "0s"),
        (1.9, "1s"),
    ],
)
def test_a_length_has_at_most_two_units(length: float, text: str) -> None:
    assert duration(length) == text


def test_a_clock_that_is_a_little_behind_is_forgiven() -> None:
    assert duration(-1.5) == "0s"
    assert duration(-2) == "<invalid>"


@pytest.mark.parametrize("moment", [None, "", "yesterday", 12])
def test_no_time_is_unknown(moment: object) -> None:
    assert age(moment, 0.0) == "<unknown>"


@pytest.mark.parametrize(
    "moment", ["1970-01-01T00:01:00Z", "1970-01-01T00:01:00.000000Z", "1970-01-01T01:01:00+01:00"]
)
def test_every_form_of_a_time_is_read(moment: str) -> None:
    assert age(moment, 100.0) == "40s"
