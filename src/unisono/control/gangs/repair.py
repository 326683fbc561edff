"""A gang that lost nodes: it keeps its quota and its other nodes while replacements are sought.

    Committing, Committed ──a pod has its place on a lost node──▶ Repairing ──other nodes──▶ back
                                                                    │   │
                                   no pod has to start there any more ┘   └── too late ──▶ evicted

A node is lost if it is not ready or closed, and to this gang also if it turned a pod of it away:
its own agent knows better what is free there. Here a loss is noticed and written on the Workload
(`status.unhealthyNodes`, as Kueue has it) and its time limited; the scheduler finds the other nodes
(`scheduler/missing_nodes.py`). Quota and the nodes that are left stay the gang's all the while
(jobs §7.3): as long as its job may take to recover, or as long as a gang that starts may be partly
there.
"""

from __future__ import annotations

from collections.abc import Sequence

from unisono.control.actions import Again, Json, Note, Patch, Ref, Steps
from unisono.control.admission.placement import (
    COMMITTED,
    WAS,
    number_of,
    placement_of,
    with_placement,
)
from unisono.control.conditions import seconds
from unisono.engine.model.resources import MAX_COUNT
from unisono.kinds.digits import whole_number
from unisono.kinds.scalar import duration_ms

REPAIRING = "Repairing"
TIMEOUT = "unisono.dev/recovery-timeout"
_TIMEOUT_SECONDS = 600.0
# How long a gang that starts may be partly on its nodes; and again, after a loss.
BIND_SECONDS = 60
# In a placement's message: hosts that turned pods away.
_REFUSED = "refused"
# The API lists no more at once; the next ones are written when these are replaced.
_MOST_NAMED = 8


def unhealthy(workload: Json) -> list[str]:
    """Return the hosts that a gang has to leave."""
    return [one["name"] for one in (workload.get("status") or {}).get("unhealthyNodes") or ()]


def refused(workload: Json) -> list[str]:
    """Return the hosts among them that turned a pod of the gang away."""
    _, about = placement_of((workload.get("status") or {}).get("conditions"))
    return [host for host in about.get(_REFUSED, "").split(",") if host]


def first_of(hosts: Sequence[str]) -> list[str]:
    """Return the lost hosts that are named at once."""
    return sorted(set(hosts))[:_MOST_NAMED]


def note_loss(
    workload: Json, hosts: Sequence[str], turned_away: Sequence[str], now: float
) -> Steps:
    """Write down which nodes a gang has lost; the first loss starts the clock."""
    named = first_of(hosts)
    conditions = workload["status"].get("conditions") or []
    phase, about = placement_of(conditions)
    deadline = seconds(about.get("deadline", ""))
    unwelcome = sorted({*turned_away, *refused(workload)} & {*named})
    if phase != REPAIRING:
        deadline = now + (timeout_of(workload) if phase == COMMITTED else BIND_SECONDS)
    elif (named, unwelcome) == (unhealthy(workload), refused(workload)):
        yield Again(deadline)
        return
    was = about.get(WAS, "") if phase == REPAIRING else phase
    changed = with_placement(
        conditions,
        REPAIRING,
        gen=number_of(about, "gen", 1),
        epoch=number_of(about, "epoch", 1),
        deadline=deadline,
        now=now,
        more={WAS: was if was != COMMITTED else "", _REFUSED: ",".join(unwelcome)},
    )
    unhealthy_nodes = [{"name": host} for host in named]
    changes = {"status": {"conditions": changed, "unhealthyNodes": unhealthy_nodes}}
    workload = yield Patch(Ref.to(workload), changes, "status")
    message = f"Lost nodes {', '.join(named)}: looking for replacements, keeping the others"
    yield Note(Ref.to(workload), "GangLostNodes", message, "Warning")
    yield Again(deadline)


def nothing_lost(workload: Json, now: float) -> Json:
    """Return the patch of a gang that can stay where it is: its nodes recovered, or its pods."""
    conditions = workload["status"].get("conditions") or []
    _, about = placement_of(conditions)
    was = about.get(WAS)
    changed = with_placement(
        conditions,
        was or COMMITTED,
        gen=number_of(about, "gen", 1),
        epoch=number_of(about, "epoch", 1),
        deadline=seconds(about.get("deadline", "")) if was else now,
        now=now,
    )
    return {"status": {"conditions": changed, "unhealthyNodes": None}}


def timeout_of(workload: Json) -> float:
    """Return how long a gang keeps what it has left, in seconds."""
    text = (workload["metadata"].get("annotations") or {}).get(TIMEOUT, "")
    seconds_ = whole_number(text, MAX_COUNT)
    if seconds_ is not None:
        return float(seconds_)
    try:
        return duration_ms(text) / 1000 if text else _TIMEOUT_SECONDS
    except ValueError:
        return _TIMEOUT_SECONDS
