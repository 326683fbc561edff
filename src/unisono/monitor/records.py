"""What metrics, the ledger and the page need of each object, read once per version of it.

Times are seconds since 1970, 0 for what has not happened. GPUs are whole devices of any vendor.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from sys import intern
from typing import Any, NamedTuple

import msgspec

from unisono.engine.model.names import ResourceName
from unisono.engine.model.resources import bounded, is_gpu
from unisono.kinds import views
from unisono.kinds.device_faults import device_in, fault, fault_of, left_open
from unisono.kinds.digits import whole_number
from unisono.kinds.json_texts import read_json
from unisono.kinds.kueue.queue_order import OrderKey, order_key, published_order
from unisono.kinds.kueue.waiting import waiting_message
from unisono.kinds.pace import PROGRESS, pace_of
from unisono.kinds.quantity import Quantity
from unisono.kinds.times import TIME_LIMIT, limit_ms
from unisono.kinds.views import seconds_of
from unisono.monitor.gpu_faults import faults_of

WORKLOAD_ANNOTATION = "kueue.x-k8s.io/workload"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
SUBMITTER = "unisono.dev/submitter"
PRICE = "unisono.dev/price-usd-hour"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
POOL = "karpenter.sh/nodepool"
# Annotations and labels that name the user of a job, the most reliable first.
_USERS = ("unisono.dev/user", "kubeflow.org/user", SUBMITTER)
_TEAM = "unisono.dev/team"
_RANKS = (
    "batch.kubernetes.io/job-completion-index",
    "jobset.sigs.k8s.io/job-global-index",
    "volcano.sh/task-index",
)
PURCHASE = "unisono.dev/Purchase"
_UNDER_WAY = ("Planned", "Waiting")
UNKNOWN = "unknown"
_OURS = "unisono:///"
_shared = lru_cache(maxsize=1024)(tuple[tuple[str, float], ...])
_same = lru_cache(maxsize=1024)(tuple[tuple[str, int], ...])  # many pods ask for the same


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A node."""

    name: str
    uid: str
    created: float
    gpus: int  # of its capacity
    allocatable: int  # GPUs that can be given out
    resource: str  # the GPUs' resource; empty without any
    model: str
    memory_mib: int  # of one GPU
    instance_type: str
    capacity_type: str
    pool: str
    zone: str
    price: float  # US dollars an hour; 0 if unknown
    is_ready: bool
    is_open: bool  # ready, and pods may come
    taints: tuple[str, ...]  # why pods stay away, as `key=value`
    is_ours: bool  # a simulated one, with devices named by us
    broken: tuple[tuple[str, str], ...]  # devices by index, `*` if unknown, and what is wrong
    left_open: str = ""  # why it should be in quarantine and is not, as too many nodes are


class PodRecord(msgspec.Struct, frozen=True, gc=False):
    """A pod; a struct, since one is made for every change of every pod."""

    namespace: str
    name: str
    uid: str
    node: str
    phase: str
    gpus: tuple[tuple[str, int], ...]  # by container
    workload: str  # of the same namespace; empty without a workload
    rank: str
    is_ready: bool
    created: float
    bound: float
    started: float
    ended: float
    profile: str  # how a simulated one behaves
    stepped: float  # when it reported its last step; 0 if it never did
    step_seconds: float  # how long its steps take; 0 if unknown

    @property
    def key(self) -> tuple[str, str]:
        """Its namespace and name."""
        return self.namespace, self.name

    @property
    def is_over(self) -> bool:
        """Whether it holds nothing any more."""
        return self.phase in ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Asked:
    """GPUs of one flavor that a workload has or wants."""

    flavor: str  # empty while none is assigned
    gpus: int


class Story(NamedTuple):
    """What became of a workload, in the words of its conditions, for metrics of Kueue."""

    queued: float  # since when it waits, or waited: its creation, or when it was requeued
    asks: tuple[tuple[str, float], ...]  # what its pods request together, by resource
    has_checks: bool  # whether its queue has admission checks
    unadmitted: tuple[str, str]  # why it is not: reason and underlying cause
    eviction: str  # the reason of the last one
    evictions: tuple[tuple[str, str, int], ...]  # how many, by reason and underlying cause
    preempted: float  # when it was last
    preemptor_queue: str  # the ClusterQueue of the preemptor
    is_replaced: bool  # whether another slice took its place


@dataclass(frozen=True, slots=True)
class WorkloadRecord:
    """A workload: a gang."""

    namespace: str
    name: str
    uid: str
    owner_kind: str
    owner_name: str
    local_queue: str
    cluster_queue: str  # that admitted it; empty while it waits
    priority_class: str
    user: str
    team: str
    pods: int  # that were admitted: fewer than are wanted, of an elastic one
    asked: tuple[Asked, ...]
    created: float
    reserved: float  # when it got its quota
    admitted: float
    ready: float  # when all of its pods were
    finished: float
    evicted: float
    left: float  # when its quota was given back after that; 0 while it has some
    is_buying: bool  # whether machines are on their way for it
    preemption: str  # why it was preempted last; empty if it never was
    evictions: tuple[tuple[str, int], ...]  # how often it had to leave, by reason
    priority: int
    waits: PendingReason  # why, if it does
    order: OrderKey | None  # what orders it in its pending queue; None if it is in none
    story: Story  # what metrics of Kueue tell besides
    saved: float  # when its last checkpoint was written
    limit: int  # how many seconds it said it would run at most; 0 if it did not

    @property
    def key(self) -> tuple[str, str]:
        """Its namespace and name."""
        return self.namespace, self.name

    @property
    def gpus(self) -> int:
        """All of its GPUs."""
        return sum(one.gpus for one in self.asked)

    @property
    def is_waiting(self) -> bool:
        """Whether it has no quota."""
        return not self.reserved and not self.finished


@dataclass(frozen=True, slots=True)
class Quota:
    """GPUs of a flavor that a queue may use."""

    flavor: str
    nominal: int
    borrowing: int | None
    lending: int | None


@dataclass(frozen=True, slots=True)
class QueueRecord:
    """A ClusterQueue."""

    name: str
    created: float
    cohort: str
    weight: float
    quotas: tuple[Quota, ...]
    is_active: bool
    wait_slo: float | None
    published_order: tuple[str, ...] = ()  # the first workloads, where only the scheduler knows


# ---- reading -------------------------------------------------------------------------------------


def node_record(node: views.Node) -> NodeRecord:
    """Read a node."""
    metadata, spec, status = node.metadata, node.spec, node.status
    labels = metadata.labels
    capacity = _gpus_of(status.capacity)
    resource = max(capacity, key=lambda one: (capacity[one], one), default="")
    is_ready = node.is_ready
    return NodeRecord(
        name=metadata.name,
        uid=metadata.uid,
        created=metadata.created,
        gpus=sum(capacity.values()),
        allocatable=sum(_gpus_of(status.allocatable).values()),
        resource=resource,
        model=str(labels.get("nvidia.com/gpu.product") or "").replace("-", " "),
        memory_mib=_whole(labels.get("nvidia.com/gpu.memory")),
        instance_type=labels.get(INSTANCE_TYPE, ""),
        capacity_type=labels.get(CAPACITY_TYPE, ""),
        pool=labels.get(POOL, ""),
        zone=labels.get("topology.kubernetes.io/zone", ""),
        price=_number(metadata.annotations.get(PRICE)),
        is_ready=is_ready,
        is_open=is_ready and not spec.unschedulable,
        taints=tuple(f"{one.key}={one.value}" for one in spec.taints),
        is_ours=spec.provider_id.startswith(_OURS),
        broken=tuple(_broken(node)),
        left_open=left_open(metadata.annotations),
    )


def _broken(node: views.Node) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a node's devices, as far as placement stays away from it."""
    found = fault_of(node.raw)
    if found is None or found.severity != "broken":
        return
    injected = {
        index: fault(one.problem, "")
        for index, one in faults_of(node.metadata.annotations).items()
        if one.problem
    }
    named = {index: one.reason for index, one in injected.items() if one.severity == "broken"}
    if named:
        yield from sorted(named.items())
    else:
        index = device_in(found.message)
        yield "*" if index is None else str(index), found.reason


def pod_record(pod: views.Pod) -> PodRecord:
    """Read a pod."""
    metadata, spec, status = pod.metadata, pod.spec, pod.status
    annotations, labels, conditions = metadata.annotations, metadata.labels, status.conditions
    started, ended = _run(status.container_statuses)
    phase = status.phase
    pace = pace_of(annotations)
    return PodRecord(
        namespace=intern(metadata.namespace),
        name=metadata.name,
        uid=metadata.uid,
        node=spec.node_name,
        phase=intern(phase),
        gpus=_same(tuple(_containers(spec.containers))),
        workload=annotations.get(WORKLOAD_ANNOTATION, ""),
        rank=next((labels[one] for one in _RANKS if one in labels), ""),
        is_ready=conditions.is_true("Ready"),
        created=metadata.created,
        bound=conditions.since("PodScheduled"),
        started=started,
        ended=ended if phase in ("Succeeded", "Failed") else 0.0,
        profile=annotations.get("unisono.dev/sim-profile", ""),
        stepped=seconds_of(pace.at) if pace is not None else 0.0,
        step_seconds=pace.seconds if pace is not None else 0.0,
    )


def workload_record(workload: views.Workload) -> WorkloadRecord:
    """Read a Workload."""
    metadata, spec, status = workload.metadata, workload.spec, workload.status
    conditions, admission = status.conditions, status.admission
    owner = next(iter(metadata.owner_references), None)
    given = {**metadata.annotations, **metadata.labels}
    pod_sets = spec.pod_sets
    return WorkloadRecord(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        owner_kind=owner.kind if owner is not None else "Workload",
        owner_name=owner.name if owner is not None else metadata.name,
        local_queue=spec.queue_name,
        cluster_queue=admission.cluster_queue if admission is not None else "",
        priority_class=spec.priority_class_ref.name,
        user=next((str(given[one]) for one in _USERS if given.get(one)), UNKNOWN),
        team=str(given.get(_TEAM) or metadata.namespace),
        pods=_pods(pod_sets, admission),
        asked=tuple(_asked(pod_sets, admission)),
        created=metadata.created,
        reserved=conditions.since("QuotaReserved"),
        admitted=conditions.since("Admitted"),
        ready=conditions.since("PodsReady"),
        finished=conditions.since("Finished"),
        evicted=conditions.since("Evicted"),
        left=conditions.since("QuotaReserved", "False"),
        is_buying=conditions.reason(PURCHASE) in _UNDER_WAY,
        preemption=conditions.reason("Preempted"),
        evictions=tuple(_by_reason(status.scheduling_stats.evictions)),
        priority=spec.priority,
        waits=pending_reason(conditions),
        order=order_key(workload),
        story=_story(workload),
        saved=_saved(metadata.annotations.get(PROGRESS)),
        limit=_limit_seconds(metadata.annotations.get(TIME_LIMIT)),
    )


def _by_reason(evictions: Iterable[views.EvictionCount]) -> Iterator[tuple[str, int]]:
    """Yield how often a workload was evicted for each reason, whatever led to it."""
    found: dict[str, int] = {}
    for one in evictions:
        found[one.reason] = found.get(one.reason, 0) + one.count
    yield from found.items()


_PREEMPTOR = re.compile(r"preemptor path: \S*?([^/;\s]+);")


def _story(workload: views.Workload) -> Story:
    conditions, status = workload.status.conditions, workload.status
    reserved = conditions.get("QuotaReserved")
    cause = reserved.reason if reserved is not None and reserved.is_false else ""
    preempted = conditions.since("Preempted")
    path = _PREEMPTOR.search(conditions.message("Preempted")) if preempted else None
    return Story(
        queued=max(workload.metadata.created, conditions.since("Requeued")),
        asks=_amounts_of(workload.spec.pod_sets) if status.admission is None else (),
        has_checks=bool(status.admission_checks),
        unadmitted=(conditions.reason("Admitted") or "NoReservation", cause),
        eviction=conditions.reason("Evicted"),
        evictions=tuple(
            (one.reason, one.underlying_cause, one.count)
            for one in status.scheduling_stats.evictions
        ),
        preempted=preempted,
        preemptor_queue=path[1] if path is not None else "",
        is_replaced=conditions.reason("Finished") == "WorkloadSliceReplaced",
    )


def _amounts_of(pod_sets: Iterable[views.PodSet]) -> tuple[tuple[str, float], ...]:
    found: dict[str, float] = {}
    for pod_set in pod_sets:
        for container in pod_set.template.spec.containers:
            resources = container.resources
            for name, amount in {**resources.limits, **resources.requests}.items():
                found[name] = found.get(name, 0.0) + pod_set.count * _amount(amount) / 1000
    return _shared(tuple(sorted(found.items())))


@dataclass(frozen=True, slots=True)
class QuotaAmounts:
    """What a queue or cohort may use of one resource of a flavor, in units of the resource."""

    flavor: str
    resource: str
    nominal: float
    borrowing: float | None
    lending: float | None


def quota_amounts(groups: Iterable[views.ResourceGroup]) -> Iterator[QuotaAmounts]:
    """Read the quota of every resource."""
    for group in groups:
        for flavor in group.flavors:
            for quota in flavor.resources:
                yield QuotaAmounts(
                    flavor.name,
                    quota.name,
                    _amount(quota.nominal_quota or 0) / 1000,
                    None
                    if quota.borrowing_limit is None
                    else _amount(quota.borrowing_limit) / 1000,
                    None if quota.lending_limit is None else _amount(quota.lending_limit) / 1000,
                )


class Used(NamedTuple):
    """An amount of one resource of a flavor, in units of the resource."""

    flavor: str
    resource: str
    amount: float


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """What controllers wrote into the status of a ClusterQueue or LocalQueue."""

    state: str  # active, pending or terminating; of a LocalQueue the status of its condition Active
    pending: int
    reserving: int
    admitted: int
    usage: tuple[Used, ...]
    reservation: tuple[Used, ...]
    is_strict: bool = False  # whether nothing of a ClusterQueue overtakes its head
    is_stopped: bool = False
    share: float | None = None  # its weighted share, where shares are fair
    recent: float | None = None  # recent usage of a LocalQueue, where that counts


def cluster_queue_status(queue: views.ClusterQueue) -> QueueStatus:
    """Read the status of a ClusterQueue."""
    status, metadata = queue.status, queue.metadata
    active = "active" if queue.conditions.is_true("Active") else "pending"
    share = status.fair_sharing.weighted_share
    return QueueStatus(
        state="terminating" if metadata.is_terminating else active,
        pending=status.pending_workloads,
        reserving=status.reserving_workloads,
        admitted=status.admitted_workloads,
        usage=tuple(_used(status.flavors_usage)),
        reservation=tuple(_used(status.flavors_reservation)),
        is_strict=queue.spec.queueing_strategy == "StrictFIFO",
        is_stopped=queue.spec.stop_policy != "None",
        share=None if share is None else float(share),
    )


def local_queue_status(queue: views.LocalQueue) -> QueueStatus:
    """Read the status of a LocalQueue."""
    status = queue.status
    active = status.conditions.get("Active")
    fair = status.fair_sharing.admission
    recent = sum(_amount(one) / 1000 for one in fair.consumed.values()) if fair else None
    return QueueStatus(
        state=active.status if active is not None else "Unknown",
        pending=status.pending_workloads,
        reserving=status.reserving_workloads,
        admitted=status.admitted_workloads,
        usage=tuple(_used(status.flavors_usage)),
        reservation=tuple(_used(status.flavors_reservation)),
        is_stopped=queue.spec.stop_policy != "None",
        recent=recent,
    )


def weighted_share(cohort: views.Cohort) -> float | None:
    """Return what the status of a cohort says of its share; None if nothing."""
    share = cohort.status.fair_sharing.weighted_share
    return None if share is None else float(share)


def _used(flavors: Iterable[views.FlavorUsage]) -> Iterator[Used]:
    for flavor in flavors:
        for one in flavor.resources:
            yield Used(flavor.name, one.name, _amount(one.total or 0) / 1000)


def queue_record(queue: views.ClusterQueue) -> QueueRecord:
    """Read a ClusterQueue."""
    spec, metadata = queue.spec, queue.metadata
    weight = spec.fair_sharing.weight
    slo = metadata.annotations.get("unisono.dev/wait-slo-seconds")
    return QueueRecord(
        name=metadata.name,
        created=metadata.created,
        cohort=spec.cohort_name,
        weight=1.0 if weight is None else _amount(weight) / 1000,
        quotas=tuple(_quotas(spec.resource_groups)),
        is_active=queue.conditions.is_true("Active"),
        wait_slo=_number(slo) if slo else None,
        published_order=tuple(published_order(queue)),
    )


def _quotas(groups: Iterable[views.ResourceGroup]) -> Iterator[Quota]:
    for group in groups:
        for flavor in group.flavors:
            for quota in flavor.resources:
                if is_gpu(ResourceName(quota.name)):
                    limits = map(_limit, (quota.borrowing_limit, quota.lending_limit))
                    yield Quota(flavor.name, _units(quota.nominal_quota or 0), *limits)


def _pods(pod_sets: Iterable[views.PodSet], admission: views.Admission | None) -> int:
    """Return how many pods a workload was admitted with, or how many it wants."""
    assignments = admission.pod_set_assignments if admission is not None else ()
    given = {one.name: one.count for one in assignments}
    counts = ((given.get(one.name), one.count) for one in pod_sets)
    return sum(wanted if has is None else has for has, wanted in counts)


def _asked(pod_sets: Iterable[views.PodSet], admission: views.Admission | None) -> Iterator[Asked]:
    """Yield what a workload has, or what it wants if it has nothing."""
    found: dict[str, int] = {}
    assignments = admission.pod_set_assignments if admission is not None else ()
    for one in assignments:
        for resource, amount in one.resource_usage.items():
            if is_gpu(ResourceName(resource)):
                flavor = one.flavors.get(resource, "")
                found[flavor] = found.get(flavor, 0) + _units(amount)
    if not assignments:
        wanted = 0
        for pod_set in pod_sets:
            each = sum(gpus for _, gpus in _containers(pod_set.template.spec.containers))
            wanted += each * pod_set.count
        if wanted:
            found[""] = wanted
    for flavor, gpus in found.items():
        yield Asked(flavor, gpus)


def _containers(containers: Iterable[views.Container]) -> Iterator[tuple[str, int]]:
    for one in containers:
        resources = one.resources
        gpus = 0
        for name, amount in {**resources.limits, **resources.requests}.items():
            if is_gpu(name):
                gpus += bounded(name, _units(amount))
        if gpus:
            yield one.name, gpus


def _gpus_of(amounts: Mapping[str, object]) -> dict[str, int]:
    return {
        name: bounded(name, _units(one))
        for name, one in amounts.items()
        if is_gpu(ResourceName(name))
    }


def _run(statuses: Iterable[views.ContainerStatus]) -> tuple[float, float]:
    """Return when the first container began and when the last one ended."""
    begun: list[float] = []
    ended: list[float] = []
    for one in statuses:
        state = one.state
        running, terminated = state.running, state.terminated
        if running is not None:
            begun.append(seconds_of(running.started_at))
        elif terminated is not None:
            begun.append(seconds_of(terminated.started_at))
            ended.append(seconds_of(terminated.finished_at))
    return min(begun, default=0.0), max(ended, default=0.0)


def _limit_seconds(text: str | None) -> int:
    try:
        return (limit_ms(text) or 0) // 1000 if text else 0
    except ValueError:
        return 0


def _saved(progress: str | None) -> float:
    try:
        return seconds_of(str(read_json(progress or "{}").get("saved_at") or ""))
    except (ValueError, AttributeError):
        return 0.0


@lru_cache(maxsize=1024)
def _units(raw: object) -> int:
    try:
        return Quantity.from_raw(raw).units
    except ValueError:
        return 0


def _amount(raw: object) -> int:
    try:
        return Quantity.from_raw(raw).milli
    except ValueError:
        return 0


def _limit(raw: object) -> int | None:
    return None if raw is None else _units(raw)


def _whole(text: str | None) -> int:
    return whole_number(text) or 0


def _number(text: str | None) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0


_EXPLANATION = "unisono.dev/Explanation"
_TIMES = ("Planned", "Expected")
# Reasons that do not go away by waiting. A deactivated workload is left out: that is on purpose.
_NEVER = ("ExceedsMaxQuota", "Misconfigured")


class PendingReason(NamedTuple):
    """What refuses it, in words and as a stage; what would change that; when it starts."""

    stage: str = ""
    says: str = ""
    changes: tuple[str, ...] = ()
    start: float = 0.0  # reserved or estimated; 0: unknown
    is_promised: bool = False  # a date that is kept free for it, not only an estimate
    position: int = 0  # among the workloads whose starts are known; 0: it starts if it fits then
    limit: float = 0.0  # how long it is expected to run then; 0: unknown
    reason: str = ""  # of its condition QuotaReserved
    verdict: str = ""  # of its root cause: later, never; empty if there is none

    @property
    def is_never(self) -> bool:
        """Whether it cannot start however long it waits: it, or its queue, has to be changed."""
        return self.verdict == "never" or self.reason in _NEVER


def _main_cause(published: Any, facts: Iterable[Mapping[str, Any]]) -> str:
    """Return the root cause, else all facts, without dates: these have places of their own."""
    root = published.get("rootCause")
    if isinstance(root, dict) and isinstance(root.get("says"), str):
        return str(root["says"])
    texts = [str(one["says"]) for one in facts if one.get("says") and one.get("fact") not in _TIMES]
    return "; ".join(dict.fromkeys(texts))


def pending_reason(conditions: views.Conditions) -> PendingReason:
    """Read the conditions of a workload."""
    if conditions.is_true("QuotaReserved"):
        return PendingReason()
    says, reason = waiting_message(conditions), conditions.reason("QuotaReserved")
    try:
        published = read_json(conditions.message(_EXPLANATION))
        facts = [one for one in published["facts"] if isinstance(one, dict)]
        dated = [one for one in facts if one.get("fact") in _TIMES]
        first = min(dated, key=lambda one: float(one["start"]), default={})
        root = published.get("rootCause") or {}
        # Beside a root cause nothing else was tried.
        changes = [str(one["says"]) for one in root.get("inTheWay") or ()] or [
            str(one["changes"]) for one in facts if one.get("changes")
        ]
        return PendingReason(
            str(published["stage"]),
            _main_cause(published, facts) or says,
            tuple(dict.fromkeys(changes)),
            start=float(first.get("start") or 0) / 1000,
            is_promised=first.get("fact") == "Planned",
            position=int(first.get("position") or 0),
            limit=float(first.get("limit_ms") or 0) / 1000,
            reason=reason,
            verdict=str(root.get("verdict") or ""),
        )
    except (KeyError, ValueError, TypeError, AttributeError):
        # There is no explanation, or one in the form of another version.
        return PendingReason(reason, says, reason=reason)
