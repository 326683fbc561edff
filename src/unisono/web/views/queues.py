"""Queues as a tree of cohorts, with what is theirs, used, borrowed and lent."""

from __future__ import annotations

from collections.abc import Mapping

from unisono.kube.form import Json
from unisono.monitor.active_alerts import dashboard_of
from unisono.monitor.cache import ClusterCache
from unisono.monitor.metrics.queues import lent_by
from unisono.monitor.records import Quota
from unisono.web.auth import Permissions
from unisono.web.dashboard import Dashboard
from unisono.web.view_models import PageModel
from unisono.web.views.rows import workload_row

_DEEPEST = 16  # cohorts above each other; a circle ends there


def queues(
    dashboard: Dashboard,
    asked: Mapping[str, str],
    permissions: Permissions,
    *,
    grafana: str = "",
) -> PageModel:
    """Return the page."""
    if not permissions.queues:
        return PageModel({"denied": "list clusterqueues.kueue.x-k8s.io"})
    cache = dashboard.cache
    lent = lent_by(list(cache.queues.values()), dashboard.sums.used)
    rows: dict[str, Json] = {}
    for name in sorted(cache.queues, key=lambda one: (_path(cache, one), one)):
        queue = cache.queues[name]
        line = dashboard.lines.get(name)
        head = line.first() if line is not None else None
        shown = head if head is not None and permissions.sees(head.namespace) else None
        states = dashboard.sums.states
        rows[name] = {
            "name": name,
            "cohorts": _path(cache, name),
            "active": queue.is_active,
            "weight": queue.weight,
            "waits": len(line) if line is not None else 0,
            "runs": states[name, "running"] + states[name, "admitted"],
            "wanted": dashboard.sums.wanted[name],
            "flavors": [_flavor(dashboard, name, one, lent) for one in queue.quotas],
            "head": workload_row(dashboard, shown) if shown is not None else None,
            "panel": dashboard_of(grafana, "queues", {"queue": name}),
        }
    return PageModel({}, rows)


def _flavor(
    dashboard: Dashboard, queue: str, quota: Quota, lent: Mapping[tuple[str, str], int]
) -> Json:
    place = queue, quota.flavor
    used = dashboard.sums.used[place]
    return {
        "name": quota.flavor,
        "nominal": quota.nominal,
        "used": used,
        "borrowed": max(0, used - quota.nominal),
        "lent": lent.get(place, 0),
        "mayBorrow": quota.borrowing,
        "mayLend": quota.lending,
    }


def _path(cache: ClusterCache, queue: str) -> list[str]:
    """Return the cohorts of a queue, the topmost first."""
    found: list[str] = []
    cohort = cache.queues[queue].cohort
    while cohort and cohort not in found and len(found) < _DEEPEST:
        found.insert(0, cohort)
        cohort = cache.cohorts.get(cohort, "")
    return found
