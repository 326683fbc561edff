"""Deployments, ReplicaSets and ReplicationControllers keep and replace their pods."""

from __future__ import annotations

from typing import Any

import pytest

from tests.control.stories import delete, phases, pods, told
from tests.runner.simulated_world import node
from tests.support.control_world import World
from unisono.control.apps import DEPLOYMENT, REPLICA_SET, REPLICATION_CONTROLLER
from unisono.control.jobs.pods import is_ready
from unisono.control.names import POD
from unisono.kube.form import Json

LABELS = {"app": "web"}


def template(image: str = "a", **pod: Any) -> Json:
    """Return the template of a server that never ends."""
    container = {"name": "main", "image": image, "command": ["sleep", "1000000"]}
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [container], **pod}}


def deployment(replicas: int = 3, *, name: str = "web", image: str = "a", **spec: Any) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": LABELS},
            "template": template(image),
            **spec,
        },
    }


def images(world: World) -> dict[str, int]:
    """Return how many pods that are not going have each image."""
    found: dict[str, int] = {}
    for pod in pods(world).values():
        if "deletionTimestamp" not in pod["metadata"]:
            image = pod["spec"]["containers"][0]["image"]
            found[image] = found.get(image, 0) + 1
    return found


def status(world: World, name: str = "web") -> Json:
    return dict(world.get(DEPLOYMENT, name).get("status") or {})


def conditions(world: World) -> dict[str, str]:
    return {one["type"]: f"{one['status']} {one['reason']}" for one in status(world)["conditions"]}


async def change(world: World, name: str = "web", **spec: Any) -> None:
    await world.client.patch(DEPLOYMENT, name, "default", {"spec": spec})
    await world.settle()


def image_patch(image: str) -> Json:
    return template(image)


def test_makes_its_pods_and_counts_them() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), deployment(3))
        await world.pass_time(10)
        (one,) = world.every(REPLICA_SET)
        assert one["metadata"]["name"].startswith("web-")
        assert one["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"
        assert set(phases(world).values()) == {"Running"}
        assert all(name.startswith(one["metadata"]["name"]) for name in phases(world))
        found = status(world)
        assert (found["replicas"], found["updatedReplicas"], found["availableReplicas"]) == (
            3,
            3,
            3,
        )
        assert "unavailableReplicas" not in found
        generation = world.get(DEPLOYMENT, "web")["metadata"]["generation"]
        assert found["observedGeneration"] == generation
        assert conditions(world) == {
            "Available": "True MinimumReplicasAvailable",
            "Progressing": "True NewReplicaSetAvailable",
        }

    told(story)


def test_follows_its_number_and_replaces_what_is_lost() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), deployment(2))
        await world.pass_time(10)
        await change(world, replicas=5)
        assert len(phases(world)) == 5
        await delete(world, POD, next(iter(phases(world))))
        await world.pass_time(60)
        assert list(phases(world).values()) == ["Running"] * 5
        await change(world, replicas=0)
        await world.pass_time(60)
        assert phases(world) == {}
        assert "replicas" not in status(world)

    told(story)


def test_a_rolling_update_stays_within_its_bounds() -> None:
    async def story(world: World) -> None:
        strategy = {"rollingUpdate": {"maxSurge": 2, "maxUnavailable": 1}}
        await world.create(node("n1"), deployment(6, strategy=strategy))
        await world.pass_time(10)
        await world.client.patch(
            DEPLOYMENT, "web", "default", {"spec": {"template": template("b")}}
        )
        for _ in range(200):
            await world.settle()
            found = [
                pod for pod in pods(world).values() if "deletionTimestamp" not in pod["metadata"]
            ]
            assert len(found) <= 8
            assert sum(map(is_ready, found)) >= 5
            if images(world) == {"b": 6}:
                break
            await world.pass_time(1)
        await world.pass_time(60)
        assert images(world) == {"b": 6}
        assert status(world)["updatedReplicas"] == 6
        assert len(world.every(REPLICA_SET)) == 2

    told(story)


def test_recreate_waits_until_all_old_pods_are_gone() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), deployment(3, strategy={"type": "Recreate"}))
        await world.pass_time(10)
        await world.client.patch(
            DEPLOYMENT, "web", "default", {"spec": {"template": template("b")}}
        )
        for _ in range(100):
            await world.settle()
            there = {pod["spec"]["containers"][0]["image"] for pod in pods(world).values()}
            assert len(there) <= 1
            await world.pass_time(1)
        assert images(world) == {"b": 3}

    told(story)


def test_an_old_template_comes_back_with_its_set_and_a_new_revision() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), deployment(2, revisionHistoryLimit=1))
        for image in ("b", "c", "b"):
            await world.pass_time(100)
            await change(world, template=template(image))
        await world.pass_time(100)
        revisions = {
            one["spec"]["template"]["spec"]["containers"][0]["image"]: one["metadata"][
                "annotations"
            ]["deployment.kubernetes.io/revision"]
            for one in world.every(REPLICA_SET)
        }
        assert revisions == {"b": "4", "c": "3"}, "revision 1 is beyond the limit"
        assert images(world) == {"b": 2}
        said = world.get(DEPLOYMENT, "web")["metadata"]["annotations"]
        assert said["deployment.kubernetes.io/revision"] == "4"

    told(story)


def test_a_paused_one_scales_and_does_not_roll() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), deployment(2))
        await world.pass_time(10)
        await change(world, paused=True, template=template("b"))
        await change(world, replicas=3)
        await world.pass_time(100)
        assert images(world) == {"a": 3}
        await change(world, paused=False)
        await world.pass_time(100)
        assert images(world) == {"b": 3}

    told(story)


def test_a_rollout_that_cannot_go_on_says_so() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), deployment(2, progressDeadlineSeconds=60))
        await world.pass_time(10)
        await change(world, template=template("b", nodeSelector={"no": "such"}))
        await world.pass_time(100)
        assert images(world) == {"a": 2, "b": 1}
        assert conditions(world)["Progressing"] == "False ProgressDeadlineExceeded"

    told(story)


def test_min_ready_seconds_delay_availability() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), deployment(1, minReadySeconds=30))
        await world.pass_time(10)
        assert (status(world)["readyReplicas"], status(world).get("availableReplicas")) == (1, None)
        await world.pass_time(40)
        assert status(world)["availableReplicas"] == 1

    told(story)


def test_orphans_are_adopted_and_a_changed_label_releases_a_pod() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), deployment(2))
        await world.pass_time(10)
        before = set(phases(world))
        await world.client.delete(DEPLOYMENT, "web", "default", propagation="Orphan")
        await world.settle()
        (orphan,) = world.every(REPLICA_SET)
        assert not orphan["metadata"].get("ownerReferences")
        await world.create(deployment(2))
        await world.pass_time(10)
        assert set(phases(world)) == before
        await world.client.delete(
            REPLICA_SET, orphan["metadata"]["name"], "default", propagation="Orphan"
        )
        await world.pass_time(10)
        assert set(phases(world)) == before, "a new ReplicaSet has adopted them"
        one = min(before)
        await world.client.patch(POD, one, "default", {"metadata": {"labels": {"app": "debug"}}})
        await world.pass_time(10)
        assert not world.get(POD, one)["metadata"].get("ownerReferences")
        assert len(phases(world)) == 3

    told(story)


def test_a_restart_between_any_two_writes_makes_no_pod_too_many() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), deployment(4))
        for _ in range(60):
            world.restart()
            await world.driver.step()
            await world.store.committed()
            live = [
                pod for pod in pods(world).values() if "deletionTimestamp" not in pod["metadata"]
            ]
            assert len(live) <= 4
            assert len(world.every(REPLICA_SET)) <= 1
        await world.pass_time(60)
        assert len(phases(world)) == 4

    told(story)


@pytest.mark.parametrize("kind", [REPLICA_SET, REPLICATION_CONTROLLER])
def test_sets_by_themselves(kind: Any) -> None:
    async def story(world: World) -> None:
        selector = LABELS if kind == REPLICATION_CONTROLLER else {"matchLabels": LABELS}
        made = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": "s", "namespace": "default"},
            "spec": {"replicas": 2, "selector": selector, "template": template()},
        }
        await world.create(node("n1"), made)
        await world.pass_time(10)
        assert list(phases(world).values()) == ["Running"] * 2
        assert world.get(kind, "s")["status"]["availableReplicas"] == 2
        await delete(world, kind, "s")
        await world.pass_time(60)
        assert phases(world) == {}

    told(story)


def test_what_is_built_in_is_not_started_and_counts_as_available() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), deployment(2, name="kueue-controller-manager"))
        await world.pass_time(10)
        assert phases(world) == {}
        (condition,) = status(world, "kueue-controller-manager")["conditions"]
        assert (condition["type"], condition["reason"]) == ("Available", "BuiltIn")

    told(story)


def test_two_billion_replicas_are_an_event() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), deployment(2_000_000_000))
        await world.settle()
        assert len(phases(world)) <= 1000
        assert "TooManyPods" in {note.reason for note in world.notes}

    told(story)
