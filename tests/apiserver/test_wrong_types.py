"""A value of the wrong type is refused with its path: on every verb, of every kind, never 500."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from tests.apiserver.test_fuzz import samples, serving
from tests.support.random_requests import ADMIN
from unisono.apiserver.api import Api
from unisono.apiserver.objects import Json
from unisono.apiserver.request import Request
from unisono.kinds.core.schema import PodSpec
from unisono.kinds.shapes.served import Served
from unisono.kinds.snapshot.candidates import QUEUE_LABEL
from unisono.net.http.messages import Response

WRONG: tuple[Any, ...] = (5, 1.5, True, [], ["x"], {}, {"a": 1}, {"a": None})
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"

# Where the wrong value stands in metadata, and which values are right there after all.
PLACES: tuple[tuple[tuple[str, ...], tuple[type, ...]], ...] = (
    (("labels",), (dict,)),
    (("labels", QUEUE_LABEL), ()),
    (("labels", "a"), ()),
    (("annotations",), (dict,)),
    (("annotations", "a"), ()),
    (("finalizers",), (list,)),
    (("ownerReferences",), (list,)),
    (("name",), ()),
    (("generateName",), ()),
    (("namespace",), ()),
    (("uid",), ()),
    (("resourceVersion",), ()),
)


def _address(served: Served, name: str = "") -> str:
    root = f"/apis/{served.group}/{served.version}" if served.group else f"/api/{served.version}"
    place = f"{root}/namespaces/default" if served.namespaced else root
    return f"{place}/{served.plural}" + (f"/{name}" if name else "")


def _with(obj: Json, path: tuple[str, ...], value: Any) -> Json:
    """Return an object with another value in its metadata."""
    changed: Json = orjson.loads(orjson.dumps(obj))
    here = changed.setdefault("metadata", {})
    for name in path[:-1]:
        here = here.setdefault(name, {})
    here[path[-1]] = value
    return changed


async def _send(
    api: Api, method: str, path: str, body: Any, media: str = "application/json"
) -> Response:
    request = Request(
        method=method,
        path=path,
        query={"dryRun": "All", "fieldManager": "m"},
        headers={"content-type": media},
        body=orjson.dumps(body),
        user=ADMIN,
    )
    return await api.handle(request)


def _job(name: str = "a") -> Json:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": {"spec": pod}},
    }


@pytest.mark.parametrize("value", [5, {"a": 1}, ["x"], True])
@pytest.mark.parametrize("key", [QUEUE_LABEL, "kueue.x-k8s.io/priority-class"])
def test_a_label_that_is_no_text_is_refused_with_its_path(key: str, value: Any) -> None:
    async def story() -> Response:
        async with serving() as api:
            body = _with(_job(), ("labels", key), value)
            return await _send(api, "POST", "/apis/batch/v1/namespaces/default/jobs", body)

    response = asyncio.run(story())
    causes = orjson.loads(response.body)["details"]["causes"]
    assert response.code == 422
    assert [cause["field"] for cause in causes] == [f"metadata.labels[{key}]"]
    assert "must be a string" in causes[0]["message"]


def _sample(served: Served) -> Json:
    for sample in samples():
        if (sample["apiVersion"], sample["kind"]) == (served.api_version, served.kind):
            found: Json = orjson.loads(orjson.dumps(sample))
            break
    else:
        found = {"apiVersion": served.api_version, "kind": served.kind}
    metadata = {"name": "base", "labels": (found.get("metadata") or {}).get("labels") or {}}
    return {**found, "metadata": metadata}


def _requests(served: Served, obj: Json) -> Iterator[tuple[str, str, Any, str]]:
    """Yield every way to bring an object of the name `base` to the server."""
    here, json = _address(served, "base"), "application/json"
    yield "POST", _address(served), obj, json
    for address in (here, *(f"{here}/{each}" for each in served.subresources)):
        yield "PUT", address, obj, json
        yield "POST", address, obj, json
        yield "PATCH", address, obj, APPLY
        for media in (MERGE, STRATEGIC):
            yield "PATCH", address, {"metadata": obj["metadata"]}, media
        operation = {"op": "add", "path": "/metadata", "value": obj["metadata"]}
        yield "PATCH", address, [operation], PATCH


@pytest.mark.slow
def test_no_verb_of_any_kind_breaks_on_metadata_of_the_wrong_type() -> None:
    async def story() -> int:
        count = 0
        async with serving() as api:
            for served in api.catalogue.served():
                if not served.kind or served.is_computed:
                    continue
                base = _sample(served)
                created = Request(
                    method="POST",
                    path=_address(served),
                    headers={"content-type": "application/json"},
                    body=orjson.dumps(base),
                    user=ADMIN,
                )
                await api.handle(created)
                for path, right in PLACES:
                    for value in WRONG:
                        obj = _with(base, path, value)
                        for method, address, body, media in _requests(served, obj):
                            response = await _send(api, method, address, body, media)
                            count += 1
                            about = f"{method} {address} {media} {path} {value!r}"
                            assert response.code < 500, f"{about}: {response.body[:300]!r}"
                            if type(value) not in right and response.code < 300:
                                # Read as what it is not: nothing of it may be in the answer.
                                assert _is_gone(response, path, value), about
        return count

    assert asyncio.run(story()) > 50_000


def _is_gone(response: Response, path: tuple[str, ...], value: Any) -> bool:
    here: Any = orjson.loads(response.body or b"{}").get("metadata", {})
    for name in path:
        here = here.get(name) if isinstance(here, dict) else None
    return here != value or type(here) is not type(value)


# Admission reads objects before the schema refuses them, so each field of a spec that it may read
# has to stand any value; a label of each kind of queue brings it there.
_QUEUED = {QUEUE_LABEL: "q", "kai.scheduler/queue": "q", "volcano.sh/queue-name": "q"}
_POD_FIELDS = [str(each) for each in PodSpec.__struct_encode_fields__]


@pytest.mark.parametrize("labels", [{}, _QUEUED], ids=["plain", "queued"])
def test_no_field_of_a_pod_breaks_admission(labels: dict[str, str]) -> None:
    async def story() -> list[str]:
        failed = []
        async with serving() as api:
            for field in _POD_FIELDS:
                for value in (None, *WRONG):
                    spec = {"containers": [{"name": "main", "image": "x"}], field: value}
                    pod = {"apiVersion": "v1", "kind": "Pod", "spec": spec}
                    body = {**pod, "metadata": {"name": "a", "labels": labels}}
                    response = await _send(api, "POST", "/api/v1/namespaces/default/pods", body)
                    if response.code >= 500:
                        failed.append(f"{field}: {value!r}")
        return failed

    assert asyncio.run(story()) == []


@pytest.mark.slow
def test_no_field_of_any_spec_breaks_its_creation() -> None:
    async def story() -> list[str]:
        failed = []
        async with serving() as api:
            for served in api.catalogue.served():
                if not served.kind or served.is_computed:
                    continue
                base = _sample(served)
                base["metadata"]["labels"] |= _QUEUED
                spec: Json = base["spec"] if isinstance(base.get("spec"), dict) else {}
                for field in spec:
                    for value in (None, *WRONG):
                        body = {**base, "spec": {**spec, field: value}}
                        response = await _send(api, "POST", _address(served), body)
                        if response.code >= 500:
                            failed.append(f"{served.kind}.spec.{field}: {value!r}")
        return failed

    assert asyncio.run(story()) == []
