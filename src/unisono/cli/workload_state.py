"""The state of a workload, read from its Workload alone: its phase, its order, its history."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal

from unisono.kinds import views

if TYPE_CHECKING:
    from unisono.kube.form import Json

State = Literal[
    "waiting",
    "deactivated",
    "checked",
    "buying",
    "starting",
    "running",
    "repairing",
    "leaving",
    "finished",
]

# How far a gang is on its way to its nodes.
PLACEMENT = "unisono.dev/Placement"
# The machines that are bought for a workload.
PURCHASE = "unisono.dev/Purchase"
CAPACITY_PLANNED = "CapacityPlanned"
# The queue of workloads that only need nodes: no user wrote it, and it has no quota.
NO_QUEUE = "unisono.dev-unlimited"
# The reason of a job that is not processed because the status of its Workload is invalid.
UNREADABLE = "Unreadable"

# What that is in words; `{queue}` becomes " in queue …", or nothing where there is none.
MEANINGS: dict[State, str] = {
    "waiting": "waits{queue}",
    "deactivated": "is deactivated{queue}",
    "checked": "has quota{queue} and waits for admission checks",
    "buying": "has quota{queue} and waits for the machines that are bought for it",
    "starting": "is admitted{queue} and starts",
    "running": "runs{queue}",
    "repairing": "lost nodes and waits for others; it keeps the rest, and its quota{queue}",
    "leaving": "was evicted{queue}, and its pods are terminating",
    "finished": "has finished{queue}",
}


def condition(obj: Json, kind: str) -> Json | None:
    """Return a condition by its type."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((one for one in conditions if one.get("type") == kind), None)


def holds(obj: Json, kind: str) -> bool:
    """Say whether a condition is there and true."""
    found = condition(obj, kind)
    return found is not None and found["status"] == "True"


def state_of(workload: Json) -> State:
    """Return the state of a workload."""
    one = views.Workload(workload)
    conditions = one.conditions
    if conditions.is_true("Finished"):
        return "finished"
    has_quota = bool(one.status.raw.get("admission"))
    if has_quota and conditions.is_true("Evicted"):
        return "leaving"
    if has_quota and conditions.is_true("Admitted"):
        if conditions.reason(PLACEMENT) == "Repairing":
            return "repairing"
        return "running" if conditions.is_true("PodsReady") else "starting"
    if has_quota and conditions.is_true("QuotaReserved"):
        return "buying" if conditions.reason(PURCHASE) in ("Planned", "Waiting") else "checked"
    return "waiting" if one.spec.active else "deactivated"


def pods_of(workload: Json) -> int:
    """Return how many pods a workload has."""
    return sum(one.count for one in views.Workload(workload).spec.pod_sets)


def gpus_of(workload: Json) -> int:
    """Return how many GPUs all pods of a workload ask for together; parts count as one of each."""
    from unisono.engine.model.names import ResourceName
    from unisono.engine.model.resources import is_gpu
    from unisono.kinds.quantity import Quantity

    total = 0
    for one in views.Workload(workload).spec.pod_sets:
        for container in one.template.spec.containers:
            wanted = {**container.resources.limits, **container.resources.requests}
            for name, amount in wanted.items():
                if is_gpu(ResourceName(name)):
                    total += one.count * Quantity.from_raw(amount).amount(name)
    return total


def job_of(workload: Json) -> str:
    """Return the job behind a workload, as `kind/name`; the workload itself if there is none."""
    metadata = views.Object(workload).metadata
    owner = metadata.controller
    if owner is None:
        return f"workload/{metadata.name}"
    kind = "vcjob" if owner.group == "batch.volcano.sh" else owner.kind.lower()
    return f"{kind}/{owner.name}"


def since(workload: Json) -> str:
    """Return since when a workload is in its state."""
    one = views.Workload(workload)
    state = state_of(workload)
    if state == "waiting" and one.conditions.get("Evicted") is None:
        return one.metadata.creation_timestamp  # its first reason came later
    kind = {
        "waiting": "QuotaReserved",
        "checked": "QuotaReserved",
        "buying": "QuotaReserved",
        "starting": "Admitted",
        "running": "PodsReady",
        "repairing": PLACEMENT,
        "leaving": "Evicted",
        "finished": "Finished",
    }.get(state, "")
    found = one.conditions.get(kind)
    return found.last_transition_time if found else one.metadata.creation_timestamp


def evictions(workload: Json) -> dict[str, int]:
    """Return how often a workload was evicted, by reason."""
    stats = views.Workload(workload).status.scheduling_stats
    return {one.reason: one.count for one in stats.evictions}


def instant(written: str) -> float:
    """Return a time of an object in seconds."""
    return datetime.fromisoformat(written).timestamp()
