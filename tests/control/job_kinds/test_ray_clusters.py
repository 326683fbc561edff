"""Ray clusters: started, suspended, repaired (jobs §5, scenarios 17 and 18)."""

from __future__ import annotations

from typing import Any

from tests.control.stories import (
    EXAMPLES,
    delete,
    documents,
    env_of,
    gpu_node,
    pods,
    told,
)
from tests.support.control_world import World
from unisono.control.job_kinds import ray
from unisono.control.names import POD, SERVICE, WORKLOAD
from unisono.kube.form import Json

SEED = EXAMPLES / "seed-003-preemption"


def surroundings() -> list[Json]:
    """Return the queues of the seed, and a node with as much as the teams share."""
    gpus = gpu_node("n1", 4, cpu="16", memory="64G")
    gpus["metadata"]["labels"]["nvidia.com/gpu.present"] = "true"
    return [*documents(SEED / "00-kueue.yaml"), gpus]


async def set_up(world: World) -> None:
    """Begin as the seed does."""
    await world.create(*surroundings())
    await world.settle()


def dev() -> Json:
    """Return the cluster of team B."""
    return documents(SEED / "10-team-b-ray-cluster-dev.yaml")[0]


def prod() -> Json:
    """Return the cluster of team A."""
    return documents(SEED / "20-team-a-ray-cluster-prod.yaml")[0]


def row(world: World, name: str, space: str) -> tuple[Any, ...]:
    """Return what `kubectl get rayclusters` shows of a cluster."""
    status = world.get(ray.CLUSTER, name, space).get("status") or {}
    columns = (
        "desiredWorkerReplicas",
        "availableWorkerReplicas",
        "desiredCPU",
        "desiredMemory",
        "desiredGPU",
        "state",
    )
    return tuple(status.get(column, "") for column in columns)


def test_the_tables_of_the_seed() -> None:
    async def story(world: World) -> None:
        await set_up(world)
        await world.create(dev())
        await world.settle()
        assert row(world, "raycluster-dev", "team-b") == (2, 2, "6", "16G", "0", "ready")
        await world.create(prod())
        seen: set[tuple[str, ...]] = set()
        world.driver.on_outcome = lambda outcome: seen.add(
            tuple(sorted({pod["metadata"]["namespace"] for pod in world.every(POD)}))
        )
        await world.settle()
        assert row(world, "raycluster-prod", "team-a") == (2, 2, "10", "24G", "4", "ready")
        assert row(world, "raycluster-dev", "team-b") == (2, "", "6", "16G", "0", "suspended")
        assert {pod["metadata"]["namespace"] for pod in world.every(POD)} == {"team-a"}
        assert ("team-a", "team-b") not in seen

        await delete(world, ray.CLUSTER, "raycluster-prod", "team-a")
        assert row(world, "raycluster-dev", "team-b") == (2, 2, "6", "16G", "0", "ready")

    told(story)


def test_what_the_pods_know() -> None:
    async def story(world: World) -> None:
        await set_up(world)
        await world.create(prod())
        await world.settle()
        found = pods(world)
        (head,) = (pod for name, pod in found.items() if "-head-" in name)
        worker = next(pod for name, pod in found.items() if "-worker-" in name)
        assert head["metadata"]["labels"]["ray.io/node-type"] == "head"
        line = head["spec"]["containers"][0]["args"][0]
        assert "ray start --head" in line
        assert "--num-cpus=2" in line
        line = worker["spec"]["containers"][0]["args"][0]
        address = "raycluster-prod-head-svc.team-a.svc.cluster.local"
        assert f"--address={address}:6379" in line
        assert "--num-gpus=2" in line
        assert "--block" in line
        env = env_of(worker)
        assert (env["FQ_RAY_IP"], env["RAY_IP"]) == (address, "raycluster-prod-head-svc")
        assert env_of(head)["RAY_ADDRESS"] == "127.0.0.1:6379"
        assert worker["spec"]["initContainers"][0]["name"] == "wait-gcs-ready"
        service = world.get(SERVICE, "raycluster-prod-head-svc", "team-a")["spec"]
        assert {one["port"] for one in service["ports"]} == {6379, 10001, 8265, 8080, 8000}
        head_status = world.get(ray.CLUSTER, "raycluster-prod", "team-a")["status"]["head"]
        assert head_status["podName"] == head["metadata"]["name"]
        assert head_status["podIP"] == head["status"]["podIP"]

    told(story)


def test_a_worker_is_replaced_alone_and_all_pods_with_the_head() -> None:
    async def story(world: World) -> None:
        await set_up(world)
        await world.create(dev())
        await world.settle()
        before = uids(world)
        worker = next(name for name in before if "-worker-" in name)
        head = next(name for name in before if "-head-" in name)
        await delete(world, POD, worker, "team-b")
        after = uids(world)
        changed = {name for name in after if after[name] != before[name]}
        assert changed == {worker}
        assert row(world, "raycluster-dev", "team-b")[-1] == "ready"
        (workload,) = world.every(WORKLOAD)
        assert workload["status"]["admission"]["clusterQueue"] == "team-b-cq"

        await delete(world, POD, head, "team-b")
        last = uids(world)
        assert not set(last.values()) & set(after.values())
        assert len(last) == 3
        assert row(world, "raycluster-dev", "team-b") == (2, 2, "6", "16G", "0", "ready")

    told(story)


def test_a_pod_that_turns_up_while_its_cluster_rests_is_deleted() -> None:
    """Its creation had been given up and came late; the cluster never started again."""

    async def story(world: World) -> None:
        await set_up(world)
        await world.create(dev())
        await world.settle()
        made = next(pod for pod in world.every(POD) if "-head-" in pod["metadata"]["name"])
        (workload,) = world.every(WORKLOAD)
        name = workload["metadata"]["name"]
        await world.client.patch(WORKLOAD, name, "team-b", {"spec": {"active": False}})
        await world.pass_time(60)
        assert world.every(POD) == []
        kept = {key: made["metadata"][key] for key in ("name", "namespace", "labels")}
        kept |= {key: made["metadata"][key] for key in ("annotations", "ownerReferences")}
        spec = {key: value for key, value in made["spec"].items() if key != "nodeName"}
        await world.create({"apiVersion": "v1", "kind": "Pod", "metadata": kept, "spec": spec})
        await world.pass_time(60)
        assert world.every(POD) == []
        await world.client.patch(WORKLOAD, name, "team-b", {"spec": {"active": True}})
        await world.pass_time(60)
        assert row(world, "raycluster-dev", "team-b")[-1] == "ready"

    told(story)


def test_workers_come_and_go_while_the_head_stays() -> None:
    async def story(world: World) -> None:
        await set_up(world)
        await world.create(dev())
        await world.settle()
        before = uids(world)
        for replicas, cpu in ((3, "8"), (1, "4")):
            groups = dev()["spec"]["workerGroupSpecs"]
            groups[0] |= {"replicas": replicas, "maxReplicas": 5, "minReplicas": 0}
            live = world.get(ray.CLUSTER, "raycluster-dev", "team-b")["spec"]["workerGroupSpecs"]
            changed = [
                {**live[0], **{k: groups[0][k] for k in ("replicas", "maxReplicas", "minReplicas")}}
            ]
            changes = {"spec": {"workerGroupSpecs": changed}}
            await world.client.patch(ray.CLUSTER, "raycluster-dev", "team-b", changes)
            await world.pass_time(60)
            (workload,) = world.every(WORKLOAD)
            granted = workload["status"]["admission"]["podSetAssignments"]
            assert [one["count"] for one in granted] == [1, replicas]
            assert row(world, "raycluster-dev", "team-b")[0] == replicas
            assert row(world, "raycluster-dev", "team-b")[2] == cpu
            assert len(uids(world)) == replicas + 1
        head = next(name for name in before if "-head-" in name)
        assert uids(world)[head] == before[head]

    told(story)


def uids(world: World) -> dict[str, str]:
    """Return the uids of all pods by name."""
    return {name: pod["metadata"]["uid"] for name, pod in pods(world).items()}


def test_a_cluster_whose_head_is_refused_does_not_make_and_remove_its_workers_for_ever() -> None:
    """No head can be made, so its workers were sent away for want of one, and made again."""

    async def story(world: World) -> None:
        await set_up(world)
        made = dev()
        made["spec"]["headGroupSpec"]["template"]["spec"]["priorityClassName"] = "missing-class"
        await world.create(made)
        await world.settle(most=500)
        assert [note for note in world.notes if note.reason == "HeadLost"] == []
        assert world.every(POD) == []

    told(story)
