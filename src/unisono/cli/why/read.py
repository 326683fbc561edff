"""What `unisono why` reads from the API before it answers.

A job leads to its Workload by its uid; a part of a job (a pod, the JobSet of a TrainJob) leads to
the job. What may not be read is left out: an answer with less is better than none.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field

from unisono.cli.connection import is_embedded
from unisono.cli.start_times import facts_of
from unisono.cli.why.parts import Parts, parts_of
from unisono.cli.workload_state import state_of
from unisono.control.job_kinds.ray import CLUSTER as RAY_CLUSTER
from unisono.control.names import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    FAILED_CREATE,
    JOB,
    JOB_SET,
    LOCAL_QUEUE,
    NODE,
    POD,
    WORKLOAD,
    WORKLOAD_ANNOTATION,
)
from unisono.control.view import owners
from unisono.kinds.kueue.status_shape import readable, wrong_with_status
from unisono.kinds.unsupported import unsupported_object
from unisono.kube.client import Client
from unisono.kube.errors import Forbidden, NotFound, UnknownKind
from unisono.kube.form import Json
from unisono.kube.mapping import EVENT, Kind

REPLICA_SET = Kind("apps/v1", "ReplicaSet")
STATEFUL_SET = Kind("apps/v1", "StatefulSet")
_JOB_UID = "kueue.x-k8s.io/job-uid"
_MOST_OWNERS = 8  # a pod of a Job of a JobSet of a TrainJob has three
_MOST_WARNINGS = 5
_MOST_NODES = 64  # one question each: a thousand would take seconds
_OVER = ("Succeeded", "Failed")
# Jobs that are made of others, which have the pods: of what kinds those are, from above to below.
_PARTS = {
    "TrainJob": (JOB_SET, JOB),
    "JobSet": (JOB,),
    "RayJob": (RAY_CLUSTER, JOB),
    "Deployment": (REPLICA_SET,),
    "LeaderWorkerSet": (STATEFUL_SET,),
    "RayService": (RAY_CLUSTER,),
    "CronJob": (JOB,),
}


@dataclass(slots=True)
class Found:
    """Everything that an answer is made of."""

    asked: Json
    job: Json  # what it belongs to at the top; itself, if nothing
    workload: Json | None = None
    unreadable: str = ""  # what is wrong with the status of the workload, which is left out then
    local_queue: Json | None = None
    cluster_queue: Json | None = None
    rivals: list[Json] = field(default_factory=list)  # workloads of the same ClusterQueue
    every: list[Json] = field(default_factory=list)  # all workloads that may be seen
    queues: list[Json] = field(default_factory=list)  # all ClusterQueues that may be seen
    victims_pods: list[Json] = field(default_factory=list)  # of the victims of its preemption
    pods: list[Json] = field(default_factory=list)
    nodes: list[Json] = field(default_factory=list)  # on which those are, if they are few
    check_controllers: dict[str, str] = field(default_factory=dict)  # by admission check
    warnings: list[str] = field(default_factory=list)
    unsupported: str = ""  # that nothing acts on it in this cluster, in a sentence
    parts: Parts = field(default_factory=Parts)  # that are queued one by one, in its place


async def gather(client: Client, obj: Json) -> Found:
    """Read what there is to know about an object."""
    found = Found(asked=obj, job=obj)
    namespace = obj["metadata"].get("namespace", "")
    if obj["kind"] == WORKLOAD.kind and obj["apiVersion"] == WORKLOAD.api_version:
        found.workload = obj
        found.job = await _owner(client, obj) or obj
    else:
        await _climb(client, found)
    if found.workload is not None:
        found.unreadable = ": ".join(filter(None, wrong_with_status(found.workload)))
        found.workload = readable(found.workload)
        await _surroundings(client, found, found.workload)
    elif obj["kind"] == "Pod":
        found.pods = [obj]
    elif namespace:
        found.pods = await _members(client, obj)
        await _parts(client, found)
    if found.workload is None and not found.pods:
        found.unsupported = await _unsupported(client, found.job)
    found.nodes = await _nodes(client, found.pods)
    for one in dict.fromkeys((obj["metadata"]["name"], found.job["metadata"]["name"])):
        found.warnings += await _warnings(client, namespace, one)
    found.warnings += await _refusals(client, found.job)
    return found


async def _parts(client: Client, found: Found) -> None:
    """Read what is queued of an object that is not queued as a whole, and the one to describe."""
    if (found.job.get("spec") or {}).get("array"):
        return  # which says itself how its tasks stand
    found.parts = await parts_of(client, found.job)
    found.workload = found.parts.shown()
    if found.workload is not None:
        await _surroundings(client, found, found.workload)
    found.pods = found.parts.pods or found.pods


async def _unsupported(client: Client, obj: Json) -> str:
    """Return that an embedded cluster only stores an object; others have controllers for it."""
    text = unsupported_object(obj)
    return text if text and await is_embedded(client) else ""


async def _climb(client: Client, found: Found) -> None:
    """Go from a part to what it is a part of, until there is a Workload."""
    obj: Json | None = found.asked
    for _ in range(_MOST_OWNERS):
        if obj is None:
            return
        found.job = obj
        found.workload = await _workload(client, obj)
        if found.workload is not None and obj["kind"] != "Pod":
            return
        above = await _owner(client, found.workload or obj)
        if found.workload is not None:
            found.job = above or obj
            return
        obj = above


async def _workload(client: Client, obj: Json) -> Json | None:
    metadata = obj["metadata"]
    namespace = metadata.get("namespace", "")
    if not namespace:
        return None
    name = (metadata.get("annotations") or {}).get(WORKLOAD_ANNOTATION)
    with _allowed():
        if name and obj["kind"] == "Pod":
            return await client.get(WORKLOAD, name, namespace)
        listing = await client.list(WORKLOAD, namespace, labels=f"{_JOB_UID}={metadata['uid']}")
        if listing.items:
            return max(listing.items, key=lambda one: str(one["metadata"]["creationTimestamp"]))
    return None


async def _owner(client: Client, obj: Json) -> Json | None:
    for one in obj["metadata"].get("ownerReferences") or ():
        if one.get("controller"):
            with _allowed():
                kind = Kind(one["apiVersion"], one["kind"])
                return await client.get(kind, one["name"], obj["metadata"].get("namespace", ""))
    return None


async def _surroundings(client: Client, found: Found, workload: Json) -> None:
    namespace = workload["metadata"]["namespace"]
    name = workload["spec"].get("queueName", "")
    with _allowed():
        if name:  # a job may name none where all of them have to
            found.local_queue = await client.get(LOCAL_QUEUE, name, namespace)
            behind = found.local_queue["spec"]["clusterQueue"]
            found.cluster_queue = await client.get(CLUSTER_QUEUE, behind)
    if state_of(workload) == "checked":
        with _allowed():
            found.check_controllers = {
                one["metadata"]["name"]: str((one.get("spec") or {}).get("controllerName") or "")
                for one in (await client.list(ADMISSION_CHECK)).items
            }
    if state_of(workload) == "waiting":
        await _others(client, found, namespace)
        found.rivals = await _rivals(client, found, namespace, name)
    with _allowed():
        pods = await client.list(POD, namespace)
        found.pods = [
            one
            for one in pods.items
            if (one["metadata"].get("annotations") or {}).get(WORKLOAD_ANNOTATION)
            == workload["metadata"]["name"]
        ]


async def _rivals(client: Client, found: Found, namespace: str, name: str) -> list[Json]:
    """Return the workloads of the same ClusterQueue, or of the LocalQueue if we see no more."""
    behind = found.local_queue["spec"]["clusterQueue"] if found.local_queue is not None else ""
    if behind:
        with _allowed():
            queues = await client.list(LOCAL_QUEUE)
            keys = {
                (one["metadata"]["namespace"], one["metadata"]["name"])
                for one in queues.items
                if one["spec"]["clusterQueue"] == behind
            }
            return [one for one in found.every if _local_queue(one) in keys]
    return [one for one in found.every if _local_queue(one) == (namespace, name)]


async def _others(client: Client, found: Found, namespace: str) -> None:
    """Read all workloads, or those of the namespace if that is all we may; queues; victims."""
    try:
        found.every = [*map(readable, (await client.list(WORKLOAD)).items)]
    except Forbidden:
        with _allowed():
            listing = await client.list(WORKLOAD, namespace)
            found.every = [*map(readable, listing.items)]
    with _allowed():
        found.queues = (await client.list(CLUSTER_QUEUE)).items
    leaving = {
        key.partition("/")[0]
        for fact in facts_of(found.workload or {})
        for key in (*(fact.get("victims") or ()), *(fact.get("shrinking") or ()))
    }
    for place in sorted(leaving):
        with _allowed():
            pods = (await client.list(POD, place)).items
            found.victims_pods += [one for one in pods if "deletionTimestamp" in one["metadata"]]


async def _nodes(client: Client, pods: list[Json]) -> list[Json]:
    """Return the nodes of pods that run; of a very wide gang those of the first pods."""
    active = [one for one in pods if (one.get("status") or {}).get("phase") not in _OVER]
    names = sorted({node for one in active if (node := one["spec"].get("nodeName"))})
    found = []
    with _allowed():
        for name in names[:_MOST_NODES]:
            with contextlib.suppress(NotFound):
                found.append(await client.get(NODE, name, ""))
    return found


async def _members(client: Client, obj: Json) -> list[Json]:
    """Return the pods of what no queue has to admit, or of the parts that it is made of."""
    namespace = obj["metadata"]["namespace"]
    above = {obj["metadata"]["uid"]}
    for kind in _PARTS.get(obj["kind"], ()):
        with _allowed():
            parts = (await client.list(kind, namespace)).items
            above |= {one["metadata"]["uid"] for one in parts if above & {*owners(one)}}
    with _allowed():
        pods = await client.list(POD, namespace)
        return [one for one in pods.items if above & {*owners(one)}]
    return []


def _local_queue(workload: Json) -> tuple[str, str]:
    return workload["metadata"]["namespace"], workload["spec"].get("queueName", "")


async def _warnings(client: Client, namespace: str, name: str) -> list[str]:
    """Return what was last complained about."""
    with _allowed():
        events = await client.list(EVENT, namespace, fields=f"involvedObject.name={name}")
        warning_events = [one for one in events.items if one.get("type") == "Warning"]
        warning_events.sort(
            key=lambda one: str(one.get("lastTimestamp") or one.get("eventTime") or "")
        )
        texts = [f"{one.get('reason', '')}: {one.get('message', '')}" for one in warning_events]
        return list(dict.fromkeys(texts))[-_MOST_WARNINGS:]
    return []


async def _refusals(client: Client, job: Json) -> list[str]:
    """Return what the API refused of the jobs that a job is made of, with the part concerned."""
    parts: dict[str, str] = {}
    namespace = job["metadata"].get("namespace", "")
    for kind in _PARTS.get(job["kind"], ()):
        with _allowed():
            for one in (await client.list(kind, namespace)).items:
                if not {job["metadata"]["uid"], *parts}.isdisjoint(owners(one)):
                    parts[one["metadata"]["uid"]] = f"{kind.kind} {one['metadata']['name']}"
    if not parts:
        return []
    with _allowed():
        events = await client.list(EVENT, namespace, fields=f"reason={FAILED_CREATE}")
        related = [one for one in events.items if one["involvedObject"].get("uid") in parts]
        related.sort(key=lambda one: str(one.get("lastTimestamp") or one.get("eventTime") or ""))
        texts = [
            f"{FAILED_CREATE}: {parts[one['involvedObject']['uid']]}: {one.get('message', '')}"
            for one in related
        ]
        return list(dict.fromkeys(texts))[-_MOST_WARNINGS:]
    return []


def _allowed() -> contextlib.suppress:
    """Go on without what is not there or not for us."""
    return contextlib.suppress(Forbidden, NotFound, UnknownKind)
