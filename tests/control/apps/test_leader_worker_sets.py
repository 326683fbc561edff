"""LeaderWorkerSets: each group is a gang, restarts as one, and is updated as one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.control.apps.test_deployments import template
from tests.control.apps.test_in_queues import used, waiting
from tests.control.stories import env_of, gpu_node, phases, pods, queue_of, told
from tests.support.control_world import World
from unisono.control.apps import LEADER_WORKER_SET
from unisono.control.conditions import find
from unisono.control.names import CLAIM, POD, QUEUE_LABEL, SERVICE, WORKLOAD
from unisono.kube.form import Json


def server(image: str = "a") -> Json:
    made = template(image)
    made["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    return made


def lws(replicas: int = 2, size: int = 2, *, queue: str = "lq-cq", **spec: Any) -> Json:
    """Return a set of groups with a GPU for each pod."""
    whole = {"size": size, "workerTemplate": server(), **spec.pop("template", {})}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {
            "name": "vllm",
            "namespace": "default",
            "labels": {QUEUE_LABEL: queue} if queue else {},
        },
        "spec": {"replicas": replicas, "leaderWorkerTemplate": whole, **spec},
    }


def status(world: World) -> Json:
    return dict(world.get(LEADER_WORKER_SET, "vllm")["status"])


async def change(world: World, **spec: Any) -> None:
    await world.client.patch(LEADER_WORKER_SET, "vllm", "default", {"spec": spec})
    await world.settle()


def images(world: World) -> dict[str, str]:
    found = sorted(pods(world).items())
    return {name: pod["spec"]["containers"][0]["image"] for name, pod in found}


def test_groups_start_and_their_pods_know_their_leader() -> None:
    async def story(world: World) -> None:
        await world.create(*queue_of(8), gpu_node("n1", 8), lws(2, 3))
        await world.pass_time(20)
        assert list(phases(world)) == [
            "vllm-0",
            "vllm-0-1",
            "vllm-0-2",
            "vllm-1",
            "vllm-1-1",
            "vllm-1-2",
        ]
        assert set(phases(world).values()) == {"Running"}
        pod = pods(world)["vllm-1-2"]
        assert env_of(pod) == {
            "LWS_LEADER_ADDRESS": "vllm-1.vllm.default",
            "LWS_GROUP_SIZE": "3",
            "LWS_WORKER_INDEX": "2",
        }
        labels = pod["metadata"]["labels"]
        assert labels["leaderworkerset.sigs.k8s.io/group-index"] == "1"
        assert pod["metadata"]["annotations"]["leaderworkerset.sigs.k8s.io/leader-name"] == "vllm-1"
        assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("vllm-1-2", "vllm")
        assert [one["metadata"]["name"] for one in world.every(SERVICE)].count("vllm") == 1
        found = status(world)
        assert (found["replicas"], found["readyReplicas"], found["updatedReplicas"]) == (2, 2, 2)
        available = find(found["conditions"], "Available")
        assert available is not None
        assert available["status"] == "True"
        assert used(world) == 6
        assert len(world.every(WORKLOAD)) == 2, "one for each group"

    told(story)


def test_a_group_that_does_not_fit_waits_whole() -> None:
    async def story(world: World) -> None:
        await world.create(*queue_of(5), gpu_node("n1", 8), lws(2, 3))
        await world.pass_time(200)
        assert waiting(world) == ["vllm-1", "vllm-1-1", "vllm-1-2"]
        assert used(world) == 3
        await change(world, replicas=1)
        await world.pass_time(60)
        assert list(phases(world)) == ["vllm-0", "vllm-0-1", "vllm-0-2"]
        assert len(world.every(WORKLOAD)) == 1
        await change(world, replicas=0)
        await world.pass_time(60)
        assert used(world) == 0

    told(story)


def test_without_a_queue_a_group_gets_its_nodes_whole() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1", 3), lws(2, 2, queue=""))
        await world.pass_time(60)
        assert list(phases(world).values()).count("Running") == 2
        assert len({name.split("-")[1] for name in waiting(world)}) == 1
        await world.create(gpu_node("n2", 1))
        await world.pass_time(60)
        assert waiting(world) == []

    told(story)


@pytest.mark.parametrize("how", ["deleted", "failed"])
def test_a_pod_that_is_lost_starts_its_group_anew(how: str) -> None:
    async def story(world: World) -> None:
        await world.create(*queue_of(8), gpu_node("n1", 8), lws(2, 2))
        await world.pass_time(20)
        before = {name: pod["metadata"]["uid"] for name, pod in pods(world).items()}
        if how == "deleted":
            await world.client.delete(POD, "vllm-1-1", "default")
        else:
            await world.set_status(POD, "vllm-1-1", {"phase": "Failed"})
        await world.pass_time(120)
        after = {name: pod["metadata"]["uid"] for name, pod in pods(world).items()}
        assert set(phases(world).values()) == {"Running"}
        assert sorted(after) == sorted(before)
        changed = [name for name in sorted(after) if after[name] != before[name]]
        assert changed == ["vllm-1", "vllm-1-1"]
        assert used(world) == 4

    told(story)


def test_with_none_only_the_lost_pod_is_replaced() -> None:
    async def story(world: World) -> None:
        made = lws(1, 3, template={"restartPolicy": "None"})
        await world.create(*queue_of(8), gpu_node("n1", 8), made)
        await world.pass_time(20)
        before = {name: pod["metadata"]["uid"] for name, pod in pods(world).items()}
        await world.client.delete(POD, "vllm-0-1", "default")
        await world.pass_time(120)
        after = {name: pod["metadata"]["uid"] for name, pod in pods(world).items()}
        assert [name for name in sorted(after) if after[name] != before[name]] == ["vllm-0-1"]
        assert set(phases(world).values()) == {"Running"}

    told(story)


def test_an_update_replaces_one_group_after_the_other_within_quota() -> None:
    async def story(world: World) -> None:
        rolling = {"rollingUpdateConfiguration": {"partition": 1, "maxUnavailable": 1}}
        made = lws(3, 2, rolloutStrategy={"type": "RollingUpdate", **rolling})
        await world.create(*queue_of(6), gpu_node("n1", 8), made)
        await world.pass_time(30)
        await change(world, leaderWorkerTemplate={"workerTemplate": server("b")})
        for _ in range(100):
            await world.pass_time(2)
            assert used(world) <= 6
            assert status(world)["readyReplicas"] >= 2
        assert set(images(world).items()) >= {("vllm-0", "a"), ("vllm-1", "b"), ("vllm-2-1", "b")}
        zero = {"rollingUpdateConfiguration": {"partition": 0}}
        await change(world, rolloutStrategy=zero)
        await world.pass_time(120)
        assert set(images(world).values()) == {"b"}
        assert len(world.every(WORKLOAD)) == 3

    told(story)


def test_workers_that_come_after_their_leader_are_queued_one_by_one() -> None:
    async def story(world: World) -> None:
        await world.create(*queue_of(2), gpu_node("n1", 8), lws(1, 3, startupPolicy="LeaderReady"))
        await world.pass_time(60)
        assert waiting(world) == ["vllm-0-2"]
        assert used(world) == 2

    told(story)


def test_claims_come_with_each_pod_and_stay() -> None:
    async def story(world: World) -> None:
        claim = {
            "metadata": {"name": "cache"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
        made = lws(1, 2, template={"volumeClaimTemplates": [claim]})
        await world.create(*queue_of(8), gpu_node("n1", 8), made)
        await world.pass_time(30)
        assert [one["metadata"]["name"] for one in world.every(CLAIM)] == [
            "cache-vllm-0",
            "cache-vllm-0-1",
        ]
        assert pods(world)["vllm-0-1"]["spec"]["volumes"][-1] == {
            "name": "cache",
            "persistentVolumeClaim": {"claimName": "cache-vllm-0-1"},
        }
        await change(world, replicas=0)
        await world.pass_time(60)
        assert phases(world) == {}
        assert len(world.every(CLAIM)) == 2

    told(story)


def test_a_restart_at_any_time_leaves_no_half_group() -> None:
    async def story(world: World) -> None:
        await world.create(*queue_of(4), gpu_node("n1", 8), lws(3, 2))
        for _ in range(120):
            world.restart()
            await world.driver.step()
            await world.store.committed()
            assert len(pods(world)) <= 6
        await world.pass_time(300)
        assert list(phases(world).values()).count("Running") == 4
        assert used(world) == 4
        assert len({name.split("-")[1] for name in waiting(world)}) == 1

    told(story)
