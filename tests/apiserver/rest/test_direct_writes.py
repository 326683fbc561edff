"""Writes of our own controllers end as they would by requests, only sooner."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import job, node, queue
from tests.support.control_world import World
from unisono.apiserver.bootstrap import SYSTEM
from unisono.apiserver.objects import Json
from unisono.apiserver.patch.json_patch import merge_patch
from unisono.apiserver.rest.writer import merged
from unisono.control import names
from unisono.control.actions import Bind, Ref
from unisono.control.jobs.adapter import PodSetOfJob
from unisono.control.jobs.workload import new_workload
from unisono.control.reconciling.driver import order_of
from unisono.control.view import View
from unisono.kube.errors import AlreadyExists, Conflict, NotFound
from unisono.kube.mapping import EVENT, POD, Kind
from unisono.kube.transport import Stored, WriteRequest, WriteResult
from unisono.runtime.embedded.in_process import InProcess


def play(story: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        async with World().running() as world:
            await story(world)

    asyncio.run(run())


def pod(name: str, **metadata: Any) -> Json:
    container = {"name": "main", "image": "busybox", "ports": [{"containerPort": 80}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": {"containers": [container]},
    }


def create(obj: Json) -> WriteRequest:
    metadata = obj["metadata"]
    kind = Kind(obj["apiVersion"], obj["kind"])
    return WriteRequest("create", kind, metadata["namespace"], metadata["name"], obj)


def patch(obj: Json, changes: Json, subresource: str = "") -> WriteRequest:
    metadata = obj["metadata"]
    kind = Kind(obj["apiVersion"], obj["kind"])
    return WriteRequest(
        "patch", kind, metadata["namespace"], metadata["name"], changes, subresource
    )


def bind(obj: Json, node_name: str) -> WriteRequest:
    metadata = {key: obj["metadata"][key] for key in ("name", "namespace", "uid")}
    metadata["annotations"] = {"unisono.dev/slot": "main/n1@1"}
    content = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata,
        "target": {"apiVersion": "v1", "kind": "Node", "name": node_name},
    }
    return WriteRequest("bind", POD, metadata["namespace"], metadata["name"], content)


def exactly(obj: Json, node_name: str) -> WriteRequest:
    """Bind a pod in the state that was seen, as the driver does."""
    order = order_of(Bind(Ref.to(obj), node_name))
    assert order is not None
    return order


def comparable(obj: Json) -> Json:
    """Return an object without what is different every time, and without managedFields."""
    left_out = ("uid", "resourceVersion", "managedFields", "creationTimestamp")
    metadata = {key: one for key, one in obj["metadata"].items() if key not in left_out}
    return {**obj, "metadata": metadata}


def got(result: WriteResult) -> Json:
    assert isinstance(result, Stored), result
    assert result.obj is not None
    if result.raw:
        assert orjson.loads(result.raw) == result.obj
    return result.obj


@pytest.mark.parametrize("is_checked", [True, False])
def test_what_is_created_is_what_a_request_creates(*, is_checked: bool) -> None:
    async def story(world: World) -> None:
        await world.create(*queue())
        direct = InProcess(world.api, SYSTEM, is_checked=is_checked)
        train = job("train")
        await world.create(train)
        stored_job = world.get(names.JOB, "train")
        template = stored_job["spec"]["template"]
        workload = new_workload(
            stored_job, names.JOB, "lq-cq", _sets(template), _view(world), lambda *_: True
        )
        event: Json = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "e", "namespace": "default"},
            "involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"},
            "reason": "Because",
            "type": "Normal",
        }
        for obj in (pod("a"), workload, event):
            asked = orjson.dumps(obj)
            mine = got((await direct.write([create(obj)]))[0])
            assert orjson.dumps(obj) == asked  # what the caller gave is as it was
            await world.client.delete(
                Kind(obj["apiVersion"], obj["kind"]), obj["metadata"]["name"], "default", grace_s=0
            )
            if obj is workload:
                let_go: Json = {"metadata": {"finalizers": []}}
                await world.client.patch(names.WORKLOAD, obj["metadata"]["name"], "default", let_go)
            theirs = await world.client.create(orjson.loads(asked))
            assert comparable(mine) == comparable(theirs)

    play(story)


def _sets(template: Json) -> tuple[PodSetOfJob]:
    return (PodSetOfJob(name="main", count=2, template=template),)


def _view(world: World) -> View:
    world.pump()
    return world.view


@pytest.mark.parametrize("is_checked", [True, False])
def test_each_write_has_a_result_of_its_own(*, is_checked: bool) -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"))
        direct = InProcess(world.api, SYSTEM, is_checked=is_checked)
        first, second = [
            got(one) for one in await direct.write([create(pod("a")), create(pod("b"))])
        ]
        running = {"status": {"phase": "Running"}}
        stale = {**running, "metadata": {"resourceVersion": "1"}}
        exact = {**running, "metadata": {"resourceVersion": second["metadata"]["resourceVersion"]}}
        results = await direct.write(
            [
                create(pod("a")),
                patch(first, stale, "status"),
                patch(second, exact, "status"),
                patch(pod("missing"), running, "status"),
                bind(first, "n1"),
            ]
        )
        assert isinstance(results[0], AlreadyExists)
        assert isinstance(results[1], Conflict)
        assert got(results[2])["status"]["phase"] == "Running"
        assert isinstance(results[3], NotFound)
        bound = got(results[4])
        assert bound["spec"]["nodeName"] == "n1"
        assert bound["metadata"]["annotations"]["unisono.dev/slot"] == "main/n1@1"
        again = (await direct.write([bind(first, "n1")]))[0]
        assert isinstance(again, Conflict)
        # What was written together is stored.
        for name, phase in (("a", "Pending"), ("b", "Running")):
            assert world.get(POD, name)["status"]["phase"] == phase

    play(story)


def test_a_pod_is_bound_only_in_the_state_that_was_seen() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"))
        direct = InProcess(world.api, SYSTEM)
        seen = got((await direct.write([create(pod("a"))]))[0])
        since = got(
            (await direct.write([patch(seen, {"status": {"message": "later"}}, "status")]))[0]
        )
        late, fresh = await direct.write([exactly(seen, "n1"), exactly(since, "n1")])
        assert isinstance(late, Conflict)
        assert got(fresh)["spec"]["nodeName"] == "n1"

    play(story)


def test_what_changes_more_than_a_status_is_tracked() -> None:
    async def story(world: World) -> None:
        await world.create(*queue())
        await world.create(job("train"))
        direct = InProcess(world.api, SYSTEM)
        release = patch(world.get(names.JOB, "train"), {"spec": {"suspend": False}})
        changed = got((await direct.write([release]))[0])
        assert changed["metadata"]["generation"] == 2
        owners = [
            entry["manager"]
            for entry in changed["metadata"]["managedFields"]
            if "f:suspend" in entry["fieldsV1"].get("f:spec", {})
        ]
        assert owners == ["unisono"]

    play(story)


def test_a_broken_object_of_ours_is_noticed_where_tests_look() -> None:
    async def story(world: World) -> None:
        broken = pod("a")
        broken["spec"]["containers"][0]["name"] = "Not A Name"
        direct = InProcess(world.api, SYSTEM, is_checked=True)
        assert not isinstance((await direct.write([create(broken)]))[0], Stored)

    play(story)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text("abc", min_size=1, max_size=1), inner)
    ),
    max_leaves=8,
)
objects = st.dictionaries(st.text("abc", min_size=1, max_size=1), json_values)


@given(target=objects, change=objects)
def test_merging_is_merging(target: Json, change: Json) -> None:
    before = orjson.dumps([target, change])
    assert merged(target, change) == merge_patch(target, change)
    assert orjson.dumps([target, change]) == before


def test_what_the_view_shows_is_not_changed() -> None:
    """Objects are shared between API, view and controllers, so each has to leave them alone."""

    async def run() -> None:
        async with simulated_world().running() as world:
            await world.create(node("n1"), node("n2"), *queue(), job("a", seconds=5), job("b"))
            looked_at = 0
            for _ in range(12):
                await world.pass_time(1)
                for kind in world.view.kinds():
                    packing = world.view._stores[kind].packing
                    for packed, obj in packing._unpacked.items():
                        raw = orjson.loads(packed.raw)
                        raw["metadata"].pop("managedFields", None)
                        assert raw == obj, f"a write changed {packed.identity}"
                        looked_at += 1
            assert looked_at > 100
            assert not [one for one in world.every(EVENT) if one["type"] == "Warning"]

    asyncio.run(run())
