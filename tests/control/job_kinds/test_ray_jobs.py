"""Ray jobs: a cluster of their own, a program, and its end (jobs §5)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.control.stories import conditions, gpu_node, nodes_of, phases, queue_of, told
from tests.support.control_world import World
from unisono.control.conditions import timestamp
from unisono.control.job_kinds import ray
from unisono.control.names import JOB, POD, WORKLOAD
from unisono.kube.form import Json


def container(gpus: int = 0) -> Json:
    """Return a Ray container."""
    limits = {"cpu": "1", "memory": "1G", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    return {"name": "ray", "image": "rayproject/ray:2.52.0", "resources": {"limits": limits}}


def ray_job(entrypoint: str = "sleep 30", *, labels: Json | None = None, **spec: Any) -> Json:
    """Return a job with a head and two workers of two GPUs each."""
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "train", "namespace": "default", "labels": labels or {}},
        "spec": {
            "entrypoint": entrypoint,
            "shutdownAfterJobFinishes": True,
            "rayClusterSpec": {
                "headGroupSpec": {"template": {"spec": {"containers": [container()]}}},
                "workerGroupSpecs": [
                    {
                        "groupName": "gpu",
                        "replicas": 2,
                        "template": {"spec": {"containers": [container(2)]}},
                    }
                ],
            },
            **spec,
        },
    }


def row(world: World) -> tuple[str, str]:
    """Return what `kubectl get rayjobs` shows."""
    status = world.get(ray.JOB, "train").get("status") or {}
    return status.get("jobStatus", ""), status.get("jobDeploymentStatus", "")


IN_QUEUE = {"kueue.x-k8s.io/queue-name": "lq-cq"}


@pytest.mark.parametrize("labels", [{}, IN_QUEUE], ids=["alone", "in a queue"])
def test_a_job_brings_up_a_cluster_runs_and_takes_it_down(labels: Json) -> None:
    async def story(world: World) -> None:
        await world.create(*queue_of(4), gpu_node("n1", 4), ray_job(labels=labels))
        await world.settle()
        assert row(world) == ("RUNNING", "Running")
        assert set(phases(world).values()) == {"Running"}
        assert len(phases(world)) == 4
        assert set(nodes_of(world).values()) == {"n1"}
        assert world.get(ray.CLUSTER, name(world))["status"]["state"] == "ready"
        await world.pass_time(31)
        assert row(world) == ("SUCCEEDED", "Complete")
        assert set(phases(world).values()) == {"Succeeded"}
        assert world.every(ray.CLUSTER) == []
        if labels:
            assert conditions(world)["Finished"] == "True Succeeded"

    told(story)


def name(world: World) -> str:
    """Return the name of the job's cluster."""
    return str(world.get(ray.JOB, "train")["status"]["rayClusterName"])


def test_a_program_that_fails_gets_a_new_cluster_for_every_retry() -> None:
    async def story(world: World) -> None:
        job = ray_job("sleep 5", backoffLimit=1, submitterConfig={"backoffLimit": 0})
        job["metadata"]["annotations"] = {"unisono.dev/exit-code": "1"}
        await world.create(gpu_node("n1", 4), job)
        await world.settle()
        first = name(world)
        await world.pass_time(6)
        assert row(world) == ("RUNNING", "Running")
        assert name(world) != first
        await world.pass_time(6)
        assert row(world) == ("FAILED", "Failed")
        assert world.get(ray.JOB, "train")["status"]["failed"] == 2
        assert world.every(ray.CLUSTER) == []

    told(story)


def test_retries_after_short_runs_back_off() -> None:
    async def story(world: World) -> None:
        job = ray_job("sleep 5", backoffLimit=100, submitterConfig={"backoffLimit": 0})
        job["metadata"]["annotations"] = {"unisono.dev/exit-code": "1"}
        await world.create(gpu_node("n1", 4), job)
        for failures, delay in ((1, 0), (2, 10), (3, 20), (4, 40)):
            while world.get(ray.JOB, "train").get("status", {}).get("failed", 0) < failures:
                await world.pass_time(1)
            if delay:
                due = timestamp(world.clock.now() + delay)
                status = world.get(ray.JOB, "train")["status"]
                assert status["message"] == (
                    f"The program failed; starts again at {due} "
                    f"(back-off: restart {failures} in a row)"
                )
                await world.pass_time(delay - 1)
                assert world.every(ray.CLUSTER) == []
            await world.pass_time(1)
            assert len(world.every(ray.CLUSTER)) == 1

    told(story)


def test_a_job_that_waits_has_no_cluster() -> None:
    async def story(world: World) -> None:
        await world.create(*queue_of(3), gpu_node("n1", 4), ray_job(labels=IN_QUEUE))
        await world.settle()
        assert world.every(ray.CLUSTER) == []
        (workload,) = world.every(WORKLOAD)
        sets = {one["name"]: one["count"] for one in workload["spec"]["podSets"]}
        assert sets == {"head": 1, "gpu": 2, "submitter": 1}

    told(story)


def test_a_job_that_is_suspended_leaves_nothing_behind() -> None:
    async def story(world: World) -> None:
        await world.create(*queue_of(4), gpu_node("n1", 4), ray_job(labels=IN_QUEUE))
        await world.settle()
        (workload,) = world.every(WORKLOAD)
        await world.client.patch(
            WORKLOAD, workload["metadata"]["name"], "default", {"spec": {"active": False}}
        )
        await world.settle()
        assert row(world) == ("", "Suspended")
        assert world.every(ray.CLUSTER) == []
        assert world.every(JOB) == []
        assert world.every(POD) == []

    told(story)


def test_a_cluster_that_is_created_late_for_a_suspended_job_is_deleted() -> None:
    """The request of a dead leader came after its successor had suspended the job."""

    async def story(world: World) -> None:
        await world.create(*queue_of(4), gpu_node("n1", 4), ray_job(labels=IN_QUEUE))
        await world.settle()
        (cluster,) = world.every(ray.CLUSTER)
        (workload,) = world.every(WORKLOAD)
        await world.client.patch(
            WORKLOAD, workload["metadata"]["name"], "default", {"spec": {"active": False}}
        )
        await world.settle()
        owners = cluster["metadata"]["ownerReferences"]
        metadata = {"name": "late", "namespace": "default", "ownerReferences": owners}
        spec = {**cluster["spec"], "suspend": False}
        await world.create({**cluster, "metadata": metadata, "spec": spec, "status": {}})
        await world.settle()
        assert world.every(ray.CLUSTER) == []
        assert world.every(POD) == []

    told(story)


def test_a_job_on_a_cluster_that_exists_is_never_held_and_waits_for_it() -> None:
    async def story(world: World) -> None:
        await world.create(*queue_of(4), gpu_node("n1", 4))
        job = ray_job("sleep 600", clusterSelector={"ray.io/cluster": "shared"}, labels=IN_QUEUE)
        made = job["spec"].pop("rayClusterSpec")
        await world.create(job)
        await world.settle()
        assert not world.get(ray.JOB, "train")["spec"].get("suspend")
        assert row(world) == ("", "Initializing")
        message = world.get(ray.JOB, "train")["status"]["message"]
        assert message == "waits for RayCluster shared, which it selects and which does not exist"
        metadata = {"name": "shared", "namespace": "default"}
        cluster = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": metadata}
        await world.create(cluster | {"spec": made})
        await world.settle()
        await world.pass_time(6)
        assert row(world) == ("RUNNING", "Running")
        assert not world.get(ray.JOB, "train")["status"].get("message")

    told(story)
