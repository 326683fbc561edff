"""GPU-seconds and dollars as counters (monitoring §10, 10 to 15, as far as counters can tell)."""

from __future__ import annotations

from tests.monitor import objects
from unisono.kinds.views import seconds_of
from unisono.kube.form import Json
from unisono.kube.mapping import POD
from unisono.monitor.cache import CLUSTER_QUEUE, LOCAL_QUEUE, NODE, WORKLOAD, fill
from unisono.monitor.ledger.recorder import GpuUse
from unisono.monitor.metrics.registry import MetricsRegistry

TEN = seconds_of("2026-01-01T10:00:00Z")
HOUR = 3600.0


class Cluster:
    """Two p5 nodes and a gang of sixteen GPUs that got its quota at ten."""

    def __init__(self) -> None:
        self.now = TEN
        self.figures = MetricsRegistry(clock=lambda: self.now, version="1", mode="test")
        cache = self.figures.cache
        fill(cache, NODE, (objects.node("n1"), objects.node("n2")))
        fill(cache, CLUSTER_QUEUE, (objects.cluster_queue(),))
        fill(cache, LOCAL_QUEUE, (objects.local_queue(),))
        self.gang = objects.workload("gang", gpus=16, QuotaReserved="2026-01-01T10:00:00Z")
        fill(cache, WORKLOAD, (self.gang,))
        self.pods: dict[str, Json] = {}

    def put(self, name: str, on: str, phase: str = "Running", ended: str = "") -> None:
        made = objects.pod(name, on=on, gpus=8, phase=phase)
        made["status"]["conditions"] = [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T10:00:00Z"}
        ]
        if phase == "Pending":
            made["status"]["containerStatuses"] = []
        if ended:
            over = {"startedAt": "2026-01-01T10:00:00Z", "finishedAt": ended}
            made["status"]["containerStatuses"] = [{"name": "main", "state": {"terminated": over}}]
        self.figures.cache.observe(POD, self.pods.get(name), made)
        self.pods[name] = made

    def told(self, name: str, *labels: str) -> dict[tuple[str, ...], float]:
        """Return a counter's values in hours or dollars; of usage those that are not 0."""
        (family,) = (one for one in self.figures.families() if one.name == name)
        per = 1.0 if "usd" in name else HOUR
        found: dict[tuple[str, ...], float] = {}
        for one in family.samples:
            key = tuple(one.labels[label] for label in labels)
            found[key] = round(found.get(key, 0.0) + one.value / per, 4)
        return {key: amount for key, amount in found.items() if amount or "capacity" in name}


def use(busy: float, covered: float) -> GpuUse:
    return GpuUse(busy=busy, tensor=0.0, covered=covered, idle_devices=0, peak_mib=0)


def test_two_hours_of_sixteen_gpus_that_are_busy_three_fifths_of_the_time() -> None:
    cluster = Cluster()
    for name, node in (("a", "n1"), ("b", "n2")):
        cluster.put(name, node)
    cluster.told("unisono_gpu_seconds_total", "state")
    cluster.now = TEN + 2 * HOUR
    each = use(8 * 2 * HOUR * 0.6, 8 * 2 * HOUR)
    cluster.figures.cost.measured({"uid-a": each, "uid-b": each, "uid-stranger": each})
    labels = ("queue", "user", "state")
    assert cluster.told("unisono_gpu_seconds_total", *labels) == {
        ("cq", "kim", "busy"): 19.2,
        ("cq", "kim", "idle"): 12.8,
    }
    bills = cluster.told("unisono_cost_usd_total", "user", "class")
    assert {key: round(usd, 2) for key, usd in bills.items() if usd} == {
        ("kim", "busy"): 132.10,
        ("kim", "idle"): 88.06,
    }


def test_every_gpu_is_in_one_state_and_overhead_has_no_user() -> None:
    cluster = Cluster()
    cluster.put("a", "n1")
    cluster.told("unisono_gpu_capacity_seconds_total", "state")
    cluster.now += HOUR
    down = objects.node("n2")
    down["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    states = cluster.told("unisono_gpu_capacity_seconds_total", "state")
    # The other eight of the gang are kept for it, on the node that is free.
    assert states == {("allocated",): 8, ("held",): 8, ("free",): 0, ("down",): 0}
    cluster.figures.cache.observe(NODE, objects.node("n2"), down)
    cluster.now += HOUR
    states = cluster.told("unisono_gpu_capacity_seconds_total", "state")
    assert states == {("allocated",): 16, ("held",): 8, ("free",): 0, ("down",): 8}
    assert sum(states.values()) == 2 * 16
    assert cluster.told("unisono_cost_usd_total", "class")[("overhead",)] == 110.08


def test_time_until_the_first_container_is_starting_time() -> None:
    cluster = Cluster()
    cluster.put("a", "n1", phase="Pending")
    cluster.now += 30
    first = cluster.told("unisono_gpu_seconds_total", "state")
    cluster.now += 30
    assert first == {("starting",): round(8 * 30 / HOUR, 4)}
    cluster.put("a", "n1")  # its container began at ten
    assert cluster.told("unisono_gpu_seconds_total", "state") == first


def test_what_failed_is_lost_back_to_the_last_checkpoint() -> None:
    cluster = Cluster()
    cluster.gang["metadata"]["annotations"]["unisono.dev/progress"] = (
        '{"step": 9, "at": "2026-01-01T10:40:00Z", "saved_at": "2026-01-01T10:40:00Z"}'
    )
    cluster.figures.cache.observe(WORKLOAD, cluster.gang, cluster.gang)
    for name in ("a", "b", "c"):
        cluster.put(name, "n1")
    cluster.told("unisono_gpu_seconds_total", "state")
    cluster.now = TEN + 50 * 60
    cluster.put("a", "n1", phase="Failed", ended="2026-01-01T10:50:00Z")
    cluster.put("b", "n1", phase="Failed", ended="2026-01-01T10:50:00Z")
    cluster.put("c", "n1", phase="Succeeded", ended="2026-01-01T10:50:00Z")
    for _ in range(2):  # hearing of it again changes nothing
        assert cluster.told("unisono_gpu_seconds_total", "state")[("lost",)] == 2.6667
        cluster.put("a", "n1", phase="Failed", ended="2026-01-01T10:50:00Z")
