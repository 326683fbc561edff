"""StatefulSets: pods with lasting names, in order or all at once, and updates from the last on."""

from __future__ import annotations

from typing import Any

from tests.control.apps.test_deployments import LABELS, template
from tests.control.stories import phases, pods, told
from tests.runner.simulated_world import node
from tests.support.control_world import World
from unisono.control.apps import CONTROLLER_REVISION, STATEFUL_SET
from unisono.control.jobs.pods import is_ready
from unisono.control.names import CLAIM, POD
from unisono.kube.form import Json


def stateful_set(replicas: int = 3, image: str = "a", **spec: Any) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "serviceName": "db",
            "selector": {"matchLabels": LABELS},
            "template": template(image),
            **spec,
        },
    }


def images(world: World) -> dict[str, str]:
    return {
        name: pod["spec"]["containers"][0]["image"] for name, pod in sorted(pods(world).items())
    }


def status(world: World) -> Json:
    return dict(world.get(STATEFUL_SET, "db")["status"])


async def change(world: World, **spec: Any) -> None:
    await world.client.patch(STATEFUL_SET, "db", "default", {"spec": spec})
    await world.settle()


async def watched(world: World, seconds: int) -> list[dict[str, bool]]:
    """Move on second by second; return which pods were there, and ready."""
    seen: list[dict[str, bool]] = []
    for _ in range(seconds):
        await world.pass_time(1)
        now = {name: is_ready(pod) for name, pod in sorted(pods(world).items())}
        if not seen or seen[-1] != now:
            seen.append(now)
    return seen


def test_pods_come_one_after_the_other_and_go_backwards() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), stateful_set(3))
        for seen in await watched(world, 60):
            ready = list(seen.values())
            assert all(ready[:-1]), "one that is not ready is the last one"
        assert list(phases(world)) == ["db-0", "db-1", "db-2"]
        pod = pods(world)["db-1"]
        assert pod["spec"]["hostname"] == "db-1"
        assert pod["spec"]["subdomain"] == "db"
        assert pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "1"
        found = status(world)
        assert (found["readyReplicas"], found["updatedReplicas"]) == (3, 3)
        assert found["currentRevision"] == found["updateRevision"]
        await change(world, replicas=1)
        for seen in await watched(world, 120):
            assert list(seen) == [f"db-{number}" for number in range(len(seen))]
        assert list(phases(world)) == ["db-0"]

    told(story)


def test_parallel_pods_come_all_at_once() -> None:
    async def story(world: World) -> None:
        made = stateful_set(3, podManagementPolicy="Parallel", ordinals={"start": 5})
        await world.create(node("n1"), made)
        await world.settle()
        assert list(phases(world)) == ["db-5", "db-6", "db-7"]
        await change(world, replicas=0)
        await world.pass_time(60)
        assert phases(world) == {}

    told(story)


def test_a_lost_pod_comes_back_under_its_name() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), stateful_set(3))
        await world.pass_time(60)
        before = world.get(POD, "db-1")["metadata"]["uid"]
        await world.client.delete(POD, "db-1", "default")
        await world.pass_time(60)
        assert list(phases(world)) == ["db-0", "db-1", "db-2"]
        assert world.get(POD, "db-1")["metadata"]["uid"] != before

    told(story)


def test_an_update_goes_from_the_last_pod_down_to_the_partition() -> None:
    async def story(world: World) -> None:
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
        await world.create(node("n1"), stateful_set(3, updateStrategy=rolling))
        await world.pass_time(60)
        await change(world, template=template("b"))
        for seen in await watched(world, 150):
            assert sum(seen.values()) >= 2, "one at a time"
        assert images(world) == {"db-0": "a", "db-1": "b", "db-2": "b"}
        found = status(world)
        assert found["currentRevision"] != found["updateRevision"]
        assert (found["updatedReplicas"], found["currentReplicas"]) == (2, 1)
        # Below the partition a lost pod comes back as it was.
        await world.client.delete(POD, "db-0", "default")
        await world.pass_time(60)
        assert images(world)["db-0"] == "a"
        await change(world, updateStrategy={"rollingUpdate": {"partition": 0}})
        await world.pass_time(100)
        assert set(images(world).values()) == {"b"}
        assert status(world)["currentRevision"] == found["updateRevision"]
        assert len(world.every(CONTROLLER_REVISION)) == 2

    told(story)


def test_an_old_template_is_the_newest_revision_again() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), stateful_set(1))
        for image in ("b", "a"):
            await world.pass_time(60)
            await change(world, template=template(image))
        await world.pass_time(60)
        found = {
            one["data"]["spec"]["template"]["spec"]["containers"][0]["image"]: one["revision"]
            for one in world.every(CONTROLLER_REVISION)
        }
        assert found == {"a": 3, "b": 2}
        assert images(world) == {"db-0": "a"}

    told(story)


def test_on_delete_leaves_pods_alone() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), stateful_set(2, updateStrategy={"type": "OnDelete"}))
        await world.pass_time(60)
        await change(world, template=template("b"))
        await world.pass_time(60)
        assert images(world) == {"db-0": "a", "db-1": "a"}
        await world.client.delete(POD, "db-1", "default")
        await world.pass_time(60)
        assert images(world) == {"db-0": "a", "db-1": "b"}

    told(story)


def test_claims_come_with_pods_and_stay() -> None:
    async def story(world: World) -> None:
        claim = {
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
        await world.create(node("n1"), stateful_set(2, volumeClaimTemplates=[claim]))
        await world.pass_time(60)
        assert [one["metadata"]["name"] for one in world.every(CLAIM)] == ["data-db-0", "data-db-1"]
        assert pods(world)["db-1"]["spec"]["volumes"][-1] == {
            "name": "data",
            "persistentVolumeClaim": {"claimName": "data-db-1"},
        }
        await change(world, replicas=0)
        await world.pass_time(120)
        assert len(world.every(CLAIM)) == 2
        keep = {"whenScaled": "Delete", "whenDeleted": "Delete"}
        await change(world, persistentVolumeClaimRetentionPolicy=keep, replicas=1)
        await world.pass_time(60)
        assert [one["metadata"]["name"] for one in world.every(CLAIM)] == ["data-db-0"]
        await world.client.delete(STATEFUL_SET, "db", "default")
        await world.pass_time(60)
        assert world.every(CLAIM) == []

    told(story)
