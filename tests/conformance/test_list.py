"""Lists: order, chunks, and which version they are of."""

from __future__ import annotations

import pytest

from tests.conformance.client import Api, Collection
from tests.conformance.objects import config_map, node
from tests.conformance.servers import Server


@pytest.fixture
def maps(api: Api, namespace: str) -> Collection:
    return api.of("v1", "configmaps", namespace)


def _fill(maps: Collection, count: int) -> list[str]:
    names = [f"m{number:03}" for number in range(count)]
    for name in names:
        maps.create(config_map(name)).ok(201)
    return names


def test_an_empty_list(maps: Collection) -> None:
    listed = maps.list().ok()
    assert (listed["kind"], listed["apiVersion"], listed["items"]) == ("ConfigMapList", "v1", [])
    assert int(listed["metadata"]["resourceVersion"]) > 0
    assert set(listed["metadata"]) == {"resourceVersion"}


def test_a_namespace_that_does_not_exist_is_empty(api: Api) -> None:
    assert api.of("v1", "configmaps", "nowhere").names() == []


def test_items_are_in_order_of_name(maps: Collection) -> None:
    for name in ("b", "a.b", "a-b", "a", "10", "9"):
        maps.create(config_map(name)).ok(201)
    assert maps.names() == ["10", "9", "a", "a-b", "a.b", "b"]


def test_over_all_namespaces_items_are_in_order_of_namespace_and_name(
    api: Api, namespace: str
) -> None:
    other = api.of("v1", "namespaces").create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "test-"}}
    )
    for each in (namespace, other.ok(201)["metadata"]["name"]):
        for name in ("b", "a"):
            manifest = config_map(name, labels={"over-all": namespace})
            api.of("v1", "configmaps", each).create(manifest).ok(201)
    listed = api.of("v1", "configmaps").list(labelSelector=f"over-all={namespace}").ok()
    keys = [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in listed["items"]]
    assert len(keys) == 4
    assert keys == sorted(keys)


def test_the_version_of_a_list_is_not_older_than_its_items(maps: Collection) -> None:
    made = maps.create(config_map("a")).ok(201)
    listed = maps.list().ok()
    assert int(listed["metadata"]["resourceVersion"]) >= int(made["metadata"]["resourceVersion"])


def test_chunks(maps: Collection) -> None:
    names = _fill(maps, 7)
    first = maps.list(limit=3).ok()
    assert [item["metadata"]["name"] for item in first["items"]] == names[:3]
    assert first["metadata"]["remainingItemCount"] == 4
    second = maps.list(limit=3, **{"continue": first["metadata"]["continue"]}).ok()
    assert [item["metadata"]["name"] for item in second["items"]] == names[3:6]
    assert second["metadata"]["remainingItemCount"] == 1
    third = maps.list(limit=3, **{"continue": second["metadata"]["continue"]}).ok()
    assert [item["metadata"]["name"] for item in third["items"]] == names[6:]
    assert "continue" not in third["metadata"]
    assert "remainingItemCount" not in third["metadata"]


def test_all_chunks_are_of_the_version_of_the_first(maps: Collection) -> None:
    names = _fill(maps, 6)
    first = maps.list(limit=2).ok()
    for name in names[1:5]:
        maps.delete(name).ok()
    maps.create(config_map("m003x")).ok(201)
    maps.patch("m005", {"data": {"k": "v"}}).ok()
    second = maps.list(limit=9, **{"continue": first["metadata"]["continue"]}).ok()
    assert [item["metadata"]["name"] for item in second["items"]] == names[2:]
    assert "data" not in second["items"][-1]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_a_limit_that_is_just_enough_needs_no_second_chunk(maps: Collection) -> None:
    _fill(maps, 3)
    listed = maps.list(limit=3).ok()
    assert len(listed["items"]) == 3
    assert "continue" not in listed["metadata"]


def test_chunks_with_a_selector_do_not_count_what_remains(maps: Collection) -> None:
    for number in range(6):
        maps.create(config_map(f"m{number}", labels={"even": str(number % 2 == 0)})).ok(201)
    first = maps.list(limit=2, labelSelector="even=True").ok()
    assert [item["metadata"]["name"] for item in first["items"]] == ["m0", "m2"]
    assert "remainingItemCount" not in first["metadata"]
    token = {"continue": first["metadata"]["continue"]}
    second = maps.list(limit=2, labelSelector="even=True", **token).ok()
    assert [item["metadata"]["name"] for item in second["items"]] == ["m4"]
    assert "continue" not in second["metadata"]


def test_an_unreadable_continuation_is_a_bad_request(maps: Collection) -> None:
    maps.list(limit=3, **{"continue": "nonsense"}).refused(400, "BadRequest")


def test_an_unreadable_limit_is_a_bad_request(maps: Collection) -> None:
    maps.list(limit="many").refused(400, "BadRequest")


def test_an_expired_continuation_offers_a_new_one(
    api: Api, maps: Collection, server: Server
) -> None:
    names = _fill(maps, 5)
    first = maps.list(limit=2).ok()
    maps.delete(names[3]).ok()
    server.forget_history()
    answer = maps.list(limit=2, **{"continue": first["metadata"]["continue"]})
    status = answer.refused(410, "Expired")
    rest = maps.list(limit=9, **{"continue": status["metadata"]["continue"]}).ok()
    assert [item["metadata"]["name"] for item in rest["items"]] == [names[2], names[4]]


class TestResourceVersion:
    """Which version a list is asked for."""

    def test_any(self, maps: Collection) -> None:
        maps.create(config_map("a")).ok(201)
        assert maps.list(resourceVersion=0).code == 200

    def test_not_older_than(self, maps: Collection) -> None:
        version = maps.create(config_map("a")).ok(201)["metadata"]["resourceVersion"]
        assert maps.names(resourceVersion=version) == ["a"]
        assert maps.names(resourceVersion=version, resourceVersionMatch="NotOlderThan") == ["a"]

    def test_exactly(self, maps: Collection) -> None:
        version = maps.create(config_map("a")).ok(201)["metadata"]["resourceVersion"]
        maps.create(config_map("b")).ok(201)
        listed = maps.list(resourceVersion=version, resourceVersionMatch="Exact").ok()
        assert [item["metadata"]["name"] for item in listed["items"]] == ["a"]
        assert listed["metadata"]["resourceVersion"] == version

    def test_exactly_one_that_is_forgotten(self, maps: Collection, server: Server) -> None:
        version = maps.create(config_map("a")).ok(201)["metadata"]["resourceVersion"]
        maps.create(config_map("b")).ok(201)
        server.forget_history()
        answer = maps.list(resourceVersion=version, resourceVersionMatch="Exact")
        answer.refused(410, "Expired")

    @pytest.mark.slow
    def test_in_the_future(self, maps: Collection) -> None:
        version = int(maps.list().ok()["metadata"]["resourceVersion"]) + 1_000_000
        answer = maps.list(resourceVersion=version)
        assert answer.causes(504, "Timeout") == {("ResourceVersionTooLarge", "")}
        assert answer.json()["details"]["retryAfterSeconds"] == 1
        assert answer.headers["Retry-After"] == "1"

    @pytest.mark.parametrize(
        ("query", "field"),
        [
            ({"resourceVersionMatch": "Exact"}, "resourceVersionMatch"),
            ({"resourceVersionMatch": "NotOlderThan"}, "resourceVersionMatch"),
            ({"resourceVersionMatch": "Exact", "resourceVersion": "0"}, "resourceVersionMatch"),
            ({"resourceVersionMatch": "Nearly", "resourceVersion": "1"}, "resourceVersionMatch"),
            ({"sendInitialEvents": "true"}, "sendInitialEvents"),
        ],
        ids=str,
    )
    def test_combinations_that_make_no_sense(
        self, maps: Collection, query: dict[str, str], field: str
    ) -> None:
        assert field in {named for _, named in maps.list(**query).causes()}

    def test_match_with_a_continuation_makes_no_sense(self, maps: Collection) -> None:
        _fill(maps, 2)
        metadata = maps.list(limit=1).ok()["metadata"]
        token = {"continue": metadata["continue"], "resourceVersionMatch": "Exact"}
        assert maps.list(resourceVersion=metadata["resourceVersion"], **token).causes()

    def test_a_version_with_a_continuation_is_a_bad_request(self, maps: Collection) -> None:
        _fill(maps, 2)
        metadata = maps.list(limit=1).ok()["metadata"]
        token = {"continue": metadata["continue"]}
        maps.list(resourceVersion=metadata["resourceVersion"], **token).refused(400, "BadRequest")

    def test_an_unreadable_version(self, maps: Collection) -> None:
        answer = maps.list(resourceVersion="new")
        assert answer.code in {400, 422}, str(answer)


def test_a_get_can_ask_for_a_version(maps: Collection) -> None:
    made = maps.create(config_map("a")).ok(201)
    version = made["metadata"]["resourceVersion"]
    assert maps.read("a", resourceVersion=version).ok() == made
    # Any version will do, also one before it was made: only now every cache has it.
    assert maps.read("a", resourceVersion=0).ok() == made


def test_cluster_kinds_are_listed_without_a_namespace(api: Api) -> None:
    nodes = api.of("v1", "nodes")
    nodes.create(node("listed")).ok(201)
    listed = nodes.list().ok()
    assert listed["kind"] == "NodeList"
    assert "listed" in {item["metadata"]["name"] for item in listed["items"]}


def test_only_metadata(api: Api, maps: Collection) -> None:
    maps.create(config_map("a", {"k": "v"}, labels={"x": "1"})).ok(201)
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    listed = api.get(maps.path, headers={"Accept": accept}).ok()
    assert (listed["kind"], listed["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    (item,) = listed["items"]
    assert item["metadata"]["labels"] == {"x": "1"}
    assert "data" not in item
    one = accept.replace("List", "")
    got = api.get(maps.at("a"), headers={"Accept": one}).ok()
    assert (got["kind"], got["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert "data" not in got
