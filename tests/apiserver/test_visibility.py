"""The visibility API over the embedded server: addresses, answers, refusals, rights."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import orjson
import pytest

from tests.apiserver.test_fuzz import serving
from tests.support.random_requests import ADMIN
from unisono.apiserver.api import Api
from unisono.apiserver.request import Request
from unisono.kinds.kueue.visibility import Window
from unisono.kube.form import Json

_ROOT = "/apis/visibility.kueue.x-k8s.io"


class Lists:
    """Two queues; notes what was asked for."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    def of_cluster_queue(self, name: str, window: Window) -> list[Json] | None:
        self.asked.append((name, window))
        return [{"priority": 1}] if name == "cq" else None

    def of_local_queue(self, namespace: str, name: str, window: Window) -> list[Json] | None:
        self.asked.append((namespace, name, window))
        return [] if (namespace, name) == ("team", "lq") else None


def play(story: Callable[[Api, Lists], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        async with serving() as api:
            lists = Lists()
            api.endpoints.pending = lists
            await story(api, lists)

    asyncio.run(run())


async def got(api: Api, path: str, method: str = "GET", **query: str) -> tuple[int, Json]:
    request = Request(method=method, path=f"{_ROOT}{path}", query=query, user=ADMIN)
    response = await api.handle(request)
    return response.code, orjson.loads(response.body)


def test_both_versions_and_both_kinds_of_queues() -> None:
    async def story(api: Api, lists: Lists) -> None:
        for version in ("v1beta1", "v1beta2"):
            path = f"/{version}/clusterqueues/cq/pendingworkloads"
            code, body = await got(api, path, limit="5", offset="2")
            assert code == 200
            assert body == {
                "kind": "PendingWorkloadsSummary",
                "apiVersion": f"visibility.kueue.x-k8s.io/{version}",
                "metadata": {},
                "items": [{"priority": 1}],
            }
            path = f"/{version}/namespaces/team/localqueues/lq/pendingworkloads"
            assert (await got(api, path))[1]["items"] == []
        assert lists.asked[:2] == [("cq", Window(5, 2)), ("team", "lq", Window(1000, 0))]

    play(story)


@pytest.mark.parametrize(
    ("path", "method", "query", "code", "message"),
    [
        (
            "/v1beta2/clusterqueues/no/pendingworkloads",
            "GET",
            {},
            404,
            'clusterqueue.visibility.kueue.x-k8s.io "no" not found',
        ),
        (
            "/v1beta2/namespaces/x/localqueues/lq/pendingworkloads",
            "GET",
            {},
            404,
            'localqueue.visibility.kueue.x-k8s.io "lq" not found',
        ),
        (
            "/v1beta2/clusterqueues/cq/pendingworkloads",
            "GET",
            {"limit": "x"},
            400,
            "limit and offset are numbers, and x is none",
        ),
        (
            "/v1beta2/clusterqueues/cq/pendingworkloads",
            "POST",
            {},
            405,
            "the server does not allow this method on the requested resource",
        ),
        (
            "/v1beta2/clusterqueues/cq/status",
            "GET",
            {},
            404,
            "the server could not find the requested resource",
        ),
        (
            "/v1beta2/clusterqueues/cq",
            "GET",
            {},
            405,
            "the server does not allow this method on the requested resource",
        ),
        (
            "/v1beta2/clusterqueues",
            "GET",
            {},
            405,
            "the server does not allow this method on the requested resource",
        ),
        (
            "/v1beta2/clusterqueues",
            "POST",
            {},
            405,
            "the server does not allow this method on the requested resource",
        ),
        (
            "/v1beta2/workloads/a/pendingworkloads",
            "GET",
            {},
            404,
            "the server could not find the requested resource",
        ),
    ],
)
def test_refusals(path: str, method: str, query: dict[str, str], code: int, message: str) -> None:
    async def story(api: Api, lists: Lists) -> None:
        found, body = await got(api, path, method, **query)
        assert (found, body["message"]) == (code, message)

    play(story)


def test_it_is_asked_again_until_the_queues_are_read() -> None:
    async def story(api: Api, lists: Lists) -> None:
        api.endpoints.pending = None
        code, body = await got(api, "/v1beta2/clusterqueues/cq/pendingworkloads")
        assert (code, body["reason"]) == (503, "ServiceUnavailable")

    play(story)


def test_discovery_names_what_is_below_a_queue() -> None:
    async def story(api: Api, lists: Lists) -> None:
        code, body = await got(api, "/v1beta2")
        found = {
            one["name"]: (one["kind"], one["namespaced"], one["verbs"]) for one in body["resources"]
        }
        kind = "PendingWorkloadsSummary"
        assert (code, found) == (
            200,
            {
                "clusterqueues": (kind, False, []),
                "clusterqueues/pendingworkloads": (kind, False, ["get"]),
                "localqueues": (kind, True, []),
                "localqueues/pendingworkloads": (kind, True, ["get"]),
            },
        )
        code, body = await got(api, "")
        assert body["preferredVersion"]["version"] == "v1beta2"
        assert [one["version"] for one in body["versions"]] == ["v1beta2", "v1beta1"]

    play(story)
