"""The first event of a counter is visible: its series is there before it, at 0."""

from __future__ import annotations

import json

import pytest

from tests.monitor import objects
from unisono.kinds.views import seconds_of
from unisono.kube.form import Json
from unisono.kube.mapping import POD
from unisono.monitor.cache import (
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    NODE,
    NODE_CLAIM,
    WORKLOAD,
    fill,
)
from unisono.monitor.metrics.registry import MetricsRegistry
from unisono.monitor.metrics.workloads import WorkloadHistory

TEN = seconds_of("2026-01-01T10:00:00Z")
Key = tuple[str, frozenset[tuple[str, str]]]


def running_gang() -> Json:
    """Return a workload whose pods are ready."""
    return objects.workload(
        "gang",
        QuotaReserved="2026-01-01T10:01:00Z",
        Admitted="2026-01-01T10:01:10Z",
        PodsReady="2026-01-01T10:01:40Z",
    )


class Site:
    """A cluster whose metrics are scraped."""

    def __init__(self) -> None:
        self.now = TEN
        self.figures = MetricsRegistry(clock=lambda: self.now, version="1", mode="test")
        fill(self.figures.cache, CLUSTER_QUEUE, (objects.cluster_queue(),))
        fill(self.figures.cache, LOCAL_QUEUE, (objects.local_queue(),))
        fill(self.figures.cache, NODE, (objects.node("n1"),))

    def scrape(self) -> dict[Key, float]:
        """Return the values of all counters, and counts of histograms."""
        self.now += 15
        return {
            (family.name, frozenset(one.labels.items())): one.value
            for family in self.figures.families()
            if family.type in ("counter", "histogram")
            for one in family.samples
            if family.type == "counter" or one.suffix == "_count"
        }

    def shown(self, name: str, **labels: str) -> list[float]:
        """Return the values of the series with such labels."""
        return [
            value
            for (found, about), value in self.scrape().items()
            if found == name and labels.items() <= dict(about).items()
        ]


def evicted(reason: str) -> Json:
    """Return a workload that had to leave once."""
    made = running_gang()
    made["status"]["conditions"].append(
        {
            "type": "Evicted",
            "status": "True",
            "reason": reason,
            "lastTransitionTime": "2026-01-01T10:05:00Z",
        }
    )
    made["status"]["schedulingStats"] = {
        "evictions": [{"reason": reason, "underlyingCause": "", "count": 1}]
    }
    return made


@pytest.mark.parametrize("reason", ["Preempted", "NodeFailures", "PodsReadyTimeout"])
def test_restarts_of_a_running_workload_begin_at_zero(reason: str) -> None:
    site = Site()
    running = running_gang()
    fill(site.figures.cache, WORKLOAD, (running,))
    assert site.shown("unisono_workload_restarts_total", reason=reason) == [0]
    site.now = TEN + 400
    site.figures.cache.observe(WORKLOAD, running, evicted(reason))
    assert site.shown("unisono_workload_restarts_total", reason=reason) == [1]


def test_series_of_a_workload_that_never_restarted_go_with_it() -> None:
    site = Site()
    running = running_gang()
    fill(site.figures.cache, WORKLOAD, (running,))
    assert site.shown("unisono_workload_restarts_total")
    site.figures.cache.observe(WORKLOAD, running, None)
    assert site.shown("unisono_workload_restarts_total") == []


def test_waits_begin_at_zero_while_a_workload_is_pending() -> None:
    site = Site()
    pending = objects.workload("gang")
    fill(site.figures.cache, WORKLOAD, (pending,))
    for part in ("quota", "capacity", "start", "total"):
        assert site.shown("unisono_gang_wait_time_seconds", part=part) == [0]
    site.figures.cache.observe(WORKLOAD, pending, running_gang())
    for part in ("quota", "capacity", "start", "total"):
        assert site.shown("unisono_gang_wait_time_seconds", part=part) == [1]


def test_preemptions_of_a_queue_begin_at_zero() -> None:
    site = Site()
    found = site.shown("unisono_preemptions_total", queue="cq")
    assert found == [0, 0, 0, 0]


def test_purchases_begin_at_zero_when_they_are_planned() -> None:
    site = Site()
    buying = objects.workload("gang")
    message = {"attempt": 1, "planned_at": int(TEN), "machines": [{"pool": "p"}]}
    buying["status"]["conditions"] = [
        {
            "type": "unisono.dev/Purchase",
            "status": "False",
            "reason": "Planned",
            "message": json.dumps(message),
            "lastTransitionTime": "2026-01-01T10:00:10Z",
        }
    ]
    site.figures.provisioning.observe(WORKLOAD, None, buying)
    for result in ("ready", "failed", "timeout", "stockout", "cancelled"):
        assert site.shown("unisono_provision_plans_total", nodepool="p", result=result) == [0]
    assert site.shown("unisono_provision_duration_seconds", nodepool="p") == [0]
    claim = {"metadata": {"name": "c", "labels": {"karpenter.sh/nodepool": "p"}}}
    site.figures.provisioning.observe(NODE_CLAIM, None, claim)
    assert site.shown("unisono_provision_wasted_node_seconds_total", nodepool="p") == [0]


def test_gpu_seconds_of_a_pod_begin_at_zero() -> None:
    site = Site()
    fill(site.figures.cache, WORKLOAD, (running_gang(),))
    fill(site.figures.cache, POD, (objects.pod("p0", "n1", 4),))
    for state in ("busy", "idle", "lost"):
        assert site.shown("unisono_gpu_seconds_total", state=state) == [0]


def test_restarts_that_another_leader_counted_are_no_news() -> None:
    site = Site()
    fill(site.figures.cache, WORKLOAD, (running_gang(),))
    site.figures.cache.refresh()
    key = next(iter(site.figures.cache.workloads.values()))
    site.figures.cache.restarts[key.namespace, key.owner_name] = 5
    history = WorkloadHistory(site.figures.cache, since=TEN)

    def restarts() -> list[float]:
        return [
            one.value
            for family in history.families()
            for one in family.samples
            if one.labels.get("reason") == "GangRestarted"
        ]

    assert restarts() == [0]
    site.figures.cache.restarts[key.namespace, key.owner_name] = 6
    assert restarts() == [1]


def test_no_labelled_counter_of_the_scheduler_is_without_a_series() -> None:
    names = {name for name, _ in Site().scrape()}
    for name in ("gang_rollbacks_total", "gang_placement_seconds", "gang_commit_seconds"):
        assert f"unisono_{name}" in names
