"""Short jobs on nodes that a gang keeps: if they are still there when it can start, they leave.

They said that they would be over by then, so it costs them no turn: it is nobody's preemption.
Spec provisioning §5.16.
"""

from __future__ import annotations

from unisono.control import names
from unisono.control.actions import Json, Note, Patch, Ref, Steps
from unisono.control.conditions import is_true, with_condition
from unisono.control.purchases import BY_LENDER
from unisono.control.scheduler.record import hosts_of, with_eviction
from unisono.control.view import View

_REASON = "NodesNeeded"


def guests_of(gang: Json, view: View) -> list[Json]:
    """Return the jobs that are on nodes of a gang."""
    key = f"{gang['metadata']['namespace']}/{gang['metadata']['name']}"
    own = {host for host, _ in hosts_of(gang)}
    return [
        guest
        for guest in view.by(names.WORKLOAD, BY_LENDER, key)
        if guest["status"].get("admission")
        and not is_true(guest["status"]["conditions"], "Finished")
        and own & {host for host, _ in hosts_of(guest)}
    ]


def send_away(guest: Json, gang: Json, now: float) -> Steps:
    """Tell a job to leave, if it has not been told yet."""
    status = guest["status"]
    if is_true(status["conditions"], "Evicted"):
        return
    text = f"the machines of {gang['metadata']['name']} are there, and it needs its nodes"
    conditions = with_condition(status["conditions"], "Evicted", "True", _REASON, text, now=now)
    counted = with_eviction(status, _REASON)
    told = {"status": {"conditions": conditions, "schedulingStats": counted}}
    yield Patch(Ref.to(guest), told, "status")
    yield Note(Ref.to(guest), "EvictedDueToNodesNeeded", text)
