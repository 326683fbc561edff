"""The answer of `unisono why` as a value, before there are words for it.

It has the same keys for everything that can be asked about; what does not apply is absent.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from unisono.cli.job_names import by_jobs, job_names
from unisono.cli.start_times import facts_of, limit_of, root_cause_of, start_of, until
from unisono.cli.why.lookup import is_job_kind
from unisono.cli.why.read import Found
from unisono.cli.why.surroundings import around, position
from unisono.cli.workload_state import (
    CAPACITY_PLANNED,
    PLACEMENT,
    UNREADABLE,
    condition,
    evictions,
    holds,
    since,
    state_of,
)
from unisono.control.admission.kueue_messages import eviction_message
from unisono.control.admission.purchases import purchase_of
from unisono.control.conditions import timestamp
from unisono.control.health.node_health import Record
from unisono.control.health.progress import progress_of
from unisono.control.health.stragglers import known
from unisono.control.job_kinds.ray.job import NO_CLUSTER
from unisono.control.jobs.controller import INVALID
from unisono.control.names import EXPLANATION, QUEUE_LABEL
from unisono.kinds import views
from unisono.kinds.device_faults import fault_of
from unisono.kinds.digits import whole_number
from unisono.kinds.known import wrong_with
from unisono.kinds.kueue.topology_assignment import pods_per_host
from unisono.kinds.kueue.waiting import waiting_message
from unisono.kube.form import Json

# Where the kinds of jobs count how often they began anew.
_RESTARTS = ("restarts", "retryCount", "restartCount")
_ATTEMPT = "unisono.dev/attempt"
_INCIDENT = "unisono.dev/last-incident"
# Conditions of jobs that tell of trouble.
_ENDINGS = ("Failed", "FailureTarget", "Suspended")


def answer(found: Found) -> Json:
    """Return what is known about an object."""
    metadata = found.job["metadata"]
    made: Json = {
        "kind": found.job["kind"],
        "namespace": metadata.get("namespace", ""),
        "name": metadata["name"],
    }
    asked = found.asked
    if asked["metadata"]["uid"] != metadata["uid"] and asked is not found.workload:
        made["asked"] = {"kind": asked["kind"], "name": asked["metadata"]["name"]}
    if found.workload and found.unreadable:
        made |= _unreadable(found, found.workload)
    else:
        made |= _of_workload(found, found.workload) if found.workload else _without_workload(found)
    if found.parts.workloads:
        made["parts"] = {"states": found.parts.states(), "shown": found.parts.name_of_shown()}
    error = list(_node_problems(found.nodes))
    if error:
        made["nodeTrouble"] = error
    made["history"] = _history(found)
    if found.warnings:
        made["warnings"] = found.warnings
    made.setdefault("estimate", None)
    return made


# ---- with a workload -----------------------------------------------------------------------------


def _unreadable(found: Found, workload: Json) -> Json:
    """Say that a job is not processed because its Workload is invalid."""
    name = workload["metadata"]["name"]
    made: Json = {
        "workload": name,
        "state": "stuck",
        "queue": workload["spec"].get("queueName", ""),
        "reason": UNREADABLE,
        "message": f"its Workload {name} cannot be read: {found.unreadable}",
    }
    if found.pods:
        made["pods"] = _phases(found.pods)
    return made


def _of_workload(found: Found, workload: Json) -> Json:
    state = state_of(workload)
    admission = (workload.get("status") or {}).get("admission") or {}
    behind = found.local_queue["spec"]["clusterQueue"] if found.local_queue else ""
    made: Json = {
        "workload": workload["metadata"]["name"],
        "state": state,
        "since": since(workload),
        "queue": workload["spec"].get("queueName", ""),
        "clusterQueue": admission.get("clusterQueue") or behind,
        "priority": workload["spec"].get("priority", 0),
        "asks": [_asked(one) for one in workload["spec"].get("podSets") or ()],
    }
    if state in ("waiting", "deactivated"):
        made |= _by_jobs(_reasons(workload), found)
    facts = made.get("facts") or []
    made["limit"] = limit_of(workload, facts, found.local_queue, found.cluster_queue)
    if state == "waiting":
        place = position(found, workload)
        if place is not None:
            made["position"] = _with_job(place, job_names(found.every))
        made["estimate"] = start_of(facts)
        made |= around(found, facts)
    elif state == "checked":
        made["checks"] = list(_checks(found, workload))
    elif state == "repairing":
        made |= _repair(workload)
    elif state == "buying":
        planned = condition(workload, CAPACITY_PLANNED) or {}
        made |= {"reason": planned.get("reason", ""), "message": planned.get("message", "")}
        made["purchase"] = _purchase(workload)
        if made["purchase"]:
            ready = made["purchase"]["readyBy"]
            made["estimate"] = {"start": ready, "promised": False, "position": 1, "bought": True}
    elif state in ("leaving", "finished"):
        ended = condition(workload, "Evicted" if state == "leaving" else "Finished") or {}
        message = ended.get("message", "")
        if state == "leaving":
            message = eviction_message((workload.get("status") or {}).get("conditions"))
        made |= {"reason": ended.get("reason", ""), "message": message}
    reached = progress_of(workload["metadata"].get("annotations"))
    if reached is not None:
        made["progress"] = {"step": reached.step, "total": reached.total, "at": reached.at}
    slow = known(workload["metadata"].get("annotations"))
    if state == "running" and any(one.told for one in slow.values()):
        made["slow"] = [
            {"pod": pod, "since": one.since} for pod, one in sorted(slow.items()) if one.told
        ]
    if admission and state != "finished":
        made["until"] = until(workload, made["limit"])
    if admission:
        made["places"] = list(_places(admission))
    if found.pods:
        made["pods"] = _phases(found.pods)
    return made


def _checks(found: Found, workload: Json) -> Iterator[Json]:
    """Yield the admission checks that are not passed yet, and the controller of each."""
    for one in (workload.get("status") or {}).get("admissionChecks") or ():
        if one.get("state") != "Ready":
            yield {
                "name": one["name"],
                "state": one.get("state", "Pending"),
                "message": one.get("message", ""),
                "by": found.check_controllers.get(one["name"], ""),
            }


def _purchase(workload: Json) -> Json:
    """Return what is bought: machines, their price an hour, and when they are expected."""
    found = purchase_of(workload)
    if found is None:
        return {}
    _, written = found
    return {
        "machines": [
            {
                "pool": one.pool,
                "type": one.type,
                "zone": one.zone,
                "capacityType": one.sold,
                "count": len(one.nodes),
                "pricePerHour": one.price * len(one.nodes) / 1_000_000,
            }
            for one in written.machines
        ],
        "pricePerHour": written.price_micro / 1_000_000,
        "readyBy": timestamp(written.ready_by),
        "attempt": written.attempt,
    }


def _repair(workload: Json) -> Json:
    """Say which nodes are missed with how many pods, and how long the rest is kept."""
    lost = [one["name"] for one in workload["status"].get("unhealthyNodes") or ()]
    places = list(_places(workload["status"].get("admission") or {}))
    pods = sum(place["pods"] for place in places if place["node"] in lost)
    every = sum(place["pods"] for place in places)
    placed = condition(workload, PLACEMENT) or {"message": ""}
    parts = dict(part.partition("=")[::2] for part in placed["message"].split())
    nodes = f"node{'s' if len(lost) != 1 else ''} {', '.join(lost)}"
    return {
        "reason": "NodesLost",
        "message": f"lost {nodes} with {pods} of its {every} pods; no other node has room for "
        f"{'it' if pods == 1 else 'them'} yet",
        "lost": {"nodes": lost, "pods": pods},
        "keptUntil": parts.get("deadline", ""),
    }


def _asked(pod_set: Json) -> Json:
    """Return how many pods of which size a pod set has."""
    each: dict[str, list[str]] = {}
    for container in (pod_set["template"].get("spec") or {}).get("containers") or ():
        resources = container.get("resources") or {}
        wanted = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        for name, amount in wanted.items():
            each.setdefault(name, []).append(str(amount))
    return {
        "podSet": pod_set["name"],
        "pods": pod_set.get("count", 1),
        "each": {name: " + ".join(amounts) for name, amounts in sorted(each.items())},
    }


def _reasons(workload: Json) -> Json:
    reserved = condition(workload, "QuotaReserved") or {}
    explained = condition(workload, EXPLANATION)
    message = waiting_message(views.Workload(workload).conditions)
    made: Json = {"reason": reserved.get("reason", ""), "message": message}
    facts = facts_of(workload)
    if facts and explained is not None:
        made |= {"stage": explained["reason"].lower(), "facts": facts}
        root_cause = root_cause_of(workload)
        if root_cause is not None:
            made["rootCause"] = root_cause
    return made


_TEXTS = ("message", "rootCause")


def _by_jobs(reasons: Json, found: Found) -> Json:
    """Return reasons whose texts name jobs; keys that programs read stay those of Workloads."""
    names = job_names(found.every)
    facts = [
        one | {key: by_jobs(one[key], names) for key in ("says", "changes") if key in one}
        for one in reasons.get("facts") or ()
    ]
    texts = {key: by_jobs(reasons[key], names) for key in _TEXTS if key in reasons}
    return reasons | texts | ({"facts": facts} if facts else {})


def _with_job(place: Json, names: Mapping[str, str]) -> Json:
    """Return a position with the job that is at the head."""
    if "behind" not in place:
        return place
    ahead = by_jobs(place["ahead"], names)
    return place | {"behindJob": names.get(place["behind"], place["behind"]), "ahead": ahead}


def _places(admission: Json) -> Iterator[Json]:
    for one in admission.get("podSetAssignments") or ():
        for host, pods in pods_per_host(one.get("topologyAssignment")):
            yield {"podSet": one["name"], "node": host, "pods": pods}


def _phases(pods: list[Json]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for pod in pods:
        gone = "deletionTimestamp" in pod["metadata"]
        phase = "Terminating" if gone else (pod.get("status") or {}).get("phase", "Unknown")
        counts[phase] = counts.get(phase, 0) + 1
    return counts


def _node_problems(nodes: list[Json]) -> Iterator[Json]:
    """Return the nodes of its pods that are broken, away or closed."""
    for node in nodes:
        record = Record.of(node["metadata"].get("annotations"))
        fault = fault_of(node)
        made: Json = {"node": node["metadata"]["name"]}
        if not holds(node, "Ready"):
            made |= {"state": "not ready", "message": _says(node, "Ready"), "since": ""}
        elif record.reason or (fault is not None and fault.severity == "broken"):
            message = fault.message if fault is not None else record.reason
            state = "quarantined" if record.reason else "broken"
            if record.over_limit:
                message += "; not quarantined, as too many nodes are: it still gets pods"
            made |= {"state": state, "message": message, "since": record.since}
        elif node["spec"].get("unschedulable"):
            made |= {"state": "cordoned", "message": "", "since": ""}
        else:
            continue
        yield made


def _says(obj: Json, kind: str) -> str:
    return str((condition(obj, kind) or {}).get("message", ""))


# ---- without one ---------------------------------------------------------------------------------


def _without_workload(found: Found) -> Json:
    """Describe an object that no queue has to admit, or not yet."""
    job = found.job
    queue = (job["metadata"].get("labels") or {}).get(QUEUE_LABEL, "")
    made: Json = {"state": "unmanaged"}
    if found.unsupported:
        return {"state": "unsupported", "isJob": False, "message": found.unsupported}
    if queue:
        made = {"state": "unknown", "queue": queue}
    if found.parts.workloads:  # all of them run or have finished
        made = {"state": next(iter(found.parts.states()), "running"), "queue": queue}
    made["isJob"] = is_job_kind(job["kind"])
    if (job.get("spec") or {}).get("array"):
        return made | _array(job)
    wrong = wrong_with(job) if queue else ""
    if wrong:  # a real API server stores what ours refuses
        message = f"it is not queued as written: {wrong}"
        return made | {"state": "stuck", "reason": INVALID, "message": message}
    if found.pods:
        made["pods"] = _phases(found.pods)
        made["places"] = _pod_places(found.pods)
    for pod in found.pods:
        scheduled = condition(pod, "PodScheduled")
        if scheduled is not None and scheduled["status"] == "False":
            return made | {
                "state": "waiting",
                "since": scheduled["lastTransitionTime"],
                "reason": scheduled.get("reason", ""),
                "message": scheduled.get("message", ""),
            }
    status = job.get("status") or {}
    if status.get("reason") == NO_CLUSTER and not found.pods:
        message = str(status.get("message") or "")
        return made | {"state": "waiting", "reason": NO_CLUSTER, "message": message}
    for kind in _ENDINGS:
        error = condition(job, kind)
        if error is not None and error["status"] == "True":
            reason = str(error.get("reason", ""))
            made |= {"reason": reason, "message": error.get("message") or reason}
            if kind == "Failed":
                made["state"] = "finished"
            elif reason.endswith("Failed"):  # its parts could not be made
                made["state"] = "stuck"
            break
    return made


def _array(job: Json) -> Json:
    """Describe an array: it has no pods, its tasks are jobs of their own."""
    status = job.get("status") or {}
    word = str(status.get("reason") or "")
    tasks = "its tasks are jobs of their own (`unisono squeue` lists them)"
    summary = f"{word}: {status.get('message') or tasks}"
    return {
        "state": "waiting" if status.get("state") == "PENDING" else "finished",
        "since": job["metadata"]["creationTimestamp"],
        "reason": word,
        "message": summary,
    }


def _pod_places(pods: list[Json]) -> list[Json]:
    counts: dict[str, int] = {}
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if node:
            counts[node] = counts.get(node, 0) + 1
    return [{"podSet": "", "node": node, "pods": count} for node, count in sorted(counts.items())]


# ---- what happened -------------------------------------------------------------------------------


def _history(found: Found) -> Json:
    made: Json = {}
    workload = found.workload
    if workload is not None:
        counts = evictions(workload)
        evicted = condition(workload, "Evicted")
        if counts or evicted is not None:
            made["evictions"] = counts
        if evicted is not None:
            made["lastEviction"] = {
                "at": evicted["lastTransitionTime"],
                "message": eviction_message(workload["status"].get("conditions")),
            }
        past = (workload.get("status") or {}).get("accumulatedPastExecutionTimeSeconds")
        if past:
            made["ranSeconds"] = past
    status = found.job.get("status") or {}
    annotations = found.job["metadata"].get("annotations") or {}
    restarts = next((status[name] for name in _RESTARTS if status.get(name)), 0)
    restarts = restarts or whole_number(annotations.get(_ATTEMPT)) or 0
    if restarts:
        made["restarts"] = restarts
    if annotations.get(_INCIDENT):
        made["lastIncident"] = _incident(annotations[_INCIDENT])
    if found.job["kind"] == "Job" and status.get("failed"):
        made["failedPods"] = status["failed"]
    return made


def _incident(written: str) -> str:
    """Return the last thing that went wrong in a gang, in one line."""
    try:
        record = json.loads(written)
        return f"{record['reason']}: {record['message']}"
    except (ValueError, KeyError, TypeError):
        return written
