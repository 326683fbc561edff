"""How many requests may be out at once."""

from __future__ import annotations

from unisono.kube.requests.concurrency_limit import (
    FIRST_IN_FLIGHT,
    LEAST_IN_FLIGHT,
    MOST_IN_FLIGHT,
    ConcurrencyLimit,
)


def _answers(room: ConcurrencyLimit, took_s: float, count: int = 400, now: float = 0.0) -> None:
    for _ in range(count):
        room.learn("PATCH pods", took_s, int(room.size), now)


def test_quick_answers_make_room_and_slow_ones_take_it() -> None:
    room = ConcurrencyLimit()
    assert room.size == FIRST_IN_FLIGHT
    _answers(room, 0.01)
    assert (room.size, room.is_busy) == (MOST_IN_FLIGHT, False)
    _answers(room, 0.1)  # nine tenths of it in line
    assert room.size <= LEAST_IN_FLIGHT + 1
    assert room.is_busy
    _answers(room, 0.01)
    assert (room.size, room.is_busy) == (MOST_IN_FLIGHT, False)


def test_an_unused_limit_does_not_grow() -> None:
    room = ConcurrencyLimit()
    for _ in range(100):
        room.learn("PATCH pods", 0.01, 1, 0.0)
    assert room.size == FIRST_IN_FLIGHT


def test_sorts_of_requests_are_not_compared() -> None:
    room = ConcurrencyLimit()
    room.learn("PUT leases", 0.001, 1, 0.0)
    _answers(room, 0.1)  # behind a slow webhook, perhaps
    assert room.size == MOST_IN_FLIGHT


def test_a_server_that_became_slower_for_good_is_believed_after_a_while() -> None:
    room = ConcurrencyLimit()
    _answers(room, 0.01)
    _answers(room, 0.1)
    assert room.size <= LEAST_IN_FLIGHT + 1
    _answers(room, 0.1, now=3600.0)
    assert room.size == MOST_IN_FLIGHT


def test_the_bound_that_was_given_is_kept() -> None:
    room = ConcurrencyLimit(most=2)
    _answers(room, 0.01)
    assert room.size == 2
    _answers(room, 1.0)
    assert room.size == 2


def test_what_is_remembered_is_bounded() -> None:
    room = ConcurrencyLimit()
    for number in range(2000):
        room.learn(f"PATCH things{number}", 0.01, 1, 0.0)
    assert len(room._quickest) <= 512
