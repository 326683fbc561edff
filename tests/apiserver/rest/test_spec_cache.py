"""Objects with one spec: the second is what the first became, and is judged as the first was."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from unisono.apiserver.api import Api, Environment
from unisono.apiserver.bootstrap import bootstrap
from unisono.apiserver.objects import Json
from unisono.apiserver.request import Request, User
from unisono.apiserver.storage.database import Database
from unisono.apiserver.storage.store import Store
from unisono.net.http.messages import Response

PODS = "/api/v1/namespaces/default/pods"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
CONTAINER = {
    "name": "main",
    "image": "busybox",
    "ports": [{"containerPort": 80}],
    "env": [{"name": "A", "value": "1"}],
    "resources": {"limits": {"cpu": "1000m", "nvidia.com/gpu": 1}},
}
POD_SPEC: Json = {
    "restartPolicy": "Never",
    "schedulingGates": [{"name": "example.org/hold"}],
    "containers": [CONTAINER],
    "volumes": [{"name": "a", "emptyDir": {}}],
}


def pod(name: str, spec: Json, **metadata: Any) -> Json:
    metadata = {"name": name, **metadata}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def answers(path: str, objects: Sequence[Json], *, agent: str = "test") -> list[Response]:
    """Create objects one after the other in a fresh API."""

    async def story() -> list[Response]:
        random_source = random.Random(1)
        store = Store(Database(":memory:"))
        outside = Environment(
            clock=lambda: 1_767_258_000.0,
            new_uid=lambda: str(uuid.UUID(int=random_source.getrandbits(128), version=4)),
            random_source=random_source,
        )
        api = Api(store, outside)
        await bootstrap(api)
        found = []
        for obj in objects:
            request = Request(
                method="POST",
                path=path,
                headers={"user-agent": agent, "content-type": "application/json"},
                body=orjson.dumps(obj),
                user=User(name="a", groups=("system:masters",)),
            )
            found.append(await api.handle(request))
        store.close()
        return found

    return asyncio.run(story())


def unnamed(answer: Response) -> Json:
    """Return an object without what tells it from its twins."""
    assert answer.code == 201, answer.body
    obj: Json = orjson.loads(answer.body)
    uid, name = obj["metadata"].pop("uid"), obj["metadata"].pop("name")
    del obj["metadata"]["resourceVersion"]
    text = orjson.dumps(obj).decode().replace(uid, "UID").replace(f'"{name}"', '"NAME"')
    plain: Json = orjson.loads(text)
    return plain


def test_the_second_pod_is_like_the_first() -> None:
    found = answers(PODS, [pod(f"p-{number}", POD_SPEC) for number in range(3)])
    first, *others = [unnamed(answer) for answer in found]
    assert first["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "1"
    assert first["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]
    assert others == [first, first]
    assert [*others[0]] == [*first], "and in the same order"


def test_a_job_is_like_the_one_before() -> None:
    spec = {"template": {"spec": {**POD_SPEC, "schedulingGates": []}}}
    jobs = [
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
        for name in ("job-a", "job-b")
    ]
    first, second = (unnamed(answer) for answer in answers(JOBS, jobs))
    assert second == first


def test_what_hangs_on_more_than_the_spec_is_looked_at_each_time() -> None:
    labels: tuple[Json, ...] = (
        {"a": "b"},
        {},
        {"a": "not a value!"},
        {"kueue.x-k8s.io/queue-name": "q"},
    )
    found = answers(PODS, [pod(f"p-{n}", POD_SPEC, labels=each) for n, each in enumerate(labels)])
    assert [answer.code for answer in found] == [201, 201, 422, 201]
    objects = [orjson.loads(answer.body) for answer in found]
    fields = [obj["metadata"]["managedFields"][0]["fieldsV1"] for obj in objects if "spec" in obj]
    assert [sorted(each) for each in fields] == [
        ["f:metadata", "f:spec"],
        ["f:spec"],
        ["f:metadata", "f:spec"],
    ]
    gates = [len(obj["spec"]["schedulingGates"]) for obj in objects if "spec" in obj]
    assert gates == [1, 1, 2]


@pytest.mark.parametrize(
    "spec",
    [
        {**POD_SPEC, "restartPolicy": "Sometimes"},
        {**POD_SPEC, "containers": []},
        {**POD_SPEC, "containers": [{**CONTAINER, "ports": [{"containerPort": "x"}]}]},
    ],
    ids=("no such policy", "no containers", "wrong type"),
)
def test_a_wrong_spec_is_refused_again_and_again(spec: Json) -> None:
    first, *others = answers(PODS, [pod("a", spec)] * 3)
    assert first.code == 422
    assert [answer.body for answer in others] == [first.body] * 2


def test_an_unknown_field_is_told_each_time() -> None:
    spec = {**POD_SPEC, "restartPolicies": "Never"}
    found = answers(PODS, [pod(name, spec) for name in "ab"])
    assert [answer.headers.get("warning", "") for answer in found] == [
        found[0].headers["warning"]
    ] * 2
    assert "restartPolicies" in found[0].headers["warning"]


def test_pods_of_an_indexed_job_are_twins_but_for_their_names() -> None:
    specs = [{**POD_SPEC, "hostname": f"train-{number}"} for number in range(3)]
    found = [
        orjson.loads(one.body)
        for one in answers(PODS, [pod(f"p{number}", spec) for number, spec in enumerate(specs)])
    ]
    assert [one["spec"].pop("hostname") for one in found] == ["train-0", "train-1", "train-2"]
    assert found[0]["spec"] == found[1]["spec"] == found[2]["spec"]
    for one in found:
        assert "f:hostname" in one["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]


@pytest.mark.parametrize("hostname", [5, {"a": "b"}])
def test_a_name_that_is_none_is_not_a_twins(hostname: Any) -> None:
    first, second = answers(
        PODS,
        [
            pod("first", {**POD_SPEC, "hostname": "sound"}),
            pod("second", {**POD_SPEC, "hostname": hostname}),
        ],
    )
    assert first.code == 201
    assert second.code in (400, 422)


def test_a_job_is_refused_as_before_when_another_with_a_sound_spec_was_taken() -> None:
    def job(name: str, **more: Any) -> Json:
        template = {"spec": {**POD_SPEC, "restartPolicy": "Never", **more}}
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name},
            "spec": {"template": template},
        }

    wrong = job("c", terminationGracePeriodSeconds="soon")
    codes = [one.code for one in answers(JOBS, [job("a"), job("b"), wrong, job("d")])]
    assert codes[:2] == [201, 201]
    assert codes[2] in (400, 422)
    assert codes[3] == 201
