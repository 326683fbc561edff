"""Watchers are woken together, and what they are sent is made once."""

from __future__ import annotations

import asyncio

from unisono.apiserver.storage.history import WatchNotifier


def test_news_that_come_together_wake_all_watchers_once() -> None:
    async def story() -> list[str]:
        watchers, woken = WatchNotifier(), []
        watchers.join(lambda: woken.append("a"))
        watchers.join(gone := lambda: woken.append("b"))
        watchers.join(lambda: woken.append("c"))
        watchers.leave(gone)
        watchers.notify()
        watchers.notify()
        await asyncio.sleep(0.005)
        return woken

    assert asyncio.run(story()) == ["a", "c"]


def test_news_during_a_rest_are_told_after_it() -> None:
    async def story() -> int:
        watchers, woken = WatchNotifier(), []
        watchers.join(lambda: woken.append(len(woken)))
        for _ in range(5):
            watchers.notify()
            await asyncio.sleep(0.03)
        return len(woken)

    assert asyncio.run(story()) == 5


def test_what_several_are_told_is_made_once_for_each_state() -> None:
    async def story() -> list[bytes]:
        watchers = WatchNotifier()
        made: list[bytes] = []

        def make() -> bytes:
            made.append(b"%d" % len(made))
            return made[-1]

        first = [
            watchers.shared("key", make),
            watchers.shared("key", make),
            watchers.shared("other", make),
        ]
        watchers.notify()
        return [*first, watchers.shared("key", make)]

    assert asyncio.run(story()) == [b"0", b"0", b"1", b"2"]
