"""Machines: purchases by their ends, claims by their states, offers that are sold out."""

from __future__ import annotations

import json

import pytest

from tests.monitor import objects
from unisono.kinds.core.nodes import HELD_FOR
from unisono.kinds.views import seconds_of
from unisono.kube.form import Json
from unisono.monitor.cache import CLUSTER_QUEUE, LOCAL_QUEUE, NODE_CLAIM, WORKLOAD, fill
from unisono.monitor.metrics.nodes import Offering
from unisono.monitor.metrics.registry import MetricsRegistry

TEN = seconds_of("2026-01-01T10:00:00Z")


class Clock:
    now = TEN

    def __call__(self) -> float:
        return self.now


def figures_at(clock: Clock) -> MetricsRegistry:
    return MetricsRegistry(clock=clock, version="1", mode="test")


def values(figures: MetricsRegistry, name: str, *labels: str) -> dict[tuple[str, ...], float]:
    """Return what was counted; counters of what may come are there before it, at 0."""
    return {
        (*(one.labels[label] for label in labels), one.suffix): one.value
        for family in figures.families()
        if family.name == name
        for one in family.samples
        if "le" not in one.labels and (one.value or family.type == "gauge")
    }


def buying(phase: str, at: str, why: str = "Planned", planned: float = TEN) -> Json:
    made = objects.workload("gang")
    message = {"attempt": 1, "planned_at": int(planned), "machines": [{"pool": "p"}, {"pool": "p"}]}
    made["status"]["conditions"] = [
        {
            "type": "unisono.dev/Purchase",
            "status": "False",
            "reason": phase,
            "message": json.dumps(message),
            "lastTransitionTime": at,
        },
        {"type": "CapacityPlanned", "status": "True", "reason": why},
    ]
    return made


@pytest.mark.parametrize(
    ("phase", "why", "result"),
    [
        ("Ready", "Ready", "ready"),
        ("TimedOut", "Timeout", "timeout"),
        ("RolledBack", "StockOut", "stockout"),
        ("RolledBack", "PoolGone", "failed"),
        ("RolledBack", "Planned", "cancelled"),
    ],
)
def test_a_purchase_is_counted_once_when_it_ends(phase: str, why: str, result: str) -> None:
    clock = Clock()
    figures = figures_at(clock)
    planned = buying("Waiting", "2026-01-01T10:00:00Z")
    over = buying(phase, "2026-01-01T10:02:30Z", why)
    figures.provisioning.observe(WORKLOAD, None, planned)
    figures.provisioning.observe(WORKLOAD, planned, over)
    figures.provisioning.observe(WORKLOAD, over, over)
    plans = values(figures, "unisono_provision_plans_total", "nodepool", "result")
    assert plans == {("p", result, ""): 1}
    took = values(figures, "unisono_provision_duration_seconds", "nodepool")
    assert took == ({("p", "_sum"): 150, ("p", "_count"): 1} if result == "ready" else {})


def test_purchases_that_ended_earlier_are_not_counted_again() -> None:
    figures = figures_at(Clock())
    figures.provisioning.observe(WORKLOAD, None, buying("Ready", "2026-01-01T09:59:59Z"))
    assert values(figures, "unisono_provision_plans_total", "nodepool") == {}


def claim(name: str, held: bool = True, **conditions: str) -> Json:
    annotations = {HELD_FOR: "a/gang"} if held else {}
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "labels": {"karpenter.sh/nodepool": "p"},
            "annotations": annotations,
        },
        "spec": {},
        "status": {
            "conditions": [
                {"type": kind, "status": status, "lastTransitionTime": "2026-01-01T10:00:00Z"}
                for kind, status in conditions.items()
            ]
        },
    }


def test_claims_are_counted_by_state() -> None:
    figures = figures_at(Clock())
    going = claim("e", Launched="True")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T10:00:00Z"
    claims = (
        claim("a"),
        claim("b", Launched="True"),
        claim("c", Launched="False"),
        claim("d", Launched="True", Initialized="True"),
        going,
    )
    fill(figures.cache, NODE_CLAIM, claims)
    states = values(figures, "unisono_nodeclaims", "nodepool", "state")
    assert set(states.values()) == {1}
    assert len(states) == 5


def test_six_machines_that_were_given_back_after_ninety_seconds() -> None:
    clock = Clock()
    figures = figures_at(clock)
    claims = [claim(f"n{number}", Launched="True") for number in range(6)]
    used, unpaid = claim("used", held=False, Launched="True"), claim("unpaid", Launched="False")
    for one in (*claims, used, unpaid):
        figures.provisioning.observe(NODE_CLAIM, None, one)
    clock.now = TEN + 90
    for one in (*claims, used, unpaid):
        figures.provisioning.observe(NODE_CLAIM, one, None)
    wasted = values(figures, "unisono_provision_wasted_node_seconds_total", "nodepool", "reason")
    assert wasted == {("p", "rolled-back", ""): 540}


def test_what_cannot_be_had_and_what_may_be_spent() -> None:
    figures = figures_at(Clock())
    assert values(figures, "unisono_hourly_cost_limit_usd") == {}
    figures.provisioning.most_usd_hour = lambda: 120.5
    figures.provisioning.offerings = lambda: [
        Offering("p5.48xlarge", "a", "spot", is_unavailable=True),
        Offering("p5.48xlarge", "b", "spot", is_unavailable=False),
    ]
    assert values(figures, "unisono_hourly_cost_limit_usd") == {("",): 120.5}
    assert values(figures, "unisono_offering_unavailable", "zone") == {("a", ""): 1, ("b", ""): 0}


def test_a_gang_that_waits_for_machines_is_provisioning() -> None:
    figures = figures_at(Clock())
    waits = buying("Waiting", "2026-01-01T10:00:00Z")
    waits["status"]["conditions"].append(
        {
            "type": "QuotaReserved",
            "status": "True",
            "lastTransitionTime": "2026-01-01T10:00:00Z",
        }
    )
    fill(figures.cache, CLUSTER_QUEUE, (objects.cluster_queue(),))
    fill(figures.cache, LOCAL_QUEUE, (objects.local_queue(),))
    fill(figures.cache, WORKLOAD, (waits,))
    states = values(figures, "unisono_queue_workloads", "state")
    assert (states[("provisioning", "")], states[("admitted", "")]) == (1, 0)


def test_how_long_it_takes_until_room_is_free() -> None:
    clock = Clock()
    figures = figures_at(clock)
    fill(figures.cache, LOCAL_QUEUE, (objects.local_queue(),))
    runs = objects.workload("gang", QuotaReserved="2026-01-01T10:00:00Z")
    fill(figures.cache, WORKLOAD, (runs,))
    figures.cache.refresh()
    left = objects.workload("gang")
    left["status"] = {
        "conditions": [
            {"type": kind, "status": status, "reason": reason, "lastTransitionTime": at}
            for kind, status, reason, at in (
                ("Preempted", "True", "InCohortReclamation", "2026-01-01T10:01:00Z"),
                ("Evicted", "True", "Preempted", "2026-01-01T10:01:00Z"),
                ("QuotaReserved", "False", "Pending", "2026-01-01T10:01:12Z"),
            )
        ]
    }
    clock.now = TEN + 120
    figures.cache.observe(WORKLOAD, runs, left)
    took = values(figures, "unisono_preemption_latency_seconds", "queue", "reason")
    assert took[("cq", "InCohortReclamation", "_sum")] == 12
    assert took[("cq", "InCohortReclamation", "_count")] == 1
