"""The cluster's view: gangs of Slurm jobs, their pods, and what is free on every node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from unisono.kinds import views
from unisono.kinds.digits import whole_number
from unisono.kinds.kueue.waiting import waiting_message
from unisono.kinds.quantity import Quantity
from unisono.kinds.views import Raw
from unisono.slurm.bridge import gang as keys

# Labels that mark the pods of a Slurm job: ours, SchedMD's, and a common one.
_JOB_LABELS = (keys.JOB, "scheduler.slinky.slurm.net/slurm-jobid", "slurm-job-id")
_MIB = 1024 * 1024
_NOTHING = Quantity.from_raw(0)


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
    jobs: Iterable[Raw],
    workloads: Iterable[Raw],
    pods: Iterable[Raw],
    nodes: Iterable[Raw],
    gpu: str,
    cluster: str,
) -> ClusterView:
    """Return the view of the objects that the API has."""
    machines = [views.Node(one) for one in nodes]
    slurm_names = {one.name: _slurm_name(one) for one in machines}
    read = tuple(_pod(views.Pod(one), gpu, slurm_names) for one in pods)
    by_owner: dict[str, list[Pod]] = {}
    for pod in read:
        by_owner.setdefault(pod.owner, []).append(pod)
    of_job = {_owner(one): one for one in map(views.Workload, workloads)}
    found = {}
    for job in map(views.Job, jobs):
        labels = job.metadata.labels
        if labels.get(keys.CLUSTER) == cluster and keys.JOB in labels:
            owned = tuple(by_owner.get(job.uid, ()))
            gang = _gang(job, of_job.get(job.uid) if job.uid else None, owned)
            found[gang.job] = gang
    used: dict[str, list[Pod]] = {}
    for pod in read:
        if pod.node and not pod.is_ended:
            used.setdefault(pod.node, []).append(pod)
    made = [_node(one, used.get(_slurm_name(one), ()), gpu) for one in machines]
    return ClusterView(found, {one.slurm: one for one in made}, read)


def _gang(job: views.Job, workload: views.Workload | None, pods: tuple[Pod, ...]) -> Gang:
    metadata, annotations = job.metadata, job.metadata.annotations
    quota = workload.status.conditions.get("QuotaReserved") if workload is not None else None
    return Gang(
        name=metadata.name,
        job=metadata.labels[keys.JOB],
        uid=metadata.uid,
        wanted=job.spec.parallelism,
        shape=annotations.get(keys.SHAPE, ""),
        tries=_int(annotations.get(keys.TRIES)),
        retry_at=_float(annotations.get(keys.RETRY_AT)),
        released_at=_float(annotations.get(keys.RELEASED_AT)),
        is_deleted=job.is_terminating and keys.FINALIZER in metadata.finalizers,
        workload=workload.name if workload is not None else "",
        is_active=workload is None or workload.spec.active,
        is_admitted=workload is not None and workload.status.conditions.is_true("Admitted"),
        is_evicted=workload is not None and workload.status.conditions.is_true("Evicted"),
        why=waiting_message(workload.status.conditions)
        if workload is not None and quota is not None and quota.is_false
        else "",
        pods=pods,
    )


def _node(node: views.Node, pods: Iterable[Pod], gpu: str) -> KubeNode:
    ready = node.status.conditions.get("Ready")
    has = node.status.allocatable or node.status.capacity
    held = tuple(pods)
    return KubeNode(
        name=node.name,
        slurm=_slurm_name(node),
        host=node.hostname,
        is_ready=ready is None or ready.is_true,  # a node without the condition was made by hand
        is_away=keys.AWAY in node.metadata.labels,
        is_cordoned=node.spec.unschedulable,
        cpu_milli=_amount(has.get("cpu")).milli,
        memory_mib=_amount(has.get("memory")).units // _MIB,
        gpus=_amount(has.get(gpu)).units,
        cpu_milli_used=sum(one.cpu_milli for one in held),
        memory_mib_used=sum(one.memory_mib for one in held),
        gpus_used=sum(one.gpus for one in held),
    )


def _slurm_name(node: views.Node) -> str:
    """Return what Slurm calls a node: the same, unless a label says otherwise."""
    return node.metadata.labels.get(keys.SLURM_NODE) or node.name


def _pod(pod: views.Pod, gpu: str, slurm_names: Mapping[str, str]) -> Pod:
    labels, node = pod.metadata.labels, pod.spec.node_name
    requests = [{**one.resources.limits, **one.resources.requests} for one in pod.spec.containers]
    return Pod(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        node=slurm_names.get(node, node),
        job=next((labels[label] for label in _JOB_LABELS if labels.get(label)), ""),
        is_bridged=keys.JOB in labels,
        leaves=pod.is_terminating,
        is_ended=pod.is_over,
        cpu_milli=sum(_amount(one.get("cpu")).milli for one in requests),
        memory_mib=sum(_amount(one.get("memory")).units for one in requests) // _MIB,
        gpus=sum(_amount(one.get(gpu)).units for one in requests),
        owner=_owner(pod),
    )


def _amount(raw: object) -> Quantity:
    """Return an amount; one that is missing or cannot be read is 0."""
    try:
        return Quantity.from_raw(raw) if raw is not None else _NOTHING
    except ValueError:
        return _NOTHING


def _owner(obj: views.Object) -> str:
    controller = obj.metadata.controller
    return controller.uid if controller is not None else ""


def _int(text: str | None) -> int:
    return whole_number(text) or 0


def _float(text: str | None) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0
