"""What is not known is said, and never taken for something else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from unisono.monitor.ledger.accounts import Period
from unisono.monitor.ledger.rows import NodeRow, PodRow, WorkloadRow
from unisono.monitor.report.build import Rows, report
from unisono.monitor.report.formats import headline_lines, text
from unisono.monitor.report.model import Report

HOUR = 3600
DAY = Period(24 * HOUR, 48 * HOUR)


def made(*, user: str = "kim", price: int = 8_000_000, covered_hours: float = 24) -> Report:
    """Return the report of a day in which one pod had eight GPUs, three quarters of them busy."""
    node = NodeRow(
        uid="n",
        since=0,
        name="n",
        gpus=8,
        model="H100",
        instance_type="",
        capacity_type="on-demand",
        pool="",
        micro_usd_hour=price,
        is_up=True,
    )
    seen = 8.0 * covered_hours * HOUR
    pod = PodRow(
        uid="p",
        namespace="a",
        name="p",
        workload="w",
        node="n",
        gpus=8,
        bound=DAY.since,
        started=DAY.since,
        covered=seen,
        busy=0.75 * seen,
    )
    workload = WorkloadRow(
        uid="w",
        attempt=1,
        namespace="a",
        name="job-train",
        kind="Job",
        owner="train",
        queue="cq",
        local_queue="q",
        user=user,
        team="a",
        priority_class="",
        flavor="h100",
        gpus=8,
        pods=1,
        since=DAY.since,
        reserved=DAY.since,
        admitted=DAY.since,
        ready=DAY.since,
    )
    rows: Callable[[Period], Rows] = lambda wanted: (
        Rows([pod], [workload], [node], []) if wanted == DAY else Rows([], [], [], [])
    )
    return report(rows, DAY)


def test_unmeasured_time_does_not_count_as_idle() -> None:
    """Scenario 24: an exporter that was silent for six hours of a day."""
    told = made(covered_hours=18)
    assert told.headline.coverage == 0.75
    assert told.headline.amounts.efficiency == pytest.approx(0.75)
    assert told.headline.amounts.unmeasured == pytest.approx(8 * 6)
    assert ("Efficiency", "75%", "measured: 75%") in headline_lines(told)


def test_usage_without_a_user_is_reported_in_the_headline() -> None:
    """Scenario 25."""
    told = made(user="unknown")
    assert [one.name for one in told.users] == ["unknown"]
    assert ("Owner unknown", "192.00", "GPU-hours") in headline_lines(told)
    assert "Owner unknown" in text(told).partition("\nTeams")[0]
    assert "Owner unknown" not in text(made())


def test_machines_without_a_price_are_reported_separately() -> None:
    assert ("Price unknown", "192.00", "GPU-hours") in headline_lines(made(price=0))
    assert made().headline.unpriced == 0
