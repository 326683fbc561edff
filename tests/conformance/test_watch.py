"""Watch: where a stream starts, what it shows, and how it ends."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.client import Api, Collection
from tests.conformance.objects import config_map, event, node, pod
from tests.conformance.servers import Server
from tests.conformance.widgets import widget


@pytest.fixture
def maps(api: Api, namespace: str) -> Collection:
    return api.of("v1", "configmaps", namespace)


def _version(thing: Any) -> int:
    return int(thing["metadata"]["resourceVersion"])


def test_changes_after_a_list(maps: Collection) -> None:
    maps.create(config_map("before")).ok(201)
    listed = maps.list().ok()
    with maps.watch(resourceVersion=listed["metadata"]["resourceVersion"]) as events:
        made = maps.create(config_map("a", {"k": "1"})).ok(201)
        patched = maps.patch("a", {"data": {"k": "2"}}).ok()
        maps.delete("a").ok()
        assert events.next() == ("ADDED", made)
        assert events.next() == ("MODIFIED", patched)
        kind, last = events.next()
    assert kind == "DELETED"
    assert last["data"] == {"k": "2"}
    assert _version(last) > _version(patched)


def test_a_version_in_the_past_replays_what_followed(maps: Collection) -> None:
    first = maps.create(config_map("a")).ok(201)
    maps.create(config_map("b")).ok(201)
    maps.delete("a").ok()
    with maps.watch(resourceVersion=_version(first)) as events:
        assert events.take(2) == [("ADDED", "b"), ("DELETED", "a")]


@pytest.mark.parametrize("query", [{}, {"resourceVersion": "0"}, {"resourceVersion": ""}], ids=str)
def test_without_a_version_what_exists_comes_first(maps: Collection, query: dict[str, str]) -> None:
    for name in ("a", "b"):
        maps.create(config_map(name)).ok(201)
    maps.names()  # on any version, a reader may be shown an older state: let it see this one
    with maps.watch(**query) as events:
        assert sorted(events.take(2)) == [("ADDED", "a"), ("ADDED", "b")]
        maps.create(config_map("c")).ok(201)
        assert events.take(1) == [("ADDED", "c")]


def test_other_namespaces_are_not_shown(api: Api, maps: Collection) -> None:
    start = maps.list().ok()["metadata"]["resourceVersion"]
    with maps.watch(resourceVersion=start) as events:
        api.of("v1", "configmaps", "default").create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-"}}
        ).ok(201)
        maps.create(config_map("mine")).ok(201)
        assert events.take(1) == [("ADDED", "mine")]


def test_over_all_namespaces(api: Api, maps: Collection, namespace: str) -> None:
    everywhere = api.of("v1", "configmaps")
    start = everywhere.list(limit=1).ok()["metadata"]["resourceVersion"]
    with everywhere.watch(resourceVersion=start) as events:
        maps.create(config_map("a")).ok(201)
        kind, thing = events.next()
    assert (kind, thing["metadata"]["namespace"]) == ("ADDED", namespace)


def test_one_object_by_name(maps: Collection) -> None:
    start = maps.create(config_map("a")).ok(201)["metadata"]["resourceVersion"]
    with maps.watch(resourceVersion=start, fieldSelector="metadata.name=a") as events:
        maps.create(config_map("b")).ok(201)
        maps.patch("a", {"data": {"k": "v"}}).ok()
        maps.delete("a").ok()
        assert events.take(2) == [("MODIFIED", "a"), ("DELETED", "a")]


def test_an_object_that_starts_and_stops_matching(maps: Collection) -> None:
    start = maps.create(config_map("a")).ok(201)["metadata"]["resourceVersion"]

    def label(value: str | None, text: str) -> Any:
        return maps.patch("a", {"metadata": {"labels": {"x": value}}, "data": {"k": text}}).ok()

    with maps.watch(resourceVersion=start, labelSelector="x=1") as events:
        label("0", "0")
        matching = label("1", "1")
        changed = label("1", "2")
        gone = label("2", "3")
        label("3", "4")
        back = label("1", "5")
        maps.delete("a").ok()
        assert events.next() == ("ADDED", matching)
        assert events.next() == ("MODIFIED", changed)
        kind, old = events.next()
        assert (kind, old["metadata"]["labels"], old["data"]) == ("DELETED", {"x": "1"}, {"k": "2"})
        assert _version(old) == _version(gone)
        assert events.next() == ("ADDED", back)
        kind, old = events.next()
        assert (kind, old["data"]) == ("DELETED", {"k": "5"})
        assert _version(old) > _version(back)


def test_a_selector_by_field_has_transitions_too(api: Api, namespace: str) -> None:
    pods = api.of("v1", "pods", namespace)
    start = pods.create(pod("a", {"nodeName": "n1"})).ok(201)["metadata"]["resourceVersion"]
    with pods.watch(resourceVersion=start, fieldSelector="status.phase=Running") as events:
        for phase in ("Running", "Succeeded"):
            pods.patch("a", {"status": {"phase": phase}}, sub="status").ok()
        assert events.next()[0] == "ADDED"
        kind, old = events.next()
        assert (kind, old["status"]["phase"]) == ("DELETED", "Running")


def test_what_does_not_match_is_not_shown_first_either(maps: Collection) -> None:
    maps.create(config_map("a", labels={"x": "1"})).ok(201)
    maps.create(config_map("b")).ok(201)
    with maps.watch(labelSelector="x") as events:
        assert events.take(1) == [("ADDED", "a")]
        maps.create(config_map("c", labels={"x": "1"})).ok(201)
        assert events.take(1) == [("ADDED", "c")]


def test_two_watchers_see_the_same(maps: Collection) -> None:
    start = maps.list().ok()["metadata"]["resourceVersion"]
    with maps.watch(resourceVersion=start) as one, maps.watch(resourceVersion=start) as two:
        for number in range(20):
            maps.create(config_map(f"m{number:02}")).ok(201)
        expected = [("ADDED", f"m{number:02}") for number in range(20)]
        assert one.take(20) == expected
        assert two.take(20) == expected


def test_events_come_in_order_of_version(maps: Collection) -> None:
    start = maps.list().ok()["metadata"]["resourceVersion"]
    with maps.watch(resourceVersion=start) as events:
        for number in range(10):
            maps.create(config_map(f"m{number}")).ok(201)
            maps.patch(f"m{number}", {"data": {"k": "v"}}).ok()
        versions = [_version(events.next()[1]) for _ in range(20)]
    assert versions == sorted(set(versions))


@pytest.mark.slow
def test_the_stream_is_chunked_json(api: Api, maps: Collection) -> None:
    answer = api.get(maps.path, watch=1, timeoutSeconds=1)
    assert answer.code == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Transfer-Encoding"] == "chunked"


@pytest.mark.slow
def test_a_timeout_ends_the_stream(maps: Collection) -> None:
    start = maps.list().ok()["metadata"]["resourceVersion"]
    with maps.watch(resourceVersion=start, timeoutSeconds=1) as events:
        assert events.rest() == []


def test_a_get_of_one_object_does_not_watch(api: Api, maps: Collection) -> None:
    made = maps.create(config_map("a")).ok(201)
    assert api.get(maps.at("a"), watch="true").ok() == made


def test_an_unreadable_version_is_an_error(api: Api, maps: Collection) -> None:
    assert api.get(maps.path, watch=1, resourceVersion="new").code >= 400


def test_an_unreadable_selector_is_a_bad_request(api: Api, maps: Collection) -> None:
    api.get(maps.path, watch=1, labelSelector="a b").refused(400, "BadRequest")
    api.get(maps.path, watch=1, fieldSelector="no.such=field").refused(400, "BadRequest")


def test_only_metadata(api: Api, maps: Collection) -> None:
    accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    start = maps.list().ok()["metadata"]["resourceVersion"]
    with api.watch(maps.path, headers={"Accept": accept}, resourceVersion=start) as events:
        maps.create(config_map("a", {"k": "v"})).ok(201)
        kind, thing = events.next()
    assert (kind, thing["kind"]) == ("ADDED", "PartialObjectMetadata")
    assert "data" not in thing


@pytest.mark.differs("watch-paths")
def test_the_old_watch_path(api: Api, maps: Collection, namespace: str) -> None:
    start = maps.create(config_map("a")).ok(201)["metadata"]["resourceVersion"]
    path = f"/api/v1/watch/namespaces/{namespace}/configmaps"
    with api.watch(path, resourceVersion=start) as events:
        maps.create(config_map("b")).ok(201)
        assert events.take(1) == [("ADDED", "b")]


def test_cluster_kinds(api: Api) -> None:
    nodes = api.of("v1", "nodes")
    start = nodes.list().ok()["metadata"]["resourceVersion"]
    with nodes.watch(resourceVersion=start) as events:
        nodes.create(node("watched")).ok(201)
        nodes.delete("watched").ok()
        assert events.take(2) == [("ADDED", "watched"), ("DELETED", "watched")]


class TestInitialEvents:
    """A watch that begins with a list: sendInitialEvents."""

    QUERY = {  # noqa: RUF012  # read only
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
    }

    def test_what_exists_then_a_bookmark_then_changes(self, api: Api, namespace: str) -> None:
        pods = api.of("v1", "pods", namespace)
        last = [pods.create(pod(name)).ok(201) for name in ("a", "b", "c")][-1]
        with pods.watch(**self.QUERY) as events:
            assert sorted(events.take(3)) == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]
            kind, mark = events.next()
            assert kind == "BOOKMARK"
            assert (mark["kind"], mark["apiVersion"]) == ("Pod", "v1")
            assert mark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
            assert _version(mark) >= _version(last)
            assert not mark["metadata"].get("name")
            pods.create(pod("d")).ok(201)
            assert events.take(1) == [("ADDED", "d")]

    def test_an_empty_collection_is_only_a_bookmark(self, maps: Collection) -> None:
        with maps.watch(**self.QUERY) as events:
            assert events.next()[0] == "BOOKMARK"

    @pytest.mark.parametrize("version", ["", "0", "latest"])
    def test_from_a_version(self, maps: Collection, version: str) -> None:
        made = maps.create(config_map("a")).ok(201)
        asked = made["metadata"]["resourceVersion"] if version == "latest" else version
        with maps.watch(resourceVersion=asked, **self.QUERY) as events:
            assert events.next() == ("ADDED", made)
            assert events.next()[0] == "BOOKMARK"

    def test_with_a_selector(self, maps: Collection) -> None:
        maps.create(config_map("a", labels={"x": "1"})).ok(201)
        maps.create(config_map("b")).ok(201)
        with maps.watch(labelSelector="x=1", **self.QUERY) as events:
            assert events.take(1) == [("ADDED", "a")]
            assert events.next()[0] == "BOOKMARK"

    def test_none_at_all(self, maps: Collection) -> None:
        made = maps.create(config_map("a")).ok(201)
        query = {**self.QUERY, "sendInitialEvents": "false"}
        with maps.watch(resourceVersion=made["metadata"]["resourceVersion"], **query) as events:
            maps.create(config_map("b")).ok(201)
            assert events.take(1) == [("ADDED", "b")]

    @pytest.mark.parametrize(
        "query",
        [
            {"sendInitialEvents": "true"},
            {"sendInitialEvents": "true", "resourceVersionMatch": "Exact"},
            {"resourceVersionMatch": "NotOlderThan"},
        ],
        ids=str,
    )
    def test_combinations_that_make_no_sense(
        self, api: Api, maps: Collection, query: dict[str, Any]
    ) -> None:
        answer = api.get(maps.path, watch=1, timeoutSeconds=1, **query)
        assert answer.causes()


@pytest.mark.slow
def test_before_the_timeout_a_bookmark_tells_how_far_the_stream_is(
    api: Api, maps: Collection
) -> None:
    start = maps.create(config_map("a")).ok(201)["metadata"]["resourceVersion"]
    query = {"resourceVersion": start, "allowWatchBookmarks": "true", "timeoutSeconds": 4}
    with maps.watch(**query) as events:
        elsewhere = api.of("v1", "configmaps", "default").create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-"}}
        )
        rest = events.rest()
    assert {kind for kind, _ in rest} == {"BOOKMARK"}
    mark = rest[-1][1]
    assert (mark["kind"], mark["apiVersion"]) == ("ConfigMap", "v1")
    assert _version(mark) >= _version(elsewhere.ok(201))
    assert "annotations" not in mark["metadata"]


def test_a_forgotten_version_has_expired(api: Api, namespace: str, server: Server) -> None:
    events_of = api.of("v1", "events", namespace)
    start = events_of.create(event("a", namespace)).ok(201)["metadata"]["resourceVersion"]
    for message in ("again", "and again"):
        events_of.patch("a", {"message": message}).ok()
    server.forget_history()
    _assert_expired(events_of, start)


def test_a_version_before_the_kind_existed_has_expired(widgets: Collection, server: Server) -> None:
    widgets.create(widget("a")).ok(201)
    server.forget_history()
    _assert_expired(widgets, "1")


def _assert_expired(things: Collection, version: str) -> None:
    with things.watch(resourceVersion=version) as events:
        kind, status = events.next()
        assert kind == "ERROR"
        assert (status["kind"], status["status"]) == ("Status", "Failure")
        assert (status["code"], status["reason"]) == (410, "Expired")
        assert events.rest() == []


def test_a_version_in_the_future_is_silent_until_then(maps: Collection) -> None:
    made = maps.create(config_map("a")).ok(201)
    ahead = int(made["metadata"]["resourceVersion"]) + 3
    with maps.watch(resourceVersion=ahead) as events:
        versions = [_version(maps.patch("a", {"data": {"k": str(n)}}).ok()) for n in range(5)]
        assert _version(events.next()[1]) == min(each for each in versions if each > ahead)
