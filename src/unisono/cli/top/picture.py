"""What `unisono top` reads: rows of its tables, and the objects for the reason of one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from unisono.cli.nodes import listed as nodes_listed
from unisono.cli.plan.rows import living_rows
from unisono.cli.queues import cluster_queue
from unisono.cli.times import local_times
from unisono.cli.why.answer import answer
from unisono.cli.why.read import Found
from unisono.cli.why.text import text
from unisono.cli.workloads import listed
from unisono.control.names import (
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    NODE,
    POD,
    WORKLOAD,
    WORKLOAD_ANNOTATION,
)
from unisono.kinds.kueue.status_shape import readable

if TYPE_CHECKING:
    from unisono.kube.client import Client
    from unisono.kube.form import Json


@dataclass(frozen=True, slots=True)
class Picture:
    """What was read, as rows of `nodes`, `queues`, `workloads` and `plan`, and as objects."""

    cluster: str
    nodes: Sequence[Json]
    queues: Sequence[Json]
    workloads: Sequence[Json]
    plan: Sequence[Json]
    objects: Mapping[tuple[str, str], Json] = field(default_factory=dict)  # workloads
    local_queues: Mapping[tuple[str, str], Json] = field(default_factory=dict)
    cluster_queues: Mapping[str, Json] = field(default_factory=dict)
    pods: Sequence[Json] = ()


async def read(client: Client, namespace: str = "", cluster: str = "") -> Picture:
    """Read everything that a screen shows; workloads only of a namespace that is named."""
    workloads = [*map(readable, (await client.list(WORKLOAD)).items)]
    local_queues = (await client.list(LOCAL_QUEUE)).items
    queues = (await client.list(CLUSTER_QUEUE)).items
    pods = (await client.list(POD)).items
    nodes = nodes_listed((await client.list(NODE)).items, pods)
    by_key = {_key(one): one for one in local_queues}
    by_name = {one["metadata"]["name"]: one for one in queues}
    plan = living_rows(workloads, by_key, by_name)
    rows = listed(workloads, local_queues, by_name)
    return Picture(
        cluster,
        nodes,
        [cluster_queue(one) for one in queues],
        [one for one in rows if namespace in ("", one["namespace"])],
        [one for one in plan if namespace in ("", one["namespace"])],
        {_key(one): one for one in workloads},
        by_key,
        by_name,
        pods,
    )


def reason_of(picture: Picture, row: Json, now: float) -> str:
    """Return everything that `unisono why` says of the workload of a row."""
    workload = picture.objects.get((row["namespace"], row["workload"]))
    if workload is None:
        return local_times(str(row.get("message") or row.get("detail") or ""), now)
    return text(answer(_found(picture, workload)), now).rstrip("\n")


def _found(picture: Picture, workload: Json) -> Found:
    """Return what `why` would read of a workload, as far as it was read."""
    namespace = workload["metadata"]["namespace"]
    local = picture.local_queues.get((namespace, workload["spec"].get("queueName", "")))
    queue = local["spec"]["clusterQueue"] if local is not None else ""
    every = list(picture.objects.values())
    name = workload["metadata"]["name"]
    return Found(
        asked=workload,
        job=_job(workload),
        workload=workload,
        local_queue=local,
        cluster_queue=picture.cluster_queues.get(queue),
        rivals=[one for one in every if queue and _queue_of(picture, one) == queue],
        every=every,
        queues=list(picture.cluster_queues.values()),
        victims_pods=[one for one in picture.pods if "deletionTimestamp" in one["metadata"]],
        pods=[
            one
            for one in picture.pods
            if one["metadata"].get("namespace") == namespace
            and (one["metadata"].get("annotations") or {}).get(WORKLOAD_ANNOTATION) == name
        ],
    )


def _job(workload: Json) -> Json:
    """Return the little of its job that a Workload knows: kind and name."""
    metadata = workload["metadata"]
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller"):
            about = {"name": owner["name"], "namespace": metadata["namespace"]}
            return {"kind": owner["kind"], "metadata": {**about, "uid": metadata["uid"]}}
    return {"kind": "Workload", **workload}


def _queue_of(picture: Picture, workload: Json) -> str:
    key = workload["metadata"]["namespace"], workload["spec"].get("queueName", "")
    local = picture.local_queues.get(key)
    return str(local["spec"]["clusterQueue"]) if local is not None else ""


def _key(obj: Json) -> tuple[str, str]:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]
