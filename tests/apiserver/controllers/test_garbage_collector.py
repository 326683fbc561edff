"""Beyond a number the oldest ended pods are removed, and none that a finalizer holds."""

from __future__ import annotations

import pytest

from tests.control.stories import told
from tests.support.control_world import World
from unisono.apiserver.controllers import garbage_collector
from unisono.control.names import POD


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
