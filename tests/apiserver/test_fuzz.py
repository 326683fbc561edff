"""Whatever a client sends, the API answers: never 5xx, never with an exception, never too late.

`pytest --hypothesis-profile=slow tests/apiserver/test_fuzz.py` looks much longer.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import itertools
import random
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from hypothesis import HealthCheck, example, given, note, settings
from hypothesis import strategies as st

from tests.support.random_requests import ADMIN, Wild
from unisono.apiserver.api import Api, Environment
from unisono.apiserver.bootstrap import create
from unisono.apiserver.http_entry import HttpEntry
from unisono.apiserver.request import Request
from unisono.apiserver.rest.pod_logs import LogFiles
from unisono.apiserver.rest.watch import Watch
from unisono.apiserver.storage import store as stores
from unisono.apiserver.storage.database import Database
from unisono.apiserver.storage.store import Store
from unisono.kinds.shapes.served import Served
from unisono.kube.form import Json
from unisono.net.http.messages import Response, head_of

ROOT = Path(__file__).resolve().parents[2]
NOW = 1_767_258_000.0
EXAMPLES = 5_000 if settings.get_current_profile_name() == "slow" else 150
MOST_SECONDS = 5.0  # of processor time for one request; they take milliseconds
MOST_TURNS = 5_000  # of the loop until the janitor has done what follows from an example

# Kinds with most behaviour are in every example.
EAGER = {
    "pods", "namespaces", "jobs", "nodes", "customresourcedefinitions", "workloads", "events",
    "poddisruptionbudgets", "clusterqueues", "localqueues", "trainjobs", "jobsets", "rayclusters",
    "leases", "services", "resourceflavors", "bindings", "priorityclasses", "deployments",
}  # fmt: skip


@cache
def samples() -> tuple[Json, ...]:
    """Return objects that are right: those of the examples."""
    found = []
    for path in sorted((ROOT / "examples").rglob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            if isinstance(document, dict) and isinstance(document.get("metadata"), dict):
                found.append(document)
    return tuple(found)


@asynccontextmanager
async def serving(folder: Path = Path("/nonexistent")) -> AsyncIterator[Api]:
    """Run an API in memory; whatever goes wrong behind a request's back is raised at the end."""
    wrong: list[BaseException] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(
        lambda _, context: wrong.append(context.get("exception") or RuntimeError(str(context)))
    )
    numbers = itertools.count(1)
    store = Store(Database(":memory:"))
    try:
        api = Api(
            store,
            Environment(
                clock=lambda: NOW,
                new_uid=lambda: str(uuid.UUID(int=next(numbers), version=4)),
                random_source=random.Random(1),
                logs=LogFiles(folder),
            ),
        )
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
        await create(api, "/api/v1/namespaces", namespace)
        yield api
        await settled(api)
    finally:
        store.close()
    if wrong:
        raise wrong[0]


async def settled(api: Api) -> None:
    """Wait until nothing is left to be tidied up."""
    for _ in range(MOST_TURNS):
        await asyncio.sleep(0)
        await api.store.committed()
        if api.garbage_collector.is_idle:
            return
    raise AssertionError("the janitor finds no end")


async def answered(api: Api, request: Request) -> Response:
    """Send a request as HTTP would, and check the form of the answer."""
    start = time.process_time()
    response = await api.handle(request)
    if response.chunks is not None:
        chunks: Any = response.chunks
        with suppress(TimeoutError, StopAsyncIteration):
            for _ in range(3):
                async with asyncio.timeout(0.002):
                    await anext(chunks)
        await chunks.aclose()
    assert time.process_time() - start < MOST_SECONDS
    if response.code >= 500:
        # A version from the future may come, and no scheduler is here to say what is pending;
        # anything else is our fault.
        of_scheduler = "visibility.kueue.x-k8s.io" in request.path
        expected = (503, "ServiceUnavailable") if of_scheduler else (504, "Timeout")
        assert (response.code, orjson.loads(response.body)["reason"]) == expected
    if response.code >= 400 and response.content_type == "application/json":
        status = orjson.loads(response.body)
        assert (status["kind"], status["code"]) == ("Status", response.code)
    for name, value in response.headers.items():
        assert f"{name}{value}".isascii(), (name, value)
        assert f"{name}{value}".isprintable(), (name, value)
    return response


def chosen(api: Api, dice: random.Random) -> list[Served]:
    """Return some kinds with much behaviour, and some others."""
    served = api.catalogue.served()
    eager = [kind for kind in served if kind.plural in EAGER]
    return dice.sample(eager, 3) + dice.sample(list(served), 3)


@pytest.mark.slow
@given(
    kinds=st.integers(0, 2**32), requests=st.lists(st.integers(0, 2**32), min_size=20, max_size=80)
)
@example(kinds=0, requests=list(range(100)))
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_request_is_answered(kinds: int, requests: list[int]) -> None:
    async def story() -> None:
        async with serving() as api:
            wild = Wild(random.Random(kinds), chosen(api, random.Random(kinds)), samples())
            known = set(api.catalogue.served())
            for number in requests:
                wild.roll(random.Random(number))
                request = wild.request()
                note(
                    f"{request.method} {request.path} {dict(request.query)} {request.body[:500]!r}"
                )
                await answered(api, request)
                for kind in api.catalogue.served():
                    if kind not in known:  # it was defined just now
                        known.add(kind)
                        wild.add(kind)
            await settled(api)
            for kind in known:
                for accept in ("", "application/json;as=Table;v=v1;g=meta.k8s.io"):
                    await answered(api, _get(kind, accept))

    asyncio.run(story())


def _get(kind: Served, accept: str) -> Request:
    path = f"/{'apis' if kind.group else 'api'}/{kind.api_version}/{kind.plural}"
    headers = {"accept": accept} if accept else {}
    return Request(method="GET", path=path, headers=headers, user=ADMIN)


@pytest.mark.slow
@given(
    method=st.sampled_from(["GET", "POST", "DELETE", "PATCH", "OPTIONS", "\x00"]) | st.text(),
    path=st.sampled_from(["/api/v1/nodes", "/version", "/apis"]) | st.text(),
    query=st.binary(max_size=60)
    | st.sampled_from(
        [b"limit=%zz&limit=1", b"labelSelector=%00", b"&&==&;", b"watch=true&limit=x"]
    ),
    headers=st.lists(
        st.tuples(
            st.sampled_from([b"accept", b"content-type", b"user-agent", b"x"]),
            st.binary(max_size=40),
        )
    ),
    body=st.lists(st.binary(max_size=100), min_size=1, max_size=3),
)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_http_carries_is_answered(
    method: str,
    path: str,
    query: bytes,
    headers: list[tuple[bytes, bytes]],
    body: list[bytes],
) -> None:
    target = path.encode("latin-1", "replace") + (b"?" + query if query else b"")
    known = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}

    async def story() -> Response:
        async with serving() as api:
            front = HttpEntry(api, lambda *_: ADMIN)
            call = front.begin(method, target, known)
            for part in body:
                front.take(call, part)
            answer = front.answer(call)
            response = answer if isinstance(answer, Response) else await answer
            if isinstance(response.chunks, Watch):
                response.chunks.close()
            front.leave(call)
            return response

    response = asyncio.run(story())
    assert response.code < 500
    head = head_of(response, length=len(response.body), keeps_open=True)
    assert head.index(b"\r\n\r\n") == len(head) - 4
    assert b"\n" not in head.replace(b"\r\n", b"")


# ---- what must not grow --------------------------------------------------------------------------


def _object(kind: str, version: str, name: str, **parts: Any) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **parts}


def _definition(group: str) -> Json:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"a": {"type": "string", "pattern": f"^{group}$"}},
                "x-kubernetes-validations": [{"rule": f"self.a != '{group}x'"}],
            }
        },
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Thing", "plural": "things"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    return _object(
        "CustomResourceDefinition", "apiextensions.k8s.io/v1", f"things.{group}", spec=spec
    )


async def _round(api: Api, number: int) -> None:
    """Do a bit of everything, always with other names, and take all of it back."""
    group, space = f"g{number}.example.org", f"space-{number}"
    table = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}

    async def call(method: str, path: str, body: Any = None, **query: str) -> Response:
        media = "application/merge-patch+json" if method == "PATCH" else "application/json"
        request = Request(
            method=method,
            path=path,
            query=query,
            headers={"content-type": media, **(table if method == "GET" else {})},
            body=orjson.dumps(body) if body is not None else b"",
            user=ADMIN,
        )
        return await answered(api, request)

    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    things = f"/apis/{group}/v1/namespaces/{space}/things"
    await call("POST", "/api/v1/namespaces", _object("Namespace", "v1", space))
    assert (await call("POST", definitions, _definition(group))).code == 201
    thing = _object("Thing", f"{group}/v1", "a", spec={"a": group})
    assert (await call("POST", things, thing)).code == 201
    for count in range(5):
        maps = f"/api/v1/namespaces/{space}/configmaps"
        await call("POST", maps, _object("ConfigMap", "v1", f"m{count}"))
        await call(
            "PATCH", f"{maps}/m{count}", {"data": {f"key-{number}": "x"}}, fieldManager=space
        )
    await call("GET", f"/api/v1/namespaces/{space}/configmaps", limit="2")
    await call("GET", things, watch="true", labelSelector=f"a={number}")
    await call("GET", f"/openapi/v3/apis/{group}/v1")
    await call("GET", things, labelSelector=f"x in (a{number})", fieldSelector="metadata.name=a")
    await call("GET", f"/no/such/path/{number}")
    await call("DELETE", f"{definitions}/things.{group}")
    await call("DELETE", f"/api/v1/namespaces/{space}")
    await settled(api)


@pytest.mark.slow
def test_nothing_grows_with_what_came_and_went(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "MAX_HISTORY_CHANGES", 50)
    sizes: list[int] = []

    async def story() -> None:
        async with serving() as api:
            for number in range(90):
                await _round(api, number)
                if number in (29, 89):
                    _clear_caches()
                    sizes.append(len(gc.get_objects()))

    asyncio.run(story())
    grown = sizes[1] - sizes[0]
    # A kind that was once defined leaves a name and an empty past behind, and nothing else.
    assert grown < 60 * 10, f"{grown} objects more after 60 rounds more"


def _clear_caches() -> None:
    """Empty the caches that have a bound: they may grow until they reach it."""
    for found in gc.get_objects():
        if isinstance(found, functools._lru_cache_wrapper):
            if found.cache_info().maxsize is not None:
                found.cache_clear()
    gc.collect()


@pytest.mark.parametrize(
    "body",
    [
        b"a: &a [x,x,x,x,x,x,x,x,x,x]\n"
        + b"".join(
            b"%c: &%c [%b]\n" % (letter, letter, b",".join([b"*%c" % (letter - 1)] * 10))
            for letter in range(ord("b"), ord("z"))
        ),
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"&a [*a]",
        b"- " * 50_000,
    ],
    ids=["laughs", "lists", "maps", "itself", "steps"],
)
def test_a_small_body_costs_little(body: bytes) -> None:
    async def story() -> None:
        async with serving() as api:
            for media in ("application/yaml", "application/json"):
                request = Request(
                    method="POST",
                    path="/api/v1/namespaces/default/configmaps",
                    headers={"content-type": media},
                    body=body,
                    user=ADMIN,
                )
                assert (await answered(api, request)).code in (400, 413)

    asyncio.run(story())


@pytest.mark.parametrize(
    ("method", "path", "query", "body"),
    [
        ("DELETE", "pods/p", {"gracePeriodSeconds": "9" * 30}, b""),
        ("DELETE", "pods/p", {}, b'{"gracePeriodSeconds": 1e300}'),
        ("GET", "pods/p/log", {"sinceSeconds": "9" * 400}, b""),
        ("GET", "pods/p/log", {"tailLines": "9" * 30}, b""),
        ("GET", "pods", {"resourceVersion": "9" * 5000}, b""),
        ("GET", "pods", {"limit": "9" * 5000}, b""),
        ("POST", "pods/p/eviction", {}, b'{"deleteOptions": {"gracePeriodSeconds": "x"}}'),
        ("POST", "pods/p/binding", {}, b'{"metadata": true, "target": 3}'),
    ],
)
def test_numbers_beyond_all_measure_are_refused(
    method: str, path: str, query: dict[str, str], body: bytes, tmp_path: Path
) -> None:
    pod = _object("Pod", "v1", "p")
    pod["spec"] = {"nodeName": "n", "containers": [{"name": "main", "image": "x"}]}

    async def story() -> None:
        async with serving(tmp_path) as api:
            await create(api, "/api/v1/namespaces/default/pods", pod)
            record = api.store.get(("/pods", "default", "p"))
            assert record is not None
            log = tmp_path / "default" / record.uid / "main.log"
            log.parent.mkdir(parents=True)
            log.write_text("2026-01-01T00:00:00Z hello\n")
            request = Request(
                method=method,
                path=f"/api/v1/namespaces/default/{path}",
                query=query,
                headers={"content-type": "application/json"},
                body=body,
                user=ADMIN,
            )
            assert (await answered(api, request)).code == 400

    asyncio.run(story())


def test_a_grace_of_ages_ends_with_the_calendar() -> None:
    pod = _object("Pod", "v1", "p")
    pod["spec"] = {
        "nodeName": "n",
        "terminationGracePeriodSeconds": 2**62,
        "containers": [{"name": "main", "image": "x"}],
    }

    async def story() -> None:
        async with serving() as api:
            await create(api, "/api/v1/namespaces/default/pods", pod)
            request = Request(method="DELETE", path="/api/v1/namespaces/default/pods/p", user=ADMIN)
            response = await answered(api, request)
            left = orjson.loads(response.body)
            assert left["metadata"]["deletionTimestamp"] == "9999-12-31T23:59:59Z"

    asyncio.run(story())
