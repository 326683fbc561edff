"""The fan: everybody is woken, together, and what they are told is made once."""

from __future__ import annotations

import asyncio

from unisono.apiserver.storage.history import WatchNotifier


def test_news_that_come_together_wake_everybody_once() -> None:
    async def story() -> list[str]:
        fan, woken = WatchNotifier(), []
        fan.join(lambda: woken.append("a"))
        fan.join(gone := lambda: woken.append("b"))
        fan.join(lambda: woken.append("c"))
        fan.leave(gone)
        fan.beat()
        fan.beat()
        await asyncio.sleep(0.005)
        return woken

    assert asyncio.run(story()) == ["a", "c"]


def test_news_during_a_rest_are_told_after_it() -> None:
    async def story() -> int:
        fan, woken = WatchNotifier(), []
        fan.join(lambda: woken.append(len(woken)))
        for _ in range(5):
            fan.beat()
            await asyncio.sleep(0.03)
        return len(woken)

    assert asyncio.run(story()) == 5


def test_what_several_are_told_is_made_once_for_each_state() -> None:
    async def story() -> list[bytes]:
        fan = WatchNotifier()
        made: list[bytes] = []

        def make() -> bytes:
            made.append(b"%d" % len(made))
            return made[-1]

        first = [fan.shared("key", make), fan.shared("key", make), fan.shared("other", make)]
        fan.beat()
        return [*first, fan.shared("key", make)]

    assert asyncio.run(story()) == [b"0", b"0", b"1", b"2"]
