"""Queues and groups of other schedulers: kept as ours, and jobs that name them queue there."""

from __future__ import annotations

from typing import Any

from tests.control.stories import gpu_node, namespace, phases, told
from tests.support.control_objects import job
from tests.support.control_world import World
from unisono.cli.why.answer import answer
from unisono.cli.why.read import gather
from unisono.control.foreign_queues import ELASTIC_QUOTA, KAI_GROUP, KAI_QUEUE
from unisono.control.job_kinds import volcano
from unisono.control.names import JOB, POD, VOLCANO_QUEUE
from unisono.kube.form import Json


def kai_queue(name: str, *, gpus: float = -1, parent: str = "", quota: float = -1) -> Json:
    """Return a queue of KAI with a limit of GPUs."""
    endless = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    resources = {
        "cpu": endless,
        "memory": endless,
        "gpu": endless | {"quota": quota, "limit": gpus},
    }
    return {
        "apiVersion": KAI_QUEUE.api_version,
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"resources": resources} | ({"parentQueue": parent} if parent else {}),
    }


def kai_job(name: str, queue: str, **more: Any) -> Json:
    """Return a job of one pod that names a queue of KAI."""
    made = job(name, pods=1, queue_name="", **more)
    made["metadata"]["labels"] = {"kai.scheduler/queue": queue}
    return made


def test_a_limit_of_a_kai_queue_holds_and_a_child_has_its_parent() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1", 8))
        await world.create(kai_queue("team", gpus=2, parent="all", quota=1))
        await world.create(kai_queue("all"))
        await world.settle()
        kept = world.get(VOLCANO_QUEUE, "kai-team")["spec"]
        assert kept["capability"] == {"nvidia.com/gpu": "2"}
        assert kept["deserved"] == {"nvidia.com/gpu": "1"}
        assert kept["parent"] == "kai-all"
        above = world.get(VOLCANO_QUEUE, "kai-all")["spec"]
        assert above["deserved"] == {"nvidia.com/gpu": "1"}
        assert "capability" not in above
        await world.create(kai_job("a", "team", gpus=2), kai_job("b", "team", gpus=2))
        await world.settle()
        assert len(phases(world)) == 1
        why = answer(await gather(world.client, world.get(JOB, "b")))
        assert (why["state"], why["queue"]) == ("waiting", "volcano.kai-team")
        assert "nvidia.com/gpu" in why["message"]
        wider = {"spec": {"resources": {"gpu": {"quota": 4, "limit": 4}}}}
        await world.client.patch(KAI_QUEUE, "team", "", wider)
        await world.settle()
        assert len(phases(world)) == 2

    told(story)


def test_amounts_beyond_all_measure_are_bounded_or_left_out() -> None:
    async def story(world: World) -> None:
        queue = kai_queue("odd", gpus=10**18, quota=1234567.5)
        queue["spec"]["resources"]["cpu"] = {"quota": "many", "limit": -7}
        quota = {
            "apiVersion": ELASTIC_QUOTA.api_version,
            "kind": ELASTIC_QUOTA.kind,
            "metadata": {"name": "odd", "namespace": "default"},
            "spec": {"max": {"cpu": 4, "memory": "1Gi"}, "min": {"cpu": 8, "memory": "1Gi"}},
        }
        await world.create(queue, quota)
        await world.settle()
        kept = world.get(VOLCANO_QUEUE, "kai-odd")["spec"]
        assert kept["deserved"] == {"nvidia.com/gpu": "1234567.5"}
        assert kept["capability"] == {"nvidia.com/gpu": "1000000000000"}
        kept = world.get(VOLCANO_QUEUE, "elasticquota-default-odd")["spec"]
        assert kept["deserved"] == {"memory": "1Gi"}
        assert kept["capability"] == {"cpu": "4", "memory": "1Gi"}

    told(story)


def test_a_kai_queue_that_is_deleted_takes_its_own_along() -> None:
    async def story(world: World) -> None:
        await world.create(kai_queue("team"))
        theirs = {
            "apiVersion": VOLCANO_QUEUE.api_version,
            "kind": "Queue",
            "metadata": {"name": "kai-mine"},
            "spec": {"weight": 3},
        }
        await world.create(theirs, kai_queue("mine", gpus=1))
        await world.settle()
        assert world.get(VOLCANO_QUEUE, "kai-mine")["spec"].get("capability") is None
        await world.client.delete(KAI_QUEUE, "team", "")
        await world.client.delete(KAI_QUEUE, "mine", "")
        await world.settle()
        kept = {one["metadata"]["name"] for one in world.every(VOLCANO_QUEUE)}
        assert "kai-team" not in kept
        assert "kai-mine" in kept

    told(story)


def test_the_quota_of_a_namespace_counts_its_jobs() -> None:
    async def story(world: World) -> None:
        quota = {
            "apiVersion": ELASTIC_QUOTA.api_version,
            "kind": ELASTIC_QUOTA.kind,
            "metadata": {"name": "gpus", "namespace": "team"},
            "spec": {"max": {"nvidia.com/gpu": 2}, "min": {"nvidia.com/gpu": 1}},
        }
        await world.create(namespace("team"), gpu_node("n1", 8), quota)
        await world.settle()
        for name in ("a", "b"):
            made = job(name, pods=1, gpus=2, queue_name="")
            made["metadata"] = {"name": name, "namespace": "team"}
            await world.create(made)
        await world.settle()
        assert [pod["status"]["phase"] for pod in world.every(POD)] == ["Running"]
        why = answer(await gather(world.client, world.get(JOB, "b", "team")))
        assert (why["state"], why["queue"]) == ("waiting", "volcano.elasticquota-team-gpus")
        await world.client.delete(ELASTIC_QUOTA, "gpus", "team")
        await world.settle()
        names = {one["metadata"]["name"] for one in world.every(VOLCANO_QUEUE)}
        assert "elasticquota-team-gpus" not in names

    told(story)


def test_pods_of_a_kai_group_start_together() -> None:
    async def story(world: World) -> None:
        group = {
            "apiVersion": KAI_GROUP.api_version,
            "kind": "PodGroup",
            "metadata": {"name": "g", "namespace": "default"},
            "spec": {
                "minSubGroup": 2,
                "subGroups": [
                    {"name": "decode", "minMember": 2},
                    {"name": "prefill", "minMember": 1},
                    {"name": "spare", "minMember": 4},
                ],
            },
        }
        await world.create(group)
        await world.settle()
        assert world.get(volcano.POD_GROUP, "g")["spec"]["minMember"] == 3
        for index in range(3):
            limits = {"nvidia.com/gpu": "4"}
            container = {"name": "c", "image": "i", "resources": {"limits": limits}}
            pod = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"p{index}",
                    "namespace": "default",
                    "annotations": {"pod-group-name": "g"},
                },
                "spec": {"schedulerName": "kai-scheduler", "containers": [container]},
            }
            await world.create(pod)
        await world.create(gpu_node("n1", 8))
        await world.settle()
        assert set(phases(world).values()) == {"Pending"}
        await world.create(gpu_node("n2", 8))
        await world.settle()
        assert set(phases(world).values()) == {"Running"}

    told(story)
