"""What a decision looks like on a Workload: its status, as one patch.

Writing this status *is* the decision: quota and nodes count from here, also after a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.admission import explanation as facts
from unisono.control.admission import purchases
from unisono.control.admission import shared_gpus as gpu_seats
from unisono.control.admission.implicit_queues import written_flavor, written_queue
from unisono.control.conditions import find, is_true, seconds, timestamp, with_condition
from unisono.engine.explain.messages import message_of, reason_of, stage_of
from unisono.engine.model.explanation import Explanation
from unisono.engine.model.plan import Admit, Eviction, Stop
from unisono.engine.model.workload import Admission, PodSet, PodSetAssignment, Workload
from unisono.kinds.digits import whole_number
from unisono.kinds.kueue.topology_assignment import compressed, pods_per_host
from unisono.kinds.quantity import format_amount
from unisono.kinds.scalar import seconds_ms
from unisono.kinds.times import TIME_MIN

PLANNED = "Planned"
COMMITTING = "Committing"
COMMITTED = "Committed"
# What is left of a placement that was taken back: its number.
RELEASED = "Released"
# In a placement's message: the phase that a repair interrupted.
WAS = "was"
NOTHING_MORE: Mapping[str, str] = MappingProxyType({})
# In a placement's message: how often a write in doubt was made impossible.
FENCE = "fence"
# How long a planned gang may wait for its pods to exist (placement §10.2).
PODS_CREATED_SECONDS = 120

_EVICTED_TEXTS = {
    "ClusterQueueStopped": "the ClusterQueue is stopped",
    "LocalQueueStopped": "the LocalQueue is stopped",
    "PodsReadyTimeout": "the pods were not ready in time",
    "AdmissionCheck": "an admission check failed",
    "MaximumExecutionTimeExceeded": "the workload ran as long as it may",
    "Deactivated": "the workload was deactivated",
}


def admitted(
    workload: Json,
    admit: Admit,
    asked: Workload,
    hosts: Callable[[str], str],
    *,
    now: float,
    epoch: int,
    minds_readiness: bool = False,
) -> Json:
    """Return the status patch that admits a workload; `hosts` tells a node's host name.

    `minds_readiness` says that somebody counts how long its pods are not ready.
    """
    generation = workload["metadata"].get("generation")
    status = workload.get("status") or {}
    queue = written_queue(admit.admission.queue)
    conditions = with_condition(
        status.get("conditions"),
        "QuotaReserved",
        "True",
        "QuotaReserved",
        f"Quota reserved in ClusterQueue {queue}",
        now=now,
        generation=generation,
    )
    for kind in ("Evicted", "Preempted"):
        old = find(conditions, kind)
        if old is not None and old["status"] == "True":
            message = f"Previously: {old['message']}"
            conditions = with_condition(
                conditions,
                kind,
                "False",
                "QuotaReserved",
                message,
                now=now,
            )
    if admit.purchase is not None:
        conditions = purchases.bought(conditions, admit.purchase, now)
    else:
        conditions = purchases.without_purchase(conditions)
    if admit.checks_pass and admit.purchase is None:
        conditions = with_condition(
            conditions,
            "Admitted",
            "True",
            "Admitted",
            f"The workload is admitted by ClusterQueue {queue}",
            now=now,
            generation=generation,
        )
        if minds_readiness or _has_ready_pods_one_day(workload, conditions):
            conditions = with_condition(
                conditions, "PodsReady", "False", "WaitForStart", "Not all pods are ready", now=now
            )
    if any(one.nodes for one in admit.admission.pod_sets):
        conditions = placement(
            conditions,
            first_phase(workload, conditions),
            gen=next_gen(conditions),
            epoch=epoch,
            deadline=now + PODS_CREATED_SECONDS,
            now=now,
            devices=gpu_seats.written(admit.admission),
        )
    gone = (names.EXPLANATION, names.ON_LOAN, names.GRANTED)
    conditions = [one for one in conditions if one["type"] not in gone]
    if admit.limit_ms is not None:
        limit = str(admit.limit_ms // 1000)
        conditions = with_condition(conditions, names.GRANTED, "True", "Started", limit, now=now)
    if admit.lent_by:
        keys = " ".join(admit.lent_by)
        conditions = with_condition(conditions, names.ON_LOAN, "True", "Borrows", keys, now=now)
    sets = {one.name: one for one in asked.pod_sets}
    assignments = [_assignment(one, sets[one.name], hosts) for one in admit.admission.pod_sets]
    return {
        "status": {
            "admission": {"clusterQueue": queue, "podSetAssignments": assignments},
            "conditions": conditions,
        }
    }


def _has_ready_pods_one_day(workload: Json, conditions: Sequence[Json]) -> bool:
    """Say whether anybody will tell when the pods are ready: then it is said now that they are not.

    Nobody knows the pods of a Workload without a job, and a condition makes this write, and all
    that follow, an eighth more work for the API server.
    """
    return bool(workload["metadata"].get("ownerReferences")) or bool(find(conditions, "PodsReady"))


def granted_ms(workload: Json) -> int | None:
    """Return the limit that a workload was started with, if it had left that open."""
    if TIME_MIN not in (workload["metadata"].get("annotations") or {}):
        return None  # it was told another one since
    found = find((workload.get("status") or {}).get("conditions"), names.GRANTED)
    seconds = whole_number(found["message"]) if found is not None else None
    return None if seconds is None else seconds_ms(seconds)


def first_phase(workload: Json, conditions: list[Json]) -> str:
    """Return how far a gang is when it has its nodes (placement §10.2).

    The pods of an admitted job are made after that, and those of its last admission are gone: what
    is written now can be carried out as soon as they are there. A gang that waits for checks or
    machines may not; nor one whose pods have been there all along, as they may have had another
    place before: that they are to be released is a write of its own, in the state that was seen.
    """
    metadata = workload["metadata"]
    owners = metadata.get("ownerReferences") or ()
    is_held = any(owner.get("controller") for owner in owners)
    is_of_pods = names.GANG in (metadata.get("annotations") or {})
    comes_first = is_held and not is_of_pods and is_true(conditions, "Admitted")
    return COMMITTING if comes_first else PLANNED


def _assignment(one: PodSetAssignment, asked: PodSet, hosts: Callable[[str], str]) -> Json:
    written: Json = {
        "name": one.name,
        "count": one.count,
        "flavors": {name: written_flavor(flavor) for name, flavor in one.flavors},
        "resourceUsage": {
            name: format_amount(amount * one.count, name) for name, amount in asked.requests
        },
    }
    if one.nodes:
        written["topologyAssignment"] = _places(one, hosts)
    return written


def places(on: Iterable[tuple[str, int]]) -> Json:
    """Return how many pods go to each host, as a status has it."""
    domains = [{"values": [host], "count": pods} for host, pods in on]
    written: Json = compressed({"levels": [names.HOSTNAME], "domains": domains})
    return written


def _places(one: PodSetAssignment, hosts: Callable[[str], str]) -> Json:
    return places((hosts(node), pods) for node, pods in one.nodes)


def repaired(
    workload: Json,
    admission: Admission,
    hosts: Callable[[str], str],
    *,
    now: float,
    epoch: int,
) -> Json:
    """Return the status patch that gives a gang other nodes for those it lost."""
    status = workload["status"]
    _, about = placement_of(status.get("conditions"))
    before = about.get(WAS)  # a gang that lost a node while it started goes on starting
    new = {one.name: one for one in admission.pod_sets}
    assignments = [
        {**one, "topologyAssignment": _places(new[one["name"]], hosts)}
        if new[one["name"]].nodes
        else one
        for one in status["admission"]["podSetAssignments"]
    ]
    conditions = placement(
        status.get("conditions") or [],
        before or COMMITTED,
        gen=next_gen(status.get("conditions")),
        epoch=epoch,
        deadline=seconds(about.get("deadline", "")) if before else now,
        now=now,
        devices=gpu_seats.written(admission),
    )
    return {
        "status": {
            "admission": {"podSetAssignments": assignments},
            "conditions": conditions,
            "unhealthyNodes": None,
        }
    }


def seated(
    workload: Json,
    admission: Admission,
    hosts: Callable[[str], str],
    *,
    now: float,
    epoch: int,
) -> Json:
    """Return the status patch that gives a gang with quota its nodes."""
    status = workload["status"]
    new = {one.name: one for one in admission.pod_sets}
    assignments = [
        {**one, "topologyAssignment": _places(new[one["name"]], hosts)}
        for one in status["admission"]["podSetAssignments"]
    ]
    conditions = placement(
        status.get("conditions") or [],
        PLANNED,
        gen=next_gen(status.get("conditions")),
        epoch=epoch,
        deadline=now + PODS_CREATED_SECONDS,
        now=now,
        devices=gpu_seats.written(admission),
    )
    return {"status": {"admission": {"podSetAssignments": assignments}, "conditions": conditions}}


def hosts_of(workload: Json) -> list[tuple[str, int]]:
    """Return the hosts that a workload was given, and how many pods go to each."""
    return [
        place
        for one in workload["status"]["admission"].get("podSetAssignments") or ()
        for place in pods_per_host(one.get("topologyAssignment"))
    ]


def placement(
    conditions: list[Json],
    phase: str,
    *,
    gen: int,
    epoch: int,
    deadline: float,
    now: float,
    devices: str | None = None,
    more: Mapping[str, str] = NOTHING_MORE,
) -> list[Json]:
    """Set how far a gang is on its way to its nodes; None keeps the devices as they are."""
    message = f"gen={gen} epoch={epoch} deadline={timestamp(deadline)} mode=bind"
    message += "".join(f" {key}={value}" for key, value in more.items() if value)
    shared = placement_of(conditions)[1].get("devices", "") if devices is None else devices
    if shared:
        message += f" devices={shared}"
    return with_condition(
        conditions,
        names.PLACEMENT,
        "True" if phase == COMMITTED else "False",
        phase,
        message,
        now=now,
    )


def stamped(workload: Json, epoch: int) -> Json | None:
    """Return the status patch by which a new leader takes a gang over; None if none is needed.

    It changes nothing but the state that a write names, so that what the leader before it still
    has under way comes too late. A gang that runs needs no leader to go on.
    """
    conditions = (workload.get("status") or {}).get("conditions")
    found = find(conditions, names.PLACEMENT)
    phase, parts = placement_of(conditions)
    if found is None or phase == COMMITTED or number_of(parts, "epoch") >= epoch:
        return None
    written = " ".join(f"{key}={value}" for key, value in {**parts, "epoch": epoch}.items())
    changed = {**found, "message": written}
    return {
        "status": {"conditions": [changed if one is found else one for one in conditions or ()]}
    }


def fenced(workload: Json, now: float) -> Json:
    """Return the status patch that changes nothing but the state that a write names.

    A write of the state before it, of which nobody knows where it is, comes too late after it.
    """
    conditions = (workload.get("status") or {}).get("conditions")
    found = find(conditions, names.PLACEMENT)
    parts = dict(part.partition("=")[::2] for part in found["message"].split()) if found else {}
    parts |= {"gen": parts.get("gen", "0"), FENCE: str(number_of(parts, FENCE) + 1)}
    written = with_condition(
        conditions,
        names.PLACEMENT,
        found["status"] if found else "False",
        found["reason"] if found else RELEASED,
        " ".join(f"{key}={value}" for key, value in parts.items()),
        now=now,
    )
    return {"status": {"conditions": written}}


def placement_of(conditions: list[Json] | None) -> tuple[str, dict[str, str]]:
    """Return the phase of a gang's placement and what its message says; empty if there is none."""
    found = find(conditions, names.PLACEMENT)
    if found is None:
        return "", {}
    parts = dict(part.partition("=")[::2] for part in found["message"].split())
    return found["reason"] if found["reason"] != RELEASED else "", parts


def without_placement(conditions: list[Json], now: float) -> list[Json]:
    """Take a gang's placement back; only its number stays, so that the next one is higher."""
    if find(conditions, names.PLACEMENT) is None:
        return conditions
    gen = next_gen(conditions) - 1
    return with_condition(conditions, names.PLACEMENT, "False", RELEASED, f"gen={gen}", now=now)


def next_gen(conditions: list[Json] | None) -> int:
    """Return the number of the next placement of a gang; they only grow."""
    _, parts = placement_of(conditions)
    return number_of(parts, "gen") + 1


def number_of(parts: Mapping[str, str], name: str, default: int = 0) -> int:
    """Return a number of a placement; what is none, as when somebody edited it, is the default."""
    number = whole_number(parts.get(name))
    return default if number is None else number


def evicted(workload: Json, eviction: Eviction, stop: Stop | None, by: str, *, now: float) -> Json:
    """Return the status patch that tells a workload to leave."""
    status = workload.get("status") or {}
    conditions = list(status.get("conditions") or ())
    if eviction.by is not None:
        message = f"Preempted to accommodate {by} due to {eviction.reason}"
        conditions = with_condition(
            conditions,
            "Preempted",
            "True",
            eviction.reason,
            message,
            now=now,
        )
        reason = "Preempted"
    else:
        reason = str(eviction.reason)
        message = _EVICTED_TEXTS.get(reason, reason)
    conditions = with_condition(conditions, "Evicted", "True", reason, message, now=now)
    patch: Json = {
        "status": {"conditions": conditions, "schedulingStats": with_eviction(status, reason)}
    }
    if stop is not None and stop.requeue_at is not None:
        count = ((status.get("requeueState") or {}).get("count") or 0) + 1
        at = timestamp(stop.requeue_at / 1000)
        patch["status"]["requeueState"] = {"count": count, "requeueAt": at}
    return patch


def with_eviction(status: Json, reason: str) -> Json:
    """Return the history of a workload with one eviction more."""
    old = (status.get("schedulingStats") or {}).get("evictions") or []
    counts = {one["reason"]: one["count"] for one in old}
    counts[reason] = counts.get(reason, 0) + 1
    return {
        "evictions": [
            {"reason": name, "underlyingCause": "", "count": count}
            for name, count in counts.items()
        ]
    }


def waiting(workload: Json, explanation: Explanation, *, now: float) -> Json | None:
    """Return the status patch that says why a workload waits; None if it says so already."""
    status = workload.get("status") or {}
    old = find(status.get("conditions"), "QuotaReserved")
    reason, message = reason_of(explanation), message_of(explanation)
    if old is not None and (old["status"], old["reason"], old["message"]) == (
        "False",
        reason,
        message,
    ):
        return None
    if is_true(status.get("conditions"), "QuotaReserved"):
        return None  # it is being let go; that is said elsewhere
    conditions = with_condition(
        status.get("conditions"),
        "QuotaReserved",
        "False",
        reason,
        message,
        now=now,
        generation=workload["metadata"].get("generation"),
    )
    stage = stage_of(explanation).capitalize()
    conditions = with_condition(
        conditions, names.EXPLANATION, "True", stage, facts.written(explanation), now=now
    )
    return {"status": {"conditions": conditions}}
