"""What pages show of GPUs in use: their pods, idle gangs, slow pods."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pytest

from tests.monitor import objects
from unisono.kube.form import Json
from unisono.kube.mapping import POD
from unisono.monitor.cache import NODE, WORKLOAD, ClusterCache, fill
from unisono.monitor.gpu_history import STEP_SECONDS, GpuHistory, Sample
from unisono.web.auth import Permissions, everything
from unisono.web.dashboard import Dashboard
from unisono.web.pages import Pages
from unisono.web.view_models import PageModel

NOW = 1_767_265_200.0  # 2026-01-01T11:00:00Z
OWNER = everything("kim")
GANG = {"page": "gang", "namespace": "team-a", "name": "gang"}
DEVICES = tuple(("n1", at) for at in range(8))


class Measured:
    """A node of 8 GPUs; two pods of a gang have three each."""

    def __init__(self) -> None:
        cache = ClusterCache()
        running = objects.workload(
            "gang",
            gpus=6,
            QuotaReserved="2026-01-01T10:01:00Z",
            Admitted="2026-01-01T10:01:30Z",
            PodsReady="2026-01-01T10:02:00Z",
        )
        fill(cache, NODE, (objects.node("n1"),))
        fill(cache, WORKLOAD, (running,))
        fill(cache, POD, tuple(objects.pod(name, on="n1", gpus=3) for name in "ab"))
        self.cache = cache
        self.history = GpuHistory()
        self.pages = Pages(
            Dashboard(cache, lambda kind, name, namespace: running),
            now=lambda: NOW,
            history=self.history,
        )

    def measure(self, *busy: float, at: float = NOW, **pods: tuple[int, ...]) -> None:
        """Take a point; `a=(0, 1)` says that these devices are the pod's."""
        values = np.array([busy, [10.0] * 8, [50.0 + i for i in range(8)], [100.0] * 8])
        of = {("n1", at): ("team-a", name) for name, some in pods.items() for at in some}
        memory = np.full(8, 80.0, dtype=np.float32)
        self.history.take(Sample(at, DEVICES, values.astype(np.float32), memory, of))

    def show(self, permissions: Permissions = OWNER, **asked: str) -> PageModel:
        return asyncio.run(self.pages.show(asked or GANG, permissions))


@pytest.fixture
def measured() -> Measured:
    return Measured()


BUSY = (90.0, 90.0, 90.0, 30.0, 30.0, 30.0, 0.0, 0.0)


def test_a_gang_and_its_pods(measured: Measured) -> None:
    assert measured.show().head["use"] is None
    measured.measure(*BUSY)
    shown = measured.show()
    use = shown.head["use"]
    assert (use["devices"], use["busy"], use["least"], use["watts"]) == (6, 60.0, 30.0, 600.0)
    assert (use["used"], use["memory"], use["hottest"], use["idle"]) == (60.0, 480.0, 55.0, False)
    assert use["series"]["busy"][-1] == 60.0
    busy = {name: row["use"]["busy"] for name, row in shown.rows.items()}
    assert busy == {"a": 90.0, "b": 30.0}


def test_measured_owners_win_over_assumed_ones(measured: Measured) -> None:
    measured.measure(*BUSY, a=(3, 4, 5), b=(6,))
    busy = {name: row["use"]["busy"] for name, row in measured.show().rows.items()}
    assert busy == {"a": 30.0, "b": 0.0}


def test_old_values_are_not_shown(measured: Measured) -> None:
    measured.measure(*BUSY, at=NOW - 100)
    assert measured.show().head["use"] is None
    assert measured.show(page="map", colour="busy").head["measured"] is False


def test_a_gang_that_does_nothing_for_ten_minutes_is_idle(measured: Measured) -> None:
    for number in range(45):
        measured.measure(*[1.0] * 8, at=NOW - (44 - number) * STEP_SECONDS)
    assert measured.show().head["use"]["idle"] is True
    row = measured.show(page="workloads").rows["team-a/gang"]
    assert (row["busy"], row["idle"]) == (1, True)
    measured.measure(*[95.0] * 8)
    assert measured.show().head["use"]["idle"] is False


def test_pods_that_hold_their_gang_up_are_named(measured: Measured) -> None:
    pods = []
    for name, seconds in (("a", 1.0), ("b", 1.0), ("c", 1.02), ("d", 2.0)):
        paces = {"step": 5, "at": "2026-01-01T10:59:00Z", "paces": [seconds] * 5}
        told = {"unisono.dev/progress": json.dumps(paces)}
        pods.append(objects.pod(name, on="n1", gpus=2, annotations=told))
    fill(measured.cache, POD, tuple(pods))
    measured.pages = Pages(Dashboard(measured.cache), now=lambda: NOW, history=measured.history)
    slower = {name: row["slower"] for name, row in measured.show().rows.items()}
    assert slower == {"a": 0, "b": 0, "c": 0, "d": 1.98}


def test_a_node_device_by_device(measured: Measured) -> None:
    measured.measure(*BUSY)
    head = measured.show(page="node", name="n1").head
    assert [one["busy"] for one in head["devices"]] == list(BUSY)
    assert head["devices"][7]["hottest"] == 57.0
    assert head["use"]["busy"] == 45.0
    assert "pods" not in head
    listed = measured.show(page="nodes").rows["n1"]
    assert (listed["busy"], listed["hottest"]) == (45.0, 57.0)


def test_the_map_is_coloured_by_what_is_asked_for(measured: Measured) -> None:
    measured.measure(*BUSY)

    def row(colour: str) -> Json:
        return measured.show(page="map", colour=colour).rows["n1"]

    assert "values" not in row("")
    assert row("busy")["values"] == [90, 90, 90, 30, 30, 30, 0, 0]
    assert row("celsius")["values"][-1] == 57
    assert "values" not in row("nonsense")
    assert measured.show(page="map", colour="left").head["ends"] == {}


def test_nothing_is_shown_of_gangs_of_others(measured: Measured) -> None:
    measured.measure(*BUSY)
    other = Permissions(name="lee", workloads=frozenset({"team-b"}), nodes=True)
    assert measured.show(other).head == {"absent": True}
    assert measured.show(other, page="workloads").rows == {}
    assert measured.show(other, page="map", colour="left").head["ends"] == {}


def test_a_page_becomes_another_with_every_measurement(measured: Measured) -> None:
    before = measured.pages.version(GANG)
    measured.measure(*BUSY)
    assert measured.pages.version(GANG) != before
    queues = measured.pages.version({"page": "queues"})
    measured.measure(*BUSY)
    assert measured.pages.version({"page": "queues"}) == queues
