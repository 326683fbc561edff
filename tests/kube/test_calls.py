"""What is tried again, after how long, and what never is."""

from __future__ import annotations

import asyncio
import math
import random

import pytest

from tests.kube.fake_api import FakeApi, refuse
from tests.kube.virtual import VirtualClock, run
from unisono.kube.calls import Call, Caller, pause_before_retry
from unisono.kube.errors import (
    BadRequest,
    Expired,
    Forbidden,
    Gone,
    Invalid,
    NotLeading,
    ServerError,
    StatusError,
    TooManyRequests,
    Unreachable,
    status_error,
)
from unisono.kube.priority_lanes import Lane, Lanes
from unisono.kube.transport import Answer

OK = Answer(200, {}, b"{}")
LOST = Unreachable("reset", sent=True)
NO_CONNECTION = Unreachable("refused", sent=False)


def caller(api: FakeApi, lanes: Lanes | None = None) -> Caller:
    clock = VirtualClock()
    return Caller(
        api, clock=clock, random_source=random.Random(1), lanes=lanes or Lanes(clock, rate=math.inf)
    )


def call(*, repeatable: bool = True, lane: Lane = Lane.NORMAL, method: str = "GET") -> Call:
    return Call(method=method, path="/version", repeatable=repeatable, lane=lane)


def outcome(api: FakeApi, one: Call) -> tuple[int, float, Exception | None]:
    """Return how often it was tried, how long it took, and what was raised."""

    async def main() -> tuple[float, Exception | None]:
        raised: Exception | None = None
        try:
            await caller(api).call(one)
        except (StatusError, Unreachable) as error:
            raised = error
        return VirtualClock().monotonic(), raised

    took, raised = run(main())
    return len(api.asked), took, raised


@pytest.mark.parametrize("code", [500, 502, 503, 504])
def test_a_server_in_trouble_is_asked_again_if_that_is_safe(code: int) -> None:
    api = FakeApi()
    api.fail(refuse(code, "Trouble"), refuse(code, "Trouble"), OK)
    tries, took, error = outcome(api, call())
    assert (tries, error) == (3, None)
    assert 0.2 <= took <= 1.2
    api = FakeApi()
    api.fail(refuse(code, "Trouble"))
    tries, _, error = outcome(api, call(repeatable=False, method="POST"))
    assert tries == 1
    assert isinstance(error, ServerError)


def test_a_lost_answer_is_asked_for_again_only_if_that_is_safe() -> None:
    api = FakeApi()
    api.fail(LOST, OK)
    assert outcome(api, call())[0] == 2
    api = FakeApi()
    api.fail(LOST, OK)
    tries, _, error = outcome(api, call(repeatable=False, method="POST"))
    assert (tries, error) == (1, LOST)


def test_what_was_never_sent_may_always_be_sent_again() -> None:
    api = FakeApi()
    api.fail(NO_CONNECTION, NO_CONNECTION, OK)
    tries, _, error = outcome(api, call(repeatable=False, method="POST"))
    assert (tries, error) == (3, None)


def test_ten_tries_are_enough() -> None:
    api = FakeApi()
    api.fail(*[NO_CONNECTION] * 20)
    tries, took, error = outcome(api, call())
    assert (tries, error) == (10, NO_CONNECTION)
    assert 15 < took < 60


def test_a_busy_server_is_left_alone_as_long_as_it_wishes() -> None:
    api = FakeApi()
    api.fail(refuse(429, "TooManyRequests", retry_after=7), refuse(429, "TooManyRequests"), OK)
    tries, took, error = outcome(api, call(repeatable=False, method="POST"))
    assert (tries, error) == (3, None)
    assert took == pytest.approx(8.0, abs=0.01)


def test_a_busy_server_stops_one_lane_and_no_other() -> None:
    async def main() -> None:
        api = FakeApi()
        clock = VirtualClock()
        made = caller(api)
        api.fail(refuse(429, "TooManyRequests", retry_after=30), OK, OK, OK)
        async with asyncio.TaskGroup() as group:
            events = group.create_task(made.call(call(lane=Lane.EVENT)))
            await clock.sleep(1)
            await made.call(call(lane=Lane.LEASE))
            assert clock.monotonic() < 1.1
            await made.call(call(lane=Lane.BINDING))
            assert clock.monotonic() < 1.1
            await events
        assert clock.monotonic() == pytest.approx(30, abs=0.01)

    run(main())


def test_a_disruption_budget_is_an_answer_not_a_wish_to_wait() -> None:
    api = FakeApi()
    api.fail(
        refuse(429, "TooManyRequests", retry_after=10, causes=[{"reason": "DisruptionBudget"}])
    )
    tries, took, error = outcome(api, call(method="POST"))
    assert (tries, took) == (1, 0.0)
    assert isinstance(error, TooManyRequests)


@pytest.mark.parametrize(
    ("code", "kind"), [(400, BadRequest), (403, Forbidden), (410, Gone), (422, Invalid)]
)
def test_a_plain_no_is_final(code: int, kind: type[StatusError]) -> None:
    api = FakeApi()
    api.fail(refuse(code, "No"))
    tries, _, error = outcome(api, call())
    assert tries == 1
    assert type(error) is kind


def test_a_wish_of_a_server_in_trouble_is_respected_too() -> None:
    too_new = status_error(504, b"{}", retry_after="3")
    random_source = random.Random(1)
    assert pause_before_retry(too_new, tries=1, repeatable=True, random_source=random_source) == 3.0


def test_nothing_is_written_without_permission_not_even_the_second_time() -> None:
    allowed = [True, False]

    def permit() -> None:
        if not allowed.pop(0):
            raise NotLeading("no longer")

    async def main() -> None:
        api = FakeApi()
        made = caller(api).variant(permit=permit)
        api.fail(NO_CONNECTION, OK)
        with pytest.raises(NotLeading):
            await made.call(call(method="PUT"))
        assert len(api.asked) == 1
        await made.call(call())  # reading is always allowed

    run(main())


def test_what_is_no_status_is_shown_in_part() -> None:
    error = status_error(502, b"<html>" + b"x" * 1000)
    assert type(error) is ServerError
    assert str(error).startswith("HTTP 502: <html>xxx")
    assert len(str(error)) < 250
    assert str(status_error(404, b"")) == "HTTP 404"


def test_counts() -> None:
    async def main() -> None:
        api = FakeApi()
        made = caller(api)
        api.fail(LOST, refuse(503, "Busy"), OK)
        await made.variant(most_tries=5).call(call())
        counts = made.counts
        assert (counts.calls, counts.retries) == (3, 2)
        assert (counts.refused, counts.unreachable) == (1, 1)

    run(main())


def test_a_refused_stream_is_an_exception_and_pauses_its_lane() -> None:
    async def main() -> None:
        api = FakeApi()
        made = caller(api)
        api.fail(refuse(429, "TooManyRequests", retry_after=4), OK)
        with pytest.raises(TooManyRequests):
            async with made.stream(call()):
                raise AssertionError("the stream must not open")
        await made.call(call())
        assert VirtualClock().monotonic() == pytest.approx(4, abs=0.01)

    run(main())


@pytest.mark.parametrize("fault", [refuse(500, "x"), refuse(429, "x"), LOST, NO_CONNECTION])
def test_a_decision_is_sent_once(fault: Answer | Unreachable) -> None:
    api = FakeApi()
    api.fail(fault)
    once = Call(method="PATCH", path="/version", repeatable=True, once=True)
    tries, _, error = outcome(api, once)
    assert (tries, error is None) == (1, False)


def test_what_does_not_hold_any_more_when_its_turn_comes_is_not_sent() -> None:
    """It waited because the API wanted to be left alone, and the quota was cut meanwhile."""
    api = FakeApi()
    holds = [True]

    async def main() -> float:
        clock = VirtualClock()
        lanes = Lanes(clock, rate=math.inf)
        lanes.pause(Lane.NORMAL, 5.0)
        one = Call(method="PATCH", path="/version", once=True, holds=lambda: holds[0])
        sending = asyncio.create_task(caller(api, lanes).call(one))
        await asyncio.sleep(0)
        holds[0] = False
        with pytest.raises(Expired):
            await sending
        return clock.monotonic()

    assert run(main()) == 5.0
    assert api.asked == []
