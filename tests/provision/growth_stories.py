"""Stories of gangs that grow while they run, on machines that are bought for the new pods."""

from __future__ import annotations

from tests.support.control_objects import GPU, queue
from tests.support.control_world import World
from tests.support.provisioning_world import bound, claims, cloud, condition, pool, told
from unisono.control import names
from unisono.control.job_kinds.ray import CLUSTER
from unisono.kube.form import Json

TYPES = ("g6e.48xlarge", "m6i.2xlarge")


def ray_cluster(workers: int) -> Json:
    """Return a cluster whose workers have eight GPUs each."""

    def template(**amounts: str) -> Json:
        container = {"name": "ray", "image": "ray", "resources": {"limits": amounts}}
        return {"spec": {"containers": [container]}}

    group = {
        "groupName": "gpu",
        "replicas": workers,
        "minReplicas": 2,
        "maxReplicas": 6,
        "rayStartParams": {},
        "template": template(**{GPU: "8"}),
    }
    return {
        "apiVersion": CLUSTER.api_version,
        "kind": CLUSTER.kind,
        "metadata": {
            "name": "ray",
            "namespace": "default",
            "labels": {"kueue.x-k8s.io/queue-name": "lq-cq"},
        },
        "spec": {
            "headGroupSpec": {"rayStartParams": {}, "template": template()},
            "workerGroupSpecs": [group],
        },
    }


async def scale(world: World, workers: int) -> None:
    """Let the cluster want so many workers, as an autoscaler does."""
    groups = ray_cluster(workers)["spec"]["workerGroupSpecs"]
    live = world.get(CLUSTER, "ray")["spec"]["workerGroupSpecs"]
    groups[0]["template"] = live[0]["template"]
    await world.client.patch(CLUSTER, "ray", "default", {"spec": {"workerGroupSpecs": groups}})


def workers(world: World) -> dict[str, str]:
    """Return the nodes of workers."""
    return {name: on for name, on in bound(world).items() if "head" not in name}


def slices(world: World) -> list[Json]:
    """Return what asks for more pods than a job has."""
    workloads = world.every(names.WORKLOAD)
    return [one for one in workloads if one["metadata"]["name"].endswith("-slice")]


def a_gang_grows_by_what_can_be_bought() -> None:
    """Two workers run; of four more there are machines for two, which join. Nothing restarts."""

    async def story(world: World) -> None:
        await world.create(*queue(gpus=64), pool(types=TYPES, zones=("us-east-1a",)))
        await world.create(cloud(stock={"g6e.48xlarge": 4}))
        await world.create(ray_cluster(2))
        await world.pass_time(120)
        before = workers(world)
        assert len(before) == 2
        await scale(world, 6)
        await world.pass_time(20)
        assert workers(world) == before, "they run on meanwhile"
        await world.pass_time(400)
        after = workers(world)
        assert len(after) == 4
        assert before.items() <= after.items(), "no pod moved or restarted"
        assert len(set(after.values())) == 4
        gpus = [one for one in claims(world) if "g6e" in str(one["spec"]["requirements"])]
        assert len(gpus) == 4
        (asks,) = slices(world)
        assert condition(asks, "QuotaReserved")["status"] == "False"
        assert "no machines can be bought" in condition(asks, "QuotaReserved")["message"]
        assert asks["spec"]["podSets"][1]["count"] == 6, "the other two stay wanted"
        (flavor,) = world.get(names.CLUSTER_QUEUE, "cq")["status"]["flavorsUsage"]
        used = {one["name"]: one["total"] for one in flavor["resources"]}
        assert used[GPU] == "32"

    told(story)


def growth_that_fails_leaves_the_gang_alone() -> None:
    """Machines for new pods never come up: they are given up, and running pods do not notice."""

    async def story(world: World) -> None:
        await world.create(*queue(gpus=64), pool(types=TYPES, zones=("us-east-1a",)))
        await world.create(ray_cluster(2))
        await world.pass_time(120)
        before = bound(world)
        await world.create(cloud(failures={"register": 1.0}))
        await scale(world, 3)
        await world.pass_time(20)
        reserved = world.get(names.CLUSTER_QUEUE, "cq")["status"]["flavorsReservation"]
        assert {one["name"]: one["total"] for one in reserved[0]["resources"]}[GPU] == "24"
        await world.pass_time(17 * 60)
        assert {pod: on for pod, on in bound(world).items() if pod in before} == before
        await scale(world, 2)
        await world.pass_time(60)
        assert slices(world) == []
        assert bound(world) == before
        gpus = [one for one in claims(world) if "g6e" in str(one["spec"]["requirements"])]
        assert len(gpus) == 2, "what was bought for the third went"

    told(story)
