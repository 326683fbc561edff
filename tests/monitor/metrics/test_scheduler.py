"""How long gangs take to get their nodes, from what their pods say."""

from __future__ import annotations

from tests.monitor import objects
from unisono.kinds.views import seconds_of
from unisono.kube.form import Json
from unisono.kube.mapping import POD
from unisono.monitor.cache import CLUSTER_QUEUE, LOCAL_QUEUE, WORKLOAD, fill
from unisono.monitor.metrics.registry import MetricsRegistry

TEN = seconds_of("2026-01-01T10:00:00Z")


def bound(name: str, at: str) -> Json:
    made = objects.pod(name, "n1")
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at}
    made["status"]["conditions"] = [scheduled]
    return made


def sums(figures: MetricsRegistry, name: str) -> list[float]:
    """Return the sum and the count of a histogram."""
    (family,) = (one for one in figures.families() if one.name == name)
    return [one.value for one in family.samples if one.suffix in ("_sum", "_count")]


def cluster(**conditions: str) -> MetricsRegistry:
    made = MetricsRegistry(clock=lambda: TEN, version="1", mode="test")
    fill(made.cache, CLUSTER_QUEUE, (objects.cluster_queue(),))
    fill(made.cache, LOCAL_QUEUE, (objects.local_queue(),))
    fill(made.cache, WORKLOAD, (objects.workload("gang", gpus=8, **conditions),))
    return made


def test_a_gang_is_committed_when_its_last_pod_has_a_node() -> None:
    figures = cluster(QuotaReserved="2026-01-01T10:00:00Z", Admitted="2026-01-01T10:00:02Z")
    fill(figures.cache, POD, (bound("p0", "2026-01-01T10:00:03Z"),))
    assert sums(figures, "unisono_gang_commit_seconds") == [0, 0]
    fill(figures.cache, POD, (bound("p1", "2026-01-01T10:00:07Z"),))
    assert sums(figures, "unisono_gang_commit_seconds") == [5, 1]
    assert sums(figures, "unisono_gang_partial_seconds") == [4, 1]


def test_a_gang_that_had_to_give_its_nodes_back_is_counted_from_its_next_start() -> None:
    figures = cluster(QuotaReserved="2026-01-01T10:00:00Z")
    fill(figures.cache, POD, (first := bound("p0", "2026-01-01T10:00:03Z"),))
    figures.cache.refresh()
    fill(figures.cache, WORKLOAD, (objects.workload("gang"),))  # it has no quota any more
    figures.cache.observe(POD, first, None)
    figures.cache.refresh()
    fill(figures.cache, WORKLOAD, (objects.workload("gang", QuotaReserved="2026-01-01T10:01:00Z"),))
    again = [bound(f"q{at}", f"2026-01-01T10:01:0{at + 1}Z") for at in range(2)]
    fill(figures.cache, POD, again)
    assert sums(figures, "unisono_gang_commit_seconds") == [2, 1]
    assert sums(figures, "unisono_gang_partial_seconds") == [1, 1]


def test_counters_of_the_scheduler_are_passed_on() -> None:
    figures = cluster()
    figures.placement.rollbacks = lambda: {"NodeLost": 2, "NotBound": 1}
    figures.placement.cached = lambda: (7, 3)
    found = {one.name: list(one.samples) for one in figures.families()}
    rollbacks = {one.labels["reason"]: one.value for one in found["unisono_gang_rollbacks_total"]}
    never = dict.fromkeys(("LateDecision", "NoOtherNode", "PodsMissing"), 0)
    assert rollbacks == {"NodeLost": 2, "NotBound": 1, **never}
    assert found["unisono_placer_cache_hits_total"][0].value == 7
    assert found["unisono_placer_cache_misses_total"][0].value == 3
