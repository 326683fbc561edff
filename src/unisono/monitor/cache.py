"""Records of nodes, pods, workloads and queues, kept up to date by changes.

`observe` takes every change of the cluster, which costs next to nothing; objects are read when
records are needed, each only in its newest version. What happened in between is not lost: objects
carry the times and counts of their transitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from operator import itemgetter
from typing import NamedTuple, TypeVar

from unisono.kinds import views
from unisono.kinds.views import Raw
from unisono.kube.mapping import POD, Kind
from unisono.monitor.gpu_faults import Faults, faults_of
from unisono.monitor.karpenter_records import ClaimRecord, PoolRecord, claim_record, pool_record
from unisono.monitor.records import (
    NodeRecord,
    PodRecord,
    QueueRecord,
    QueueStatus,
    QuotaAmounts,
    WorkloadRecord,
    cluster_queue_status,
    local_queue_status,
    node_record,
    pod_record,
    queue_record,
    quota_amounts,
    weighted_share,
    workload_record,
)

_KUEUE = "kueue.x-k8s.io/v1beta2"
NODE = Kind("v1", "Node")
WORKLOAD = Kind(_KUEUE, "Workload")
CLUSTER_QUEUE = Kind(_KUEUE, "ClusterQueue")
LOCAL_QUEUE = Kind(_KUEUE, "LocalQueue")
JOB_SET = Kind("jobset.x-k8s.io/v1alpha2", "JobSet")
COHORT = Kind(_KUEUE, "Cohort")
NODE_POOL = Kind("karpenter.sh/v1", "NodePool")
NODE_CLAIM = Kind("karpenter.sh/v1", "NodeClaim")
# In the order in which they are read: a pod's gang is known before the pod, its queue before that.
FOLLOWED = (
    NODE,
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    COHORT,
    WORKLOAD,
    POD,
    JOB_SET,
    NODE_POOL,
    NODE_CLAIM,
)

# So many unread objects are kept at most, in case no metrics are ever asked for.
_MOST_HEARD = 512

Key = tuple[str, str]
# Whether it is held, its place in a published order, and its key of `kinds.kueue.queue_order`.
PendingRank = tuple[bool, int, bool, int, int, str]
K = TypeVar("K")
V = TypeVar("V")


class WorkloadChange(NamedTuple):
    """What became of a workload between two readings."""

    before: WorkloadRecord | None
    after: WorkloadRecord | None


class PodChange(NamedTuple):
    """What became of a pod between two readings; `is_gone` if it is there no more."""

    before: PodRecord | None
    after: PodRecord
    is_gone: bool


class ClusterCache:
    """Holds a record of every object; call `refresh` before reading."""

    def __init__(self, price: Callable[[NodeRecord], float] = lambda _: 0.0) -> None:
        """Begin with nothing; `price` is of nodes without a price annotation, 0 if unknown."""
        self._price = price
        self.nodes: dict[str, NodeRecord] = {}
        self.faults: dict[str, Faults] = {}  # injected into nodes
        self.nodes_version = 0  # grows when a node comes, goes, or becomes another
        self.pods: dict[Key, PodRecord] = {}
        self.pods_version = 0  # grows when a pod comes, goes, or becomes another
        self.workloads: dict[Key, WorkloadRecord] = {}
        self.workloads_version = 0  # grows when a workload comes, goes, or becomes another
        self.queues: dict[str, QueueRecord] = {}
        self.queues_version = 0  # grows when any queue or cohort becomes another
        self.cohorts: dict[str, str] = {}  # to the one above; empty for the topmost
        self.pools: dict[str, PoolRecord] = {}
        self.claims: dict[str, ClaimRecord] = {}
        self.local_queues: dict[Key, str] = {}  # to the name of the ClusterQueue
        # Of every resource, by "queue" or "cohort" and name; statuses change all the time, so they
        # count in no version. A ClusterQueue's is under the namespace "".
        self.quotas: dict[Key, tuple[QuotaAmounts, ...]] = {}
        self.statuses: dict[Key, QueueStatus] = {}
        self.cohort_shares: dict[str, float] = {}
        self.gone_cohorts: set[str] = set()  # deleted; queues may still name them
        self.restarts: dict[Key, int] = {}  # of whole gangs, by namespace and name of the JobSet
        self.on_workload: list[Callable[[WorkloadChange], None]] = []
        self.on_queue_gone: list[Callable[[str, str], None]] = []  # namespace (or ""), name
        self.on_cohort_gone: list[Callable[[str], None]] = []
        self.on_pod: list[Callable[[PodChange], None]] = []
        self.unreadable = 0  # objects that could not be read; the metrics go on without them
        self.on_unreadable: Callable[[str, Exception], None] = lambda what, why: None
        # By uid: one object may follow another of the same name.
        self._heard: dict[Kind, dict[str, tuple[Raw | None, Raw | None]]] = {
            kind: {} for kind in FOLLOWED
        }

    def observe(self, kind: Kind, old: Raw | None, new: Raw | None) -> None:
        """Take note that an object became another."""
        of_kind = self._heard.get(kind)
        some = new if new is not None else old
        if of_kind is None or some is None:
            return
        uid = views.Object(some).metadata.uid
        if kind == WORKLOAD and uid in of_kind and _is_taken_back(of_kind[uid][1], new):
            self.refresh()  # what it had until now is in no later version
            of_kind = self._heard[kind]
        of_kind[uid] = (old, new)
        if len(of_kind) >= _MOST_HEARD:
            self.refresh()

    def refresh(self) -> None:
        """Read what was heard of."""
        for kind, of_kind in self._heard.items():
            if of_kind:
                self._heard[kind] = {}
                for old, new in of_kind.values():
                    try:
                        self._read(kind, old, new)
                    except Exception as mistake:  # noqa: BLE001 (metrics must not end a cluster)
                        self.unreadable += 1
                        self.on_unreadable(_named(kind, new if new is not None else old), mistake)

    def _read(self, kind: Kind, old: Raw | None, new: Raw | None) -> None:
        metadata = views.Object(new if new is not None else old or {}).metadata
        key = metadata.namespace, metadata.name
        if kind == POD:
            self._read_pod(key, old, new)
        elif kind == WORKLOAD:
            self._read_workload(key, new)
        elif kind == NODE:
            self._read_node(key[1], new)
        elif kind == CLUSTER_QUEUE:
            queue = None if new is None else queue_record(views.ClusterQueue(new))
            before = self.queues.get(key[1])
            self._put_queue(self.queues, key[1], queue)
            if before is not None and (queue is None or queue.cohort != before.cohort):
                self._has_left(before.cohort)
            view = views.ClusterQueue(new or {})
            amounts = tuple(quota_amounts(view.spec.resource_groups))
            _put(self.quotas, ("queue", key[1]), None if new is None else amounts)
            _put(self.statuses, ("", key[1]), None if new is None else cluster_queue_status(view))
            self._tell_queue_gone("", key[1], new)
        elif kind == LOCAL_QUEUE:
            leads_to = None if new is None else views.LocalQueue(new).spec.cluster_queue
            self._put_queue(self.local_queues, key, leads_to)
            status = None if new is None else local_queue_status(views.LocalQueue(new))
            _put(self.statuses, key, status)
            self._tell_queue_gone(*key, new)
        elif kind == COHORT:
            parent = None if new is None else views.Cohort(new).spec.parent_name
            old_parent = self.cohorts.get(key[1], "")
            self._put_queue(self.cohorts, key[1], parent)
            cohort = views.Cohort(new or {})
            self.gone_cohorts.discard(key[1])
            if new is None and self._is_named(key[1]):
                self.gone_cohorts.add(key[1])
            for listener in self.on_cohort_gone if new is None else ():
                listener(key[1])
            if old_parent != parent:
                self._has_left(old_parent)
            amounts = tuple(quota_amounts(cohort.spec.resource_groups))
            _put(self.quotas, ("cohort", key[1]), None if new is None else amounts)
            _put(self.cohort_shares, key[1], None if new is None else weighted_share(cohort))
        elif kind == NODE_POOL:
            _put(self.pools, key[1], None if new is None else pool_record(views.NodePool(new)))
        elif kind == NODE_CLAIM:
            _put(self.claims, key[1], None if new is None else claim_record(views.NodeClaim(new)))
        else:
            _put(self.restarts, key, None if new is None else views.JobSet(new).status.restarts)

    def _tell_queue_gone(self, namespace: str, name: str, new: Raw | None) -> None:
        if new is None:
            for listener in self.on_queue_gone:
                listener(namespace, name)

    def _is_named(self, cohort: str) -> bool:
        """Say whether a cohort is there, or a queue or another cohort is in it."""
        return (
            cohort in self.cohorts
            or any(one.cohort == cohort for one in self.queues.values())
            or cohort in self.cohorts.values()
        )

    def _has_left(self, cohort: str) -> None:
        """Tell of a cohort that nothing names any more."""
        if cohort and not self._is_named(cohort):
            self.gone_cohorts.discard(cohort)
            for listener in self.on_cohort_gone:
                listener(cohort)

    def _put_queue(self, into: dict[K, V], key: K, value: V | None) -> None:
        if into.get(key) != value:
            self.queues_version += 1
            _put(into, key, value)

    def _read_node(self, name: str, new: Raw | None) -> None:
        node = views.Node(new) if new is not None else None
        record = node_record(node) if node is not None else None
        faults = faults_of(node.metadata.annotations) if node is not None else None
        _put(self.faults, name, faults or None)
        if record is not None and not record.price:
            record = replace(record, price=self._price(record))
        if record != self.nodes.get(name):
            self.nodes_version += 1
            _put(self.nodes, name, record)

    def _read_pod(self, key: Key, old: Raw | None, new: Raw | None) -> None:
        before = self.pods.get(key)
        some = new if new is not None else old
        assert some is not None
        after = pod_record(views.Pod(some))
        if before is not None and before.uid != after.uid:
            before = None
        # Pods without GPUs and without a workload are not needed.
        is_worth_keeping = new is not None and (after.gpus or after.workload)
        kept = after if is_worth_keeping else None
        if kept != self.pods.get(key):
            self.pods_version += 1
            _put(self.pods, key, kept)
        self._tell_pod(PodChange(before, after, is_gone=new is None))

    def _read_workload(self, key: Key, new: Raw | None) -> None:
        before = self.workloads.get(key)
        after = workload_record(views.Workload(new)) if new is not None else None
        if after != before:
            self.workloads_version += 1
            _put(self.workloads, key, after)
        if before is not None and after is not None and before.uid != after.uid:
            before = None
        for listener in self.on_workload:
            listener(WorkloadChange(before, after))

    def _tell_pod(self, step: PodChange) -> None:
        for listener in self.on_pod:
            listener(step)

    # ---- looking ---------------------------------------------------------------------------------

    def queue_of(self, workload: WorkloadRecord) -> str:
        """Return the ClusterQueue that a workload is in or waits for; empty if there is none."""
        if workload.cluster_queue:
            return workload.cluster_queue
        return self.local_queues.get((workload.namespace, workload.local_queue), "")

    def workload_of(self, pod: PodRecord) -> WorkloadRecord | None:
        """Return the gang of a pod."""
        return self.workloads.get((pod.namespace, pod.workload)) if pod.workload else None

    def pods_on_nodes(self) -> Iterator[PodRecord]:
        """Yield the pods that hold a node."""
        return (one for one in self.pods.values() if one.node and not one.is_over)

    def pending_by_queue(self) -> dict[str, list[WorkloadRecord]]:
        """Return the workloads in pending queues, in the order of each (`kinds.kueue`)."""
        found: dict[str, list[tuple[PendingRank, WorkloadRecord]]] = {}
        for one in self.workloads.values():
            if one.is_waiting and one.order is not None:
                found.setdefault(self.queue_of(one), []).append((self.pending_rank(one), one))
        return {
            queue: [one for _, one in sorted(ranked, key=itemgetter(0))]
            for queue, ranked in found.items()
        }

    def pending_rank(self, workload: WorkloadRecord) -> PendingRank:
        """Return what orders a pending workload in its queue; what is in no queue comes last."""
        if workload.order is None:
            return True, 0, False, -workload.priority, round(workload.created * 1000), workload.uid
        queue = self.queues.get(self.queue_of(workload))
        published = queue.published_order if queue is not None else ()
        name = f"{workload.namespace}/{workload.name}"
        place = published.index(name) if published and name in published else len(published)
        is_after, (priority, time, tie) = workload.order
        return False, place, is_after, priority, time, tie

    def gpus_in_use(self) -> dict[str, int]:
        """Return how many GPUs of each node are held by pods."""
        used: dict[str, int] = {}
        for pod in self.pods_on_nodes():
            used[pod.node] = used.get(pod.node, 0) + sum(gpus for _, gpus in pod.gpus)
        return used


def _is_taken_back(heard: Raw | None, new: Raw | None) -> bool:
    """Say whether a workload loses an admission that was heard of and not read yet."""
    if heard is None or views.Workload(heard).status.admission is None:
        return False
    status = views.Workload(new or {}).status
    return status.admission is None or status.conditions.is_true("Evicted")


def fill(cache: ClusterCache, kind: Kind, objects: Iterable[Raw]) -> None:
    """Tell cache of objects that are there already."""
    for one in objects:
        cache.observe(kind, None, one)


def _put(into: dict[K, V], key: K, value: V | None) -> None:
    if value is None:
        into.pop(key, None)
    else:
        into[key] = value


def _named(kind: Kind, obj: Raw | None) -> str:
    metadata = views.Object(obj or {}).metadata
    return f"{kind.kind} {'/'.join(filter(None, (metadata.namespace, metadata.name)))}"
