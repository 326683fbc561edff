"""Figures of a small cluster, read back as Prometheus would."""

from __future__ import annotations

from typing import Any

import pytest

from tests.monitor import objects
from unisono.kinds.views import seconds_of
from unisono.kube.mapping import POD
from unisono.monitor.cache import (
    CLUSTER_QUEUE,
    JOB_SET,
    LOCAL_QUEUE,
    NODE,
    WORKLOAD,
    ClusterCache,
    fill,
)
from unisono.monitor.exposition import classic, negotiated, open_metrics
from unisono.monitor.metrics.registry import ALL, MetricsRegistry

TEN = seconds_of("2026-01-01T10:00:00Z")


class Clock:
    """A time that tests move."""

    def __init__(self) -> None:
        self.now = TEN

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Return a clock that stands at ten."""
    return Clock()


@pytest.fixture
def figures(clock: Clock) -> MetricsRegistry:
    """Return figures of two nodes and a queue."""
    made = MetricsRegistry(clock=clock, version="1", mode="test", compat=ALL)
    fill(made.cache, NODE, (objects.node("n1", 4), objects.node("n2", 4)))
    fill(made.cache, CLUSTER_QUEUE, (objects.cluster_queue(),))
    fill(made.cache, LOCAL_QUEUE, (objects.local_queue(),))
    return made


def values(figures: MetricsRegistry, name: str, **labels: str) -> list[float]:
    """Return the values of samples of a family that have these labels."""
    return [
        sample.value
        for family in figures.families()
        if family.name == name
        for sample in family.samples
        if labels.items() <= sample.labels.items()
    ]


def value(figures: MetricsRegistry, name: str, **labels: str) -> float:
    """Return the one value."""
    (found,) = values(figures, name, **labels)
    return found


def test_a_waiting_workload_has_its_reason_and_position(
    figures: MetricsRegistry, clock: Clock
) -> None:
    fill(figures.cache, WORKLOAD, (objects.workload("first"), objects.workload("second")))
    clock.now = TEN + 90
    gang = {"namespace": "team-a", "workload": "first", "queue": "cq"}
    assert value(figures, "unisono_gang_pending_seconds", **gang) == 90
    assert value(figures, "unisono_gang_position", **gang) == 1
    assert value(figures, "unisono_queue_gpus", kind="pending") == 16
    assert value(figures, "unisono_queue_gpus", kind="used") == 0


def test_a_gang_that_starts_counts_as_used_and_its_waits_are_observed(
    figures: MetricsRegistry, clock: Clock
) -> None:
    waiting = objects.workload("gang")
    fill(figures.cache, WORKLOAD, (waiting,))
    list(figures.families())
    ready = objects.workload(
        "gang",
        QuotaReserved="2026-01-01T10:01:00Z",
        Admitted="2026-01-01T10:01:10Z",
        PodsReady="2026-01-01T10:01:40Z",
    )
    figures.cache.observe(WORKLOAD, waiting, ready)
    fill(figures.cache, POD, (objects.pod("p0", "n1", 4), objects.pod("p1", "n2", 4)))
    clock.now = TEN + 200
    assert value(figures, "unisono_queue_gpus", kind="used") == 8
    assert value(figures, "unisono_queue_gpus", kind="held") == 0
    sums = {
        sample.labels["part"]: sample.value
        for family in figures.families()
        if family.name == "unisono_gang_wait_time_seconds"
        for sample in family.samples
        if sample.suffix == "_sum"
    }
    assert sums == {"quota": 60, "capacity": 10, "start": 30, "total": 100}
    (info,) = [
        sample.labels
        for family in figures.families()
        if family.name == "unisono_pod_info"
        for sample in family.samples
        if sample.labels["pod"] == "p0"
    ]
    assert (info["workload"], info["queue"], info["user"]) == ("gang", "cq", "kim")


def test_what_happened_before_is_not_counted_again(clock: Clock) -> None:
    clock.now = TEN + 3600
    figures = MetricsRegistry(clock=clock, version="1", mode="test")
    old = objects.workload("gang", QuotaReserved="2026-01-01T10:01:00Z")
    fill(figures.cache, WORKLOAD, (old,))
    assert values(figures, "unisono_gang_wait_time_seconds") == []


def test_what_comes_in_the_second_it_began_in_counts(clock: Clock) -> None:
    clock.now = TEN + 60.7
    figures = MetricsRegistry(clock=clock, version="1", mode="test")
    at_once = objects.workload("gang", QuotaReserved="2026-01-01T10:01:00Z")
    fill(figures.cache, WORKLOAD, (at_once,))
    assert values(figures, "unisono_gang_wait_time_seconds", part="quota") != []


def test_unreadable_objects_are_skipped_and_counted(figures: MetricsRegistry) -> None:
    told: list[str] = []
    figures.cache.on_unreadable = lambda what, why: told.append(f"{what}: {why!r}")
    strange = objects.cluster_queue("strange", gpus=4)
    strange["spec"]["resourceGroups"] = [7]
    fill(figures.cache, CLUSTER_QUEUE, (strange, objects.cluster_queue("plain", gpus=4)))
    assert value(figures, "unisono_unread_objects_total") == 1
    assert figures.cache.queues.keys() == {"cq", "plain"}
    (line,) = told
    assert line.startswith("ClusterQueue strange: ")


def test_ended_pods_hold_no_gpus_but_keep_their_series(figures: MetricsRegistry) -> None:
    """Scenario 1: four of eight GPUs are held, whatever is over."""
    running = [objects.pod(f"p{at}", "n1") for at in range(4)]
    over = [objects.pod(f"o{at}", "n2", phase="Succeeded") for at in range(8)]
    fill(figures.cache, POD, (*running, *over))
    assert len(values(figures, "kube_pod_container_resource_limits")) == 12
    assert sum(values(figures, "kube_pod_status_phase", phase="Running")) == 4
    assert figures.cache.gpus_in_use() == {"n1": 4}


def test_what_one_queue_borrows_another_lends(figures: MetricsRegistry) -> None:
    for name in ("a", "b", "c"):
        queue = objects.cluster_queue(name, gpus=4, cohort="all")
        figures.cache.observe(CLUSTER_QUEUE, None, queue)
    greedy: dict[str, Any] = objects.workload("greedy", QuotaReserved="2026-01-01T10:00:00Z")
    greedy["status"]["admission"]["clusterQueue"] = "a"
    fill(figures.cache, WORKLOAD, (greedy,))
    assert value(figures, "unisono_queue_gpus", queue="a", kind="borrowed") == 4
    lent = [value(figures, "unisono_queue_gpus", queue=one, kind="lent") for one in "bc"]
    assert lent == [2, 2]


def test_an_eviction_and_restarts_of_a_gang_are_counted(
    figures: MetricsRegistry, clock: Clock
) -> None:
    running = objects.workload("gang", QuotaReserved="2026-01-01T10:01:00Z")
    fill(figures.cache, WORKLOAD, (running,))
    list(figures.families())
    clock.now = TEN + 300
    evicted = objects.workload(
        "gang", Evicted="2026-01-01T10:04:00Z", Preempted="2026-01-01T10:04:00Z"
    )
    evicted["status"]["conditions"][1]["reason"] = "InCohortReclamation"
    evicted["status"]["schedulingStats"] = {"evictions": [{"reason": "Preempted", "count": 1}]}
    figures.cache.observe(WORKLOAD, running, evicted)
    job_set = {
        "metadata": {"name": "gang", "namespace": "team-a", "uid": "js"},
        "status": {"restarts": 2},
    }
    figures.cache.observe(JOB_SET, None, job_set)
    name = "unisono_workload_restarts_total"
    assert value(figures, name, reason="Preempted") == 1
    assert value(figures, name, reason="GangRestarted") == 2
    assert value(figures, "unisono_preemptions_total", reason="InCohortReclamation") == 1
    assert value(figures, "unisono_gang_pending_seconds") == 60


def test_a_node_without_work_is_idle_since_then(figures: MetricsRegistry, clock: Clock) -> None:
    pod = objects.pod("p0", "n1")
    fill(figures.cache, POD, (pod,))
    list(figures.families())
    figures.cache.observe(POD, pod, None)
    clock.now = TEN + 60
    assert value(figures, "unisono_node_idle_seconds", node="n1") == 0
    assert value(figures, "unisono_node_idle_seconds", node="n2") == 60
    clock.now = TEN + 100
    assert value(figures, "unisono_node_idle_seconds", node="n1") == 40
    assert value(figures, "unisono_hourly_cost_usd") == pytest.approx(110.08)


def test_a_pod_that_follows_another_of_the_same_name_is_heard_of() -> None:
    cache = ClusterCache()
    steps: list[tuple[str, bool]] = []
    cache.on_pod.append(lambda step: steps.append((step.after.uid, step.is_gone)))
    first, second = objects.pod("p", "n1", uid="1"), objects.pod("p", "n1", uid="2")
    cache.observe(POD, None, first)
    cache.observe(POD, first, None)
    cache.observe(POD, None, second)
    cache.refresh()
    assert steps == [("1", True), ("2", False)]
    assert cache.pods["team-a", "p"].uid == "2"


def test_both_formats_are_written(figures: MetricsRegistry) -> None:
    text = classic(figures.families())
    assert "# TYPE unisono_preemptions_total counter\n" in text
    assert 'unisono_build_info{version="1",mode="test"} 1\n' in text
    other = open_metrics(figures.families())
    assert "# TYPE unisono_preemptions counter\n" in other
    assert other.endswith("# EOF\n")
    assert negotiated((), "application/openmetrics-text; version=1.0.0")[1] == "# EOF\n"
