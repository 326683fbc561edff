"""DaemonSets: a pod on every node that the template accepts."""

from __future__ import annotations

from typing import Any

from tests.control.apps.test_deployments import LABELS, template
from tests.control.stories import nodes_of, pods, told
from tests.runner.simulated_world import node
from tests.support.control_world import World
from unisono.control.apps import DAEMON_SET
from unisono.control.names import NODE
from unisono.kube.form import Json


def daemon_set(image: str = "a", *, pod: Json | None = None, **spec: Any) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": LABELS},
            "template": template(image, **(pod or {})),
            **spec,
        },
    }


def status(world: World) -> Json:
    return dict(world.get(DAEMON_SET, "agent")["status"])


def test_every_node_gets_one_and_new_nodes_too() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), node("n2"), daemon_set())
        await world.pass_time(10)
        assert sorted(nodes_of(world).values()) == ["n1", "n2"]
        await world.create(node("n3"))
        await world.pass_time(10)
        assert sorted(nodes_of(world).values()) == ["n1", "n2", "n3"]
        found = status(world)
        assert (found["desiredNumberScheduled"], found["numberAvailable"]) == (3, 3)
        await world.client.delete(NODE, "n2", "")
        await world.pass_time(120)
        assert sorted(nodes_of(world).values()) == ["n1", "n3"]

    told(story)


def test_selector_and_taints_choose_nodes() -> None:
    async def story(world: World) -> None:
        gpu, tainted = node("gpu"), node("tainted")
        gpu["metadata"]["labels"]["accelerator"] = "yes"
        tainted["metadata"]["labels"]["accelerator"] = "yes"
        tainted["spec"]["taints"] = [{"key": "team", "value": "x", "effect": "NoSchedule"}]
        made = daemon_set(pod={"nodeSelector": {"accelerator": "yes"}})
        await world.create(node("n1"), gpu, tainted, made)
        await world.pass_time(10)
        assert sorted(nodes_of(world).values()) == ["gpu"]
        # A cordoned node keeps its pod, and a new one would come there, too.
        await world.client.patch(NODE, "gpu", "", {"spec": {"unschedulable": True}})
        await world.pass_time(10)
        assert sorted(nodes_of(world).values()) == ["gpu"]
        await world.client.patch(NODE, "gpu", "", {"metadata": {"labels": {"accelerator": None}}})
        await world.pass_time(60)
        assert nodes_of(world) == {}

    told(story)


def test_pods_are_replaced_one_node_at_a_time() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), node("n2"), node("n3"), daemon_set())
        await world.pass_time(10)
        spec = {"template": template("b")}
        await world.client.patch(DAEMON_SET, "agent", "default", {"spec": spec})
        for _ in range(150):
            await world.pass_time(1)
            assert status(world).get("numberUnavailable", 0) <= 1
        images = [pod["spec"]["containers"][0]["image"] for pod in pods(world).values()]
        assert images == ["b", "b", "b"]
        assert status(world)["updatedNumberScheduled"] == 3

    told(story)
