"""The GPUs that pods of a gang share, from the decision to the pods and back."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.support.control_objects import job, node, queue
from tests.support.control_world import World
from unisono.control import names
from unisono.control.admission.placement import (
    COMMITTED,
    PLANNED,
    SharedGpuNumbers,
    device_annotation,
    placement_of,
    read_devices,
    with_placement,
    written_devices,
)
from unisono.control.conditions import find
from unisono.control.names import PLACEMENT
from unisono.engine.model.names import QueueName
from unisono.engine.model.workload import Admission, PodSetAssignment


def admission(**devices: tuple[int, ...]) -> Admission:
    sets = tuple(
        PodSetAssignment(name=name, count=max(1, len(numbers)), devices=numbers)
        for name, numbers in devices.items()
    )
    return Admission(queue=QueueName("q"), pod_sets=sets)


def test_devices_are_written_and_read() -> None:
    text = written_devices(admission(main=(0, 0, 1), launcher=(), ps=(2,)))
    assert text == "main:0.0.1,ps:2"
    assert read_devices(text) == {"main": (0, 0, 1), "ps": (2,)}
    assert written_devices(admission(main=())) == ""
    assert read_devices("") == read_devices("main:x") == read_devices(":1") == {}


def test_the_placement_keeps_them_from_phase_to_phase() -> None:
    about = {"gen": 1, "epoch": 1, "deadline": 0.0, "now": 0.0}
    conditions = with_placement([], PLANNED, devices="main:0.1", **about)  # type: ignore[arg-type]
    conditions = with_placement(conditions, COMMITTED, **about)  # type: ignore[arg-type]
    assert placement_of(conditions)[1]["devices"] == "main:0.1"
    conditions = with_placement(conditions, PLANNED, devices="", **about)  # type: ignore[arg-type]
    found = find(conditions, PLACEMENT)
    assert found is not None
    assert "devices" not in found["message"]


def test_every_pod_gets_a_number_of_its_node_once() -> None:
    numbers = SharedGpuNumbers({"main": (0, 0, 3)}, {"main": ["a", "a", "b"]})
    bound = {"spec": {"nodeName": "a"}, "metadata": {"annotations": device_annotation(0)}}
    numbers.has("main", [bound])
    assert numbers.take("main", "a") == {"unisono.dev/gpu-device": "0"}
    assert numbers.take("main", "a") == {}
    assert numbers.take("main", "b") == {"unisono.dev/gpu-device": "3"}
    assert numbers.take("other", "b") == {}


def test_numbers_that_do_not_fit_the_places_are_not_told() -> None:
    numbers = SharedGpuNumbers({"main": (0, 1)}, {"main": ["a"]})
    assert numbers.take("main", "a") == {}


def halves(name: str, pods: int) -> dict[str, Any]:
    """Return a job whose pods want half a GPU each."""
    made = job(name, pods=pods, gpus=0)
    template = made["spec"]["template"]
    template.setdefault("metadata", {})["annotations"] = {"unisono.dev/gpu-fraction": "0.5"}
    template["spec"]["containers"][0]["resources"] = {}
    return made


def numbers(world: World) -> list[tuple[str, str]]:
    pods = [pod for pod in world.every(names.POD) if pod["spec"].get("nodeName")]
    told = [(pod["metadata"].get("annotations") or {}) for pod in pods]
    return sorted(
        (str(pod["spec"]["nodeName"]), note.get("unisono.dev/gpu-device", ""))
        for pod, note in zip(pods, told, strict=True)
    )


def test_pods_that_share_gpus_are_told_which_and_a_new_leader_knows() -> None:
    async def main() -> None:
        flavor, cluster_queue, local_queue = queue()
        (group,) = cluster_queue["spec"]["resourceGroups"]
        part = "nvidia.com/gpu-milli"
        group["coveredResources"].append(part)
        group["flavors"][0]["resources"].append({"name": part, "nominalQuota": "2000"})
        async with World().running() as world:
            await world.create(node("n1", 2), flavor, cluster_queue, local_queue)
            await world.create(halves("one", 3))
            await world.settle()
            assert numbers(world) == [("n1", "0"), ("n1", "0"), ("n1", "1")]
            world.restart()
            await world.create(halves("two", 1), halves("three", 1))
            await world.settle()
            # One half is left, on the device that the first job has half of.
            assert numbers(world) == [("n1", "0"), ("n1", "0"), ("n1", "1"), ("n1", "1")]

    asyncio.run(main())
