"""The surroundings of a pending workload: holders of quota, workloads ahead, victims.

The scheduler's facts name the cause and its number. These are the next questions of a user,
answered from the same objects; what may not be read is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from unisono.cli.queues import cohort_of
from unisono.cli.start_times import limit_of
from unisono.cli.why.read import Found
from unisono.cli.workload_state import job_of, since, state_of
from unisono.control.names import WORKLOAD_ANNOTATION
from unisono.kinds import views
from unisono.kinds.kueue.queue_order import pending_order
from unisono.kinds.kueue.waiting import waiting_message
from unisono.kinds.quantity import Quantity, format_amount
from unisono.kube.form import Json

_MOST_HOLDERS = 3


def around(found: Found, facts: Iterable[Json]) -> Json:
    """Return what the facts say about other workloads."""
    made: Json = {}
    for fact in facts:
        match fact.get("fact"):
            case "QuotaExhausted":
                use = _use(found, fact["resource"])
                if use and "use" not in made:
                    made["use"] = use
            case "WaitingForVictims":
                made["leaving"] = list(_leaving(found, fact))
            case "DependencyPending":
                state = _state_of_dependency(found, fact["on"])
                if state:
                    made["dependsOn"] = state
            case _:
                pass
    return made


def position(found: Found, workload: Json) -> Json | None:
    """Return the position of a workload in its queue, and the first one there; None if in none."""
    rivals = found.rivals or [workload]
    order = pending_order(rivals, found.cluster_queue)
    own = workload["metadata"]["uid"]
    place = next((at for at, one in enumerate(order, 1) if one["metadata"]["uid"] == own), 0)
    if not place:
        return None
    made: Json = {"place": place, "of": len(order)}
    if place > 1:
        first = order[0]
        made["behind"] = key_of(first)
        made["ahead"] = {
            "priority": first["spec"].get("priority", 0),
            "message": waiting_message(views.Workload(first).conditions),
            "strict": _is_strict(found.cluster_queue),
        }
    return made


def key_of(workload: Json) -> str:
    """Return namespace and name of a workload."""
    return f"{workload['metadata']['namespace']}/{workload['metadata']['name']}"


def _is_strict(queue: Json | None) -> bool:
    return queue is not None and (queue.get("spec") or {}).get("queueingStrategy") == "StrictFIFO"


# ---- quota ---------------------------------------------------------------------------------------


def _use(found: Found, resource: str) -> Json:
    """Return how much of a resource is in use in the queue or its cohort, and by which jobs."""
    queue = found.cluster_queue
    if queue is None:
        return {}
    cohort = cohort_of(queue)
    queues = [one for one in found.queues if cohort_of(one) == cohort]
    if not cohort or not queues:
        queues = [queue]
    names = {one["metadata"]["name"] for one in queues}
    held = {
        f"{one['metadata']['namespace']}/{job_of(one)}": amount
        for one in found.every
        if _admitted_by(one) in names and (amount := _held(one, resource))
    }
    if not held:
        return {}
    holders = sorted(held.items(), key=lambda item: (-item[1], item[0]))
    owned = sum(_nominal(one, resource) for one in queues)
    return {
        "of": f"cohort {cohort}" if len(names) > 1 else f"ClusterQueue {queue['metadata']['name']}",
        "resource": resource,
        "used": format_amount(sum(held.values()), resource),
        "nominal": format_amount(owned, resource),
        "holders": [
            {"job": name, "amount": format_amount(amount, resource)}
            for name, amount in holders[:_MOST_HOLDERS]
        ],
        "more": max(0, len(holders) - _MOST_HOLDERS),
        "areLimited": all(
            limit_of(one, (), None, _queue_of(one, queues)) is not None
            for one in found.every
            if _admitted_by(one) in names and _held(one, resource)
        ),
    }


def _queue_of(workload: Json, queues: Sequence[Json]) -> Json | None:
    name = _admitted_by(workload)
    return next((one for one in queues if one["metadata"]["name"] == name), None)


def _admitted_by(workload: Json) -> str:
    admission = (workload.get("status") or {}).get("admission") or {}
    return "" if state_of(workload) == "finished" else str(admission.get("clusterQueue", ""))


def _held(workload: Json, resource: str) -> int:
    sets = workload["status"]["admission"].get("podSetAssignments") or ()
    amounts = [(one.get("resourceUsage") or {}).get(resource, "0") for one in sets]
    return sum(Quantity.from_raw(amount).amount(resource) for amount in amounts)


def _nominal(queue: Json, resource: str) -> int:
    return sum(
        Quantity.from_raw(quota["nominalQuota"]).amount(resource)
        for group in (queue.get("spec") or {}).get("resourceGroups") or ()
        for quota in _quotas(group)
        if quota["name"] == resource
    )


def _quotas(group: Mapping[str, Any]) -> Iterator[Json]:
    yield from group.get("resources") or ()  # a spelling that names no flavor for a quota
    for flavor in group.get("flavors") or ():
        yield from (flavor.get("resources") or ()) if isinstance(flavor, dict) else ()


# ---- others --------------------------------------------------------------------------------------


def _leaving(found: Found, fact: Json) -> Iterator[Json]:
    """Return for each victim how many of its pods are still there, and until when at the latest."""
    known = {key_of(one): one for one in found.every}
    for key in (*fact.get("victims", ()), *fact.get("shrinking", ())):
        name = key.partition("/")[2]
        left = [
            pod["metadata"].get("deletionTimestamp", "")
            for pod in found.victims_pods
            if (pod["metadata"].get("annotations") or {}).get(WORKLOAD_ANNOTATION) == name
        ]
        made: Json = {"workload": key, "pods": len(left), "until": max(left, default="")}
        if key in known:
            made["job"] = f"{key.partition('/')[0]}/{job_of(known[key])}"
        yield made


def _state_of_dependency(found: Found, job: str) -> Json:
    """Return the state of a job that another one depends on, by its namespace and name."""
    namespace, _, name = job.partition("/")
    for one in found.every:
        if one["metadata"]["namespace"] == namespace and job_of(one).partition("/")[2] == name:
            return {
                "job": f"{namespace}/{job_of(one)}",
                "state": state_of(one),
                "since": since(one),
            }
    return {}
