"""The first page: GPUs by state and user, the next workload of every queue, what runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice

from unisono.kube.form import Json
from unisono.monitor.active_alerts import AlertBoard
from unisono.monitor.records import WorkloadRecord
from unisono.web.auth import Permissions
from unisono.web.dashboard import Dashboard
from unisono.web.gpus import Gpus
from unisono.web.view_models import PageModel
from unisono.web.views.alerts import counted, visible
from unisono.web.views.rows import key_of, workload_row

_MOST_HEADS = 50
_MOST_RUNNING = 12
_MOST_USERS = 8
_MOST_TROUBLES = 6
# How far to look for workloads that the user may see.
_FARTHEST = 5_000


def overview(
    dashboard: Dashboard,
    asked: Mapping[str, str],
    permissions: Permissions,
    *,
    gpus: Gpus | None = None,
    board: AlertBoard | None = None,
) -> PageModel:
    """Return the page."""
    rows = dashboard.nodes() if permissions.nodes else {}
    running = [
        one for one in islice(dashboard.running, _FARTHEST) if permissions.sees(one.namespace)
    ]
    latest = running[:_MOST_RUNNING]
    return PageModel(
        {
            "gpus": _gpus(dashboard, rows.values()) if permissions.nodes else None,
            "counts": {
                "waits": len(dashboard.waiting),
                "runs": len(dashboard.running),
                "over": len(dashboard.over),
            },
            "models": _models(rows.values()),
            "users": _users(dashboard, permissions),
            "heads": _heads(dashboard, permissions) if permissions.queues else [],
            "queues": len(dashboard.cache.queues),
            "nodes": len(rows),
            "troubles": _troubles(rows.values()),
            "alerts": counted(visible(board, permissions)) if board is not None else None,
        },
        {key_of(one): workload_row(dashboard, one, gpus) for one in latest},
    )


def _gpus(dashboard: Dashboard, nodes: Iterable[Json]) -> Json:
    there = held = down = 0
    cost = 0.0
    for one in nodes:
        there += one["gpus"]
        held += one["held"]
        cost += one["price"]
        down += one["gpus"] - one["held"] if one["closed"] else one["broken"]
    return {
        "there": there,
        "held": held,
        "down": down,
        "free": max(0, there - held - down),
        "wanted": dashboard.sums.wanted.total(),
        "cost": round(cost, 2),
    }


def _models(nodes: Iterable[Json]) -> list[Json]:
    """Return how many GPUs there are of each model, and how many are held."""
    there: Counter[str] = Counter()
    held: Counter[str] = Counter()
    for one in nodes:
        if one["gpus"]:
            model = one["model"] or one["type"] or "GPU"
            there[model] += one["gpus"]
            held[model] += one["held"]
    return [{"model": name, "there": there[name], "held": held[name]} for name in sorted(there)]


def _users(dashboard: Dashboard, permissions: Permissions) -> list[Json]:
    """Return the users with most GPUs."""
    found: Counter[str] = Counter()
    for (namespace, user), gpus in dashboard.sums.by_user.items():
        if gpus and permissions.sees(namespace):
            found[user] += gpus
    ordered = sorted(found.items(), key=lambda one: (-one[1], one[0]))
    return [{"user": user, "gpus": gpus} for user, gpus in ordered[:_MOST_USERS]]


def _heads(dashboard: Dashboard, permissions: Permissions) -> list[Json]:
    """Return the next workload of every queue, the longest queues first."""
    lines = sorted(
        ((name, line) for name, line in dashboard.lines.items() if len(line)),
        key=lambda one: (-len(one[1]), one[0]),
    )
    return [
        {
            "queue": name or "no queue",
            "waits": len(line),
            **_head(dashboard, line.first(), permissions),
        }
        for name, line in lines[:_MOST_HEADS]
    ]


def _head(dashboard: Dashboard, one: WorkloadRecord | None, permissions: Permissions) -> Json:
    if one is None:
        return {}
    if not permissions.sees(one.namespace):
        return {"head": None, "start": one.waits.start, "promised": one.waits.is_promised}
    return {"head": workload_row(dashboard, one)}


def _troubles(nodes: Iterable[Json]) -> list[Json]:
    """Return nodes with problems."""
    bad = [one for one in nodes if one["gpus"] and (one["closed"] or one["broken"])]
    return [
        {key: one[key] for key in ("name", "ready", "closed", "broken", "why", "gpus", "held")}
        for one in bad[:_MOST_TROUBLES]
    ] + ([{"more": len(bad) - _MOST_TROUBLES}] if len(bad) > _MOST_TROUBLES else [])
