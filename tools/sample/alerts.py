"""Alerts of a cluster on paper: of every severity, about devices, gangs and queues."""

from __future__ import annotations

from unisono.monitor.active_alerts import RULES, ActiveAlert, AlertBoard
from unisono.web.dashboard import Dashboard

_MOST_LATE = 3


def board_of(dashboard: Dashboard, now: float) -> AlertBoard:
    """Return what would fire on a cluster."""
    found: list[ActiveAlert] = []
    for row in dashboard.nodes().values():
        if row["broken"] or row["why"]:
            about = {"kubernetes_node": row["name"], "gpu": "3", "xid": "79"}
            found += [
                ActiveAlert(RULES["GPUXidCritical"], about, "firing", now - 1500),
                ActiveAlert(RULES["GPULost"], {"node": row["name"]}, "pending", now - 120),
            ]
    for one in list(dashboard.waiting)[:_MOST_LATE]:
        queue = dashboard.queue_of(one)
        about = {"namespace": one.namespace, "workload": one.name, "queue": queue}
        more = {"user": one.user, "reason": one.waits.stage}
        late = RULES["GangWaitingTooLong"]
        found.append(ActiveAlert(late, about | more, "firing", now - 5400))
    board = AlertBoard()
    board.take(found)
    return board
