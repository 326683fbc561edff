"""Whose request goes next."""

from __future__ import annotations

import asyncio
import math

import pytest

from tests.kube.virtual import VirtualClock, run, settle
from unisono.kube.lanes import LEAST_IN_FLIGHT, MOST_IN_FLIGHT, SLOW_S, Lane, Lanes


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
    assert log[3][1] == "LEASE", "who came later and matters more takes the next turn"


def test_an_api_that_is_slow_is_asked_less_at_once_until_it_is_quick_again() -> None:
    async def main() -> None:
        lanes = Lanes(VirtualClock(), rate=math.inf)
        peaks: list[int] = []

        async def ask(took: float) -> None:
            async with lanes.turn(Lane.NORMAL):
                peaks.append(lanes.in_flight)
                await VirtualClock().sleep(took)

        async def many(took: float) -> int:
            peaks.clear()
            async with asyncio.TaskGroup() as group:
                for _ in range(100):
                    group.create_task(ask(took))
            return max(peaks)

        assert await many(2 * SLOW_S) == MOST_IN_FLIGHT
        assert await many(2 * SLOW_S) == LEAST_IN_FLIGHT
        while await many(0.01) < MOST_IN_FLIGHT:
            pass
        assert await many(0.6 * SLOW_S) == MOST_IN_FLIGHT  # neither slow nor quick

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


def test_who_gives_up_waiting_leaves_no_trace() -> None:
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
