"""What a request costs grows with its size and no faster, whatever it is made of.

Steps are calls of functions, Python's and C's, counted and not timed. Each request is sent at two
sizes; four times the size may cost five times the steps (dictionaries and caches warm up), and
would cost sixteen times as much if anything were done for every pair of its parts.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

import orjson
import pytest

from tests.apiserver.test_fuzz import serving
from tests.support.random_requests import ADMIN
from unisono.apiserver.api import Api
from unisono.apiserver.builtin.metadata import MAX_ENTRIES
from unisono.apiserver.errors import MAX_CAUSES
from unisono.apiserver.http_entry import MAX_HELD_BYTES, MAX_LARGE_WAITING, HttpEntry
from unisono.apiserver.objects import Json
from unisono.apiserver.request import Request
from unisono.apiserver.rest.body import (
    LARGE_BODY_BYTES,
    MAX_OBJECT_BYTES,
    MAX_READ_VALUES,
    MAX_VALUES,
)
from unisono.apiserver.rest.spec_cache import SpecCache
from unisono.apiserver.schema.checker import MAX_UNKNOWN_FIELDS
from unisono.net.http.messages import MAX_BODY_BYTES, Response

SMALL, LARGE = 100, 400
MOST_GROWTH = 5
# To read a toleration, find two wrong words and note where; comparing each with all known ones
# takes thousands.
MOST_STEPS_OF_A_MISTAKE = 200
MOST_STEPS_OF_ONE_MORE = 650
JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
VOLCANO = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
THINGS = "/apis/example.org/v1/namespaces/default/things"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JSON, YAML = "application/json", "application/yaml"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"

# A request: method, address, body, its type; of a size.
Sent = tuple[str, str, Any, str]


def _job(name: str = "a", **metadata: Any) -> Json:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, **metadata},
        "spec": {"template": {"spec": pod}},
    }


def _with_exit_codes(count: int) -> Json:
    job = _job()
    codes = {"operator": "In", "values": list(range(1, count))}
    job["spec"]["podFailurePolicy"] = {"rules": [{"action": "Ignore", "onExitCodes": codes}]}
    return job


def _pod(name: str = "q", container: Json | None = None, **spec: Any) -> Json:
    containers = [{"name": "main", "image": "x", **(container or {})}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": containers, **spec},
    }


def _map(name: str, data: Json, **metadata: Any) -> Json:
    metadata = {"name": name, **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _thing(name: str, items: list[Json]) -> Json:
    metadata = {"name": name}
    return {
        "apiVersion": "example.org/v1",
        "kind": "Thing",
        "metadata": metadata,
        "spec": {"items": items},
    }


def _definition() -> Json:
    """Return a kind with a list of items by name, a rule about each of them and its change."""
    item = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.size >= oldSelf.size"}],
        "required": ["name"],
    }
    items = {
        "type": "array",
        "items": item,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    spec = {"type": "object", "properties": {"items": items}}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [version],
        },
    }


def _task(index: int, **more: Any) -> Json:
    pod = {"containers": [{"name": "main", "image": "x"}], "restartPolicy": "Never"}
    return {"name": f"t{index}", "replicas": 1, "template": {"spec": pod}, **more}


def _volcano(tasks: list[Json]) -> Json:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "v"},
        "spec": {"tasks": tasks},
    }


def _entry(index: int, operation: str) -> Json:
    return {
        "manager": f"m{index}",
        "operation": operation,
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {f"f:k{index}": {}}},
        "time": "2026-01-01T00:00:00Z",
    }


def _keys(count: int, value: Any = "v") -> Json:
    return {f"k{index}": value for index in range(count)}


def _env(count: int, **more: Any) -> list[Json]:
    return [{"name": f"E{index}", **more} for index in range(count)]


REQUESTS: dict[str, Callable[[int], Sent]] = {
    "unknown fields": lambda n: ("POST", JOBS, {**_job(), **_keys(n)}, JSON),
    "unknown fields of a container": lambda n: ("POST", PODS, _pod(container=_keys(n)), JSON),
    "items with unknown fields": lambda n: (
        "POST",
        PODS,
        _pod(container={"env": _env(n, x=1, y=2)}),
        JSON,
    ),
    "a deep unknown field": lambda n: (
        "POST",
        JOBS,
        {**_job(), "x": orjson.loads(b'{"a":' * (n // 4) + b"1" + b"}" * (n // 4))},
        JSON,
    ),
    "keys given twice": lambda n: (
        "POST",
        MAPS,
        b'{"data":{' + b",".join(b'"a%d":"","a%d":""' % (at, at) for at in range(n)) + b"}}",
        JSON,
    ),
    "labels": lambda n: ("POST", JOBS, _job(labels=_keys(n)), JSON),
    "labels that cannot be": lambda n: ("POST", JOBS, _job(labels=_keys(n, "/ /")), JSON),
    "labels of the wrong type": lambda n: ("POST", JOBS, _job(labels=_keys(n, {})), JSON),
    "annotations": lambda n: ("POST", JOBS, _job(annotations=_keys(n)), JSON),
    "finalizers": lambda n: ("POST", JOBS, _job(finalizers=[f"a/{at}" for at in range(n)]), JSON),
    "owners": lambda n: (
        "POST",
        JOBS,
        _job(
            ownerReferences=[
                {"apiVersion": "v1", "kind": "Pod", "name": f"p{at}", "uid": f"u{at}"}
                for at in range(n)
            ]
        ),
        JSON,
    ),
    "environment": lambda n: ("POST", PODS, _pod(container={"env": _env(n, value="1")}), JSON),
    "containers": lambda n: (
        "POST",
        PODS,
        _pod(initContainers=[{"name": f"c{at}", "image": "x"} for at in range(n)]),
        JSON,
    ),
    "tolerations": lambda n: (
        "POST",
        PODS,
        _pod(tolerations=[{"key": f"k{at}", "operator": "Exists"} for at in range(n)]),
        JSON,
    ),
    "volumes": lambda n: (
        "POST",
        PODS,
        _pod(volumes=[{"name": f"v{at}", "emptyDir": {}} for at in range(n)]),
        JSON,
    ),
    "amounts": lambda n: (
        "POST",
        PODS,
        _pod(container={"resources": {"requests": {f"a.b/r{at}": str(at) for at in range(n)}}}),
        JSON,
    ),
    "mistakes": lambda n: ("POST", PODS, _pod(container={"env": list(range(n))}), JSON),
    "yaml": lambda n: (
        "POST",
        MAPS,
        ("data:\n" + "".join(f"  k{at}: v\n" for at in range(n))).encode(),
        YAML,
    ),
    "tasks in a chain": lambda n: (
        "POST",
        VOLCANO,
        _volcano(
            [*(_task(at, dependsOn={"name": [f"t{at + 1}"]}) for at in range(n - 1)), _task(n - 1)]
        ),
        JSON,
    ),
    "exit codes": lambda n: ("POST", JOBS, _with_exit_codes(n), JSON),
    "merge patch": lambda n: ("PATCH", f"{MAPS}/m", {"data": _keys(n)}, MERGE),
    "strategic merge": lambda n: (
        "PATCH",
        f"{PODS}/p",
        {"spec": {"containers": [{"name": "main", "env": _env(n, value="2")}]}},
        STRATEGIC,
    ),
    "strategic deletions": lambda n: (
        "PATCH",
        f"{PODS}/p",
        {"spec": {"containers": [{"name": "main", "env": _env(n, **{"$patch": "delete"})}]}},
        STRATEGIC,
    ),
    "operations": lambda n: (
        "PATCH",
        f"{MAPS}/m",
        [{"op": "add", "path": f"/data/k{at}", "value": "v"} for at in range(n)],
        PATCH,
    ),
    "apply": lambda n: ("PATCH", f"{MAPS}/m", _map("m", _keys(n)), APPLY),
    "managers that updated": lambda n: (
        "PUT",
        f"{MAPS}/m",
        _map("m", {"x": "z"}, managedFields=[_entry(at, "Update") for at in range(n)]),
        JSON,
    ),
    "managers that applied": lambda n: (
        "PUT",
        f"{MAPS}/m",
        _map("m", {"x": "z"}, managedFields=[_entry(at, "Apply") for at in range(n)]),
        JSON,
    ),
    "items with a rule about their change": lambda n: (
        "PATCH",
        f"{THINGS}/t",
        {"spec": {"items": [{"name": f"i{at}", "size": 2} for at in reversed(range(n))]}},
        MERGE,
    ),
    "mistakes in a change": lambda n: (
        "PATCH",
        f"{THINGS}/t",
        {"spec": {"items": [{"name": f"i{at}", "size": "x"} for at in reversed(range(n))]}},
        MERGE,
    ),
}


def _sent(sent: Sent, **query: str) -> Request:
    method, path, body, media = sent
    return Request(
        method=method,
        path=path,
        query={"dryRun": "All", "fieldManager": "m", **query},
        headers={"content-type": media},
        body=body if isinstance(body, bytes) else orjson.dumps(body),
        user=ADMIN,
    )


async def _prepared(api: Api, size: int) -> None:
    """Have objects that changes of a size are about."""
    things = [{"name": f"i{at}", "size": 1} for at in range(size)]
    for path, obj in (
        (MAPS, _map("m", {"x": "y"})),
        (PODS, _pod("p", {"env": _env(size, value="1")})),
        (DEFINITIONS, _definition()),
        (THINGS, _thing("t", things)),
    ):
        request = _sent(("POST", path, obj, JSON), dryRun="")
        assert (await api.handle(request)).code == 201


def _counted(sent: Sent, size: int) -> tuple[Response, int]:
    """Send a request; return the answer and how many calls it took the second time.

    What the first one of a kind compiles is not counted.
    """
    steps = 0

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal steps
        steps += event in ("call", "c_call")

    async def story() -> Response:
        async with serving() as api:
            await _prepared(api, size)
            await api.handle(_sent(sent))
            api._writer._specs = SpecCache()  # what was made of this very spec
            request = _sent(sent)
            sys.setprofile(count)
            try:
                return await api.handle(request)
            finally:
                sys.setprofile(None)

    return asyncio.run(story()), steps


@pytest.mark.slow
@pytest.mark.parametrize("name", REQUESTS)
def test_steps_grow_with_the_size_of_a_request(name: str) -> None:
    make = REQUESTS[name]
    _, few = _counted(make(SMALL), SMALL)
    response, many = _counted(make(LARGE), LARGE)
    assert response.code < 500, response.body
    assert many < MOST_GROWTH * few, f"{few} steps became {many}"


def test_unknown_fields_are_all_dropped_and_the_first_are_told() -> None:
    count = 15_000  # nearly as many as are read of a job
    few = _counted(("POST", JOBS, {**_job(), **_keys(MAX_UNKNOWN_FIELDS, 1)}, JSON), 1)[1]
    sent = ("POST", JOBS, {**_job(), **_keys(count, 1)}, JSON)
    response, steps = _counted(sent, 1)
    assert response.code == 201
    assert not orjson.loads(response.body).keys() & _keys(count).keys()
    assert len(response.headers["warning"]) <= 4096
    # A handful of steps for each, and none that looks at the others.
    assert steps < few + 5 * count


def test_a_strict_answer_names_only_the_first_unknown_fields() -> None:
    async def story() -> Response:
        async with serving() as api:
            sent = ("POST", JOBS, {**_job(), **_keys(1000, 1)}, JSON)
            return await api.handle(_sent(sent, fieldValidation="Strict"))

    response = asyncio.run(story())
    assert response.code == 400
    assert orjson.loads(response.body)["message"].count("unknown field") == MAX_UNKNOWN_FIELDS


def test_long_keys_are_shortened_where_they_are_told() -> None:
    body = {**_job(), "x" * 100_000: 1}

    async def story() -> Response:
        async with serving() as api:
            return await api.handle(_sent(("POST", JOBS, body, JSON), fieldValidation="Strict"))

    response = asyncio.run(story())
    assert response.code == 400
    assert len(response.body) < 1000


def test_an_answer_names_only_the_first_mistakes() -> None:
    ports = [{"port": -1, "name": f"p{at}"} for at in range(3 * MAX_CAUSES)]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    path = "/api/v1/namespaces/default/services"

    async def story() -> Response:
        async with serving() as api:
            body = {**service, "spec": {"ports": ports}}
            return await api.handle(_sent(("POST", path, body, JSON)))

    response = asyncio.run(story())
    status = orjson.loads(response.body)
    assert response.code == 422
    assert len(status["details"]["causes"]) == MAX_CAUSES
    assert " more]" in status["message"]


def test_no_answer_repeats_a_body() -> None:
    body = {**_job(), "apiVersion": "x" * 500_000}

    async def story() -> Response:
        async with serving() as api:
            return await api.handle(_sent(("POST", JOBS, body, JSON)))

    response = asyncio.run(story())
    assert response.code == 400
    assert len(response.body) < 40_000


@pytest.mark.slow
def test_an_object_that_grew_too_large_is_refused_and_leaves_nothing() -> None:
    # Defaults make ten times as much of a container as its name and image.
    body = _pod(initContainers=[{"name": f"c{at}", "image": "x"} for at in range(2_000)])

    async def story() -> tuple[Response, Response]:
        async with serving() as api:
            refused = await api.handle(_sent(("POST", PODS, body, JSON), dryRun=""))
            return refused, await api.handle(_sent(("POST", PODS, _pod(), JSON), dryRun=""))

    refused, after = asyncio.run(story())
    assert refused.code == 413
    assert "with defaults and managedFields" in orjson.loads(refused.body)["message"]
    assert after.code == 201


# ---- the event loop stays free ----------------------------------------------------------------


class _Slow:
    """An API that answers when it is told to, and notes which requests are in flight together."""

    def __init__(self) -> None:
        self.at_work: list[int] = []
        self.most_large = 0
        self.done = asyncio.Event()

    async def handle(self, request: Request) -> Response:
        self.at_work.append(len(request.body))
        large = sum(size >= LARGE_BODY_BYTES for size in self.at_work)
        self.most_large = max(self.most_large, large)
        await self.done.wait()
        self.at_work.remove(len(request.body))
        return Response(code=201)


def _call(front: HttpEntry, size: int) -> Any:
    call = front.begin("POST", MAPS.encode(), {})
    assert front.take(call, b" " * size)
    return front.answer(call)


def test_large_requests_take_turns_and_small_ones_do_not_wait() -> None:
    async def story() -> _Slow:
        api: Any = _Slow()
        front = HttpEntry(api, lambda *_: ADMIN)
        tasks = [asyncio.ensure_future(_call(front, LARGE_BODY_BYTES)) for _ in range(3)]
        tasks += [asyncio.ensure_future(_call(front, 10)) for _ in range(3)]
        for _ in range(5):
            await asyncio.sleep(0)
        assert api.at_work.count(10) == 3
        api.done.set()
        assert [response.code for response in await asyncio.gather(*tasks)] == [201] * 6
        slow: _Slow = api
        return slow

    assert asyncio.run(story()).most_large == 1


def test_more_large_requests_than_can_wait_are_sent_away() -> None:
    async def story() -> list[int]:
        api: Any = _Slow()
        front = HttpEntry(api, lambda *_: ADMIN)
        count = MAX_LARGE_WAITING + 3
        tasks = [asyncio.ensure_future(_call(front, LARGE_BODY_BYTES)) for _ in range(count)]
        for _ in range(5):
            await asyncio.sleep(0)
        codes = [task.result().code for task in tasks if task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return codes

    assert asyncio.run(story()) == [429, 429]


@pytest.mark.parametrize("filler", [{"a": 1}, {"a": "x" * 200}], ids=["values", "bytes"])
def test_a_refusal_of_too_much_says_what_to_do(filler: Json) -> None:
    async def story() -> Json:
        async with serving() as api:
            job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {}}
            body = job | {f"unknown{number}": filler for number in range(13_000)}
            response = await api.handle(_sent(("POST", JOBS, body, JSON)))
            assert response.code == 413
            answer: Json = orjson.loads(response.body)
            return answer

    assert "put large texts and tables into a ConfigMap" in asyncio.run(story())["message"]


def _applied(name: str, manager: str, value: str) -> Request:
    """Return a request that applies a map of as many values as there may be."""
    data = {f"k{number}": value for number in range(MAX_VALUES - 100)}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
    return Request(
        method="PATCH",
        path=f"{MAPS}/{name}",
        query={"fieldManager": manager, "force": "true"},
        headers={"content-type": "application/apply-patch+yaml"},
        body=orjson.dumps(body),
        user=ADMIN,
    )


def _large(verb: str, size: int, version: str = "") -> Request:
    """Return a write of an object with as many values as there may be."""
    thing = _thing("t", [{"name": f"i{at}", "size": size} for at in range(MAX_VALUES // 3 - 10)])
    match verb:
        case "POST":
            sent = ("POST", THINGS, thing, JSON)
        case "PUT":
            thing["metadata"]["resourceVersion"] = version
            sent = ("PUT", f"{THINGS}/t", thing, JSON)
        case _:
            sent = ("PATCH", f"{THINGS}/t", thing, MERGE if verb == "MERGE" else APPLY)
    force = {"force": "true"} if verb == "APPLY" else {}
    return _sent(sent, dryRun="", **force)


@pytest.mark.parametrize("verb", ["POST", "PUT", "MERGE", "APPLY"])
def test_others_have_their_turns_while_a_large_object_is_written(verb: str) -> None:
    async def story() -> tuple[int, int]:
        """Return the steps of a request in all threads, and the most in a row of the event loop."""
        async with serving() as api:
            definition = _sent(("POST", DEFINITIONS, _definition(), JSON), dryRun="")
            assert (await api.handle(definition)).code == 201
            version = ""
            if verb != "POST":
                made = await api.handle(_large("POST", 1))
                version = orjson.loads(made.body)["metadata"]["resourceVersion"]
            apart = steps = last = longest = 0

            def count(frame: object, event: str, argument: object) -> None:
                nonlocal steps
                steps += 1

            def count_apart(frame: object, event: str, argument: object) -> None:
                nonlocal apart
                apart += 1

            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
            threading.setprofile(count_apart)  # of threads that begin from now on
            sys.setprofile(count)
            try:
                task = asyncio.ensure_future(api.handle(_large(verb, 2, version)))
                while not task.done():
                    await asyncio.sleep(0)
                    longest, last = max(longest, steps - last), steps
            finally:
                sys.setprofile(None)
                threading.setprofile(None)
            assert task.result().code in (200, 201), task.result().body
            return apart, longest

    apart, longest = asyncio.run(story())
    assert apart > MAX_VALUES
    assert longest < apart / 20


def test_what_is_written_while_a_large_object_is_applied_is_not_lost() -> None:
    async def story() -> Json:
        async with serving() as api:
            assert (await api.handle(_applied("m", "first", "a"))).code == 201
            task = asyncio.ensure_future(api.handle(_applied("m", "second", "b")))
            for number in range(6):  # more often than it is begun anew
                await asyncio.sleep(0)
                label = {"metadata": {"labels": {f"l{number}": "x"}}}
                patch = Request(
                    method="PATCH",
                    path=f"{MAPS}/m",
                    headers={"content-type": "application/merge-patch+json"},
                    body=orjson.dumps(label),
                    user=ADMIN,
                )
                assert (await api.handle(patch)).code == 200
            assert (await task).code == 200
            found = await api.handle(Request(method="GET", path=f"{MAPS}/m", user=ADMIN))
            read: Json = orjson.loads(found.body)
            return read

    found = asyncio.run(story())
    assert found["metadata"]["labels"] == {f"l{number}": "x" for number in range(6)}
    assert set(found["data"].values()) == {"b"}


def test_bodies_on_their_way_fill_a_part_of_the_memory_only() -> None:
    async def story() -> list[int]:
        api: Any = _Slow()
        api.done.set()
        front = HttpEntry(api, lambda *_: ADMIN)
        part = b" " * MAX_BODY_BYTES
        calls = [front.begin("POST", MAPS.encode(), {}) for _ in range(25)]
        for call in calls:
            front.take(call, part)
        kept = sum(len(one) for call in calls for one in call.body)
        assert MAX_HELD_BYTES - MAX_BODY_BYTES < kept <= MAX_HELD_BYTES
        refused = [call.refusal.code for call in calls if call.refusal is not None]
        for call in calls:
            front.leave(call)
        assert front.take(front.begin("POST", MAPS.encode(), {}), part)
        again = front.begin("POST", MAPS.encode(), {})
        front.take(again, part)
        assert again.refusal is None
        return refused

    assert asyncio.run(story()) == [429] * 4


@pytest.mark.parametrize(
    ("kind", "code"), [("jobs", 413), ("configmaps", 201)], ids=["a job", "a ConfigMap"]
)
def test_what_pods_are_made_of_is_smaller_than_other_objects(kind: str, code: int) -> None:
    text = "x" * 500_000
    job = _job()
    job["spec"]["template"]["spec"]["containers"][0]["args"] = [text]
    maps = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": text}}
    body, path = (job, JOBS) if kind == "jobs" else (maps, PODS.replace("pods", "configmaps"))

    async def story() -> Response:
        async with serving() as api:
            return await api.handle(_sent(("POST", path, body, JSON), dryRun=""))

    assert asyncio.run(story()).code == code


def test_words_are_guessed_only_for_the_mistakes_that_are_shown() -> None:
    def tolerations(count: int) -> Sent:
        each = {"key": "k", "operator": "Exist", "effect": "NoSchedul"}
        return "POST", PODS, _pod(tolerations=[each] * count), JSON

    answer, small = _counted(tolerations(SMALL), SMALL)
    _, large = _counted(tolerations(LARGE), LARGE)
    assert b'did you mean \\"NoSchedule\\"' in answer.body
    assert (large - small) / (LARGE - SMALL) < MOST_STEPS_OF_A_MISTAKE


# ---- how large an object may be -----------------------------------------------------------------

# Of a few bytes each, as many as a body of three megabytes holds.
_BODIES: dict[str, tuple[str, bytes, str]] = {
    "lists": (MAPS, b'{"x":[' + b",".join([b"[]"] * 900_000) + b"]}", JSON),
    "maps": (MAPS, b'{"x":[' + b",".join([b'{"a":1}'] * 380_000) + b"]}", JSON),
    "numbers of a job": (JOBS, b'{"x":[' + b",".join([b"1"] * 300_000) + b"]}", JSON),
    "a configuration": (f"{MAPS}/m", b'{"x":[' + b",".join([b"{}"] * 900_000) + b"]}", APPLY),
    "an open text": (MAPS, b'["' + b'\\"' * 1_000_000 + b"," * 900_000, JSON),
    "yaml": (MAPS, b"x:\n" + b"- {}\n" * 500_000, YAML),
    "yaml documents": (MAPS, b"---\n" * 700_000, YAML),
    "protobuf": (
        MAPS,
        b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x80\x89\x7a" + b"\x12\x00" * 1_000_000,
        "application/vnd.kubernetes.protobuf",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", _BODIES)
def test_bodies_of_endless_values_are_refused_before_they_are_decoded(name: str) -> None:
    path, body, media = _BODIES[name]
    method = "PATCH" if media == APPLY else "POST"
    assert len(body) < MAX_BODY_BYTES

    async def story() -> tuple[Response, int]:
        async with serving() as api:
            tracemalloc.start(1)
            try:
                response = await api.handle(_sent((method, path, body, media)))
                return response, tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

    response, peak = asyncio.run(story())
    assert response.code in (400, 413), response.body
    # A decoder that fails takes twelve times the text for its complaint; decoded, these would take
    # a hundred times as much.
    assert peak < 13 * len(body)


@pytest.mark.slow
@pytest.mark.parametrize(("path", "body", "media"), _BODIES.values(), ids=_BODIES)
def test_few_steps_are_taken_for_a_body_of_endless_values(
    path: str, body: bytes, media: str
) -> None:
    method = "PATCH" if media == APPLY else "POST"
    _, steps = _counted((method, path, body, media), 1)
    # Those of reading as many values as there may be; a step for each that was sent is ten times
    # as many.
    assert steps < 1_000_000


def test_commas_in_texts_are_no_values() -> None:
    table = "1,2,[3],{4},\n" * 50_000

    async def story() -> Response:
        async with serving() as api:
            return await api.handle(_sent(("POST", MAPS, _map("a", {"csv": table}), JSON)))

    assert asyncio.run(story()).code == 201


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        (
            THINGS,
            _thing("a", [{"name": "x" * MAX_OBJECT_BYTES}]),
            "at most 1572864 are allowed, with defaults and managedFields; split it into several",
        ),
        (
            MAPS,
            _map("a", _keys(MAX_VALUES)),
            f"the object has {MAX_VALUES + 6} fields and items of lists; "
            f"at most {MAX_VALUES} are allowed; split it into several objects",
        ),
        (
            PODS,
            _pod(container={"args": ["x"] * MAX_READ_VALUES}),
            f"at most {MAX_READ_VALUES} are allowed; put large texts and tables into a ConfigMap",
        ),
    ],
    ids=["bytes", "values", "values of a pod"],
)
def test_an_object_that_is_too_large_says_how_large_it_may_be(
    path: str, body: Json, said: str
) -> None:
    async def story() -> Response:
        async with serving() as api:
            await _prepared(api, 1)
            return await api.handle(_sent(("POST", path, body, JSON), dryRun=""))

    response = asyncio.run(story())
    status = orjson.loads(response.body)
    assert (response.code, status["reason"]) == (413, "RequestEntityTooLarge"), status
    assert said in status["message"]


@pytest.mark.parametrize("name", ["finalizers", "ownerReferences", "managedFields"])
def test_entries_of_metadata_are_bounded_in_number(name: str) -> None:
    def entries(count: int) -> list[Any]:
        if name == "finalizers":
            return [f"example.org/{at}" for at in range(count)]
        if name == "managedFields":
            return [_entry(at, "Apply") for at in range(count)]
        return [
            {"apiVersion": "v1", "kind": "Pod", "name": f"p{at}", "uid": f"u{at}"}
            for at in range(count)
        ]

    async def story() -> list[Response]:
        async with serving() as api:
            await _prepared(api, 1)
            return [
                await api.handle(
                    _sent(("PUT", f"{MAPS}/m", _map("m", {"x": "z"}, **{name: entries(n)}), JSON))
                )
                for n in (MAX_ENTRIES, MAX_ENTRIES + 1)
            ]

    fits, refused = asyncio.run(story())
    assert fits.code == 200, fits.body
    status = orjson.loads(refused.body)
    assert refused.code == 422
    (cause,) = status["details"]["causes"]
    assert cause["field"] == f"metadata.{name}"
    assert cause["message"] == "Too many: 1001: must have at most 1000 items"


@pytest.mark.slow
def test_what_was_stored_larger_can_shrink_but_not_grow() -> None:
    """Objects may be there from before there was a bound, or because our controllers made them."""
    finalizers = [f"example.org/{at}" for at in range(2 * MAX_ENTRIES)]
    items = [{"name": f"{at}-{'x' * 150}", "size": 1} for at in range(MAX_VALUES // 2)]
    big = _thing("big", items)
    big["metadata"].update(namespace="default", uid="u", finalizers=finalizers)
    changes: list[tuple[int, Json]] = [
        (413, {"metadata": {"labels": {"a": "b"}}}),
        (413, {"metadata": {"finalizers": [*finalizers, "example.org/more"]}}),
        (200, {"metadata": {"finalizers": finalizers[1:]}}),
        (200, {"metadata": {"finalizers": None}, "spec": {"items": items[1:]}}),
        (200, {"spec": {"items": []}}),
        (200, {"metadata": {"labels": {"a": "b"}}}),
    ]

    async def story() -> list[int]:
        async with serving() as api:
            await _prepared(api, 1)
            record = api.store.put(("example.org/things", "default", "big"), big)
            assert len(record.data) > MAX_OBJECT_BYTES
            await api.store.committed()
            sent = (("PATCH", f"{THINGS}/big", change, MERGE) for _, change in changes)
            return [(await api.handle(_sent(one, dryRun=""))).code for one in sent]

    assert asyncio.run(story()) == [code for code, _ in changes]


_FULL = MAX_VALUES - 100
_SHAPES: dict[str, Json] = {
    "a map": {"m": _keys(_FULL)},
    "a set": {"s": [f"a{at}" for at in range(_FULL)]},
    "a set of the wrong type": {"s": list(range(_FULL))},
    "items": {"items": [{"name": f"i{at}"} for at in range(_FULL // 2)]},
    "anything": {"any": {f"a{at}": {"b": {}} for at in range(_FULL // 2)}},
    "unknown fields": _keys(_FULL, {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", _SHAPES)
def test_memory_for_the_largest_object_is_bounded(name: str) -> None:
    definition = _definition()
    spec = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    text = {"type": "string"}
    spec["properties"] |= {
        "m": {"type": "object", "additionalProperties": text},
        "s": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    }
    thing = {**_thing("t", []), "spec": _SHAPES[name]}
    requests = [
        ("POST", THINGS, thing, JSON),
        ("PATCH", f"{THINGS}/t", {"metadata": {"labels": {"a": "b"}}}, MERGE),
        ("PATCH", f"{THINGS}/t", thing, APPLY),
    ]

    async def story() -> list[int]:
        peaks = []
        async with serving() as api:
            small = {**_thing("small", []), "spec": {}}
            for first in (("POST", DEFINITIONS, definition, JSON), ("POST", THINGS, small, JSON)):
                assert (await api.handle(_sent(first, dryRun=""))).code == 201
            for sent in requests:
                request = _sent(sent, dryRun="", force="true")
                tracemalloc.start(1)
                try:
                    response = await api.handle(request)
                    peaks.append(tracemalloc.get_traced_memory()[1])
                finally:
                    tracemalloc.stop()
                assert response.code < 500
                if response.code >= 300:
                    break
        return peaks

    # Two kilobytes for each value, in all copies of it together.
    assert max(asyncio.run(story())) < 2048 * MAX_VALUES


def test_large_specs_are_not_kept_for_the_next_of_their_kind() -> None:
    """256 of them are kept for each kind."""
    variables = _env(300, value="x" * 100)

    async def story() -> int:
        kept = 0
        async with serving() as api:
            for name in ("a", "b"):
                pod = _pod(name, {"env": [*variables, {"name": "N", "value": name}]})
                tracemalloc.start(1)
                try:
                    response = await api.handle(_sent(("POST", PODS, pod, JSON)))
                    assert response.code == 201
                    del response
                    kept = tracemalloc.get_traced_memory()[0]
                finally:
                    tracemalloc.stop()
        return kept

    assert asyncio.run(story()) < 16 * 1024


def test_one_more_of_many_alike_pods_takes_few_steps() -> None:
    # What is found out about a pod of this shape (its spec is sound, no node is too small for it,
    # it claims no devices) is not found out again. Most of the rest is its name and its times.
    container = {"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}

    async def story() -> int:
        steps = 0

        def count(frame: FrameType, event: str, arg: object) -> None:
            nonlocal steps
            steps += event in ("call", "c_call")

        async with serving() as api:
            for number in range(5):
                request = _sent(("POST", PODS, _pod(f"p{number}", container), JSON))
                steps = 0
                sys.setprofile(count)
                try:
                    response = await api.handle(request)
                finally:
                    sys.setprofile(None)
                assert response.code == 201, response.body
        return steps

    assert asyncio.run(story()) < MOST_STEPS_OF_ONE_MORE
