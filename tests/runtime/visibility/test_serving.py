"""The extension server: what API servers gather of it, and what users get."""

from __future__ import annotations

import asyncio
import copy
import io
import json
from collections.abc import Callable, Coroutine
from typing import Any

import orjson
import pytest

from unisono.kinds.kueue.visibility import Window
from unisono.kube.errors import NotFound, Status
from unisono.kube.form import Json
from unisono.kube.mapping import Kind
from unisono.net.http.messages import Response
from unisono.net.http.pages import PageRequest
from unisono.runtime.log import Journal
from unisono.runtime.visibility.objects import API_SERVICE, VERSIONS, api_service_name, objects
from unisono.runtime.visibility.serving import VisibilityServer

START = 1_800_000_000.0
_GROUP = "visibility.kueue.x-k8s.io"
_QUEUE = f"/apis/{_GROUP}/v1beta2/clusterqueues/cq/pendingworkloads"
_CONFIG = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
    "data": {
        "requestheader-client-ca-file": "",
        "requestheader-username-headers": '["X-Remote-User"]',
    },
}


class Cluster:
    """The few objects that the server reads and writes, and answers to reviews."""

    def __init__(self) -> None:
        made = (*objects("home", {}), _CONFIG)
        self.objects = {(one["kind"], one["metadata"]["name"]): one for one in made}
        self.asked: list[Json] = []

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Json:
        found = self.objects.get((kind.kind, name))
        if found is None:
            raise NotFound(Status(code=404, message=f"{name} is not there"))
        return copy.deepcopy(found)

    async def update(self, new: Json) -> Json:
        self.objects[new["kind"], new["metadata"]["name"]] = copy.deepcopy(new)
        return new

    async def create(self, review: Json) -> Json:
        self.asked.append(review["spec"])
        if review["kind"] == "TokenReview":
            name = review["spec"]["token"]
            return {"status": {"authenticated": bool(name), "user": {"username": name}}}
        return {"status": {"allowed": review["spec"]["user"] == "ada"}}


class Lists:
    """One ClusterQueue with nothing in it."""

    def of_cluster_queue(self, name: str, window: Window) -> list[Json] | None:
        return [] if name == "cq" else None

    def of_local_queue(self, namespace: str, name: str, window: Window) -> list[Json] | None:
        return None


class Clock:
    """A time that stands still."""

    def now(self) -> float:
        return START

    def monotonic(self) -> float:
        return START

    async def sleep(self, seconds: float) -> None:
        raise AssertionError


def play(
    story: Callable[[VisibilityServer, Cluster], Coroutine[Any, Any, None]],
) -> None:
    async def run() -> None:
        cluster = Cluster()
        journal = Journal(io.StringIO(), lambda: START)
        server = VisibilityServer(cluster, "home", Lists(), Clock(), journal)  # type: ignore[arg-type]  # three of a client's calls
        await server.learn()
        await story(server, cluster)

    asyncio.run(run())


async def got(
    server: VisibilityServer, path: str, token: str = "ada", accept: str = "", method: str = "GET"
) -> tuple[Response, Json]:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    response = await server.respond(
        PageRequest(method=method, path=path, query={}, headers=headers | {"accept": accept})
    )
    return response, orjson.loads(response.body)


def test_a_user_that_may_sees_the_workloads_of_a_queue() -> None:
    async def story(server: VisibilityServer, cluster: Cluster) -> None:
        response, body = await got(server, _QUEUE)
        assert (response.code, body["kind"], body["items"]) == (200, "PendingWorkloadsSummary", [])
        assert cluster.asked[-1]["resourceAttributes"] == {
            "verb": "get",
            "group": _GROUP,
            "version": "v1beta2",
            "resource": "clusterqueues",
            "subresource": "pendingworkloads",
            "namespace": "",
            "name": "cq",
        }

    play(story)


@pytest.mark.parametrize(
    ("path", "token", "code"),
    [
        (_QUEUE, "", 401),
        ("/apis", "", 401),
        (_QUEUE, "eve", 403),
        (_QUEUE.replace("cq", "no"), "ada", 404),
        (_QUEUE.replace("v1beta2", "v9"), "ada", 404),
        (_QUEUE.replace("clusterqueues", "namespaces/a/clusterqueues"), "ada", 404),
        (_QUEUE.replace("clusterqueues", "localqueues"), "ada", 404),
        ("/apis/apps/v1", "ada", 404),
        ("/api/v1/namespaces/a/pods/p/log", "ada", 404),
        ("/", "ada", 404),
    ],
)
def test_refusals(path: str, token: str, code: int) -> None:
    async def story(server: VisibilityServer, cluster: Cluster) -> None:
        response, body = await got(server, path, token)
        assert (response.code, body["kind"]) == (code, "Status")

    play(story)


def test_headers_without_a_certificate_are_no_user() -> None:
    async def story(server: VisibilityServer, cluster: Cluster) -> None:
        fields = [(b"X-Remote-User", b"ada")]
        request = PageRequest(
            method="GET", path=_QUEUE, query={}, headers={"x-remote-user": "ada"}, fields=fields
        )
        assert (await server.respond(request)).code == 401

    play(story)


def test_what_an_api_server_gathers() -> None:
    async def story(server: VisibilityServer, cluster: Cluster) -> None:
        _, body = await got(server, f"/apis/{_GROUP}/v1beta1", "system:kube-aggregator")
        assert body["groupVersion"] == f"{_GROUP}/v1beta1"
        aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        response, body = await got(server, "/apis", accept=aggregated)
        assert (response.content_type, body["items"][0]["metadata"]["name"]) == (aggregated, _GROUP)
        assert [one["version"] for one in body["items"][0]["versions"]] == ["v1beta2", "v1beta1"]
        _, body = await got(server, "/openapi/v3")
        for path in body["paths"]:
            _, document = await got(server, f"/openapi/v3/{path}")
            assert document["openapi"] == "3.0.0"
        _, body = await got(server, "/openapi/v2", accept="application/json")
        assert body["swagger"] == "2.0"

    play(story)


def test_replicas_have_the_api_server_trust_their_certificate() -> None:
    async def story(server: VisibilityServer, cluster: Cluster) -> None:
        left_by_kueue = cluster.objects[API_SERVICE.kind, api_service_name("v1beta1")]
        left_by_kueue["spec"]["insecureSkipTLSVerify"] = True
        await server.certificate.step(START)
        for version in VERSIONS:
            spec = cluster.objects[API_SERVICE.kind, api_service_name(version)]["spec"]
            assert spec["caBundle"]
            assert spec["insecureSkipTLSVerify"] is False
        written = json.dumps(list(cluster.objects.values()))
        await server.certificate.step(START + 60)
        assert json.dumps(list(cluster.objects.values())) == written

    play(story)
