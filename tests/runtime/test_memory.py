"""When the memory of a busy moment is handed back."""

from __future__ import annotations

import asyncio

import pytest

from unisono.runtime.memory import give_back_when_idle


class Ended(Exception):
    """The list of seconds is through."""


@pytest.mark.parametrize(
    ("second_by_second", "given_back_after"),
    [
        ([0.0, 0.0, 0.0], []),  # nothing was done
        ([0.9, 0.9, 0.01, 0.0, 0.0], [3]),  # once, in the first second of rest
        ([0.9, 0.9, 0.9], []),  # not while there is work
        ([0.9, 0.0, 0.05, 0.0, 0.8, 0.1], [2, 6]),  # little work leaves little behind
    ],
)
def test_once_after_each_burst_of_work(
    second_by_second: list[float], given_back_after: list[int]
) -> None:
    seen: list[int] = []
    passed = 0

    async def sleep(_: float) -> None:
        nonlocal passed
        if passed == len(second_by_second):
            raise Ended
        passed += 1

    async def run() -> None:
        await give_back_when_idle(
            lambda: seen.append(passed), lambda: sum(second_by_second[:passed]), sleep
        )

    with pytest.raises(Ended):
        asyncio.run(run())
    assert seen == given_back_after
