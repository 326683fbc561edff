"""The report as other tools print it.

sreport     Slurm's: GPU-minutes by state, account, user and size of jobs
opencost    as OpenCost answers questions about allocation: one entry for each job
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import msgspec

from unisono.monitor.report.formats import Line, aligned, day
from unisono.monitor.report.model import Job, Report

# As sreport bins jobs, by how many GPUs they have: below each, and the last without an end.
_SIZES = (2, 8, 16, 64)
_MOST_USERS = 10


def sreport(report: Report, cluster: str, *, which: str, is_parsable: bool) -> str:
    """Write one of its reports."""
    title, columns, lines = _REPORTS[which](report, cluster)
    if is_parsable:
        return "".join("|".join(line) + "\n" for line in (columns, *lines))
    rule = "-" * 80
    head = f"{rule}\n{title} {day(report.since)} - {day(report.until)}\n"
    about = f"Usage reported in TRES Minutes\n{rule}\n"
    names = sum(1 for one in columns if one in _NAMES)
    return head + about + aligned([columns, *lines], frozenset(range(names, len(columns))))


_Made = tuple[str, Line, list[Line]]
_NAMES = ("Cluster", "TRES Name", "Account", "Login", "Proper Name")
_TRES = "gres/gpu"


def _utilization(report: Report, cluster: str) -> _Made:
    states = {"Allocated": 0, "Down": 0, "PlannedDown": 0, "Idle": 0, "Planned": 0}
    for one in report.capacity:
        states["Allocated"] += _minutes(one.allocated)
        states["Down"] += _minutes(one.down)
        states["Idle"] += _minutes(one.free)
        states["Planned"] += _minutes(one.held)
    columns = ("Cluster", "TRES Name", *states, "Reported")
    values = (*(str(one) for one in states.values()), str(sum(states.values())))
    return "Cluster Utilization", columns, [(cluster, _TRES, *values)]


def _by_user(report: Report, cluster: str) -> _Made:
    """An account, then its users; an account is the sum of them."""
    columns = ("Cluster", "Account", "Login", "Proper Name", "TRES Name", "Used")
    lines: list[Line] = []
    for account, of_account in sorted(_grouped(report.jobs, lambda one: one.team).items()):
        users = _used(of_account, lambda one: one.user)
        total = sum(users.values())
        lines.append((cluster, account, "", "", _TRES, str(total)))
        lines.extend((cluster, account, user, user, _TRES, str(users[user])) for user in users)
    return "Cluster/Account/User Utilization", columns, lines


def _top(report: Report, cluster: str) -> _Made:
    columns = ("Cluster", "Login", "Proper Name", "Account", "TRES Name", "Used")
    found = [
        (used, user, account)
        for account, of_account in _grouped(report.jobs, lambda one: one.team).items()
        for user, used in _used(of_account, lambda one: one.user).items()
    ]
    found.sort(key=lambda one: (-one[0], one[1], one[2]))
    lines: list[Line] = [
        (cluster, user, user, account, _TRES, str(used)) for used, user, account in found
    ]
    return f"Top {_MOST_USERS} Users", columns, lines[:_MOST_USERS]


def _sizes(report: Report, cluster: str) -> _Made:
    bounds = (0, *_SIZES)
    names = [f"{low}-{high - 1} GPUs" for low, high in pairwise(bounds)]
    columns = ("Cluster", "Account", *names, f">= {_SIZES[-1]} GPUs", "% of cluster")
    whole = sum(_minutes(one.amounts.allocated) for one in report.jobs)
    lines: list[Line] = []
    for account, of_account in sorted(_grouped(report.jobs, lambda one: one.team).items()):
        bins = [0] * len(bounds)
        for one in of_account:
            bins[sum(one.gpus >= bound for bound in _SIZES)] += _minutes(one.amounts.allocated)
        part = f"{sum(bins) / whole:.2%}" if whole else "0.00%"
        lines.append((cluster, account, *(str(one) for one in bins), part))
    return "Job Sizes", columns, lines


_REPORTS: dict[str, Callable[[Report, str], _Made]] = {
    "utilization": _utilization,
    "AccountUtilizationByUser": _by_user,
    "TopUsage": _top,
    "SizesByAccount": _sizes,
}
SREPORTS = tuple(_REPORTS)


def _grouped(jobs: Iterable[Job], key: Callable[[Job], str]) -> dict[str, list[Job]]:
    found: dict[str, list[Job]] = {}
    for one in jobs:
        found.setdefault(key(one), []).append(one)
    return found


def _used(jobs: Iterable[Job], key: Callable[[Job], str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in jobs:
        found[key(one)] = found.get(key(one), 0) + _minutes(one.amounts.allocated)
    return dict(sorted(found.items()))


def _minutes(gpu_hours: float) -> int:
    return round(gpu_hours * 60)


# ---- OpenCost ------------------------------------------------------------------------------------


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
    encoded = msgspec.json.encode({"code": 200, "data": [entries]})
    return msgspec.json.format(encoded, indent=1).decode() + "\n"


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
