"""What objects say that a promise is about, read as plainly as possible and from no cache."""

from __future__ import annotations

from collections.abc import Iterator

from unisono.control import names
from unisono.control.admission.placement import placement_of
from unisono.control.conditions import find, is_true
from unisono.kinds.kueue.topology_assignment import pods_per_host
from unisono.kube.form import Json

GPU = "nvidia.com/gpu"


def gpus_of(spec: Json) -> int:
    """Return how many GPUs a pod of this spec takes."""
    return sum(
        int(((one.get("resources") or {}).get("limits") or {}).get(GPU, 0))
        for one in spec.get("containers") or ()
    )


def node_of(pod: Json) -> str:
    """Return where a pod is; empty if nowhere."""
    return str(pod["spec"].get("nodeName") or "")


def is_over(pod: Json) -> bool:
    """Say whether a pod has ended."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def is_going(obj: Json) -> bool:
    """Say whether it was deleted."""
    return "deletionTimestamp" in obj["metadata"]


def workload_of(pod: Json) -> tuple[str, str] | None:
    """Return the workload that a pod is of."""
    metadata = pod["metadata"]
    name = (metadata.get("annotations") or {}).get(names.WORKLOAD_ANNOTATION)
    return (metadata["namespace"], name) if name else None


def set_of(pod: Json) -> str:
    """Return which pod set a pod is of."""
    return str((pod["metadata"].get("labels") or {}).get(names.POD_SET_LABEL, "main"))


def conditions(obj: Json) -> list[Json]:
    """Return the conditions of an object."""
    return (obj.get("status") or {}).get("conditions") or []


def admission(workload: Json) -> Json | None:
    """Return what a workload was given; None if nothing."""
    return (workload.get("status") or {}).get("admission")


def is_finished(workload: Json) -> bool:
    """Say whether a workload is over."""
    return is_true(conditions(workload), "Finished")


def is_evicted(workload: Json) -> bool:
    """Say whether a workload was told to leave."""
    return is_true(conditions(workload), "Evicted")


def phase_of(workload: Json) -> tuple[str, int]:
    """Return the phase of a gang's placement and its number."""
    phase, about = placement_of(conditions(workload))
    return phase, int(about.get("gen", "0"))


def places(workload: Json) -> dict[tuple[str, str], int]:
    """Return how many pods a record has by set and node."""
    found: dict[tuple[str, str], int] = {}
    for one in (admission(workload) or {}).get("podSetAssignments") or ():
        for host, count in pods_per_host(one.get("topologyAssignment")):
            found[one["name"], host] = found.get((one["name"], host), 0) + count
    return found


def least(workload: Json) -> dict[str, int]:
    """Return how many pods of each set a gang cannot be without."""
    metadata = workload["metadata"]
    later = (metadata.get("annotations") or {}).get(names.LATER_SETS, "").split(",")
    return {
        one["name"]: one.get("minCount") or one["count"]
        for one in workload["spec"]["podSets"]
        if one["name"] not in later
    }


def gpus_by_set(workload: Json) -> dict[str, int]:
    """Return how many GPUs a pod of each set takes."""
    return {
        one["name"]: gpus_of(one["template"].get("spec") or {})
        for one in workload["spec"]["podSets"]
    }


def quota_used(workload: Json) -> int:
    """Return how many GPUs of quota a workload holds."""
    done = {
        one["name"]: one["count"]
        for one in (workload.get("status") or {}).get("reclaimablePods") or ()
    }
    gpus = gpus_by_set(workload)
    return sum(
        gpus.get(one["name"], 0) * max(0, one.get("count", 0) - done.get(one["name"], 0))
        for one in (admission(workload) or {}).get("podSetAssignments") or ()
    )


def nominal(queue: Json) -> int:
    """Return a queue's own quota of GPUs."""
    return sum(int(one["nominalQuota"]) for one in _quotas(queue))


def most(queue: Json) -> int | None:
    """Return how many GPUs a queue may use with all that it borrows; None if there is no limit."""
    limits = [one.get("borrowingLimit") for one in _quotas(queue)]
    if not queue["spec"].get("cohortName"):
        return nominal(queue)
    if any(limit is None for limit in limits):
        return None
    return nominal(queue) + sum(int(limit) for limit in limits if limit is not None)


def _quotas(queue: Json) -> Iterator[Json]:
    for group in queue["spec"].get("resourceGroups") or ():
        for flavor in group["flavors"]:
            for one in flavor["resources"]:
                if one["name"] == GPU:
                    yield one


def is_explained(workload: Json) -> bool:
    """Say whether a workload that waits says why."""
    found = find(conditions(workload), "QuotaReserved")
    return found is not None and bool(found["message"]) and found["reason"] != "PendingEvaluation"
