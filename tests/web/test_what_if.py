"""What-if of the page: several at a time, bounded in number and in time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable

import pytest

from tests.support.quota_builders import job, queue
from tests.support.quota_builders import snapshot as world
from unisono.engine.cluster import restore
from unisono.engine.dry_run import dry_run
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.state.changes import Change, WorkloadGone
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import snapshot
from unisono.web.actions import what_if
from unisono.web.actions.what_if import MOST_ASKED, MOST_AT_ONCE, MOST_OF_A_USER, Outcome, WhatIf

NOW = Instant(1_000_000)
SECONDS = 30  # until a test that hangs ends


def cluster() -> ClusterState:
    names = ("first", "late")
    state = restore(world(queue("q"), now=NOW, waiting=tuple(job(one, "q", 4) for one in names)))
    dry_run(state, state.now)
    return state


def stopped(state: ClusterState) -> Iterable[Change]:
    return (WorkloadGone(WorkloadKey("ns/first")),)


def asking(state: ClusterState, **more: float) -> WhatIf:
    return WhatIf(lambda: state, lambda: NOW / 1000, **more)


class Held:
    """Holds threads in the middle of their work until they are let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.inside = 0
        self.most = 0
        self._lock = threading.Lock()
        self._go = threading.Event()

        def restored(recorded: Snapshot) -> ClusterState:
            with self._lock:
                self.inside += 1
                self.most = max(self.most, self.inside)
            assert self._go.wait(SECONDS)
            with self._lock:
                self.inside -= 1
            return restore(recorded)

        monkeypatch.setattr("unisono.web.actions.what_if.restore", restored)

    def let_go(self) -> None:
        self._go.set()


async def until(claim: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not claim():
            await asyncio.sleep(0.001)


def test_says_what_starts_then() -> None:
    found = asyncio.run(asking(cluster()).ask(stopped, "ns/first"))
    assert isinstance(found, Outcome)
    assert found.starts == ("ns/late",)


def test_several_are_computed_at_once_and_more_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(monkeypatch)

    async def story() -> None:
        asked = asking(cluster(), limit_s=SECONDS)
        users = [f"u{number}" for number in range(MOST_AT_ONCE + 2)]
        tasks = [asyncio.ensure_future(asked.ask(stopped, "ns/first", one)) for one in users]
        await until(lambda: held.inside == MOST_AT_ONCE)
        held.let_go()
        found = await asyncio.gather(*tasks)
        assert all(isinstance(one, Outcome) for one in found)
        assert held.most == MOST_AT_ONCE

    asyncio.run(story())


def test_one_user_cannot_have_all_and_all_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(monkeypatch)

    async def story() -> None:
        asked = asking(cluster(), limit_s=SECONDS)
        tasks = [
            asyncio.ensure_future(asked.ask(stopped, "ns/first", f"u{number // MOST_OF_A_USER}"))
            for number in range(MOST_ASKED)
        ]
        await until(lambda: held.inside == MOST_AT_ONCE)
        refused = "others are being computed; ask again in some seconds"
        assert await asked.ask(stopped, "ns/first", "u0") == refused
        assert await asked.ask(stopped, "ns/first", "another") == refused
        held.let_go()
        assert all(isinstance(one, Outcome) for one in await asyncio.gather(*tasks))
        assert isinstance(await asked.ask(stopped, "ns/first", "u0"), Outcome)

    asyncio.run(story())


def test_a_user_with_many_questions_leaves_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(monkeypatch)

    async def story() -> None:
        asked = asking(cluster(), limit_s=SECONDS)
        ask = asked.ask
        tasks = [asyncio.ensure_future(ask(stopped, "", "a")) for _ in range(MOST_OF_A_USER)]
        await until(lambda: held.inside == MOST_AT_ONCE)
        assert isinstance(await ask(stopped, "", "a"), str)
        other = asyncio.ensure_future(ask(stopped, "", "b"))
        held.let_go()
        assert isinstance(await other, Outcome)
        await asyncio.gather(*tasks)

    asyncio.run(story())


def test_it_has_a_time_limit_and_keeps_its_thread_until_that_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = Held(monkeypatch)

    async def story() -> None:
        asked = asking(cluster(), limit_s=0.05)
        first, second, third = await asyncio.gather(
            *(asked.ask(stopped, "ns/first", user) for user in "abc")
        )
        assert first == second == "it takes longer than 0.05 seconds on this cluster"
        assert third == "others are being computed; ask again in some seconds"
        assert await asked.ask(stopped, "ns/first") == third, "both threads are still at work"
        held.let_go()
        await until(lambda: not held.inside)

    asyncio.run(story())


def test_a_thread_ends_when_its_time_is_over() -> None:
    state = cluster()
    recorded = snapshot(state)
    with pytest.raises(what_if.TooLong):
        what_if.try_out(recorded, stopped, "ns/first", NOW, lambda: True)
