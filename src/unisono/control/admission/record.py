"""What a decision looks like on a Workload: its status, as one patch.

Writing this status *is* the decision: quota and nodes count from here, also after a crash.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.admission import kueue_messages, purchases
from unisono.control.admission.counts import written_count
from unisono.control.admission.evictions import deactivated, evicted_for
from unisono.control.admission.kueue_messages import Preemptor
from unisono.control.admission.placement import (
    COMMITTED,
    PLANNED,
    PODS_CREATED_SECONDS,
    WAS,
    first_phase,
    next_gen,
    placement_of,
    places,
    with_placement,
    written_devices,
)
from unisono.control.conditions import find, seconds, timestamp, with_condition
from unisono.engine.model.names import PODS, FlavorName, QueueName
from unisono.engine.model.plan import Admit, DueEviction, Eviction
from unisono.engine.model.workload import Admission, PodSet, PodSetAssignment, Workload
from unisono.kinds.digits import whole_number
from unisono.kinds.kueue.waiting import WAITING
from unisono.kinds.quantity import format_amount
from unisono.kinds.scalar import seconds_ms
from unisono.kinds.snapshot.local_queues import UNLIMITED, UNLIMITED_LOCAL_QUEUE
from unisono.kinds.times import TIME_MIN
from unisono.kinds.volcano.queues import ANY_NODE


def admitted(
    workload: Json,
    admit: Admit,
    asked: Workload,
    hosts: Callable[[str], str],
    *,
    now: float,
    epoch: int,
    minds_readiness: bool = False,
    empty: Sequence[PodSetAssignment] = (),
) -> Json:
    """Return the status patch that admits a workload; `hosts` tells a node's host name.

    `minds_readiness` says that the policy counts how long its pods are not ready; `empty` has the
    flavors of the sets without pods.
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
                generation=generation,
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
            kueue_messages.ADMITTED,
            now=now,
            generation=generation,
        )
        if minds_readiness or _has_ready_pods_one_day(workload, conditions):
            conditions = with_condition(
                conditions,
                "PodsReady",
                "False",
                "WaitForStart",
                kueue_messages.NOT_READY,
                now=now,
                generation=generation,
            )
    if any(one.nodes for one in admit.admission.pod_sets):
        conditions = with_placement(
            conditions,
            first_phase(workload, conditions),
            gen=next_gen(conditions),
            epoch=epoch,
            deadline=now + PODS_CREATED_SECONDS,
            now=now,
            devices=written_devices(admit.admission),
        )
    gone = (names.EXPLANATION, WAITING, names.ON_LOAN, names.GRANTED)
    conditions = [one for one in conditions if one["type"] not in gone]
    if admit.limit_ms is not None:
        limit = str(admit.limit_ms // 1000)
        conditions = with_condition(conditions, names.GRANTED, "True", "Started", limit, now=now)
    if admit.opportunistic_on:
        keys = " ".join(admit.opportunistic_on)
        conditions = with_condition(conditions, names.ON_LOAN, "True", "Borrows", keys, now=now)
    assignments = _assignments(workload, admit.admission, asked, empty, hosts)
    return {
        "status": {
            "admission": {"clusterQueue": queue, "podSetAssignments": assignments},
            "conditions": conditions,
            # What its admission says of that counts now.
            **({"resourceRequests": None} if status.get("resourceRequests") else {}),
            # Its backoff is over; how often it had one still counts.
            **({"requeueState": {"requeueAt": None}} if _has_backoff(status) else {}),
        }
    }


def _has_backoff(status: Json) -> bool:
    return bool((status.get("requeueState") or {}).get("requeueAt"))


def _has_ready_pods_one_day(workload: Json, conditions: Sequence[Json]) -> bool:
    """Say whether a controller will report that the pods are ready; then PodsReady is False now.

    No controller knows the pods of a Workload without a job, and a condition makes this write, and
    all that follow, an eighth more work for the API server.
    """
    return bool(workload["metadata"].get("ownerReferences")) or bool(find(conditions, "PodsReady"))


def granted_ms(workload: Json) -> int | None:
    """Return the limit that a workload was started with, if it had left that open."""
    if TIME_MIN not in (workload["metadata"].get("annotations") or {}):
        return None  # another limit was set since
    found = find((workload.get("status") or {}).get("conditions"), names.GRANTED)
    seconds = whole_number(found["message"]) if found is not None else None
    return None if seconds is None else seconds_ms(seconds)


def _assignments(
    workload: Json,
    admission: Admission,
    asked: Workload,
    empty: Sequence[PodSetAssignment],
    hosts: Callable[[str], str],
) -> list[Json]:
    """Return an entry for every pod set, in the order of the Workload.

    A set without pods has flavors, too: it may get pods while the workload runs.
    """
    sets, done = {one.name: one for one in asked.pod_sets}, dict(asked.reclaimable)
    made = {
        one.name: _assignment(one, sets[one.name], done.get(one.name, 0), hosts)
        for one in admission.pod_sets
    }
    flavors_of = {one.name: one.flavors for one in empty}
    specified = (workload.get("spec") or {}).get("podSets") or ()
    for one in specified:
        name = one.get("name", "main")
        if name not in made and not one.get("count", 1):
            flavors = {key: _written_flavor(one) for key, one in flavors_of.get(name, ())}
            zeros = dict.fromkeys(flavors, "0")
            made[name] = {"name": name, "count": 0, "flavors": flavors, "resourceUsage": zeros}
    order = [one.get("name", "main") for one in specified]
    return [made.pop(name) for name in order if name in made] + [*made.values()]


def _assignment(
    one: PodSetAssignment, asked: PodSet, done: int, hosts: Callable[[str], str]
) -> Json:
    count = written_count(one.count, asked, done)
    each = {**dict(asked.requests), PODS: 1}
    # What no group of the queue covers is not charged; without a quota all of it is shown.
    charged = [name for name, _ in one.flavors] or [
        name for name, amount in asked.requests if amount
    ]
    written: Json = {
        "name": one.name,
        "count": count,
        "flavors": {name: _written_flavor(flavor) for name, flavor in one.flavors},
        "resourceUsage": {name: format_amount(each.get(name, 0) * count, name) for name in charged},
    }
    if one.nodes:
        written["topologyAssignment"] = _places(one, hosts)
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
    before = about.get(WAS)  # a gang that lost a node while it started is still starting
    new = {one.name: one for one in admission.pod_sets}
    assignments = [
        {**one, "topologyAssignment": _places(new[one["name"]], hosts)}
        if one["name"] in new and new[one["name"]].nodes
        else one  # a set without pods has no nodes
        for one in status["admission"]["podSetAssignments"]
    ]
    conditions = with_placement(
        status.get("conditions") or [],
        before or COMMITTED,
        gen=next_gen(status.get("conditions")),
        epoch=epoch,
        deadline=seconds(about.get("deadline", "")) if before else now,
        now=now,
        devices=written_devices(admission),
    )
    return {
        "status": {
            "admission": {"podSetAssignments": assignments},
            "conditions": conditions,
            "unhealthyNodes": None,
        }
    }


def placed(
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
        if one["name"] in new
        else one  # a set without pods
        for one in status["admission"]["podSetAssignments"]
    ]
    conditions = with_placement(
        status.get("conditions") or [],
        PLANNED,
        gen=next_gen(status.get("conditions")),
        epoch=epoch,
        deadline=now + PODS_CREATED_SECONDS,
        now=now,
        devices=written_devices(admission),
    )
    return {"status": {"admission": {"podSetAssignments": assignments}, "conditions": conditions}}


def evicted(
    workload: Json,
    eviction: Eviction,
    stop: DueEviction | None,
    by: Preemptor | None,
    path: str,
    *,
    now: float,
) -> Json:
    """Return the status patch that evicts a workload; `path` leads to its ClusterQueue."""
    if by is not None:
        message, reason = kueue_messages.preempted(eviction, by, path), "Preempted"
    else:
        message, reason = kueue_messages.stopped(workload, eviction.reason, stop), eviction.reason
    is_final = stop is not None and stop.deactivate
    status = evicted_for(workload, deactivated(reason) if is_final else reason, message, now=now)
    if by is not None:
        own = kueue_messages.preempted_by(eviction.reason, by)
        for kind, text in (("Preempted", message), (names.EVICTION, own)):
            status["conditions"] = with_condition(
                status["conditions"],
                kind,
                "True",
                eviction.reason,
                text,
                now=now,
                generation=workload["metadata"].get("generation"),
            )
    requeues = (workload.get("status") or {}).get("requeueState") or {}
    if is_final:
        if requeues:
            status["requeueState"] = None
    elif stop is not None and stop.requeue_at is not None:
        at = timestamp(math.ceil(stop.requeue_at / 1000))  # never earlier
        status["requeueState"] = {"count": (requeues.get("count") or 0) + 1, "requeueAt": at}
    return {"status": status}


# ---- queues and flavors without an object --------------------------------------------------------
#
# Queues and flavors without an object of their own, as a Workload's status names them.
#
# The engine knows them by names that no object can have (`volcano/default`), so that they are never
# mixed up with real ones; a status may only hold names that an object could have.
#
#     unisono.dev/unlimited    unisono.dev-unlimited     no queue at all
#     volcano/NAME             volcano.NAME              a Queue of Volcano
#     unisono.dev/any          unisono.dev-any           the flavor of such queues

# A Volcano queue is a LocalQueue of this name in every namespace (a Workload names its queue so).
VOLCANO_LOCAL_QUEUE = "volcano."
_VOLCANO = "volcano/"
_ANY_NODE = "unisono.dev-any"


def written_queue(name: QueueName) -> str:
    """Return the name of a queue as a status has it.

    >>> written_queue(QueueName("volcano/default")), written_queue(QueueName("team-a"))
    ('volcano.default', 'team-a')
    """
    if name == UNLIMITED.name:
        return UNLIMITED_LOCAL_QUEUE
    return name.replace(_VOLCANO, VOLCANO_LOCAL_QUEUE, 1) if name.startswith(_VOLCANO) else name


def read_queue(written: str, lq: str) -> QueueName:
    """Return the queue that a status names; `lq` is the queue that the Workload asked for.

    >>> read_queue("volcano.x", lq="volcano.x"), read_queue("volcano.x", lq="train")
    ('volcano/x', 'volcano.x')
    """
    if written == UNLIMITED_LOCAL_QUEUE:
        return UNLIMITED.name
    if written == lq and lq.startswith(VOLCANO_LOCAL_QUEUE):
        return QueueName(_VOLCANO + lq.removeprefix(VOLCANO_LOCAL_QUEUE))
    return QueueName(written)


def _written_flavor(name: FlavorName) -> str:
    """Return the name of a flavor as a status has it."""
    return _ANY_NODE if name == ANY_NODE.name else name


def read_flavor(written: str) -> FlavorName:
    """Return the flavor that a status names."""
    return ANY_NODE.name if written == _ANY_NODE else FlavorName(written)
