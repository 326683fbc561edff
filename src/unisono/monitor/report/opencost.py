"""The report as OpenCost answers questions about allocation: one entry for each job."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from unisono.monitor.report.model import Report


def opencost(report: Report) -> str:
    """Write it as JSON; what was not allocated is `__idle__`, as there."""
    window = {"start": _time(report.since), "end": _time(report.until)}
    entries = {
        f"{one.namespace}/{one.kind}/{one.name}/{one.model}": _entry(
            name=one.name,
            properties={
                "namespace": one.namespace,
                "controllerKind": one.kind.lower(),
                "controller": one.name,
                "labels": {"queue": one.queue, "team": one.team, "user": one.user},
            },
            window=window,
            hours=one.amounts.allocated,
            cents=one.amounts.cost_cents,
            efficiency=one.amounts.efficiency,
        )
        for one in report.jobs
    }
    idle = sum(one.held + one.free + one.down for one in report.capacity)
    entries["__idle__"] = _entry(
        name="__idle__",
        properties={},
        window=window,
        hours=round(idle, 2),
        cents=report.headline.overhead_cents,
        efficiency=0.0,
    )
    told = msgspec.json.encode({"code": 200, "data": [entries]})
    return msgspec.json.format(told, indent=1).decode() + "\n"


def _entry(
    *,
    name: str,
    properties: dict[str, Any],
    window: dict[str, str],
    hours: float,
    cents: int,
    efficiency: float | None,
) -> dict[str, Any]:
    return {
        "name": name,
        "properties": properties,
        "window": window,
        "gpuHours": hours,
        "gpuCost": cents / 100,
        "gpuEfficiency": efficiency,
        "totalCost": cents / 100,
    }


def _time(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
