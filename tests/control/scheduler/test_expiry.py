"""A decision is written once; its outcome is known before anything depends on it (ADR 0028)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson
import pytest

from tests.control.stories import gpu_node
from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import job, node, priority, queue
from tests.support.control_world import World
from unisono.control import names
from unisono.control.conditions import is_true
from unisono.control.scheduler.writes_in_flight import Basis
from unisono.kube.errors import Unreachable
from unisono.kube.form import Json
from unisono.kube.transport import Answer, Transport

Fault = Callable[[str, Json], Awaitable[Answer | None]]


async def _none(path: str, body: Json) -> Answer | None:
    return None


class OverHttp:
    """Requests as over HTTP, of which a test may answer those that admit a workload itself."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.stream = inner.stream
        self.fault: Fault = _none

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        body: bytes = b"",
        timeout: float | None = None,
    ) -> Answer:
        if method == "PATCH" and path.endswith("/status") and "/workloads/" in path:
            changes = orjson.loads(body)
            if changes["status"].get("admission"):
                answer = await self.fault(path, changes)
                if answer is not None:
                    return answer
        return await self._inner.request(
            method, path, query=query, headers=headers, body=body, timeout=timeout
        )


def play(story: Callable[[World, OverHttp], Awaitable[None]]) -> None:
    """Run a story on a cluster that is spoken to by requests."""
    between: list[OverHttp] = []

    def wrap(inner: Transport) -> Transport:
        between.append(OverHttp(inner))
        return between[0]

    async def run() -> None:
        async with simulated_world(wrap=wrap).running() as world:
            await story(world, between[0])

    asyncio.run(run())


def _refusal(code: int) -> Answer:
    status = {"kind": "Status", "apiVersion": "v1", "code": code, "message": "a fault"}
    return Answer(code, {"retry-after": "1"} if code == 429 else {}, orjson.dumps(status))


async def _set_quota(world: World, gpus: int) -> None:
    quota = [{"name": "f", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": str(gpus)}]}]
    groups = [{"coveredResources": ["nvidia.com/gpu"], "flavors": quota}]
    await world.client.patch(names.CLUSTER_QUEUE, "cq", "", {"spec": {"resourceGroups": groups}})
    await world.store.committed()
    world.pump()


def _admitted(world: World) -> list[str]:
    return [
        one["metadata"]["name"].rpartition("-")[0]
        for one in world.every(names.WORKLOAD)
        if (one.get("status") or {}).get("admission")
    ]


@pytest.mark.parametrize("code", [500, 503, 429])
def test_a_refused_admission_is_decided_again_by_the_quota_of_then(code: int) -> None:
    """The client sent it once more when the quota was gone: 13 of 8 GPUs were used."""

    async def story(world: World, api: OverHttp) -> None:
        async def refuse(path: str, body: Json) -> Answer | None:
            api.fault = _none
            await _set_quota(world, 4)
            return _refusal(code)

        await world.create(node("n1"), *queue(gpus=8), job("a", pods=1, gpus=8, seconds=600))
        api.fault = refuse
        await world.pass_time(60)
        assert _admitted(world) == []
        await _set_quota(world, 8)
        await world.pass_time(60)
        assert _admitted(world) == ["job-a"]

    play(story)


def test_an_admission_whose_answer_is_lost_is_read_not_repeated() -> None:
    async def story(world: World, api: OverHttp) -> None:
        sent: list[str] = []

        async def lose(path: str, body: Json) -> Answer | None:
            sent.append(path)
            if len(sent) > 1:
                return None
            patch = {"Content-Type": "application/merge-patch+json"}
            query = {"fieldManager": "unisono"}
            await api._inner.request(
                "PATCH", path, query=query, headers=patch, body=orjson.dumps(body)
            )
            raise Unreachable("no answer", sent=True)

        await world.create(node("n1"), *queue(gpus=8), job("a", pods=1, gpus=8, seconds=600))
        api.fault = lose
        await world.pass_time(60)
        assert _admitted(world) == ["job-a"]
        assert len(sent) == 1
        (pod,) = world.every(names.POD)
        assert pod["status"]["phase"] == "Running"

    play(story)


class Late:
    """Loses the first admission on its way, and brings it when it is told to."""

    def __init__(self, api: OverHttp, world: World) -> None:
        self._api = api
        self._world = world
        self._kept: tuple[str, Json] | None = None
        api.fault = self

    async def __call__(self, path: str, body: Json) -> Answer | None:
        if self._kept is not None:
            return None
        self._kept = (path, body)
        raise Unreachable("no answer in time", sent=True)

    async def sent(self) -> None:
        """Let all controllers work until it is on its way."""
        while self._kept is None:
            await self._world.store.committed()
            self._world.pump()
            assert await self._world.driver.step() is not None, "nothing was admitted"

    async def arrive(self) -> int:
        """Carry the write out at last; return the code of the answer that is lost."""
        assert self._kept is not None
        path, body = self._kept
        answer = await self._api._inner.request(
            "PATCH",
            path,
            query={"fieldManager": "unisono"},
            headers={"Content-Type": "application/merge-patch+json"},
            body=orjson.dumps(body),
        )
        await self._world.settle()
        return answer.code


def test_an_admission_that_arrives_late_takes_nothing_twice() -> None:
    """Another one had its quota by then, and both counted."""

    async def story(world: World, api: OverHttp) -> None:
        await world.create(priority("high", 100), node("n1"), node("n2"), *queue(gpus=8))
        late = Late(api, world)
        await world.create(job("a", pods=1, gpus=8, seconds=600))
        await late.sent()
        await _set_quota(world, 0)  # so that the other one is there before it is decided again
        await world.create(job("b", pods=1, gpus=8, seconds=600, priority_class="high"))
        await world.pass_time(20)
        await _set_quota(world, 8)
        await world.pass_time(20)
        assert _admitted(world) == ["job-b"]
        assert await late.arrive() == 409
        await world.pass_time(20)
        assert _admitted(world) == ["job-b"]

    play(story)


def test_an_admission_in_doubt_counts_until_it_is_read() -> None:
    """The API does not answer: whether it was stored is open, and its quota stays taken."""

    async def story(world: World, api: OverHttp) -> None:
        await world.create(priority("high", 100), node("n1"), node("n2"), *queue(gpus=8))
        late = Late(api, world)
        request, is_down = api._inner.request, [True]

        async def down(method: str, path: str, **more: Any) -> Answer:
            if is_down[0] and late._kept is not None and path == late._kept[0][: -len("/status")]:
                raise Unreachable("no connection", sent=False)
            if is_down[0] and late._kept is not None and path == late._kept[0]:
                raise Unreachable("no connection", sent=False)
            return await request(method, path, **more)

        api._inner = type("Inner", (), {"request": staticmethod(down)})()
        await world.create(job("a", pods=1, gpus=8, seconds=600))
        await late.sent()
        await _set_quota(world, 0)
        await world.create(job("b", pods=1, gpus=8, seconds=600, priority_class="high"))
        await world.pass_time(20)
        await _set_quota(world, 8)
        await world.pass_time(20)
        assert _admitted(world) == []  # one of them may be
        is_down[0] = False
        assert await late.arrive() == 200
        await world.pass_time(60)
        assert _admitted(world) == ["job-a"]

    play(story)


def test_what_is_fenced_keeps_its_conditions() -> None:
    """Only a number is new: it is neither an admission nor a loss."""

    async def story(world: World, api: OverHttp) -> None:
        await world.create(node("n1"), *queue(gpus=8))
        late = Late(api, world)
        await world.create(job("a", pods=1, gpus=8, seconds=600))
        await late.sent()
        await _set_quota(world, 4)
        await world.pass_time(60)
        (workload,) = world.every(names.WORKLOAD)
        assert not workload["status"].get("admission")
        assert not is_true(workload["status"]["conditions"], "QuotaReserved")
        assert await late.arrive() == 409

    play(story)


class Nodes:
    """Stands for a view of nodes."""

    def __init__(self) -> None:
        self.nodes: dict[str, Json] = {}

    def get(self, kind: object, name: str) -> Json | None:
        return self.nodes.get(name)


def test_a_decision_holds_until_its_queues_or_its_nodes_change() -> None:
    basis, view = Basis(), Nodes()
    view.nodes["n1"], view.nodes["n2"] = gpu_node("n1", 8), gpu_node("n2", 8)

    def touch(kind: Any, name: str) -> None:
        basis.touched(kind, name, view)  # type: ignore[arg-type]  # it only gets nodes

    touch(names.NODE, "n1")
    touch(names.NODE, "n2")
    basis.settled()
    on_first, on_none = basis.holding(["n1", "n1"]), basis.holding()
    touch(names.WORKLOAD, "w")
    touch(names.POD, "p")
    beat = {**view.nodes["n1"], "status": {**view.nodes["n1"]["status"], "images": []}}
    view.nodes["n1"] = beat
    touch(names.NODE, "n1")
    del view.nodes["n2"]
    touch(names.NODE, "n2")
    assert (on_first(), on_none()) == (True, True)
    view.nodes["n1"] = {**beat, "spec": {"unschedulable": True}}
    touch(names.NODE, "n1")
    assert (on_first(), on_none()) == (False, True)
    touch(names.CLUSTER_QUEUE, "cq")
    assert on_none() is False
    assert basis.holding()() is False  # decided by what the engine knew before
    basis.settled()
    assert basis.holding(["n1"])() is True


def test_an_admission_that_the_api_refuses_for_what_is_in_it_frees_its_quota() -> None:
    async def story(world: World, api: OverHttp) -> None:
        async def refuse(path: str, body: Json) -> Answer | None:
            return _refusal(422) if "job-bad" in path else None

        api.fault = refuse
        await world.create(node("n1"), *queue(), job("bad", pods=1), job("good", pods=1))
        await world.settle()
        assert not any("job-bad" in key for key in world.assembly.scheduler.state.running)
        assert any("job-good" in key for key in world.assembly.scheduler.state.running)

    play(story)
