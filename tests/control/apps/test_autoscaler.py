"""HorizontalPodAutoscalers follow what is measured, carefully downwards, within their bounds."""

from __future__ import annotations

from typing import Any

import pytest

from tests.control.apps.test_deployments import deployment
from tests.control.apps.test_in_queues import queued, used, waiting
from tests.control.stories import gpu_node, pods, queue_of, told
from tests.runner.simulated_world import node
from tests.support.control_objects import job
from tests.support.control_world import World
from unisono.control.apps import AUTOSCALER, DEPLOYMENT
from unisono.control.conditions import find
from unisono.control.names import CONFIG_MAP, JOB, POD, WORKLOAD
from unisono.kube.form import Json


def scaler(*metrics: Json, least: int = 1, most: int = 10, **spec: Any) -> Json:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": least,
            "maxReplicas": most,
            "metrics": list(metrics),
            **spec,
        },
    }


def external(average: str = "100") -> Json:
    target = {"type": "AverageValue", "averageValue": average}
    return {"type": "External", "external": {"metric": {"name": "requests"}, "target": target}}


def cpu(share: int = 50) -> Json:
    target = {"type": "Utilization", "averageUtilization": share}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def load(**values: int) -> Json:
    """Return what stands in for a metrics server."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "load",
            "namespace": "default",
            "labels": {"unisono.dev/metrics": ""},
        },
        "data": {name: str(value) for name, value in values.items()},
    }


async def set_load(world: World, **values: int) -> None:
    await world.client.patch(CONFIG_MAP, "load", "default", {"data": load(**values)["data"]})


def replicas(world: World) -> int:
    return int(world.get(DEPLOYMENT, "web")["spec"]["replicas"])


def conditions(world: World) -> dict[str, str]:
    found = world.get(AUTOSCALER, "web")["status"]["conditions"]
    return {one["type"]: f"{one['status']} {one['reason']}" for one in found}


def with_cpu(replicas: int = 2, uses: str = "") -> Json:
    """Return a Deployment whose pods ask for a core, and say what they use."""
    made = deployment(replicas)
    template = made["spec"]["template"]
    template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    if uses:
        template["metadata"]["annotations"] = {"unisono.dev/cpu-usage": uses}
    return made


def test_an_external_metric_moves_the_number_up_at_once_and_down_after_minutes() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), load(requests=200), deployment(2), scaler(external()))
        await world.pass_time(60)
        assert replicas(world) == 2
        await set_load(world, requests=750)
        await world.pass_time(60)
        assert replicas(world) == 8
        await set_load(world, requests=100)
        await world.pass_time(200)
        assert replicas(world) == 8, "five minutes of lower recommendations are needed"
        assert conditions(world)["AbleToScale"] == "True ScaleDownStabilized"
        await world.pass_time(200)
        assert replicas(world) == 1
        assert {"SuccessfulRescale"} <= {note.reason for note in world.notes}
        (shown,) = world.get(AUTOSCALER, "web")["status"]["currentMetrics"]
        assert shown["external"]["current"]["averageValue"] == "100"

    told(story)


def test_a_restart_forgets_no_recommendation() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), load(requests=800), deployment(8), scaler(external()))
        await world.pass_time(60)
        await set_load(world, requests=100)
        for _ in range(13):
            world.restart()
            await world.pass_time(15)
            assert replicas(world) == 8
        for _ in range(13):
            world.restart()
            await world.pass_time(15)
        assert replicas(world) == 1

    told(story)


@pytest.mark.parametrize(
    "written", ["x", "[]", "[[[1e999,1]],[]]", "[[[1,NaN]],[]]", "[" * 5000, '[{"a":1},5]']
)
def test_a_memory_that_cannot_be_read_is_none(written: str) -> None:
    async def story(world: World) -> None:
        made = scaler(external())
        made["metadata"]["annotations"] = {"unisono.dev/autoscaler": written}
        await world.create(node("n1"), load(requests=800), deployment(2), made)
        await world.pass_time(60)
        assert replicas(world) == 8

    told(story)


def test_steps_and_bounds_limit_the_number() -> None:
    async def story(world: World) -> None:
        slow = {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}
        made = scaler(external(), most=4, behavior=slow)
        await world.create(node("n1"), load(requests=900), deployment(1), made)
        seen = []
        for _ in range(18):
            await world.pass_time(15)
            seen.append(replicas(world))
        assert seen[0] == 2
        assert sorted(set(seen)) == [2, 3, 4], "one more each minute, and never more than four"
        assert seen.count(2) >= 3
        assert conditions(world)["ScalingLimited"] == "True TooManyReplicas"

    told(story)


@pytest.mark.parametrize(("uses", "expected"), [("1", 4), ("500m", 2), ("100m", 1), ("540m", 2)])
def test_utilization_of_what_pods_request(uses: str, expected: int) -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), with_cpu(2, uses), scaler(cpu(50)))
        # Once the number is another one the pods still use as much each: look at the first step.
        for _ in range(60):
            await world.pass_time(15)
            if replicas(world) != 2:
                break
        assert replicas(world) == expected

    told(story)


def test_what_cannot_be_measured_is_said_and_never_scales_down() -> None:
    async def story(world: World) -> None:
        made = scaler(external(), cpu(50))
        await world.create(node("n1"), with_cpu(3, "10m"), made)
        await world.pass_time(900)
        assert replicas(world) == 3
        assert conditions(world)["ScalingActive"] == "False FailedGetExternalMetric"
        assert [note.reason for note in world.notes].count("FailedGetExternalMetric") == 1
        await world.create(load(requests=800))
        await world.pass_time(60)
        assert replicas(world) == 8, "one metric that is known is enough to grow"

    told(story)


def test_targets_that_are_not_there_or_at_zero() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), load(requests=500), scaler(external()))
        await world.pass_time(20)
        assert conditions(world)["AbleToScale"] == "False FailedGetScale"
        await world.create(deployment(0))
        await world.pass_time(20)
        assert conditions(world)["ScalingActive"] == "False ScalingDisabled"
        await world.client.patch(DEPLOYMENT, "web", "default", {"spec": {"replicas": 20}})
        await world.pass_time(20)
        assert replicas(world) == 10

    told(story)


def test_serving_by_day_and_training_by_night_share_a_queue() -> None:
    """Issue 26, show 2: the gang waits for the pods that the load brought, and starts without."""

    async def story(world: World) -> None:
        gang = job("train", pods=4, gpus=1, seconds=3600)
        await world.create(*queue_of(8), gpu_node("n1", 8), load(requests=400))
        await world.create(queued(4), scaler(external(), least=4, most=8))
        await world.pass_time(60)
        assert used(world) == 4
        await set_load(world, requests=800)
        await world.pass_time(60)
        assert replicas(world) == 8
        assert used(world) == 8
        await world.create(gang)
        await world.pass_time(60)
        assert waiting(world) == []
        assert world.get(JOB, "train")["spec"]["suspend"] is True
        (held,) = (one for one in world.every(WORKLOAD) if not one["status"].get("admission"))
        assert held["metadata"]["name"].startswith("job-train-")
        said = find(held["status"]["conditions"], "unisono.dev/Waiting")
        assert said is not None
        assert "default/pod-web-" in said["message"], "it says for which workloads"
        assert said["message"].startswith("starts once ")
        await set_load(world, requests=300)
        await world.pass_time(420)
        assert replicas(world) == 4
        assert world.get(JOB, "train")["status"]["active"] == 4
        assert used(world) == 8
        # In the morning the gang keeps what it has, and new pods wait for it.
        await set_load(world, requests=800)
        await world.pass_time(60)
        assert replicas(world) == 8
        assert len(waiting(world)) == 4
        served = [pod for name, pod in pods(world).items() if name.startswith("web")]
        assert sum(bool(pod["spec"].get("nodeName")) for pod in served) == 4
        await world.client.delete(JOB, "train", "default")
        await world.pass_time(120)
        assert waiting(world) == []
        assert len(world.every(POD)) == 8

    told(story)
