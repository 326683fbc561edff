"""Which request goes next."""

from __future__ import annotations

import asyncio
import math

import pytest

from tests.kube.virtual import VirtualClock, run, settle
from unisono.kube.priority_lanes import (
    BUSY_EVENTS_S,
    FIRST_IN_FLIGHT,
    LEAST_IN_FLIGHT,
    MOST_IN_FLIGHT,
    ConcurrencyLimit,
    Lane,
    Lanes,
)


async def _go(lanes: Lanes, lane: Lane, took: float, log: list[tuple[float, str]]) -> None:
    clock = VirtualClock()
    async with lanes.turn(lane):
        log.append((round(clock.monotonic(), 3), lane.name))
        await clock.sleep(took)


def test_at_most_so_many_are_in_flight_and_the_important_go_first() -> None:
    log: list[tuple[float, str]] = []

    async def main() -> None:
        lanes = Lanes(VirtualClock(), most_in_flight=1)
        async with asyncio.TaskGroup() as group:
            group.create_task(_go(lanes, Lane.EVENT, 1, log))
            await settle()
            for lane in (Lane.EVENT, Lane.NORMAL, Lane.BINDING, Lane.NORMAL, Lane.LEASE):
                group.create_task(_go(lanes, lane, 1, log))
            await settle()
            assert (lanes.in_flight, lanes.waiting(Lane.NORMAL)) == (2, 2)  # a lease goes at once
        assert lanes.in_flight == 0

    run(main())
    assert [name for _, name in log] == ["EVENT", "LEASE", "BINDING", "NORMAL", "NORMAL", "EVENT"]
    assert [at for at, _ in log] == pytest.approx([0, 0, 1, 2, 3, 4], abs=0.01)


def test_a_burst_goes_at_once_and_then_the_rate_counts() -> None:
    log: list[tuple[float, str]] = []

    async def main() -> None:
        lanes = Lanes(VirtualClock(), rate=10, burst=3)
        async with asyncio.TaskGroup() as group:
            for _ in range(6):
                group.create_task(_go(lanes, Lane.NORMAL, 0, log))
            await asyncio.sleep(0.05)
            group.create_task(_go(lanes, Lane.LEASE, 0, log))

    run(main())
    assert [at for at, _ in log] == pytest.approx([0, 0, 0, 0.1, 0.2, 0.3, 0.4], abs=0.01)
    assert log[3][1] == "LEASE", "a later request that matters more goes next"


async def _asked(lanes: Lanes, count: int, answer_s: float, processors: int) -> int:
    """Ask a server that works at so much at once; return how much it was asked at once."""
    clock, working, peaks = VirtualClock(), asyncio.Semaphore(processors), [0]

    async def ask() -> None:
        async with lanes.turn(Lane.NORMAL) as turn:
            peaks.append(lanes.in_flight)
            async with working:
                await clock.sleep(answer_s)
            lanes.answered(turn, "PATCH pods")

    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(ask())
    return max(peaks[-count // 2 :])  # what it learned, and not how it began


def test_an_api_is_asked_as_much_at_once_as_it_works_at() -> None:
    async def main() -> None:
        small, large = (Lanes(VirtualClock(), rate=1e9, burst=1e9) for _ in range(2))
        await _asked(small, 1, 0.01, processors=2)
        await _asked(large, 1, 0.01, processors=2)
        assert LEAST_IN_FLIGHT <= await _asked(small, 400, 0.01, processors=2) <= 8
        assert await _asked(large, 1000, 0.01, processors=100) == MOST_IN_FLIGHT

    run(main())


def test_an_api_in_this_process_is_asked_as_much_as_may_be() -> None:
    async def main() -> None:
        lanes = Lanes(VirtualClock(), rate=math.inf)
        assert await _asked(lanes, 400, 0.01, processors=1) == MOST_IN_FLIGHT

    run(main())


def test_an_api_that_has_enough_to_do_hears_of_few_events() -> None:
    log: list[tuple[float, str]] = []

    async def main() -> None:
        lanes = Lanes(VirtualClock(), rate=1e9, burst=1e9)
        await _asked(lanes, 1, 0.01, processors=1)
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(_go(lanes, Lane.EVENT, 0, log))
        assert [at for at, _ in log] == pytest.approx([0.01] * 3)
        await _asked(lanes, 100, 0.01, processors=1)
        log.clear()
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(_go(lanes, Lane.EVENT, 0, log))
        first = log[0][0]
        assert [at - first for at, _ in log] == pytest.approx([0, BUSY_EVENTS_S, 2 * BUSY_EVENTS_S])

    run(main())


def test_a_pause_stops_one_lane_only() -> None:
    log: list[tuple[float, str]] = []

    async def main() -> None:
        lanes = Lanes(VirtualClock(), rate=math.inf)
        lanes.pause(Lane.BINDING, 5)
        lanes.pause(Lane.BINDING, 2)  # a shorter one changes nothing
        async with asyncio.TaskGroup() as group:
            for lane in (Lane.BINDING, Lane.NORMAL, Lane.BINDING, Lane.EVENT):
                group.create_task(_go(lanes, lane, 1, log))

    run(main())
    assert log == [(0, "NORMAL"), (0, "EVENT"), (5, "BINDING"), (5, "BINDING")]


def test_a_cancelled_request_leaves_no_trace() -> None:
    log: list[tuple[float, str]] = []

    async def main() -> None:
        lanes = Lanes(VirtualClock(), most_in_flight=1)
        async with asyncio.TaskGroup() as group:
            group.create_task(_go(lanes, Lane.NORMAL, 10, log))
            await settle()
            impatient = group.create_task(_go(lanes, Lane.BINDING, 1, log))
            group.create_task(_go(lanes, Lane.EVENT, 1, log))
            await settle()
            impatient.cancel()
        assert lanes.in_flight == 0

    run(main())
    assert [name for _, name in log] == ["NORMAL", "EVENT"]


# ---- concurrency limit ---------------------------------------------------------------------------


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
