"""A Slurm job as a gang: how many pods, what each requests, on which nodes they may run.

One pod per node. A pod reserves in Kubernetes what the job has on that node; Slurm runs the job.
All pods are alike, so Slurm is told to spread the job evenly, too (`pin_fields`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import msgspec

from unisono.slurm.bridge.marks import read_mark
from unisono.slurm.bridge.slurm_view import SlurmJob, SlurmNode
from unisono.slurm.lite_typing import Json

PREFIX = "unisono.dev/"
JOB = f"{PREFIX}bridged-job"  # label: the key of the Slurm job
CLUSTER = f"{PREFIX}bridged-cluster"  # label: which Slurm
NAME = f"{PREFIX}bridged-name"  # annotation: the job's name, whatever is in it
SHAPE = f"{PREFIX}bridged-shape"  # annotation: what was asked for when it was made
TRIES = f"{PREFIX}bridged-tries"  # annotation: how often it was taken back
RETRY_AT = f"{PREFIX}bridged-retry-at"  # annotation: deactivated until this second
RELEASED_AT = f"{PREFIX}bridged-released-at"  # annotation: when Slurm was told to start it
SLURM_NODE = f"{PREFIX}slurm-node"  # label of a Kubernetes node that Slurm calls otherwise
AWAY = f"{PREFIX}slurm-away"  # label of a node on which Slurm would start nothing
FINALIZER = f"{PREFIX}bridged"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
UNLIMITED = "unisono.dev-unlimited"
HOSTNAME = "kubernetes.io/hostname"
# Terminating pods of a gang stay until Slurm has left the nodes, but no longer than this.
GRACE_S = 300


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How gangs are made."""

    cluster: str
    namespace: str = "slurm"
    gpu: str = "nvidia.com/gpu"
    image: str = "registry.k8s.io/e2e-test-images/busybox:1.37.0-1"
    app: str = "slurm-job"
    operators: tuple[str, ...] = ("root",)


class PerNode(msgspec.Struct, frozen=True):
    """What the job needs on each of its nodes."""

    cpus: int
    memory_mib: int
    gpus: int


def per_node(job: SlurmJob, nodes: Mapping[str, SlurmNode]) -> PerNode:
    """Return what a pod asks for: an even part, which is what Slurm is told to allocate, too."""
    there = [one for one in nodes.values() if _is_in(job, one)]
    cpus = _part(job.cpus, job.nodes)
    memory = job.memory_per_node
    if memory is None:
        memory = (job.memory_per_cpu or 0) * cpus
    if memory == 0:  # `--mem=0`, and no default: all of the node's
        memory = min((one.memory_mib for one in there), default=0)
    gpus = max(
        job.gpus_per_node,
        _part(job.gpus_per_job, job.nodes),
        job.gpus_per_task * _part(job.tasks, job.nodes),
    )
    if job.exclusive:
        cpus = max((one.cpus for one in there), default=cpus)
        gpus = max((one.gpus for one in there), default=gpus)
    return PerNode(cpus=cpus, memory_mib=memory, gpus=gpus)


def pin_fields(job: SlurmJob, nodes: Iterable[str]) -> list[str]:
    """Return the fields of a job that make Slurm allocate exactly what its gang has reserved.

    Left alone, Slurm fills the first node (`-N2 -n6` gets 5 and 1 cores) and packs `--gpus`.
    """
    names = sorted(nodes)
    fields = [f"ReqNodeList={','.join(names)}", f"NumNodes={len(names)}-{len(names)}"]
    if job.nodes > 1 and not job.exclusive:
        fields.append(f"MinCPUsNode={_part(job.cpus, job.nodes)}")
        if job.gpus_per_job:
            sort = f"{job.gpu_type}:" if job.gpu_type else ""
            count = max(job.gpus_per_node, _part(job.gpus_per_job, job.nodes))
            fields += [f"TresPerNode=gres:gpu:{sort}{count}", "TresPerJob="]
    return fields


def _part(total: int, nodes: int) -> int:
    return -(-total // nodes)


def shape_of(job: SlurmJob) -> str:
    """Return a short text that changes when the job asks for something else."""
    asked = (
        job.nodes,
        job.cpus,
        job.tasks,
        job.memory_per_cpu,
        job.memory_per_node,
        job.gpus_per_node,
        job.gpus_per_job,
        job.gpus_per_task,
        job.gpu_type,
        job.exclusive,
        job.partition,
        job.features,
    )
    return hashlib.sha256(repr(asked).encode()).hexdigest()[:12]


def gang_name(cluster: str, key: str) -> str:
    """Return the name of a job's gang.

    >>> gang_name("Big_One", "5_3")
    'slurm-big-one-5-3'
    """
    return f"slurm-{cluster}-{key}".lower().replace("_", "-").replace(".", "-")


def gang_of(
    job: SlurmJob,
    nodes: Mapping[str, SlurmNode],
    settings: Settings,
    *,
    queue: str,
    only: Iterable[str] | None = None,
    tries: int = 0,
    hosts: Mapping[str, str] | None = None,
) -> Json:
    """Return the Job whose pods are the gang; `only` binds it to the nodes that Slurm chose."""
    each = per_node(job, nodes)
    labels = {JOB: job.key, CLUSTER: settings.cluster, "app": settings.app}
    pod_labels = dict(labels)
    metadata = {
        "name": gang_name(settings.cluster, job.key),
        "namespace": settings.namespace,
        "labels": {**labels, QUEUE_LABEL: queue},
        "annotations": _annotations(job, settings, tries),
        "finalizers": [FINALIZER],
    }
    template = {
        "metadata": {
            "labels": pod_labels,
            "annotations": {
                f"{PREFIX}run-seconds": "forever",
                f"{PREFIX}stop-seconds": str(GRACE_S),
            },
        },
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": GRACE_S,
            "containers": [_container(each, settings)],
            "affinity": _affinity(job, nodes, only, hosts or {}),
        },
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "suspend": True,
            "parallelism": job.nodes,
            "completions": job.nodes,
            "completionMode": "Indexed",
            # A lost pod is made anew; whether its job can go on is decided here, not by a count.
            "backoffLimit": 1_000_000,
            "template": template,
        },
    }


def requested_nodes(job: SlurmJob) -> tuple[str, ...]:
    """Return the nodes that the user named; once we have pinned a job, its mark remembers them."""
    words = read_mark(job.comment).words
    if "want" in words:
        return tuple(filter(None, words["want"].split(",")))
    return job.required


def _annotations(job: SlurmJob, settings: Settings, tries: int) -> dict[str, str]:
    mark = read_mark(job.comment)
    values = {
        "account": job.account,
        "user": job.user,
        "qos": job.qos,
        "partition": job.partition.partition(",")[0],
        "nice": str(job.nice) if job.nice else "",
        # Only operators may set one, and only they are believed about it.
        "priority": mark.words.get("priority", "") if job.user in settings.operators else "",
        "time-limit": str(job.limit_minutes) if job.limit_minutes is not None else "",
    }
    kept = {f"{PREFIX}{key}": text for key, text in values.items() if text}
    return {**kept, NAME: job.name, SHAPE: shape_of(job), TRIES: str(tries)}


def _container(each: PerNode, settings: Settings) -> Json:
    asked = {"cpu": str(each.cpus), "memory": f"{each.memory_mib}Mi"}
    if each.gpus:
        asked[settings.gpu] = str(each.gpus)
    return {
        "name": "holder",
        "image": settings.image,
        # The first process of a container is not ended by SIGTERM unless it asks for that, so the
        # pod stays until its grace is over or until we delete it at once.
        "command": ["sleep", "infinity"],
        "resources": {"requests": dict(asked), "limits": dict(asked)},
    }


def _affinity(
    job: SlurmJob,
    nodes: Mapping[str, SlurmNode],
    only: Iterable[str] | None,
    hosts: Mapping[str, str],
) -> Json:
    names = set(only) if only is not None else set(requested_nodes(job))
    fits = {name for name, one in nodes.items() if _may_hold(job, one)}
    if names:
        fits &= names
    chosen: list[Json] = [{"key": AWAY, "operator": "DoesNotExist"}]
    if names or fits != set(nodes):
        is_short = names or len(fits) <= len(nodes) - len(fits)
        listed = fits if is_short else set(nodes) - fits
        # Nothing is called `none`: a job for which no node is left waits, and says why.
        values = sorted(hosts.get(name, name) for name in listed) or ["none"]
        operator = "In" if is_short else "NotIn"
        chosen.append({"key": HOSTNAME, "operator": operator, "values": values})
    timeouts = [{"matchExpressions": chosen if only is None else chosen[1:]}]
    required = {"nodeSelectorTerms": timeouts}
    rules: Json = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    if job.nodes > 1:
        own = {"matchLabels": {JOB: job.key}}
        rules["podAntiAffinity"] = {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": own, "topologyKey": HOSTNAME}
            ]
        }
    return rules


def _may_hold(job: SlurmJob, node: SlurmNode) -> bool:
    """Say whether Slurm would ever put this job on a node."""
    features = set(node.features)
    asks = [key for key in job.features.split("&") if key.isidentifier()]
    return (
        _is_in(job, node)
        and node.name not in job.excluded
        and (not job.gpu_type or job.gpu_type in node.gpu_types)
        and ("|" in job.features or features.issuperset(asks))
    )


def _is_in(job: SlurmJob, node: SlurmNode) -> bool:
    return not job.partition or bool(node.partitions & set(job.partition.split(",")))
