"""A running gang that lost nodes: what it has is kept while other nodes are looked for.

    Committed ──a pod has its place on a lost node──▶ Repairing ──other nodes──▶ Committed
                                                        │   │
                     nobody has to start there any more ┘   └── recovery timeout ──▶ evicted

Here a loss is noticed and written on the Workload (`status.unhealthyNodes`, as Kueue has it) and
its time limited; the scheduler finds the other nodes (`scheduler/repairs.py`). Quota and the nodes
that are left stay the gang's all the while (jobs §7.3).
"""

from __future__ import annotations

from collections.abc import Sequence

from unisono.control.actions import Again, Json, Note, Patch, Ref, Steps
from unisono.control.conditions import seconds
from unisono.control.scheduler.record import COMMITTED, placement, placement_of
from unisono.kinds.scalar import duration_ms

REPAIRING = "Repairing"
TIMEOUT = "unisono.dev/recovery-timeout"
_TIMEOUT_SECONDS = 600.0
# The API lists no more at once; the next ones are written when these are replaced.
_MOST_NAMED = 8


def unhealthy(workload: Json) -> list[str]:
    """Return the hosts that a gang has to leave."""
    return [one["name"] for one in (workload.get("status") or {}).get("unhealthyNodes") or ()]


def note_loss(workload: Json, hosts: Sequence[str], now: float) -> Steps:
    """Write down which nodes a gang has lost; the first loss starts the clock."""
    named = sorted(set(hosts))[:_MOST_NAMED]
    conditions = workload["status"].get("conditions") or []
    phase, about = placement_of(conditions)
    deadline = seconds(about.get("deadline", ""))
    if phase != REPAIRING:
        deadline = now + timeout_of(workload)
    elif named == unhealthy(workload):
        yield Again(deadline)
        return
    changed = placement(
        conditions,
        REPAIRING,
        gen=int(about.get("gen", "1")),
        epoch=int(about.get("epoch", "1")),
        deadline=deadline,
        now=now,
    )
    unhealthy_nodes = [{"name": host} for host in named]
    changes = {"status": {"conditions": changed, "unhealthyNodes": unhealthy_nodes}}
    workload = yield Patch(Ref.to(workload), changes, "status")
    message = f"Lost {', '.join(named)}: looking for other nodes, everything else is kept"
    yield Note(Ref.to(workload), "GangLostNodes", message, "Warning")
    yield Again(deadline)


def nothing_lost(workload: Json, now: float) -> Json:
    """Return the patch of a gang that can go on where it is: its nodes came back, or pods did."""
    conditions = workload["status"].get("conditions") or []
    _, about = placement_of(conditions)
    changed = placement(
        conditions,
        COMMITTED,
        gen=int(about.get("gen", "1")),
        epoch=int(about.get("epoch", "1")),
        deadline=now,
        now=now,
    )
    return {"status": {"conditions": changed, "unhealthyNodes": None}}


def timeout_of(workload: Json) -> float:
    """Return how long a gang keeps what it has left, in seconds."""
    text = (workload["metadata"].get("annotations") or {}).get(TIMEOUT, "")
    if text.isdecimal():
        return float(text)
    try:
        return duration_ms(text) / 1000 if text else _TIMEOUT_SECONDS
    except ValueError:
        return _TIMEOUT_SECONDS
