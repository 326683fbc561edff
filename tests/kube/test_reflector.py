"""How a cache follows the API, step by step and by hand: no loop, no network, no clock."""

from __future__ import annotations

import random
from typing import Any

import orjson
import pytest

from tests.kube.fake_api import status
from unisono.kube.cache import Remove, Replace, Upsert
from unisono.kube.errors import BadResponse
from unisono.kube.form import Dicts, Json
from unisono.kube.reflector import Page, Pause, Phase, Received, Reflector, Watch


def pod(name: str, version: int) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)},
    }


def line(type_: str, each: Json) -> bytes:
    return orjson.dumps({"type": type_, "object": each}) + b"\n"


def mark(version: int, *, end: bool = False) -> bytes:
    metadata: Json = {"resourceVersion": str(version)}
    if end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return line("BOOKMARK", {"metadata": metadata})


def page(version: int, *pods: Json, more: str = "") -> bytes:
    metadata = {"resourceVersion": str(version), "continue": more}
    return orjson.dumps({"kind": "PodList", "metadata": metadata, "items": pods})


def reflector(**options: Any) -> Reflector[Json]:
    return Reflector(Dicts("v1", "Pod"), random_source=random.Random(1), **options)


def following(version: int = 10) -> Reflector[Json]:
    """A reflector that has filled its cache, with a stream open since second 0."""
    made = reflector()
    made.ask(0.0)
    made.opened(0.0)
    made.received(mark(version, end=True), 0.0)
    assert made.phase is Phase.FOLLOWING
    return made


def query_of(ask: object) -> dict[str, str]:
    assert isinstance(ask, Watch | Page)
    return dict(ask.query)


def test_initial_events_become_one_replacement() -> None:
    made = reflector(selectors={"labelSelector": "a=b"})
    query = query_of(made.ask(0.0))
    assert query.pop("timeoutSeconds").isdecimal()
    assert query == {
        "labelSelector": "a=b",
        "watch": "true",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
    }
    made.opened(0.1)
    assert made.received(line("ADDED", pod("a", 3)) + line("ADDED", pod("b", 5)), 0.2) == Received()
    received = made.received(mark(7, end=True) + line("MODIFIED", pod("a", 8)), 0.3)
    assert received.changes == (
        Replace((pod("a", 3), pod("b", 5)), "7"),
        Upsert(pod("a", 8)),
    )
    assert made.resource_version == "8"


def test_chunks_may_end_anywhere() -> None:
    whole = line("ADDED", pod("a", 11)) + b"\n" + line("DELETED", pod("a", 12)) + mark(13)
    for size in (1, 7, 50):
        made = following()
        changes = [
            change
            for at in range(0, len(whole), size)
            for change in made.received(whole[at : at + size], 1.0).changes
        ]
        assert changes == [Upsert(pod("a", 11)), Remove(pod("a", 12))]
        assert made.resource_version == "13"


def test_pages_become_one_replacement() -> None:
    made = reflector(watch_list=False)
    assert query_of(made.ask(0.0)) == {"limit": "500"}
    assert made.page(page(9, pod("a", 1), more="next"), 0.0) == ()
    assert query_of(made.ask(0.0)) == {"limit": "500", "continue": "next"}
    assert made.page(page(9, pod("b", 2)), 0.0) == (Replace((pod("a", 1), pod("b", 2)), "9"),)
    assert query_of(made.ask(0.0))["resourceVersion"] == "9"


@pytest.mark.parametrize("code", [400, 422])
def test_a_server_that_knows_no_watch_list_is_listed(code: int) -> None:
    made = reflector()
    made.ask(0.0)
    made.refused(code, 0.0)
    assert isinstance(made.ask(0.0), Page)
    assert not made.uses_watch_list


def test_a_watch_list_that_ends_in_an_error_is_listed() -> None:
    made = reflector()
    made.ask(0.0)
    made.opened(0.0)
    received = made.received(
        line("ADDED", pod("a", 1)) + line("ERROR", status(500, "Internal")), 0.0
    )
    assert received == Received((), over=True)
    assert isinstance(made.ask(0.0), Page)
    # What the failed stream brought is not mixed with the list.
    assert made.page(page(9), 0.0) == (Replace((), "9"),)


def test_a_server_that_ignores_the_wish_for_initial_events_is_noticed_after_ten_seconds() -> None:
    made = reflector()
    made.ask(0.0)
    made.opened(1.0)
    assert made.deadline() == 11.0
    made.received(line("ADDED", pod("a", 1)), 5.0)
    assert made.deadline() == 15.0
    made.received(mark(3), 9.0)  # an ordinary bookmark does not prolong it
    assert made.deadline() == 15.0
    made.expired(15.0)
    assert isinstance(made.ask(15.0), Page)


def test_a_lost_connection_while_filling_begins_again() -> None:
    made = reflector()
    made.ask(0.0)
    made.opened(0.0)
    made.received(line("ADDED", pod("gone-since", 1)), 0.0)
    made.lost(0.0)
    assert isinstance(made.ask(0.0), Pause)
    assert query_of(made.ask(10.0))["sendInitialEvents"] == "true"
    made.opened(10.0)
    assert made.received(mark(5, end=True), 10.0).changes == (Replace((), "5"),)


def test_after_an_orderly_end_the_watch_goes_on_from_the_last_version() -> None:
    made = following(10)
    made.received(line("ADDED", pod("a", 12)), 30.0)
    made.received(mark(20), 60.0)
    made.closed(300.0)
    query = query_of(made.ask(300.0))
    assert query["resourceVersion"] == "20"
    assert "sendInitialEvents" not in query


def test_a_stream_that_ends_at_once_is_not_asked_for_again_at_once() -> None:
    made = following()
    made.closed(0.5)
    assert isinstance(made.ask(0.5), Pause)


@pytest.mark.parametrize("how", ["event", "answer"])
def test_a_forgotten_past_means_a_new_list_at_once(how: str) -> None:
    made = following()
    if how == "event":
        assert made.received(line("ERROR", status(410, "Expired")), 1.0).over
    else:
        made.closed(5.0)
        made.ask(5.0)
        made.refused(410, 5.0)
    assert query_of(made.ask(5.0))["sendInitialEvents"] == "true"


def test_a_server_that_always_forgets_is_asked_ever_more_slowly() -> None:
    made = reflector(watch_list=False)
    now, pauses = 0.0, []
    for _ in range(12):
        ask = made.ask(now)
        while isinstance(ask, Pause):
            pauses.append(ask.seconds)
            now += ask.seconds
            ask = made.ask(now)
        if isinstance(ask, Page):
            made.page(page(5), now)
        else:
            made.opened(now)
            made.received(line("ERROR", status(410, "Expired")), now)
    assert pauses == sorted(pauses)
    assert pauses[0] >= 0.8
    assert pauses[-1] <= 60.0


def test_pages_that_expire_are_followed_by_one_whole_list() -> None:
    made = reflector(watch_list=False)
    made.ask(0.0)
    made.page(page(9, pod("a", 1), more="next"), 0.0)
    made.ask(0.0)
    made.refused(410, 0.0)
    assert query_of(made.ask(0.0)) == {}
    made.page(page(9, pod("a", 1)), 0.0)
    made.refused(410, 0.0)
    assert query_of(made.ask(5.0)) == {"limit": "500"}


def test_other_errors_only_interrupt() -> None:
    made = following(10)
    assert made.received(line("ERROR", status(500, "Internal")), 1.0).over
    pause = made.ask(1.0)
    assert isinstance(pause, Pause)
    assert 0.8 <= pause.seconds <= 1.6
    assert query_of(made.ask(10.0))["resourceVersion"] == "10"


def test_pauses_double_and_are_forgotten_after_two_good_minutes() -> None:
    made = following()
    now, pauses = 0.0, []
    for _ in range(8):
        made.lost(now)
        ask = made.ask(now)
        assert isinstance(ask, Pause)
        pauses.append(ask.seconds)
        now += ask.seconds
        made.ask(now)
        made.opened(now)
    for number, seconds in enumerate(pauses):
        plain = min(30.0, 0.8 * 2**number)
        assert plain <= seconds <= 2 * plain
    made.lost(now + 121)
    ask = made.ask(now + 121)
    assert isinstance(ask, Pause)
    assert ask.seconds <= 1.6


def test_the_wish_of_a_busy_server_is_respected() -> None:
    made = following()
    made.closed(100.0)
    made.ask(100.0)
    made.refused(429, 100.0, retry_after_s=17)
    ask = made.ask(100.0)
    assert isinstance(ask, Pause)
    assert ask.seconds == 17


def test_a_stream_without_a_sign_is_dead_after_150_seconds() -> None:
    made = following()
    assert made.deadline() == 150.0
    made.received(b'{"type":', 100.0)  # bytes alone are no sign
    assert made.deadline() == 150.0
    made = following()
    made.received(mark(11), 100.0)
    assert made.deadline() == 250.0


def test_an_odd_object_is_counted_and_the_others_arrive() -> None:
    made = following()
    odd = b'{"type":"ADDED","object":{"metadata":7}}\n'
    assert made.received(odd + line("ADDED", pod("a", 12)), 1.0).changes == (Upsert(pod("a", 12)),)
    assert made.unreadable == 1


@pytest.mark.parametrize(
    "chunk",
    [
        b"<html>\n",
        b'{"type":"ADDED"}\n',
        line("SURPRISE", pod("a", 1)),
        b'{"type":"BOOKMARK","object":1}\n',
    ],
)
def test_what_is_no_event_ends_the_stream_but_undoes_nothing(chunk: bytes) -> None:
    made = following(10)
    received = made.received(line("ADDED", pod("a", 11)) + mark(12) + chunk, 1.0)
    assert received.changes == (Upsert(pod("a", 11)),)
    assert received.over
    assert received.error is not None
    assert query_of(made.ask(10.0))["resourceVersion"] == "12"


def test_a_list_that_is_none_is_an_error() -> None:
    made = reflector(watch_list=False)
    made.ask(0.0)
    with pytest.raises(BadResponse, match="list"):
        made.page(b'{"kind": "Status"}', 0.0)


def test_items_of_a_list_have_kind_and_version() -> None:
    made = reflector(watch_list=False)
    made.ask(0.0)
    bare = {"metadata": {"name": "a", "managedFields": [{}]}}
    (change,) = made.page(page(9, bare), 0.0)
    assert change == Replace(({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}},), "9")


def test_an_empty_list_may_have_null_items() -> None:
    made = reflector(watch_list=False)
    made.ask(0.0)
    body = b'{"metadata":{"resourceVersion":"4"},"items":null}'
    assert made.page(body, 0.0) == (Replace((), "4"),)
