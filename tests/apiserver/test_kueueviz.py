"""What the backend of KueueViz asks of an API: lists, informers, events of one workload."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from tests.apiserver.test_fuzz import serving
from tests.support.random_requests import ADMIN
from unisono.apiserver.request import Request

Json = dict[str, Any]
_KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
FOLLOWED = (
    *(f"{_KUEUE}/{plural}" for plural in ("clusterqueues", "localqueues", "workloads")),
    *(f"{_KUEUE}/{plural}" for plural in ("cohorts", "resourceflavors")),
    *(f"/api/v1/{plural}" for plural in ("namespaces", "nodes", "pods", "events")),
)


@pytest.mark.parametrize("path", FOLLOWED)
def test_each_kind_can_be_listed_and_followed(path: str) -> None:
    async def story() -> None:
        async with serving() as api:
            listed = await api.handle(Request(method="GET", path=path, user=ADMIN))
            version = orjson.loads(listed.body)["metadata"]["resourceVersion"]
            query = {
                "watch": "true",
                "resourceVersion": version,
                "allowWatchBookmarks": "true",
                "timeoutSeconds": "1",
            }
            watch = Request(method="GET", path=path, query=query, user=ADMIN)
            followed = await api.handle(watch)
            assert (listed.code, followed.code) == (200, 200)
            assert followed.chunks is not None
            followed.chunks.close()  # type: ignore[attr-defined]  # of watches

    asyncio.run(story())


def test_events_of_one_workload() -> None:
    async def story() -> None:
        async with serving() as api:
            for name in ("one", "other"):
                event = {
                    "apiVersion": "v1",
                    "kind": "Event",
                    "metadata": {"name": f"{name}.1", "namespace": "default"},
                    "involvedObject": {"kind": "Workload", "namespace": "default", "name": name},
                    "reason": "QuotaReserved",
                    "type": "Normal",
                }
                posted = Request(
                    method="POST",
                    path="/api/v1/namespaces/default/events",
                    headers={"content-type": "application/json"},
                    body=orjson.dumps(event),
                    user=ADMIN,
                )
                assert (await api.handle(posted)).code == 201
            asked = Request(
                method="GET",
                path="/api/v1/namespaces/default/events",
                query={"fieldSelector": "involvedObject.name=one"},
                user=ADMIN,
            )
            items = orjson.loads((await api.handle(asked)).body)["items"]
            assert [one["metadata"]["name"] for one in items] == ["one.1"]

    asyncio.run(story())
