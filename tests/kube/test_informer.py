"""Caches that follow the API for hours, through everything that goes wrong (scenarios 9 and 32)."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import orjson
import pytest

from tests.kube.fake_api import FakeApi, refuse, status
from tests.kube.virtual import VirtualClock, run, settle
from unisono.kube import Caches, Delta, Dicts, Informer, Kind, Lanes, Meta, Structs, client_over
from unisono.kube.errors import StatusError, Unreachable
from unisono.kube.form import Json
from unisono.kube.informer import MOST_TOLD

POD = Kind("v1", "Pod")
PODS = "/api/v1/pods"


class PodMeta(Meta, frozen=True, kw_only=True):
    labels: dict[str, str] = {}  # noqa: RUF012  # msgspec copies it


class SmallPod(msgspec.Struct, frozen=True):
    """A pod as a cache might keep it."""

    metadata: PodMeta


def informer(api: FakeApi, **options: Any) -> Informer[Json]:
    clock = VirtualClock()
    random_source = random.Random(5)
    client = client_over(
        api, clock=clock, random_source=random_source, lanes=Lanes(clock, rate=math.inf)
    )
    return Informer(
        client, POD, Dicts("v1", "Pod"), clock=clock, random_source=random_source, **options
    )


@asynccontextmanager
async def running(*informers: Informer[Any]) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each.run()) for each in informers]
        yield
        for task in tasks:
            task.cancel()


def told_by(made: Informer[Json]) -> list[tuple[str, str]]:
    told: list[tuple[str, str]] = []

    def handler(delta: Delta[Json]) -> None:
        told.append((delta.what, delta.key.name))

    made.on_change(handler)
    return told


def in_store(made: Informer[Json]) -> dict[str, str]:
    return {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in made.store}


def in_api(api: FakeApi) -> dict[str, str]:
    return {
        name: each["metadata"]["resourceVersion"]
        for name, each in api.collections.get(PODS, {}).items()
    }


def story(
    tell: Callable[[FakeApi, Informer[Json], list[tuple[str, str]]], Awaitable[None]],
) -> None:
    """Run a story with an API of three pods and an informer that has read them."""

    async def main() -> None:
        api = FakeApi()
        for name in "abc":
            api.put(PODS, name)
        made = informer(api)
        told = told_by(made)
        async with running(made):
            await made.synced()
            assert told == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]
            told.clear()
            await tell(api, made, told)
        assert in_store(made) == in_api(api)
        assert api.open_streams == 0, "no watch is left open"

    run(main())


def test_the_cache_is_filled_by_one_stream_and_follows() -> None:
    async def tell(api: FakeApi, made: Informer[Json], told: list[tuple[str, str]]) -> None:
        assert len(api.asked) == 1, "no list"
        api.put(PODS, "a")
        api.remove(PODS, "b")
        api.put(PODS, "d")
        await settle()
        assert told == [("MODIFIED", "a"), ("DELETED", "b"), ("ADDED", "d")]
        assert len(api.asked) == 1

    story(tell)


@pytest.mark.parametrize("how", ["invalid", "ignored", "broken"])
def test_servers_without_a_watch_list(how: Any) -> None:
    async def main() -> None:
        api = FakeApi()
        api.watch_list = how
        for number in range(1200):
            api.put(PODS, f"p{number}")
        made = informer(api)
        told = told_by(made)
        async with running(made):
            await made.synced()
            assert VirtualClock().monotonic() < (11 if how == "ignored" else 0.1)
            assert len(told) == len(made.store) == 1200
            limits = [asked.query.get("limit") for asked in api.asked]
            assert limits[:4] == [None, "500", "500", "500"]
            api.remove(PODS, "p7")
            await settle()
            assert told[-1] == ("DELETED", "p7")
            assert api.asked[-1].watches

    run(main())


def test_scenario_9_a_forgotten_past_is_listed_again_and_each_loss_is_told_once() -> None:
    async def tell(api: FakeApi, made: Informer[Json], told: list[tuple[str, str]]) -> None:
        api.is_silent = True  # what happens now is not heard
        api.remove(PODS, "a")
        api.put(PODS, "b")
        api.put(PODS, "d")
        api.remove(PODS, "c")
        api.forget()
        api.end_streams()
        api.is_silent = False
        await VirtualClock().sleep(60)
        assert sorted(told) == [
            ("ADDED", "d"),
            ("DELETED", "a"),
            ("DELETED", "c"),
            ("MODIFIED", "b"),
        ]
        assert made.reflector.relists == 2

    story(tell)


def test_scenario_32_a_stalled_stream_is_replaced_within_150_seconds_and_nothing_is_missed() -> (
    None
):
    async def tell(api: FakeApi, made: Informer[Json], told: list[tuple[str, str]]) -> None:
        await VirtualClock().sleep(59)
        api.stall()  # the connection is open and dead
        api.put(PODS, "during")
        api.remove(PODS, "a")
        began = VirtualClock().monotonic()
        while len(api.asked) == 1:
            await VirtualClock().sleep(1)
        assert VirtualClock().monotonic() - began <= 150
        await settle()
        assert told == [("ADDED", "during"), ("DELETED", "a")]
        assert made.reflector.relists == 1, "the watch went on where it was; nothing was listed"

    story(tell)


def test_bookmarks_keep_a_quiet_stream_alive() -> None:
    async def tell(api: FakeApi, made: Informer[Json], told: list[tuple[str, str]]) -> None:
        for _ in range(4):
            await VirtualClock().sleep(60)
            api.bookmark()
        await settle()
        assert len(api.asked) == 1
        assert made.silent_for() < 1

    story(tell)


def test_an_orderly_end_is_followed_by_a_watch_from_the_last_version() -> None:
    async def tell(api: FakeApi, made: Informer[Json], told: list[tuple[str, str]]) -> None:
        await VirtualClock().sleep(100)
        api.bookmark()
        await settle()
        seen = str(api.version)
        api.end_streams()
        api.put(PODS, "between")
        await settle()
        assert told == [("ADDED", "between")]
        assert api.asked[-1].query["resourceVersion"] == seen

    story(tell)


def test_a_cut_connection_misses_nothing() -> None:
    async def tell(api: FakeApi, made: Informer[Json], told: list[tuple[str, str]]) -> None:
        api.end_streams("cut")
        api.remove(PODS, "a")
        await settle()
        assert told == []
        await VirtualClock().sleep(2)
        assert told == [("DELETED", "a")]
        assert isinstance(made.last_error, Unreachable)

    story(tell)


def test_nonsense_on_the_wire_is_no_reason_to_die() -> None:
    async def tell(api: FakeApi, made: Informer[Json], told: list[tuple[str, str]]) -> None:
        api.send(b"<html>go away</html>\n")
        await VirtualClock().sleep(2)
        api.put(PODS, "d")
        await settle()
        assert told == [("ADDED", "d")]
        assert made.errors == 1

    story(tell)


def test_an_api_that_is_away_is_asked_ever_more_slowly_and_found_again() -> None:
    async def tell(api: FakeApi, made: Informer[Json], told: list[tuple[str, str]]) -> None:
        api.fail(*[Unreachable("down", sent=False)] * 12)
        api.end_streams("cut")
        await VirtualClock().sleep(120)
        assert 5 < len(api.asked) < 14
        assert made.silent_for() > 100
        api.fail(*[Unreachable("down", sent=False)] * 100)
        await VirtualClock().sleep(481)
        assert made.is_stale()
        api.faults.clear()
        await VirtualClock().sleep(60)
        api.remove(PODS, "b")
        await settle()
        assert told == [("DELETED", "b")]
        assert not made.is_stale()

    story(tell)


def test_refusals_are_not_the_end() -> None:
    async def main() -> None:
        api = FakeApi()
        api.put(PODS, "a")
        api.fail(refuse(403, "Forbidden"), refuse(404, "NotFound"), refuse(500, "Trouble"))
        made = informer(api)
        async with running(made):
            await made.synced()
        assert isinstance(made.last_error, StatusError)
        assert made.errors == 3

    run(main())


def test_a_kind_that_may_be_absent_is_empty_until_it_is_served() -> None:
    async def main() -> None:
        api = FakeApi()
        api.put(PODS, "a")
        api.fail(refuse(404, "NotFound"))
        made = informer(api, may_be_absent=True)
        async with running(made):
            await made.synced()
            assert (made.is_absent, made.is_stale(), len(made.store)) == (True, False, 0)
            await made._clock.sleep(60)
            assert not made.is_absent
            assert in_store(made) == in_api(api)

    run(main())


def test_own_writes_are_seen_at_once_and_told_once() -> None:
    async def tell(api: FakeApi, made: Informer[Json], told: list[tuple[str, str]]) -> None:
        api.is_silent = True
        made.assume(api.put(PODS, "own"))
        assert told == [("ADDED", "own")]
        api.is_silent = False
        api.end_streams("cut")
        await VirtualClock().sleep(5)
        assert told == [("ADDED", "own")]
        made.assume_deleted(api.remove(PODS, "own"))
        assert told[1:] == [("DELETED", "own")]
        await settle()
        assert told[2:] == []
        assert made.store.unconfirmed == 0

    story(tell)


def test_a_handler_that_comes_late_hears_what_is_there() -> None:
    async def tell(api: FakeApi, made: Informer[Json], told: list[tuple[str, str]]) -> None:
        assert told_by(made) == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]

    story(tell)


def test_a_large_cache_is_told_by_turns_and_as_it_is_then() -> None:
    """Others come to their turn meanwhile, so a lease is renewed; nothing they change is missed."""
    names = [f"pod-{number:03}" for number in range(3 * MOST_TOLD)]
    told: list[tuple[str, str]] = []
    turns: list[int] = []

    async def main() -> None:
        api = FakeApi()
        for name in names:
            api.put(PODS, name)
        made = informer(api)

        async def another_writer() -> None:
            while len(told) < len(names):
                turns.append(len(told))
                if len(turns) == 1:
                    made.assume_deleted(list(made.store)[-1])
                await asyncio.sleep(0)

        async with running(made), asyncio.TaskGroup() as group:
            await made.synced()
            group.create_task(another_writer())
            await made.on_change_fairly(lambda one: told.append((one.what, one.key.name)))

    run(main())
    assert len(turns) >= 2
    assert ("DELETED", names[-1]) in told
    assert [name for what, name in told if what == "ADDED"] == names[:-1]


def test_resync_tells_everything_again_without_asking() -> None:
    async def main() -> None:
        api = FakeApi()
        api.put(PODS, "a")
        made = informer(api, resync_s=100.0)
        told = told_by(made)
        async with running(made):
            await VirtualClock().sleep(110)
            assert told == [("ADDED", "a"), ("SYNC", "a")]
            assert len(api.asked) == 1

    run(main())


def test_structs_keep_only_what_they_name() -> None:
    async def main() -> None:
        api = FakeApi()
        api.put("/api/v1/namespaces/x/pods", "a", metadata={"labels": {"k": "v"}}, spec={"big": 1})
        clock, random_source = VirtualClock(), random.Random(1)
        client = client_over(api, clock=clock, random_source=random_source)
        made = Informer(
            client,
            POD,
            Structs(SmallPod),
            clock=clock,
            random_source=random_source,
            namespace="x",
            indexes={"label": lambda each: each.metadata.labels.values()},
        )
        async with running(made):
            await made.synced()
            (found,) = made.store.by("label", "v")
            assert found is made.store.get("a", "x")
            assert found.metadata.uid == "uid-101"
            odd = {"metadata": {"name": "b", "namespace": "x", "labels": 7}}
            api.send(orjson.dumps({"type": "ADDED", "object": odd}) + b"\n")
            await settle()
            assert made.reflector.unreadable == 1

    run(main())


def test_caches_are_ready_when_all_are_and_say_which_is_not() -> None:
    async def main() -> None:
        api = FakeApi()
        api.put(PODS, "a")
        pods = informer(api)
        api.fail(None, *[refuse(403, "Forbidden", message="pods are not for you")] * 3)
        others = informer(api)
        caches = Caches([pods, others])
        assert list(caches.not_ready()) == ["Pod is not read yet", "Pod is not read yet"]
        async with asyncio.TaskGroup() as group:
            task = group.create_task(caches.run())
            await pods.synced()
            assert list(caches.not_ready()) == ["Pod is not read yet: pods are not for you"]
            await caches.synced()
            assert list(caches.not_ready()) == []
            assert list(caches.stale()) == []
            api.hangs = True
            api.end_streams()
            await VirtualClock().sleep(700)
            assert [each[:36] for each in caches.stale()] == [
                "Pod has had no sign of the API for 7"
            ] * 2
            task.cancel()

    run(main())


@pytest.mark.parametrize("seed", range(20))
def test_whatever_goes_wrong_the_cache_ends_up_right(seed: int) -> None:
    """Random changes and random faults; then quiet: store equals API, and deltas add up to it."""
    random_source = random.Random(seed)

    async def main() -> None:
        api = FakeApi()
        made = informer(api)
        seen: dict[str, str] = {}

        def handler(delta: Delta[Json]) -> None:
            name = delta.key.name
            match delta.what:
                case "ADDED":
                    assert name not in seen
                case "MODIFIED":
                    assert delta.old is not None
                    assert seen[name] == delta.old["metadata"]["resourceVersion"]
                case "DELETED":
                    assert delta.old is not None
                    assert seen.pop(name) == delta.old["metadata"]["resourceVersion"]
                case "SYNC":
                    raise AssertionError("that was not asked for")
            if delta.new is not None:
                seen[name] = delta.new["metadata"]["resourceVersion"]

        made.on_change(handler)
        async with running(made):
            for _ in range(150):
                _disturb(api, made, random_source)
                await VirtualClock().sleep(random_source.choice([0, 0, 0.1, 1, 5, 40]))
            api.is_silent = False
            api.faults.clear()
            api.end_streams()
            await VirtualClock().sleep(400)
            assert in_store(made) == in_api(api) == seen
            assert made.store.unconfirmed == 0

    run(main())


def _disturb(api: FakeApi, made: Informer[Json], random_source: random.Random) -> None:
    name = f"p{random_source.randrange(8)}"
    match random_source.choice(["put", "put", "put", "own", "remove", "remove", *FAULTS]):
        case "put":
            api.put(PODS, name)
        case "own":
            made.assume(api.put(PODS, name))
        case "remove":
            if name in api.collections.get(PODS, {}):
                gone = api.remove(PODS, name)
                if random_source.randrange(2):
                    made.assume_deleted(gone)
        case "silence":
            api.is_silent = not api.is_silent
            if not api.is_silent:  # what was not heard is lost, but never in the midst of a stream
                api.end_streams("cut")
        case "forget":
            api.forget()
        case "closed" | "cut" as how:
            api.end_streams(how)
        case "error":
            api.fail(refuse(500, "Trouble"))
        case "gone":
            api.send(orjson.dumps({"type": "ERROR", "object": status(410, "Expired")}) + b"\n")
        case "unreachable":
            api.fail(Unreachable("down", sent=False))
        case "double" if api.history:
            again = random_source.choice(api.history)
            if again.collection == PODS:
                line = {"type": again.type, "object": again.object}
                # Only what every server may repeat: a state that is still the newest of its object.
                there = api.collections[PODS].get(again.object["metadata"]["name"])
                if there is again.object:
                    api.send(orjson.dumps(line) + b"\n")


FAULTS = ["silence", "forget", "closed", "cut", "error", "gone", "unreachable", "double"]
