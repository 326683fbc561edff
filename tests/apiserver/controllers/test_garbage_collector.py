"""What is collected: what has no owner left, and ended pods beyond a number."""

from __future__ import annotations

import pytest

from tests.control.stories import told
from tests.support.control_world import World
from unisono.apiserver.controllers import garbage_collector
from unisono.control.names import CONFIG_MAP, NAMESPACE, POD
from unisono.kube.form import Json
from unisono.kube.mapping import Kind

CRD = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def _pod(name: str, **metadata: object) -> dict[str, object]:
    container = {"name": "main", "image": "x"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": {"containers": [container], "nodeName": "gone"},
    }


def test_removes_the_oldest_ended_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage_collector, "MOST_ENDED_PODS", 2)

    async def story(world: World) -> None:
        for name in ("counted", "first", "runs", "second", "third", "fourth"):
            held = {"finalizers": ["batch.kubernetes.io/job-tracking"]}
            await world.client.create(_pod(name, **(held if name == "counted" else {})))
            phase = "Running" if name == "runs" else "Succeeded"
            await world.set_status(POD, name, {"phase": phase})
        assert world.api.tidy() == 2
        await world.store.committed()
        left = {pod["metadata"]["name"] for pod in (await world.client.list(POD)).items}
        assert left == {"counted", "runs", "third", "fourth"}
        assert world.api.tidy() == 0

    told(story)


# ---- owners --------------------------------------------------------------------------------------


def _namespace(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _owned(name: str, *owners: Json, **metadata: object) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": "default",
            "ownerReferences": [*owners],
            **metadata,
        },
    }


def _owner(kind: str, api_version: str, uid: str = "gone", **more: object) -> Json:
    return {"apiVersion": api_version, "kind": kind, "name": "o", "uid": uid, **more}


def _widgets(**spec: object) -> Json:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
            **spec,
        },
    }


async def _left(world: World) -> list[str]:
    await world.settle()
    await world.store.committed()
    found = (await world.client.list(CONFIG_MAP)).items
    return sorted(one["metadata"]["name"] for one in found if "o" in one["metadata"]["name"])


WIDGET = _owner("Widget", "example.org/v1")


@pytest.mark.parametrize(
    "owners",
    [(WIDGET,), (_owner("Job", "batch/v1beta7"),), (_owner("Job", "batch/v1"), WIDGET)],
    ids=["kind", "version", "one of two"],
)
def test_leaves_what_names_an_owner_of_a_kind_that_is_not_served(owners: tuple[Json, ...]) -> None:
    async def story(world: World) -> None:
        await world.client.create(_owned("o", *owners))
        assert await _left(world) == ["o"]
        world.api.garbage_collector.sweep()
        assert await _left(world) == ["o"]
        (kept,) = [one for one in world.every(CONFIG_MAP) if one["metadata"]["name"] == "o"]
        assert len(kept["metadata"]["ownerReferences"]) == len(owners)

    told(story)


def test_collects_it_once_the_kind_is_served() -> None:
    async def story(world: World) -> None:
        await world.client.create(_owned("o", WIDGET))
        assert await _left(world) == ["o"]
        await world.client.create(_widgets())
        assert await _left(world) == []

    told(story)


def test_collects_what_names_an_owner_that_never_was() -> None:
    async def story(world: World) -> None:
        await world.client.create(_owned("o", _owner("Job", "batch/v1")))
        assert await _left(world) == []

    told(story)


def test_collects_what_was_owned_by_an_object_that_went_with_its_definition() -> None:
    async def story(world: World) -> None:
        await world.client.create(_widgets())
        widget = {
            "apiVersion": "example.org/v1",
            "kind": "Widget",
            "metadata": {"name": "o", "namespace": "default"},
        }
        made = await world.client.create(widget)
        uid = made["metadata"]["uid"]
        await world.client.create(_owned("o", _owner("Widget", "example.org/v1", uid)))
        assert await _left(world) == ["o"]
        await world.client.delete(CRD, "widgets.example.org")
        assert await _left(world) == []

    told(story)


def test_an_owner_in_another_namespace_is_none() -> None:
    """Nor can what names it hold up its deletion."""

    async def story(world: World) -> None:
        await world.client.create(_namespace("other"))
        made = await world.client.create(_owned("owner", namespace="other", ownerReferences=[]))
        uid = made["metadata"]["uid"]
        foreign = _owner("ConfigMap", "v1", uid, blockOwnerDeletion=True)
        held = _owned("o", foreign, finalizers=["example.org/never"])
        await world.client.create(held)
        await world.client.create(_owned("o2", foreign))
        await world.settle()
        await world.client.delete(CONFIG_MAP, "owner", "other", propagation="Foreground")
        assert await _left(world) == ["o"], "its own finalizer keeps it"

    told(story)


def test_what_is_of_no_namespace_cannot_be_owned_by_what_is_in_one() -> None:
    async def story(world: World) -> None:
        space = _namespace("o")
        space["metadata"]["ownerReferences"] = [_owner("Job", "batch/v1")]
        await world.client.create(space)
        await world.settle()
        assert "o" in {one["metadata"]["name"] for one in world.every(NAMESPACE)}

    told(story)
