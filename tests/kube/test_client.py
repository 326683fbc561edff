"""Objects read and written as dictionaries: paths, queries, headers, and what comes back."""

from __future__ import annotations

import itertools
import random
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest

from tests.kube.fake_api import Asked, FakeApi, refuse, status
from tests.kube.virtual import VirtualClock, run
from unisono.kube import Client, Kind, bind, client_over, evict, log, scale
from unisono.kube.errors import (
    AlreadyExists,
    BadResponse,
    Conflict,
    Gone,
    NotFound,
    TooManyRequests,
    UnknownKind,
    Unreachable,
)
from unisono.kube.transport import Answer

POD = Kind("v1", "Pod")
PODS = "/api/v1/namespaces/team-a/pods"
WIDGET = Kind("example.com/v1", "Widget")
DISCOVERY = {
    "kind": "APIResourceList",
    "resources": [
        {"name": "widgets", "kind": "Widget", "namespaced": True},
        {"name": "widgets/status", "kind": "Widget", "namespaced": True},
        {"name": "worlds", "kind": "World", "namespaced": False},
    ],
}


def client(api: FakeApi) -> Client:
    numbers = itertools.count(1)
    return client_over(
        api,
        clock=VirtualClock(),
        random_source=random.Random(1),
        namespace="team-a",
        ids=lambda: f"id-{next(numbers)}",
    )


def asked_by(work: Callable[[Client], Awaitable[Any]], *answers: Answer | Exception) -> list[Asked]:
    """Return what is asked; without answers given, everything is answered with {}."""
    api = FakeApi()
    api.fail(*(answers or [Answer(200, {}, b"{}")]))

    async def main() -> None:
        await work(client(api))

    run(main())
    return api.asked


def pod(name: str = "p", **metadata: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}}


# --- reading ------------------------------------------------------------------------------------


def test_get() -> None:
    (asked,) = asked_by(lambda made: made.get(POD, "p"))
    assert (asked.method, asked.path) == ("GET", f"{PODS}/p")
    (asked,) = asked_by(lambda made: made.get(POD, "p", "other", subresource="status"))
    assert asked.path == "/api/v1/namespaces/other/pods/p/status"
    (asked,) = asked_by(lambda made: made.get(POD, "a/b?c"))
    assert asked.path == f"{PODS}/a%2Fb%3Fc"


def test_list_follows_the_pages_of_all_namespaces() -> None:
    api = FakeApi()
    for number in range(1200):
        api.put("/api/v1/pods", f"p{number}")

    async def main() -> None:
        listing = await client(api).list(POD, labels="a=b", fields="spec.nodeName=n1")
        assert len(listing.items) == 1200
        assert listing.resource_version == str(api.version)
        assert listing.items[0]["kind"] == "Pod"

    run(main())
    assert [asked.query.get("continue") for asked in api.asked] == [None, "500", "1000"]
    assert api.asked[0].query == {
        "labelSelector": "a=b",
        "fieldSelector": "spec.nodeName=n1",
        "limit": "500",
    }


def test_watch_hands_out_events_and_raises_errors() -> None:
    api = FakeApi()
    api.put(PODS, "p")

    async def main() -> None:
        async with client(api).watch(POD, "team-a") as events:
            first = await anext(events)
            assert (first.type, first.object["metadata"]["name"]) == ("ADDED", "p")
            api.remove(PODS, "p")
            assert (await anext(events)).type == "DELETED"
            error = orjson.dumps({"type": "ERROR", "object": status(410, "Expired")})
            api.send(error + b"\n")
            with pytest.raises(Gone):
                await anext(events)
        assert api.open_streams == 0

    run(main())


def test_an_answer_that_is_no_object_is_trouble() -> None:
    for body in (b"<html>", b"[]"):
        with pytest.raises(BadResponse, match="/pods/p"):
            asked_by(lambda made: made.get(POD, "p"), Answer(200, {}, body))


# --- which path ---------------------------------------------------------------------------------


def test_an_unknown_kind_is_looked_up_once() -> None:
    async def work(made: Client) -> None:
        await made.get(WIDGET, "w")
        await made.get(Kind("example.com/v1", "World"), "w")

    answer = Answer(200, {}, orjson.dumps(DISCOVERY))
    asked = asked_by(work, answer, Answer(200, {}, b"{}"), Answer(200, {}, b"{}"))
    assert [each.path for each in asked] == [
        "/apis/example.com/v1",
        "/apis/example.com/v1/namespaces/team-a/widgets/w",
        "/apis/example.com/v1/worlds/w",
    ]


def test_a_kind_that_comes_later_is_found_later() -> None:
    async def work(made: Client) -> None:
        for _ in range(2):
            with pytest.raises(UnknownKind, match=r"Widget of example\.com/v1"):
                await made.get(WIDGET, "w")
        await made.get(WIDGET, "w")

    asked = asked_by(
        work,
        refuse(404, "NotFound"),
        Answer(200, {}, b'{"resources": null}'),
        Answer(200, {}, orjson.dumps(DISCOVERY)),
        Answer(200, {}, b"{}"),
    )
    assert len(asked) == 4


# --- writing ------------------------------------------------------------------------------------


def test_writes_are_ours() -> None:
    (asked,) = asked_by(lambda made: made.create(pod()))
    assert (asked.method, asked.path) == ("POST", PODS)
    assert asked.query == {"fieldManager": "unisono"}
    assert asked.headers["Content-Type"] == "application/json"
    assert asked.json == pod()


def test_update_and_dry_run() -> None:
    (asked,) = asked_by(lambda made: made.update(pod(namespace="b"), dry_run=True))
    assert (asked.method, asked.path) == ("PUT", "/api/v1/namespaces/b/pods/p")
    assert asked.query == {"fieldManager": "unisono", "dryRun": "All"}
    (asked,) = asked_by(lambda made: made.update(pod(), subresource="status"))
    assert asked.path == f"{PODS}/p/status"


@pytest.mark.parametrize(
    ("form", "content_type"),
    [
        ("merge", "application/merge-patch+json"),
        ("json", "application/json-patch+json"),
        ("strategic", "application/strategic-merge-patch+json"),
    ],
)
def test_patches(form: Any, content_type: str) -> None:
    (asked,) = asked_by(lambda made: made.patch(POD, "p", "", {"a": 1}, form=form))
    assert (asked.method, asked.path) == ("PATCH", f"{PODS}/p")
    assert asked.headers["Content-Type"] == content_type


def test_apply() -> None:
    (asked,) = asked_by(lambda made: made.apply(pod()))
    assert (asked.method, asked.path) == ("PATCH", f"{PODS}/p")
    assert asked.query == {"fieldManager": "unisono", "force": "true"}
    assert asked.headers["Content-Type"] == "application/apply-patch+yaml"
    (asked,) = asked_by(lambda made: made.apply(pod(), force=False, subresource="status"))
    assert (asked.path, asked.query["force"]) == (f"{PODS}/p/status", "false")


def test_delete_says_which_object_it_means() -> None:
    (asked,) = asked_by(
        lambda made: made.delete(POD, "p", uid="u", resource_version="7", grace_s=0)
    )
    assert (asked.method, asked.path) == ("DELETE", f"{PODS}/p")
    assert asked.json == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": "u", "resourceVersion": "7"},
        "gracePeriodSeconds": 0,
    }


LOST = Unreachable("reset", sent=True)
OK = Answer(200, {}, b"{}")


@pytest.mark.parametrize(
    ("work", "tries"),
    [
        (lambda made: made.get(POD, "p"), 2),
        (lambda made: made.create(pod()), 1),
        (lambda made: made.update(pod()), 1),
        (lambda made: made.update(pod(resourceVersion="5")), 2),
        (lambda made: made.apply(pod()), 2),
        (lambda made: made.patch(POD, "p", "", {"spec": {}}), 1),
        (lambda made: made.patch(POD, "p", "", {"metadata": {"resourceVersion": "5"}}), 2),
        (lambda made: made.patch(POD, "p", "", [{"op": "test"}], form="json"), 1),
        (lambda made: made.patch(POD, "p", "", {"spec": {}}, repeatable=True), 2),
        (lambda made: made.delete(POD, "p"), 1),
        (lambda made: made.delete(POD, "p", uid="u"), 2),
        (lambda made: bind(made, "p", "", node="n"), 1),
        (lambda made: evict(made, "p", ""), 1),
        (lambda made: scale(made, POD, "p", "", replicas=3), 2),
    ],
)
def test_only_what_cannot_happen_twice_is_repeated(
    work: Callable[[Client], Awaitable[Any]], tries: int
) -> None:
    async def patient(made: Client) -> None:
        try:
            await work(made)
        except Unreachable:
            assert tries == 1

    assert len(asked_by(patient, LOST, OK)) == tries


def test_a_create_whose_answer_is_lost_is_found_again() -> None:
    api = FakeApi()

    async def main() -> None:
        made = client(api)
        api.lose_answer()
        created = await made.create(pod(), repeat=True)
        assert created["metadata"]["annotations"] == {"unisono.dev/create-id": "id-1"}
        assert [asked.method for asked in api.asked] == ["POST", "POST", "GET"]
        with pytest.raises(AlreadyExists):
            await made.create(pod(), repeat=True)  # this one is of another client

    run(main())


def test_conflicts_and_missing_objects_have_their_own_exceptions() -> None:
    api = FakeApi()
    api.put(PODS, "p")

    async def main() -> None:
        made = client(api)
        with pytest.raises(Conflict):
            await made.update(pod(resourceVersion="1"))
        with pytest.raises(NotFound):
            await made.get(POD, "q")
        assert (await made.delete(POD, "p"))["metadata"]["name"] == "p"

    run(main())


# --- subresources -------------------------------------------------------------------------------


def test_binding_names_the_pod_by_uid() -> None:
    (asked,) = asked_by(lambda made: bind(made, "p", "b", node="n1", uid="u"))
    assert asked.path == "/api/v1/namespaces/b/pods/p/binding"
    assert asked.json["metadata"] == {"name": "p", "namespace": "b", "uid": "u"}
    assert asked.json["target"]["name"] == "n1"


def test_eviction_that_a_budget_forbids_is_told_at_once() -> None:
    no = refuse(429, "TooManyRequests", causes=[{"reason": "DisruptionBudget"}])
    with pytest.raises(TooManyRequests) as caught:
        asked_by(lambda made: evict(made, "p", "b", uid="u", grace_s=5), no)
    assert caught.value.has_cause("DisruptionBudget")


def test_scale() -> None:
    (asked,) = asked_by(lambda made: scale(made, POD, "p", "", replicas=4))
    assert asked.path == f"{PODS}/p/scale"
    assert asked.json == {"spec": {"replicas": 4}}


def test_log() -> None:
    async def work(made: Client) -> None:
        async with log(made, "p", "b", container="c", follow=True, tail_lines=10) as pieces:
            assert b"".join([piece async for piece in pieces]) == b"hello\n"

    (asked,) = asked_by(work, Answer(200, {}, b"hello\n"))
    assert asked.path == "/api/v1/namespaces/b/pods/p/log"
    assert asked.query == {"container": "c", "follow": "true", "tailLines": "10"}
