"""What the cache holds and tells: deltas, indexes, and own writes that are not echoed yet."""

from __future__ import annotations

import random

import pytest

from unisono.kube.cache import Delta, Remove, Replace, Store, Upsert
from unisono.kube.form import Dicts, Json, Key, is_newer


def pod(name: str, version: int, *, uid: str = "", node: str = "") -> Json:
    metadata = {"name": name, "namespace": "a", "uid": uid or name, "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "node": node}


def store(*pods: Json, version: int = 0) -> Store[Json]:
    made: Store[Json] = Store(
        Dicts("v1", "Pod"), {"node": lambda each: [each["node"]] if each["node"] else []}
    )
    made.apply(Replace(pods, str(version)))
    return made


def told(deltas: list[Delta[Json]]) -> list[tuple[str, str]]:
    return [(delta.what, delta.key.name) for delta in deltas]


def names(pods: list[Json]) -> list[str]:
    return [each["metadata"]["name"] for each in pods]


def test_events_become_deltas() -> None:
    made = store()
    one, two, three = pod("p", 1), pod("p", 2), pod("p", 3)
    key = Key("a", "p")
    assert made.apply(Upsert(one)) == [Delta("ADDED", key, new=one)]
    assert made.apply(Upsert(two)) == [Delta("MODIFIED", key, old=one, new=two)]
    assert made.get("p", "a") is two
    assert made.apply(Remove(three)) == [Delta("DELETED", key, old=two)]
    assert made.get("p", "a") is None
    assert len(made) == 0


def test_doubled_and_late_events_change_nothing() -> None:
    made = store()
    assert told(made.apply(Upsert(pod("p", 5)))) == [("ADDED", "p")]
    assert made.apply(Upsert(pod("p", 5))) == []
    assert made.apply(Upsert(pod("p", 4))) == []
    assert told(made.apply(Remove(pod("p", 6)))) == [("DELETED", "p")]
    assert made.apply(Remove(pod("p", 6))) == []


def test_a_list_tells_each_vanished_object_once_and_leaves_the_rest_alone() -> None:
    made = store(pod("a", 1), pod("b", 2), pod("c", 3), version=3)
    deltas = made.apply(Replace((pod("b", 2), pod("c", 9), pod("d", 8)), "9"))
    assert told(deltas) == [("DELETED", "a"), ("MODIFIED", "c"), ("ADDED", "d")]
    assert made.apply(Replace((pod("b", 2), pod("c", 9), pod("d", 8)), "9")) == []


def test_a_name_made_again_is_another_object() -> None:
    made = store(pod("p", 1, uid="old"), version=1)
    assert told(made.apply(Upsert(pod("p", 5, uid="new")))) == [("DELETED", "p"), ("ADDED", "p")]
    # The deletion of the old one arrives late.
    assert made.apply(Remove(pod("p", 4, uid="old"))) == []
    listed = made.apply(Replace((pod("p", 9, uid="newest"),), "9"))
    assert told(listed) == [("DELETED", "p"), ("ADDED", "p")]


def test_a_server_that_went_back_in_time_is_believed() -> None:
    made = store(pod("p", 50), version=60)
    assert told(made.apply(Replace((pod("p", 20),), "30"))) == [("MODIFIED", "p")]
    assert told(made.apply(Upsert(pod("p", 31)))) == [("MODIFIED", "p")]


# --- indexes ------------------------------------------------------------------------------------


def test_an_index_follows_its_objects() -> None:
    made = store(pod("p", 1, node="n1"), pod("q", 2, node="n1"), pod("r", 3), version=3)
    assert names(made.by("node", "n1")) == ["p", "q"]
    made.apply(Upsert(pod("p", 4, node="n2")))
    assert names(made.by("node", "n1")) == ["q"]
    assert names(made.by("node", "n2")) == ["p"]
    made.apply(Remove(pod("q", 5, node="n1")))
    assert made.by("node", "n1") == []
    assert list(made.values_of("node")) == ["n2"], "an empty value is not kept"


def test_an_index_equals_what_a_search_would_find() -> None:
    random_source = random.Random(7)
    made = store()
    for version in range(1, 600):
        name = f"p{random_source.randrange(12)}"
        node = random_source.choice(["", "n1", "n2", "n3"])
        each = pod(name, version, uid=f"{name}-{random_source.randrange(3)}", node=node)
        match random_source.randrange(5):
            case 0:
                made.apply(Remove(each))
            case 1:
                made.assume(each)
            case 2 if random_source.randrange(10) == 0:
                made.apply(Replace(tuple(list(made)[::2]), str(version)))
            case _:
                made.apply(Upsert(each))
        for value in ("n1", "n2", "n3"):
            found = names(made.by("node", value))
            assert sorted(found) == sorted(names([p for p in made if p["node"] == value]))


# --- own writes ---------------------------------------------------------------------------------


def test_an_own_write_is_seen_at_once_and_told_once() -> None:
    made = store(pod("p", 1), version=1)
    written = pod("p", 5, node="n1")
    assert told(made.assume(written)) == [("MODIFIED", "p")]
    assert names(made.by("node", "n1")) == ["p"]
    assert made.unconfirmed == 1
    assert made.apply(Upsert(pod("p", 3))) == [], "an earlier write of another client"
    assert made.apply(Upsert(written)) == [], "the echo"
    assert made.unconfirmed == 0
    assert told(made.apply(Upsert(pod("p", 6)))) == [("MODIFIED", "p")]


def test_an_own_write_outlives_events_from_before() -> None:
    made = store(pod("p", 1), version=1)
    made.assume(pod("p", 5))
    # It had left our selector, and our own write brought it back.
    assert made.apply(Remove(pod("p", 4))) == []
    assert made.apply(Upsert(pod("p", 3))) == []
    assert made.apply(Replace((), "4")) == []
    assert made.get("p", "a") == pod("p", 5)
    assert told(made.apply(Remove(pod("p", 6)))) == [("DELETED", "p")]


def test_the_echo_may_be_faster_than_the_answer() -> None:
    made = store(pod("p", 1), version=1)
    made.apply(Upsert(pod("p", 5)))
    made.apply(Upsert(pod("p", 6)))
    assert made.assume(pod("p", 5)) == []
    assert made.unconfirmed == 0


@pytest.mark.parametrize("how", ["removed", "not listed"])
def test_the_end_may_be_faster_than_the_answer(how: str) -> None:
    made = store(pod("p", 1), version=1)
    made.apply(Remove(pod("p", 3)) if how == "removed" else Replace((), "3"))
    assert made.assume(pod("p", 2)) == []
    assert len(made) == 0
    assert told(made.assume(pod("p", 4, uid="another"))) == [("ADDED", "p")]


def test_an_own_create_survives_a_list_from_before() -> None:
    made = store(version=1)
    made.assume(pod("p", 5))
    assert made.apply(Replace((), "4")) == []
    assert told(made.apply(Replace((), "7"))) == [("DELETED", "p")], "gone by version 7"


def test_a_list_that_is_older_twice_is_the_truth() -> None:
    made = store(version=1)
    made.assume(pod("p", 50))
    assert made.apply(Replace((), "20")) == []
    assert told(made.apply(Replace((), "21"))) == [("DELETED", "p")]


def test_an_own_deletion_is_not_undone_by_events_from_before() -> None:
    made = store(pod("p", 3), version=3)
    assert told(made.assume_deleted(pod("p", 3))) == [("DELETED", "p")]
    assert made.apply(Upsert(pod("p", 4))) == []
    assert made.apply(Replace((pod("p", 4),), "4")) == []
    assert made.apply(Remove(pod("p", 5))) == []
    assert made.unconfirmed == 0
    assert told(made.apply(Upsert(pod("p", 6, uid="again")))) == [("ADDED", "p")]


def test_an_own_deletion_does_not_hide_the_next_object_of_that_name() -> None:
    made = store(pod("p", 3), version=3)
    made.assume_deleted(pod("p", 3))
    assert told(made.apply(Upsert(pod("p", 9, uid="again")))) == [("ADDED", "p")]
    assert made.assume_deleted(pod("p", 3)) == [], "that is another object now"


def test_resync_says_everything_again() -> None:
    made = store(pod("p", 1), pod("q", 2), version=2)
    assert told(made.resync()) == [("SYNC", "p"), ("SYNC", "q")]


@pytest.mark.parametrize(
    ("one", "other", "newer"),
    [("10", "9", True), ("9", "10", False), ("9", "9", False), ("x", "9", True), ("x", "x", False)],
)
def test_versions_are_numbers_if_they_can_be(one: str, other: str, newer: bool) -> None:
    assert is_newer(one, other) is newer
