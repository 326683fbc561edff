"""What waits is read again, in its place, when what decides about its requests changes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.control.test_devices import pod
from tests.support.control_objects import KUEUE, node
from tests.support.control_world import World
from unisono.control import names
from unisono.control.conditions import find, is_true
from unisono.kube.form import Json


def story(tell: Callable[[World], Awaitable[None]]) -> None:
    async def main() -> None:
        async with World().running() as world:
            await world.create(node("n1"), *queue())
            await tell(world)

    asyncio.run(main())


def queue(cpu: int = 5) -> list[Json]:
    quota = [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": cpu}]}]
    spec = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": quota}],
    }
    local = {"name": "lq", "namespace": "default"}
    return [
        {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "f"}, "spec": {}},
        {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": "cq"}, "spec": spec},
        {
            "apiVersion": KUEUE,
            "kind": "LocalQueue",
            "metadata": local,
            "spec": {"clusterQueue": "cq"},
        },
    ]


def workload(name: str, cpu: str = "", **spec: Any) -> Json:
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    template = {"containers": [{"name": "c", "image": "x", "resources": resources}], **spec}
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "queueName": "lq",
            "podSets": [{"name": "main", "count": 1, "template": {"spec": template}}],
        },
    }


def limit_range(cpu: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "limits", "namespace": "default"},
        "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": cpu}}]},
    }


def runs(world: World) -> list[str]:
    return sorted(
        one["metadata"]["name"]
        for one in world.every(names.WORKLOAD)
        if is_true((one.get("status") or {}).get("conditions"), "QuotaReserved")
    )


def reserved(world: World) -> str:
    [flavor] = world.get(names.CLUSTER_QUEUE, "cq", "")["status"]["flavorsReservation"]
    return str(flavor["resources"][0]["total"])


def test_a_smaller_default_lets_the_next_one_run() -> None:
    async def tell(world: World) -> None:
        await world.create(limit_range("3"))
        await world.settle()
        await world.create(workload("one"))
        await world.settle()
        await world.create(workload("two"))
        await world.settle()
        assert runs(world) == ["one"]
        changed = {"spec": limit_range("2")["spec"]}
        await world.client.patch(names.LIMIT_RANGE, "limits", "default", changed)
        await world.settle()
        assert runs(world) == ["one", "two"]
        await world.pass_time(30)
        assert reserved(world) == "5"  # each as when it was admitted
        world.restart()
        await world.settle()
        await world.pass_time(30)
        assert reserved(world) == "5"
        await world.create(workload("three", cpu="1"))
        await world.settle()
        assert runs(world) == ["one", "two"]

    story(tell)


def test_newer_ones_do_not_overtake_what_is_read_again() -> None:
    async def tell(world: World) -> None:
        await world.create(limit_range("3"))
        await world.create(workload("runs", cpu="3"))
        await world.settle()
        await world.create(workload("older"))
        await world.settle()
        await world.pass_time(60)
        changed = {"spec": limit_range("2")["spec"]}
        await world.create(workload("newer"))
        await world.client.patch(names.LIMIT_RANGE, "limits", "default", changed)
        await world.settle()
        assert runs(world) == ["older", "runs"]

    story(tell)


def runtime_class(cpu: str) -> Json:
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "kata"},
        "handler": "kata",
        "overhead": {"podFixed": {"cpu": cpu}},
    }


def test_a_runtime_class_with_less_overhead_lets_it_run() -> None:
    async def tell(world: World) -> None:
        await world.create(runtime_class("3"))
        await world.create(workload("kata", cpu="4", runtimeClassName="kata"))
        await world.settle()
        assert runs(world) == []
        await world.client.delete(names.RUNTIME_CLASS, "kata", "")
        await world.create(runtime_class("1"))
        await world.settle()
        assert runs(world) == ["kata"]
        await world.pass_time(30)
        assert reserved(world) == "5"

    story(tell)


def test_pods_in_no_queue_are_read_again_too() -> None:
    async def tell(world: World) -> None:
        await world.create(runtime_class("100"))
        await world.create(pod("one", runtimeClassName="kata"))
        await world.settle()
        assert "nodeName" not in world.get(names.POD, "one", "default")["spec"]
        await world.client.delete(names.RUNTIME_CLASS, "kata", "")
        await world.settle()
        assert world.get(names.POD, "one", "default")["spec"]["nodeName"] == "n1"

    story(tell)


RESOURCE = "example.com/gpu"


def device_class() -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu.example.com"},
        "spec": {"extendedResourceName": RESOURCE},
    }


def with_devices(name: str) -> Json:
    made = node(name)
    made["status"]["allocatable"] = {**made["status"]["allocatable"], RESOURCE: "2"}
    return made


def test_a_device_plugin_makes_a_resource_an_ordinary_one() -> None:
    async def tell(world: World) -> None:
        await world.create(device_class())
        asks = pod("one")
        asks["spec"]["containers"][0]["resources"]["limits"][RESOURCE] = "1"
        await world.create(asks)
        await world.settle()
        waits = world.get(names.POD, "one", "default")
        scheduled = find(waits["status"]["conditions"], "PodScheduled")
        assert scheduled is not None
        assert "of DeviceClass gpu.example.com" in scheduled["message"]
        await world.create(with_devices("n2"))
        await world.settle()
        assert world.get(names.POD, "one", "default")["spec"]["nodeName"] == "n2"

    story(tell)


def test_without_its_class_a_resource_is_an_ordinary_one() -> None:
    async def tell(world: World) -> None:
        await world.create(device_class())
        asks = workload("one", cpu="1")
        container = asks["spec"]["podSets"][0]["template"]["spec"]["containers"][0]
        container["resources"]["limits"] = {RESOURCE: "1"}
        await world.create(asks)
        await world.settle()

        def why() -> str:
            made = world.get(names.WORKLOAD, "one", "default")
            found = find(made["status"]["conditions"], "QuotaReserved")
            assert found is not None
            return str(found["reason"])

        assert why() == "Misconfigured"
        await world.client.delete(names.DEVICE_CLASS, "gpu.example.com", "")
        await world.settle()
        assert why() == "NoMatchingFlavor"  # the queue has no quota for it

    story(tell)


def test_what_is_written_is_what_is_charged() -> None:
    async def tell(world: World) -> None:
        asks = workload("one", cpu="1")
        sets = asks["spec"]["podSets"]
        sets[0]["count"] = 4
        sets.append({**sets[0], "name": "none", "count": 0})
        container = sets[0]["template"]["spec"]["containers"][0]
        container["resources"]["requests"]["example.com/nothing"] = "0"
        asks["spec"]["active"] = False
        await world.create(asks)
        done = {"status": {"reclaimablePods": [{"name": "main", "count": 1}]}}
        await world.client.patch(names.WORKLOAD, "one", "default", done, subresource="status")
        wanted = {"spec": {"active": True}}
        await world.client.patch(names.WORKLOAD, "one", "default", wanted)
        await world.settle()
        admission = world.get(names.WORKLOAD, "one", "default")["status"]["admission"]
        for one in admission["podSetAssignments"]:
            one.pop("topologyAssignment", None)
        assert admission["podSetAssignments"] == [
            {
                "name": "main",
                "count": 3,
                "flavors": {"cpu": "f"},
                "resourceUsage": {"cpu": "3"},
            },
            {"name": "none", "count": 0, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": "0"}},
        ]
        await world.pass_time(30)
        assert reserved(world) == "3"
        world.restart()
        await world.settle()
        await world.create(workload("two", cpu="2"))
        await world.create(workload("three", cpu="1"))
        await world.settle()
        assert runs(world) == ["one", "two"]
        await world.pass_time(30)
        assert reserved(world) == "5"
        done = {"status": {"reclaimablePods": [{"name": "main", "count": 2}]}}
        await world.client.patch(names.WORKLOAD, "one", "default", done, subresource="status")
        await world.settle()
        assert runs(world) == ["one", "three", "two"]
        await world.pass_time(30)
        assert reserved(world) == "5"

    story(tell)


def test_pods_that_are_charged_are_written() -> None:
    async def tell(world: World) -> None:
        queues = queue()
        group = queues[1]["spec"]["resourceGroups"][0]
        group["coveredResources"].append("pods")
        group["flavors"][0]["resources"].append({"name": "pods", "nominalQuota": 3})
        queues[1]["metadata"]["name"] = queues[2]["spec"]["clusterQueue"] = "with-pods"
        queues[2]["metadata"]["name"] = "lq-pods"
        await world.create(*queues[1:])
        asks = workload("one", cpu="1")
        asks["spec"]["queueName"] = "lq-pods"
        asks["spec"]["podSets"][0]["count"] = 2
        await world.create(asks)
        await world.settle()
        [one] = world.get(names.WORKLOAD, "one", "default")["status"]["admission"][
            "podSetAssignments"
        ]
        assert one["flavors"] == {"cpu": "f", "pods": "f"}
        assert one["resourceUsage"] == {"cpu": "2", "pods": "2"}

    story(tell)
