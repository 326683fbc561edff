"""Volcano jobs and nodes: lost ones, close ones, tasks that come later; and what plugins say."""

from __future__ import annotations

import json

from tests.control.job_kinds.test_volcano_policies import task, vcjob
from tests.control.stories import env_of, gpu_node, nodes_of, phases, pods, told
from tests.support.control_world import World
from unisono.control.job_kinds import volcano
from unisono.control.names import NODE
from unisono.kube.form import Json


def test_a_lost_node_costs_no_retry() -> None:
    async def story(world: World) -> None:
        job = vcjob(
            task("w", 2, gpus=2),
            policies=[{"events": ["PodEvicted", "PodFailed"], "action": "RestartJob"}],
        )
        await world.create(gpu_node("n1", 2), gpu_node("n2", 2), job)
        await world.settle()
        await world.create(gpu_node("n3", 2))
        await world.settle()
        lost = {
            "type": "Ready",
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "message": "",
            "lastTransitionTime": "2023-11-14T22:13:30Z",
        }
        await world.set_status(NODE, "n1", {"conditions": [lost]}, "")
        await world.settle()
        await world.pass_time(60)
        assert sorted(nodes_of(world).values()) == ["n2", "n3"]
        assert set(phases(world).values()) == {"Running"}
        status = world.get(volcano.JOB, "j")["status"]
        assert (status["state"]["phase"], status.get("retryCount", 0)) == ("Running", 0)

    told(story)


def test_a_task_that_depends_on_another_comes_later_into_its_kept_place() -> None:
    async def story(world: World) -> None:
        job = vcjob(
            task("ps", 1, start_seconds="10"),
            {**task("w", 2), "dependsOn": {"name": ["ps"]}},
        )
        await world.create(gpu_node("n1", 2), job)
        await world.settle()
        assert phases(world) == {}  # places for all, or no pod starts
        await world.create(gpu_node("n2", 1))
        await world.settle()
        assert phases(world) == {"j-ps-0": "Pending"}
        await world.pass_time(11)
        assert phases(world) == {"j-ps-0": "Running", "j-w-0": "Running", "j-w-1": "Running"}

    told(story)


def hypernode(name: str, *members: str) -> Json:
    """Return a HyperNode of the lowest tier."""
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {
            "tier": 1,
            "members": [
                {"type": "Node", "selector": {"exactMatch": {"name": one}}} for one in members
            ],
        },
    }


def test_a_job_with_a_network_topology_stays_below_one_switch() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1", 1), gpu_node("n2", 1), gpu_node("n3", 1))
        await world.create(hypernode("left", "n1"), hypernode("right", "n2", "n3"))
        close = {"mode": "hard", "highestTierAllowed": 1}
        await world.create(vcjob(task("a", 1), task("b", 1), networkTopology=close))
        await world.settle()
        assert sorted(nodes_of(world).values()) == ["n2", "n3"]

    told(story)


def test_what_the_plugins_of_frameworks_say() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1", 9))
        tasks = [task("master", 1), task("worker", 2)]
        await world.create(vcjob(*tasks, plugins={"pytorch": ["--port=29500"]}))
        await world.settle()
        env = env_of(pods(world)["j-worker-1"])
        names = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")
        assert [env[name] for name in names] == ["j-master-0.j", "29500", "3", "2"]

        mpi = vcjob(*tasks, plugins={"mpi": []})
        mpi["metadata"]["name"] = "m"
        tensorflow = vcjob(task("ps", 1), task("worker", 1), plugins={"tensorflow": []})
        tensorflow["metadata"]["name"] = "t"
        await world.create(mpi, tensorflow)
        await world.settle()
        env = env_of(pods(world)["m-master-0"])
        assert env["MPI_HOST"] == "m-worker-0.m,m-worker-1.m"
        mounts = pods(world)["m-worker-0"]["spec"]["containers"][0]["volumeMounts"]
        assert "/root/.ssh" in {one["mountPath"] for one in mounts}
        config = json.loads(env_of(pods(world)["t-worker-0"])["TF_CONFIG"])
        assert config["cluster"]["ps"] == ["t-ps-0.t:2222"]
        assert config["task"] == {"type": "worker", "index": 0}

    told(story)
