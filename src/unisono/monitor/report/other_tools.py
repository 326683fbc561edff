"""The report as other tools print it.

sreport     Slurm's: GPU-minutes by state, account, user and size of jobs
opencost    as OpenCost answers questions about allocation: one entry for each job
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from unisono.monitor.report.formats import Line, aligned, day
from unisono.monitor.report.model import Job, Report
from unisono.monitor.report.rounding import carried

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
    of = report.capacity
    columns = ("Cluster", "TRES Name", "Allocated", "Down", "PlannedDown", "Idle", "Planned")
    states = (
        *(sum(one.allocated for one in of), sum(one.down for one in of), 0.0),
        *(sum(one.free for one in of), sum(one.held for one in of)),
    )
    minutes = _minutes(states)
    values = (*map(str, minutes), str(sum(minutes)))
    return "Cluster Utilization", (*columns, "Reported"), [(cluster, _TRES, *values)]


class _Account(NamedTuple):
    """What a team used: minutes by user, and by size of jobs; both add up to the same."""

    name: str
    by_user: dict[str, int]
    by_size: list[int]

    @property
    def minutes(self) -> int:
        return sum(self.by_user.values())


def _accounts(report: Report) -> list[_Account]:
    """Return the accounts; minutes are made of sums, not of jobs that are rounded one by one."""
    found: list[_Account] = []
    for name, jobs in sorted(_grouped(report.jobs, lambda one: one.team).items()):
        users: dict[str, float] = {}
        sizes = [0.0] * (1 + len(_SIZES))
        for one in jobs:
            users[one.user] = users.get(one.user, 0.0) + one.amounts.allocated
            sizes[sum(one.gpus >= bound for bound in _SIZES)] += one.amounts.allocated
        ordered = sorted(users)
        minutes = _minutes(users[user] for user in ordered)
        by_user = dict(zip(ordered, minutes, strict=True))
        found.append(_Account(name, by_user, _minutes(sizes)))
    return found


def _by_user(report: Report, cluster: str) -> _Made:
    """An account, then its users; an account is the sum of them."""
    columns = ("Cluster", "Account", "Login", "Proper Name", "TRES Name", "Used")
    lines: list[Line] = []
    for one in _accounts(report):
        lines.append((cluster, one.name, "", "", _TRES, str(one.minutes)))
        for user, used in one.by_user.items():
            lines.append((cluster, one.name, user, user, _TRES, str(used)))
    return "Cluster/Account/User Utilization", columns, lines


def _top(report: Report, cluster: str) -> _Made:
    columns = ("Cluster", "Login", "Proper Name", "Account", "TRES Name", "Used")
    found = [
        (used, user, one.name) for one in _accounts(report) for user, used in one.by_user.items()
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
    accounts = _accounts(report)
    whole = sum(one.minutes for one in accounts)
    lines: list[Line] = []
    for one in accounts:
        part = f"{one.minutes / whole:.2%}" if whole else "0.00%"
        lines.append((cluster, one.name, *map(str, one.by_size), part))
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


def _minutes(gpu_hours: Iterable[float]) -> list[int]:
    """Return whole minutes whose sum is the rounded sum."""
    return carried((round(hours * 3600) for hours in gpu_hours), 60)


# ---- OpenCost ------------------------------------------------------------------------------------


def opencost(report: Report) -> str:
    """Write it as JSON; what was not allocated is `__idle__`, as there."""
    window = {"start": _time(report.since), "end": _time(report.until)}
    # One job may have been submitted more than once, or run on machines of several sorts.
    jobs = _grouped(report.jobs, lambda one: f"{one.namespace}/{one.kind}/{one.name}/{one.model}")
    entries = {key: _job_entry(of_key, window) for key, of_key in jobs.items()}
    idle = sum(one.held + one.free + one.down for one in report.capacity)
    entries["__idle__"] = _entry(
        name="__idle__",
        properties={},
        window=window,
        hours=idle,
        cents=report.headline.overhead_cents,
        efficiency=0.0,
    )
    encoded = msgspec.json.encode({"code": 200, "data": [entries]})
    return msgspec.json.format(encoded, indent=1).decode() + "\n"


def _job_entry(jobs: Sequence[Job], window: dict[str, str]) -> dict[str, Any]:
    one = jobs[0]
    busy = sum(job.amounts.busy for job in jobs)
    measured = busy + sum(job.amounts.idle for job in jobs)
    return _entry(
        name=one.name,
        properties={
            "namespace": one.namespace,
            "controllerKind": one.kind.lower(),
            "controller": one.name,
            "labels": {"queue": one.queue, "team": one.team, "user": one.user},
        },
        window=window,
        hours=sum(job.amounts.allocated for job in jobs),
        cents=sum(job.amounts.cost_cents for job in jobs),
        efficiency=busy / measured if measured else None,
    )


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
