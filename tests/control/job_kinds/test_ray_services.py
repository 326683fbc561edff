"""RayServices: a cluster that serves, updates beside it or in its place, within quota."""

from __future__ import annotations

from typing import Any

from tests.control.apps.test_in_queues import used
from tests.control.stories import gpu_node, phases, queue_of, told
from tests.support.control_world import World
from unisono.control.job_kinds import ray
from unisono.control.names import JOB, QUEUE_LABEL, SERVICE, WORKLOAD
from unisono.kube.form import Json

CONFIG = """
applications:
- name: llm
  import_path: serve:app
- name: embeddings
  import_path: other:app
"""


def pod(name: str, gpus: int = 0, image: str = "a") -> Json:
    resources: Json = {"cpu": "1", "memory": "1Gi"}
    if gpus:
        resources["nvidia.com/gpu"] = str(gpus)
    container = {"name": name, "image": image, "resources": {"limits": resources}}
    return {
        "metadata": {"annotations": {"unisono.dev/run-seconds": "forever"}},
        "spec": {"containers": [container]},
    }


def cluster(replicas: int = 2, image: str = "a") -> Json:
    return {
        "headGroupSpec": {"rayStartParams": {}, "template": pod("head")},
        "workerGroupSpecs": [
            {
                "groupName": "gpu",
                "replicas": replicas,
                "minReplicas": 0,
                "maxReplicas": 10,
                "rayStartParams": {},
                "template": pod("worker", 1, image),
            }
        ],
    }


def service(replicas: int = 2, image: str = "a", **spec: Any) -> Json:
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "metadata": {
            "name": "llm",
            "namespace": "default",
            "labels": {QUEUE_LABEL: "lq-cq"},
        },
        "spec": {"serveConfigV2": CONFIG, "rayClusterConfig": cluster(replicas, image), **spec},
    }


def status(world: World) -> Json:
    return dict(world.get(ray.SERVICE, "llm")["status"])


async def change(world: World, **spec: Any) -> None:
    await world.client.patch(ray.SERVICE, "llm", "default", {"spec": spec})
    await world.settle()


def clusters(world: World) -> list[str]:
    return [one["metadata"]["name"] for one in world.every(ray.CLUSTER)]


def points_at(world: World) -> set[str]:
    """Return the clusters that the two Services of the service select."""
    return {
        world.get(SERVICE, name)["spec"]["selector"]["ray.io/cluster"]
        for name in ("llm-head-svc", "llm-serve-svc")
    }


def test_a_service_is_a_gang_of_its_queue_and_serves() -> None:
    async def story(world: World) -> None:
        await world.create(*queue_of(4), gpu_node("n1", 8), service(2))
        await world.pass_time(60)
        (name,) = clusters(world)
        assert used(world) == 2
        (workload,) = world.every(WORKLOAD)
        assert workload["spec"]["queueName"] == "lq-cq"
        found = status(world)
        assert found["serviceStatus"] == "Running"
        assert found["activeServiceStatus"]["rayClusterName"] == name
        applications = found["activeServiceStatus"]["applicationStatuses"]
        assert {one: how["status"] for one, how in applications.items()} == {
            "llm": "RUNNING",
            "embeddings": "RUNNING",
        }
        assert found["numServeEndpoints"] == 3
        assert points_at(world) == {name}
        (job,) = world.every(JOB)
        (container,) = job["spec"]["template"]["spec"]["containers"]
        assert "serve deploy" in container["command"][-1]
        assert container["env"][0]["value"] == CONFIG

    told(story)


def test_it_waits_whole_and_says_that_nothing_serves() -> None:
    async def story(world: World) -> None:
        await world.create(*queue_of(1), gpu_node("n1", 8), service(2))
        await world.pass_time(300)
        assert phases(world) == {}
        assert status(world)["serviceStatus"] == ""
        ready = [one for one in status(world)["conditions"] if one["type"] == "Ready"]
        assert ready[0]["status"] == "False"

    told(story)


def test_numbers_change_in_place_and_templates_beside() -> None:
    async def story(world: World) -> None:
        await world.create(*queue_of(8), gpu_node("n1", 8), service(2))
        await world.pass_time(60)
        (first,) = clusters(world)
        await change(world, rayClusterConfig=cluster(3))
        await world.pass_time(60)
        assert clusters(world) == [first]
        assert used(world) == 3
        await change(world, rayClusterConfig=cluster(3, "b"))
        await world.pass_time(30)
        assert len(clusters(world)) == 2
        (second,) = set(clusters(world)) - {first}
        assert points_at(world) == {second}
        await world.pass_time(200)
        assert clusters(world) == [second], "the old one goes after a minute"
        assert used(world) == 3

    told(story)


def test_an_update_without_quota_takes_the_place_of_what_serves() -> None:
    async def story(world: World) -> None:
        await world.create(*queue_of(2), gpu_node("n1", 8), service(2))
        await world.pass_time(60)
        (first,) = clusters(world)
        await change(world, rayClusterConfig=cluster(2, "b"))
        await world.pass_time(40)
        assert points_at(world) == {first}
        assert status(world)["serviceStatus"] == "Running"
        await world.pass_time(200)
        (second,) = clusters(world)
        assert second != first
        assert points_at(world) == {second}
        assert status(world)["serviceStatus"] == "Running"
        assert "GivingWay" in {note.reason for note in world.notes}

    told(story)


def test_a_suspended_one_has_no_cluster_and_a_restart_makes_no_second() -> None:
    async def story(world: World) -> None:
        await world.create(*queue_of(4), gpu_node("n1", 8), service(1))
        for _ in range(60):
            world.restart()
            await world.driver.step()
            await world.store.committed()
            assert len(clusters(world)) <= 1
        await world.pass_time(100)
        assert status(world)["serviceStatus"] == "Running"
        await change(world, suspend=True)
        await world.pass_time(60)
        assert clusters(world) == []
        assert used(world) == 0
        assert status(world)["serviceStatus"] == ""

    told(story)
