"""Conditions of a status."""

from __future__ import annotations

from unisono.kinds.conditions import Condition, condition
from unisono.kinds.scalar import Timestamp


def test_a_condition_is_found_by_its_type() -> None:
    ready = Condition(
        type="Ready",
        status="True",
        last_transition_time=Timestamp.from_raw("1970-01-01T00:00:05Z"),
    )
    gone = Condition(type="Gone", status="Unknown")
    assert condition([ready, gone], "Ready") is ready
    assert condition([ready, gone], "Other") is None
    assert ready.is_true
    assert ready.since == 5000
    assert not gone.is_true
    assert gone.since is None


def test_the_last_of_several_counts() -> None:
    first, second = Condition(type="A", status="True"), Condition(type="A", status="False")
    assert condition([first, second], "A") is second
