"""Serving in a queue: its pods are counted, wait with a reason, and give way as others do."""

from __future__ import annotations

from typing import Any

from tests.control.apps.test_deployments import deployment, images, template
from tests.control.apps.test_stateful_sets import stateful_set
from tests.control.stories import gpu_node, phases, pods, queue_of, told
from tests.support.control_objects import job
from tests.support.control_world import World
from unisono.cli.why.answer import answer
from unisono.cli.why.read import gather
from unisono.control.apps import DEPLOYMENT, STATEFUL_SET
from unisono.control.conditions import find, is_true
from unisono.control.names import CLUSTER_QUEUE, POD, QUEUE_LABEL, WORKLOAD
from unisono.kube.form import Json

QUEUE = {QUEUE_LABEL: "lq-cq"}


def server(image: str = "a", gpus: int = 1) -> Json:
    """Return the template of a server with a GPU."""
    made = template(image)
    made["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    return made


def queued(replicas: int = 4, image: str = "a", gpus: int = 1, **spec: Any) -> Json:
    """Return a Deployment in a queue."""
    made = deployment(replicas, **spec)
    made["metadata"]["labels"] = dict(QUEUE)
    made["spec"]["template"] = server(image, gpus)
    return made


def used(world: World) -> int:
    """Return how many GPUs of the queue are reserved."""
    status = world.get(CLUSTER_QUEUE, "cq", "")["status"]
    return sum(
        int(resource["total"])
        for flavor in status.get("flavorsReservation") or ()
        for resource in flavor["resources"]
        if resource["name"] == "nvidia.com/gpu"
    )


def waiting(world: World) -> list[str]:
    """Return the names of pods without a node."""
    return [name for name, pod in sorted(pods(world).items()) if not pod["spec"].get("nodeName")]


async def change(world: World, **spec: Any) -> None:
    await world.client.patch(DEPLOYMENT, "web", "default", {"spec": spec})
    await world.settle()


def test_pods_of_a_deployment_are_counted_and_wait_for_quota() -> None:
    async def story(world: World) -> None:
        await world.create(*queue_of(3), gpu_node("n1", 8), queued(4))
        await world.pass_time(10)
        assert list(phases(world).values()).count("Running") == 3
        assert used(world) == 3
        (name,) = waiting(world)
        (held,) = (one for one in world.every(WORKLOAD) if not one["status"].get("admission"))
        assert held["metadata"]["ownerReferences"][0]["name"] == name
        said = find(held["status"]["conditions"], "QuotaReserved")
        assert said is not None
        assert "insufficient unused quota for nvidia.com/gpu" in said["message"]
        ready = [
            is_true(one["status"]["conditions"], "PodsReady")
            for one in world.every(WORKLOAD)
            if one["status"].get("admission")
        ]
        assert ready == [True, True, True]
        await change(world, replicas=2)
        await world.pass_time(60)
        assert list(phases(world).values()) == ["Running"] * 2
        assert used(world) == 2, "what is scaled away frees its quota"
        assert len(world.every(WORKLOAD)) == 2

    told(story)


def test_a_pod_that_is_lost_is_replaced_within_quota() -> None:
    async def story(world: World) -> None:
        await world.create(*queue_of(2), gpu_node("n1", 8), queued(2))
        await world.pass_time(10)
        await world.client.delete(POD, min(phases(world)), "default")
        await world.pass_time(60)
        assert list(phases(world).values()) == ["Running"] * 2
        assert used(world) == 2

    told(story)


def test_a_more_urgent_gang_takes_pods_and_the_rest_waits_until_it_ends() -> None:
    async def story(world: World) -> None:
        objects = queue_of(4)
        objects[1]["spec"]["preemption"] = {"withinClusterQueue": "LowerPriority"}
        urgent = {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "WorkloadPriorityClass",
            "metadata": {"name": "urgent"},
            "value": 10,
        }
        await world.create(*objects, urgent, gpu_node("n1", 8), queued(4))
        await world.pass_time(10)
        await world.create(job("train", pods=2, gpus=1, seconds=100, priority_class="urgent"))
        await world.pass_time(60)
        assert len(waiting(world)) == 2
        assert used(world) == 4
        await world.pass_time(120)
        assert waiting(world) == []
        assert len([name for name in phases(world) if name.startswith("web")]) == 4

    told(story)


def test_a_rolling_update_within_full_quota_comes_to_an_end() -> None:
    async def story(world: World) -> None:
        await world.create(*queue_of(4), gpu_node("n1", 8), queued(4))
        await world.pass_time(10)
        await change(world, template=server("b"))
        for _ in range(120):
            await world.pass_time(2)
            assert used(world) <= 4
            assert list(phases(world).values()).count("Running") >= 3
        assert images(world) == {"b": 4}

    told(story)


def test_a_surge_that_no_quota_is_left_for_makes_an_old_pod_give_way() -> None:
    async def story(world: World) -> None:
        careful = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
        await world.create(*queue_of(2), gpu_node("n1", 8), queued(2, strategy=careful))
        await world.pass_time(10)
        await change(world, template=server("b"))
        await world.pass_time(50)
        assert images(world) == {"a": 2, "b": 1}, "it waits for quota first"
        await world.pass_time(600)
        assert images(world) == {"b": 2}
        assert "GivingWay" in {note.reason for note in world.notes}

    told(story)


def test_a_queue_that_is_named_later_or_no_more_changes_the_pods() -> None:
    async def story(world: World) -> None:
        made = queued(2)
        made["metadata"]["labels"] = {}
        await world.create(*queue_of(4), gpu_node("n1", 8), made)
        await world.pass_time(10)
        assert used(world) == 0
        for labels, expected in ((QUEUE, 2), ({QUEUE_LABEL: None}, 0)):
            await world.client.patch(DEPLOYMENT, "web", "default", {"metadata": {"labels": labels}})
            await world.pass_time(200)
            assert used(world) == expected
            assert list(phases(world).values()) == ["Running"] * 2

    told(story)


def test_pods_of_a_stateful_set_wait_in_its_order() -> None:
    async def story(world: World) -> None:
        made = stateful_set(3)
        made["metadata"]["labels"] = dict(QUEUE)
        made["spec"]["template"] = server()
        await world.create(*queue_of(2), gpu_node("n1", 8), made)
        await world.pass_time(60)
        assert waiting(world) == ["db-2"]
        assert used(world) == 2
        patch = {"spec": {"replicas": 1}}
        await world.client.patch(STATEFUL_SET, "db", "default", patch)
        await world.pass_time(100)
        assert list(phases(world)) == ["db-0"]
        assert used(world) == 1

    told(story)


def test_a_restart_at_any_time_leaves_no_pod_too_many_and_no_quota_behind() -> None:
    async def story(world: World) -> None:
        await world.create(*queue_of(3), gpu_node("n1", 8), queued(3))
        for step in range(120):
            if step == 60:
                patch = {"spec": {"template": server("b")}}
                await world.client.patch(DEPLOYMENT, "web", "default", patch)
            world.restart()
            await world.driver.step()
            await world.store.committed()
        await world.pass_time(600)
        assert images(world) == {"b": 3}
        assert used(world) == 3
        assert len(world.every(WORKLOAD)) == 3

    told(story)


def test_why_answers_for_a_deployment_by_what_waits() -> None:
    async def story(world: World) -> None:
        await world.create(*queue_of(3), gpu_node("n1", 8), queued(4))
        await world.pass_time(10)
        said = answer(await gather(world.client, world.get(DEPLOYMENT, "web")))
        assert (said["kind"], said["state"], said["queue"]) == ("Deployment", "waiting", "lq-cq")
        assert said["workload"].startswith(f"pod-{waiting(world)[0]}"[:40])
        assert said["pods"] == {"Running": 3, "Pending": 1}
        await change(world, replicas=3)
        await world.pass_time(60)
        said = answer(await gather(world.client, world.get(DEPLOYMENT, "web")))
        assert (said["state"], said["pods"]) == ("running", {"Running": 3})

    told(story)
