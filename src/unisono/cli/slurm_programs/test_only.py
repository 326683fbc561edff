"""`sbatch --test-only`: when a job would start, by a rehearsal of the whole cluster.

What the API has of nodes, queues and workloads is read as `unisono decide` reads files; the job is
one document more. Nothing is stored.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from unisono.cli.workload_state import NO_QUEUE
from unisono.engine.model.errors import InvalidManifest
from unisono.engine.model.names import Instant
from unisono.slurm.client import ApiClient
from unisono.slurm.commands.context import PlannedStart
from unisono.slurm.times import read

if TYPE_CHECKING:
    from unisono.kube.form import Json

_KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
# What a decision reads, and as what.
_LISTS = (
    ("/api/v1/namespaces", "v1", "Namespace"),
    ("/api/v1/nodes", "v1", "Node"),
    ("/apis/scheduling.k8s.io/v1/priorityclasses", "scheduling.k8s.io/v1", "PriorityClass"),
    ("/apis/unisono.dev/v1/policies", "unisono.dev/v1", "Policy"),
    *(
        (f"{_KUEUE}/{plural}", "kueue.x-k8s.io/v1beta2", kind)
        for plural, kind in (
            ("resourceflavors", "ResourceFlavor"),
            ("topologies", "Topology"),
            ("cohorts", "Cohort"),
            ("clusterqueues", "ClusterQueue"),
            ("localqueues", "LocalQueue"),
            ("workloads", "Workload"),
        )
    ),
)


def planned_start(api: ApiClient, job: Json, now: float) -> PlannedStart:
    """Return when a job would start, and where; or why it would not."""
    from unisono.cli.decide import decide
    from unisono.kinds.snapshot.build import read_world

    instant = Instant(round(now * 1000))
    documents = [_named(one, *what) for path, *what in _LISTS for one in api.get(path)["items"]]
    documents.append(job)
    if any((one.get("spec") or {}).get("queueName") == NO_QUEUE for one in documents):
        _without_quota(documents)
    whole = {"apiVersion": "v1", "kind": "List", "items": documents}
    world = read_world([("cluster", json.dumps(whole).encode())], now=instant)
    if world.problems:
        raise InvalidManifest("", "\n".join(one.line() for one in world.problems))
    made = decide(world, instant, until_stable=True)
    metadata = job["metadata"]
    key = f"{metadata['namespace']}/slurmjob-{metadata['name']}"
    for admitted in made.admitted:
        if admitted.workload == key:
            hosts = [host for sets in admitted.pod_sets for host in sets.nodes or ()]
            return PlannedStart(now, tuple(hosts))
    for reserved in made.reservations:
        if reserved.workload == key:
            return PlannedStart(read(reserved.start))
    for pending in made.pending:
        if pending.workload == key:
            at = read(pending.estimated_start) if pending.estimated_start else 0.0
            return PlannedStart(at, (), pending.message)
    return PlannedStart(0.0, (), "its queue is not evaluated")


def _without_quota(documents: list[Json]) -> None:
    """Add an unlimited queue to every namespace, for jobs that name no queue."""
    spaces = [one["metadata"]["name"] for one in documents if one["kind"] == "Namespace"]
    version = "kueue.x-k8s.io/v1beta2"
    queue = {"name": NO_QUEUE}
    whole = {"apiVersion": version, "kind": "ClusterQueue", "metadata": queue}
    documents.append({**whole, "spec": {"namespaceSelector": {}}})
    for space in spaces:
        lq = {"apiVersion": version, "kind": "LocalQueue"}
        metadata = {**queue, "namespace": space}
        documents.append({**lq, "metadata": metadata, "spec": {"clusterQueue": NO_QUEUE}})
    policy = next((one for one in documents if one["kind"] == "Policy"), None)
    if policy is None:
        policy = {"apiVersion": "unisono.dev/v1", "kind": "Policy", "metadata": {"name": "unisono"}}
        documents.append(policy)
    policy["resources"] = {**(policy.get("resources") or {}), **_ANY_RESOURCE}


_ANY_RESOURCE = {"quotaCheckStrategy": "IgnoreUndeclared"}


def _named(one: Json, api_version: str, kind: str) -> Json:
    return {"apiVersion": api_version, "kind": kind, **one}
