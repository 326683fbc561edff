"""The cluster's view: gangs of Slurm jobs, their pods, and what is free on every node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from unisono.kinds.digits import whole_number
from unisono.kinds.quantity import Quantity
from unisono.slurm.bridge import gang as words

Json = Mapping[str, Any]

_ENDED = ("Succeeded", "Failed")
# Labels that mark the pods of a Slurm job: ours, SchedMD's, and a common one.
_JOB_LABELS = (words.JOB, "scheduler.slinky.slurm.net/slurm-jobid", "slurm-job-id")
_MIB = 1024 * 1024


class Pod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod of the cluster, whether of a gang or not."""

    namespace: str
    name: str
    uid: str = ""
    node: str = ""  # as Slurm calls it; empty: nowhere yet
    job: str = ""  # the key of its Slurm job, if it has one
    is_bridged: bool = False  # made by us
    leaves: bool = False
    is_ended: bool = False
    cpu_milli: int = 0
    memory_mib: int = 0
    gpus: int = 0
    owner: str = ""  # uid of its Job


class Gang(msgspec.Struct, frozen=True, kw_only=True):
    """The Job of a Slurm job, its Workload and its pods."""

    name: str
    job: str
    uid: str = ""
    wanted: int = 1
    shape: str = ""
    tries: int = 0
    retry_at: float = 0.0
    released_at: float = 0.0
    is_deleted: bool = False  # by a user
    workload: str = ""
    is_active: bool = True
    is_admitted: bool = False
    is_evicted: bool = False
    why: str = ""  # why it is pending
    pods: tuple[Pod, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether every pod is bound to a node of its own: the reservation is complete."""
        if self.is_deleted or not self.is_active or self.is_evicted or not self.is_admitted:
            return False
        return len(self.nodes) == len(set(self.nodes)) == self.wanted

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of its pods that stay."""
        there = (one for one in self.pods if one.node and not one.leaves and not one.is_ended)
        return tuple(sorted(one.node for one in there))


class KubeNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node and what is free on it."""

    name: str
    slurm: str  # what Slurm calls it
    host: str = ""  # its label kubernetes.io/hostname
    is_ready: bool = True
    is_cordoned: bool = False
    is_away: bool = False  # we labelled it: Slurm would start nothing there
    cpu_milli: int = 0
    memory_mib: int = 0
    gpus: int = 0
    cpu_milli_used: int = 0
    memory_mib_used: int = 0
    gpus_used: int = 0

    @property
    def is_open(self) -> bool:
        """Whether a pod could start there."""
        return self.is_ready and not self.is_cordoned

    @property
    def gpus_free(self) -> int:
        """GPUs that no pod asked for."""
        return self.gpus - self.gpus_used


class ClusterView(msgspec.Struct, frozen=True):
    """Gangs by the key of their job, nodes by Slurm's name, and pods."""

    gangs: Mapping[str, Gang] = {}
    nodes: Mapping[str, KubeNode] = {}
    pods: tuple[Pod, ...] = ()


def cluster_view_of(
    *,
    jobs: Iterable[Json],
    workloads: Iterable[Json],
    pods: Iterable[Json],
    nodes: Iterable[Json],
    gpu: str,
    cluster: str,
) -> ClusterView:
    """Return the view of the objects that the API has."""
    machines = list(nodes)
    called = {one["metadata"]["name"]: _slurm_name(one["metadata"]) for one in machines}
    read = tuple(_pod(one, gpu, called) for one in pods)
    by_owner: dict[str, list[Pod]] = {}
    for pod in read:
        by_owner.setdefault(pod.owner, []).append(pod)
    of_job = {owner: one for one in workloads if (owner := _owner(one))}
    found = {}
    for job in jobs:
        labels = job["metadata"].get("labels") or {}
        if labels.get(words.CLUSTER) == cluster and words.JOB in labels:
            uid = job["metadata"].get("uid", "")
            gang = _gang(job, of_job.get(uid), tuple(by_owner.get(uid, ())))
            found[gang.job] = gang
    used: dict[str, list[Pod]] = {}
    for pod in read:
        if pod.node and not pod.is_ended:
            used.setdefault(pod.node, []).append(pod)
    made = [_node(one, used.get(_slurm_name(one["metadata"]), ()), gpu) for one in machines]
    return ClusterView(found, {one.slurm: one for one in made}, read)


def _gang(job: Json, workload: Json | None, pods: tuple[Pod, ...]) -> Gang:
    metadata = job["metadata"]
    said = metadata.get("annotations") or {}
    status = (workload.get("status") or {}) if workload is not None else {}
    conditions = {one["type"]: one for one in status.get("conditions") or ()}
    waits = conditions.get("QuotaReserved")
    return Gang(
        name=metadata["name"],
        job=metadata["labels"][words.JOB],
        uid=metadata.get("uid", ""),
        wanted=int(job["spec"].get("parallelism", 1)),
        shape=said.get(words.SHAPE, ""),
        tries=_int(said.get(words.TRIES)),
        retry_at=_float(said.get(words.RETRY_AT)),
        released_at=_float(said.get(words.RELEASED_AT)),
        is_deleted="deletionTimestamp" in metadata
        and words.FINALIZER in (metadata.get("finalizers") or ()),
        workload=workload["metadata"]["name"] if workload is not None else "",
        is_active=workload is None or bool(workload["spec"].get("active", True)),
        is_admitted=_is_true(conditions.get("Admitted")),
        is_evicted=_is_true(conditions.get("Evicted")),
        why=str(waits["message"]) if waits is not None and waits["status"] == "False" else "",
        pods=pods,
    )


def _node(node: Json, pods: Iterable[Pod], gpu: str) -> KubeNode:
    metadata, status = node["metadata"], node.get("status") or {}
    room = status.get("allocatable") or status.get("capacity") or {}
    conditions = {one["type"]: one["status"] for one in status.get("conditions") or ()}
    held = tuple(pods)
    labels = metadata.get("labels") or {}
    return KubeNode(
        name=metadata["name"],
        slurm=_slurm_name(metadata),
        host=labels.get(words.HOSTNAME) or metadata["name"],
        is_ready=conditions.get("Ready", "True") == "True",
        is_away=words.AWAY in labels,
        is_cordoned=bool((node.get("spec") or {}).get("unschedulable")),
        cpu_milli=_amount(room.get("cpu"), 1000),
        memory_mib=_amount(room.get("memory"), 1) // _MIB,
        gpus=_amount(room.get(gpu), 1),
        cpu_milli_used=sum(one.cpu_milli for one in held),
        memory_mib_used=sum(one.memory_mib for one in held),
        gpus_used=sum(one.gpus for one in held),
    )


def _slurm_name(metadata: Json) -> str:
    """Return what Slurm calls a node: the same, unless a label says otherwise."""
    labels = metadata.get("labels") or {}
    return str(labels.get(words.SLURM_NODE) or metadata["name"])


def _pod(pod: Json, gpu: str, called: Mapping[str, str]) -> Pod:
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    labels = metadata.get("labels") or {}
    asked = [_asked(one) for one in spec.get("containers") or ()]
    key = next((labels[label] for label in _JOB_LABELS if labels.get(label)), "")
    return Pod(
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        node=called.get(spec.get("nodeName", ""), spec.get("nodeName", "")),
        job=key,
        is_bridged=words.JOB in labels,
        leaves="deletionTimestamp" in metadata,
        is_ended=(pod.get("status") or {}).get("phase") in _ENDED,
        cpu_milli=sum(_amount(one.get("cpu"), 1000) for one in asked),
        memory_mib=sum(_amount(one.get("memory"), 1) for one in asked) // _MIB,
        gpus=sum(_amount(one.get(gpu), 1) for one in asked),
        owner=_owner(pod),
    )


def _asked(container: Json) -> Json:
    resources = container.get("resources") or {}
    return {**(resources.get("limits") or {}), **(resources.get("requests") or {})}


def _amount(text: Any, scale: int) -> int:
    if text is None:
        return 0
    try:
        quantity = Quantity.from_raw(text)
    except ValueError:
        return 0
    return quantity.milli if scale == 1000 else quantity.units


def _owner(obj: Json) -> str:
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((str(one["uid"]) for one in owners if one.get("controller")), "")


def _is_true(condition: Json | None) -> bool:
    return condition is not None and condition["status"] == "True"


def _int(text: str | None) -> int:
    return whole_number(text) or 0


def _float(text: str | None) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0
