"""Keys that need work: once in line, one worker each, later when they fail."""

from __future__ import annotations

import asyncio

import pytest

from tests.kube.virtual import VirtualClock, run, settle
from unisono.kinds.overriding import override
from unisono.kube.workqueue import Workers, WorkQueue


def queue(*, lanes: int = 1) -> WorkQueue[str]:
    return WorkQueue(lanes=lanes)


def test_a_key_waits_once() -> None:
    made = queue()
    for key in "abab":
        made.add(key, now=0.0)
    assert len(made) == 2
    assert [made.take(1.0), made.take(1.0), made.take(1.0)] == ["a", "b", None]


def test_a_key_in_work_is_not_taken_twice_but_done_again() -> None:
    made = queue()
    made.add("a", now=0.0)
    assert made.take(0.0) == "a"
    made.add("a", now=1.0)
    made.add("a", now=2.0)
    assert made.take(2.0) is None
    made.done("a", now=3.0)
    assert made.take(3.0) == "a"
    made.done("a", now=4.0)
    assert made.take(4.0) is None


def test_lanes_go_in_order_and_a_better_lane_wins() -> None:
    made = queue(lanes=3)
    made.add("slow", now=0.0, lane=2)
    made.add("normal", now=0.0, lane=1)
    made.add("late but urgent", now=0.0, lane=2)
    made.add("late but urgent", now=0.1, lane=0)
    made.add("normal", now=0.1, lane=2)  # a worse lane does not
    assert len(made) == 3
    taken = [made.take(0.2) for _ in range(4)]
    assert taken == ["late but urgent", "normal", "slow", None]


def test_a_key_that_computes_for_long_rests() -> None:
    made = queue()
    made.add("huge", now=0.0)
    assert made.take(0.0) == "huge"
    made.note_computed("huge", 0.05)
    made.note_computed("huge", 0.05)
    made.add("huge", now=0.1)  # it changed meanwhile
    made.done("huge", now=0.1)
    made.add("huge", now=0.2)
    made.add("small", now=0.2)
    assert [made.take(0.2), made.take(0.99)] == ["small", None]
    assert made.next_due() == pytest.approx(1.0)
    assert made.take(1.01) == "huge"
    made.note_computed("huge", 0.001)
    made.add("huge", now=1.02)
    made.done("huge", now=1.02)
    assert made.take(1.02) == "huge"


def test_a_worse_lane_gets_every_second_turn_after_a_while() -> None:
    made = queue(lanes=3)
    for number in range(3):
        made.add(f"slow-{number}", now=0.0, lane=2)
    made.add("moved", now=0.0, lane=1)
    made.add("moved", now=0.0, lane=0)
    taken = []
    for turn in range(8):
        made.add(f"urgent-{turn}", now=0.9 + turn * 0.1, lane=0)
        taken.append(made.take(0.9 + turn * 0.1))
    slow = [place for place, key in enumerate(taken) if str(key).startswith("slow")]
    assert slow == [2, 4, 6]


def test_a_postponed_key_comes_when_it_is_due_and_the_earliest_wish_counts() -> None:
    made = queue()
    made.add_after("a", 10, now=0.0)
    made.add_after("a", 5, now=0.0)
    made.add_after("a", 20, now=0.0)
    assert made.postponed == 1
    assert made.next_due() == 5.0
    assert made.take(4.9) is None
    assert made.take(5.0) == "a"
    made.done("a", now=5.0)
    assert made.take(100.0) is None
    assert made.next_due() is None


def test_failures_double_the_delay_from_5_ms_to_1000_s() -> None:
    made = queue()
    now, delays = 0.0, []
    for _ in range(20):
        made.add("a", now=now)
        assert made.take(now) == "a"
        delays.append(made.retry("a", now=now))
        made.done("a", now=now)
        now += delays[-1]
        assert made.take(now) == "a"
        made.done("a", now=now)
    assert delays[:4] == pytest.approx([0.005, 0.01, 0.02, 0.04])
    assert delays[-1] == 1000.0
    assert made.failures("a") == 20
    made.forget("a")
    assert made.retry("a", now=now) == pytest.approx(0.005)


def test_all_retries_together_pass_a_bucket() -> None:
    made: WorkQueue[int] = WorkQueue()
    delays = [made.retry(key, now=0.0) for key in range(120)]
    assert all(delay == pytest.approx(0.005) for delay in delays[:100])
    assert delays[100] == pytest.approx(0.1)
    assert delays[119] == pytest.approx(2.0)


def test_measures() -> None:
    made = queue()
    made.add("a", now=1.0)
    made.add("b", now=2.0)
    assert made.oldest_wait(3.0) == 2.0
    made.take(4.0)
    made.done("a", now=6.0)
    assert (made.measures.added, made.measures.done) == (2, 1)
    assert (made.measures.waited_s, made.measures.worked_s) == (3.0, 2.0)
    assert made.measures.longest_wait_s == 3.0
    assert (len(made), made.in_work) == (1, 0)


def test_a_wall_clock_that_is_set_forward_brings_what_was_postponed() -> None:
    made = queue()
    made.follow(1000.0, 0.0)
    made.add_after("far", 7000.0, now=0.0)
    made.add_after("near", 3000.0, now=0.0)
    made.follow(1010.5, 10.0)  # half a second is nothing
    assert made.next_due() == 3000.0
    made.follow(4620.5, 20.0)  # an hour and ten seconds later, but only ten went by
    assert made.take(20.0) == "near"
    assert made.next_due() == 3400.0
    made.follow(30.0, 30.0)  # set back: what was postponed is not put off any further
    assert made.next_due() == 3400.0


# --- workers ------------------------------------------------------------------------------------


class Trouble(Exception):
    pass


class Settable(VirtualClock):
    """A clock whose wall can be set; nothing that is measured notices."""

    ahead = 0.0

    @override
    def now(self) -> float:
        return super().now() + self.ahead


def test_workers_notice_within_half_a_minute_that_the_wall_clock_was_set() -> None:
    clock, made, worked = Settable(), queue(), []

    async def work(key: str) -> float | None:
        worked.append((key, clock.monotonic()))
        return None

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            running = group.create_task(Workers(made, work, clock=clock).run())
            await settle()
            made.add_after("pod", 3600.0, now=clock.monotonic())
            await clock.sleep(100.0)
            clock.ahead = 3600.0
            await clock.sleep(30.0)
            running.cancel()

    run(main())
    assert [key for key, _ in worked] == ["pod"]


def test_workers_never_share_a_key_and_retry_what_fails() -> None:
    clock = VirtualClock()
    made = queue()
    busy: set[str] = set()
    log: list[tuple[float, str]] = []
    failing = {"b": 2}

    async def work(key: str) -> float | None:
        assert key not in busy
        busy.add(key)
        log.append((round(clock.monotonic(), 3), key))
        try:
            await clock.sleep(1)
            if failing.get(key, 0):
                failing[key] -= 1
                raise Trouble
        finally:
            busy.discard(key)
        return 10 if key == "c" else None

    async def main() -> None:
        workers = Workers(made, work, clock=clock, count=2, retry_on=(Trouble,))
        async with asyncio.TaskGroup() as group:
            running = group.create_task(workers.run())
            await settle()
            for key in "abc":
                made.add(key, now=clock.monotonic())
            await clock.sleep(0.5)
            made.add("a", now=clock.monotonic())
            await clock.sleep(20)
            running.cancel()

    run(main())
    assert log == [
        (0.0, "a"),
        (0.0, "b"),
        (1.0, "c"),
        (1.0, "a"),
        (2.0, "b"),
        (3.01, "b"),
        (12.0, "c"),
    ]
    assert made.failures("b") == 0
    assert made.measures.retries == 2


def test_workers_that_are_told_to_stop_finish_what_they_began() -> None:
    made, clock, ended = queue(), VirtualClock(), []

    async def work(key: str) -> None:
        await clock.sleep(5)
        ended.append(key)

    async def main() -> None:
        workers = Workers(made, work, clock=clock, count=2)
        for key in "abc":
            made.add(key, now=clock.monotonic())
        async with asyncio.TaskGroup() as group:
            running = group.create_task(workers.run())
            await clock.sleep(1)
            workers.stop()
            await running

    run(main())
    assert ended == ["a", "b"]
    assert len(made) == 1


def test_a_bug_in_the_work_ends_the_workers() -> None:
    async def work(key: str) -> None:
        raise ZeroDivisionError(key)

    async def main() -> None:
        made = queue()
        made.add("a", now=0.0)
        await Workers(made, work, clock=VirtualClock(), retry_on=(Trouble,)).run()

    with pytest.RaisesGroup(ZeroDivisionError):
        run(main())
