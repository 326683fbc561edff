"""What metrics, the ledger and the page need of each object, read once per version of it.

Times are seconds since 1970, 0 for what has not happened. GPUs are whole devices of any vendor.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from sys import intern
from typing import Any, NamedTuple

from unisono.engine.model.resources import bounded, is_gpu
from unisono.kinds.device_faults import device_in, fault, fault_of
from unisono.kinds.digits import whole_number
from unisono.kinds.pace import PROGRESS, pace_of
from unisono.kinds.quantity import Quantity
from unisono.kinds.times import TIME_LIMIT, limit_ms
from unisono.monitor.gpu_faults import faults_of

Json = Mapping[str, Any]

WORKLOAD_ANNOTATION = "kueue.x-k8s.io/workload"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
SUBMITTER = "unisono.dev/submitter"
PRICE = "unisono.dev/price-usd-hour"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
POOL = "karpenter.sh/nodepool"
# Who owns a job, in the order in which it is believed.
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
    price: float  # US dollars an hour; 0 if nobody said
    is_ready: bool
    is_open: bool  # ready, and pods may come
    taints: tuple[str, ...]  # why pods stay away, as `key=value`
    is_ours: bool  # a simulated one, whose devices we name ourselves
    broken: tuple[tuple[str, str], ...]  # devices by index, `*` if unknown, and what is wrong


@dataclass(frozen=True, slots=True)
class PodRecord:
    """A pod."""

    namespace: str
    name: str
    uid: str
    node: str
    phase: str
    gpus: tuple[tuple[str, int], ...]  # by container
    workload: str  # of the same namespace; empty if nobody manages it
    rank: str
    is_ready: bool
    created: float
    bound: float
    started: float
    ended: float
    profile: str  # how a simulated one behaves
    stepped: float  # when it reported its last step; 0 if it never did
    step_seconds: float  # how long its steps take; 0 if nobody knows

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
    pods: int
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


# ---- reading -------------------------------------------------------------------------------------


def node_record(node: Json) -> NodeRecord:
    """Read a node."""
    metadata, status = node["metadata"], node.get("status") or {}
    labels = metadata.get("labels") or {}
    capacity = _gpus_of(status.get("capacity"))
    resource = max(capacity, key=lambda one: (capacity[one], one), default="")
    is_ready = _is_true(status.get("conditions"), "Ready")
    is_closed = bool((node.get("spec") or {}).get("unschedulable"))
    return NodeRecord(
        name=metadata["name"],
        uid=metadata["uid"],
        created=time_of(metadata.get("creationTimestamp")),
        gpus=sum(capacity.values()),
        allocatable=sum(_gpus_of(status.get("allocatable")).values()),
        resource=resource,
        model=str(labels.get("nvidia.com/gpu.product") or "").replace("-", " "),
        memory_mib=_whole(labels.get("nvidia.com/gpu.memory")),
        instance_type=labels.get(INSTANCE_TYPE, ""),
        capacity_type=labels.get(CAPACITY_TYPE, ""),
        pool=labels.get(POOL, ""),
        zone=labels.get("topology.kubernetes.io/zone", ""),
        price=_number((metadata.get("annotations") or {}).get(PRICE)),
        is_ready=is_ready,
        is_open=is_ready and not is_closed,
        taints=tuple(
            f"{one['key']}={one.get('value', '')}"
            for one in (node.get("spec") or {}).get("taints") or ()
        ),
        is_ours=str((node.get("spec") or {}).get("providerID") or "").startswith(_OURS),
        broken=tuple(_broken(node)),
    )


def _broken(node: Json) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a node's devices, as far as placement stays away from it."""
    found = fault_of(node)
    if found is None or found.severity != "broken":
        return
    injected = {
        index: fault(one.problem, "")
        for index, one in faults_of(node["metadata"].get("annotations")).items()
        if one.problem
    }
    named = {index: one.reason for index, one in injected.items() if one.severity == "broken"}
    if named:
        yield from sorted(named.items())
    else:
        index = device_in(found.message)
        yield "*" if index is None else str(index), found.reason


def pod_record(pod: Json) -> PodRecord:
    """Read a pod."""
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
    conditions = status.get("conditions")
    started, ended = _run(status.get("containerStatuses") or ())
    phase = status.get("phase") or "Pending"
    pace = pace_of(annotations)
    return PodRecord(
        namespace=intern(metadata["namespace"]),
        name=metadata["name"],
        uid=metadata["uid"],
        node=spec.get("nodeName") or "",
        phase=intern(phase),
        gpus=_same(tuple(_containers(spec.get("containers") or ()))),
        workload=annotations.get(WORKLOAD_ANNOTATION, ""),
        rank=next((labels[one] for one in _RANKS if one in labels), ""),
        is_ready=_is_true(conditions, "Ready"),
        created=time_of(metadata.get("creationTimestamp")),
        bound=_since(conditions, "PodScheduled"),
        started=started,
        ended=ended if phase in ("Succeeded", "Failed") else 0.0,
        profile=annotations.get("unisono.dev/sim-profile", ""),
        stepped=time_of(pace.at) if pace is not None else 0.0,
        step_seconds=pace.seconds if pace is not None else 0.0,
    )


def workload_record(workload: Json) -> WorkloadRecord:
    """Read a Workload."""
    metadata, spec, status = workload["metadata"], workload["spec"], workload.get("status") or {}
    conditions = status.get("conditions")
    admission = status.get("admission") or {}
    annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
    owner: Json = next(iter(metadata.get("ownerReferences") or ()), {})
    preempted = condition_of(conditions, "Preempted")
    stats = (status.get("schedulingStats") or {}).get("evictions") or ()
    said = {**annotations, **labels}
    class_ref = spec.get("priorityClassRef") or {}
    return WorkloadRecord(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        owner_kind=owner.get("kind", "Workload"),
        owner_name=owner.get("name", metadata["name"]),
        local_queue=spec.get("queueName") or "",
        cluster_queue=admission.get("clusterQueue") or "",
        priority_class=class_ref.get("name") or spec.get("priorityClassName") or "",
        user=next((str(said[one]) for one in _USERS if said.get(one)), UNKNOWN),
        team=str(said.get(_TEAM) or metadata["namespace"]),
        pods=sum(int(one.get("count") or 0) for one in spec.get("podSets") or ()),
        asked=tuple(_asked(spec, admission)),
        created=time_of(metadata.get("creationTimestamp")),
        reserved=_since(conditions, "QuotaReserved"),
        admitted=_since(conditions, "Admitted"),
        ready=_since(conditions, "PodsReady"),
        finished=_since(conditions, "Finished"),
        evicted=_since(conditions, "Evicted"),
        left=_since(conditions, "QuotaReserved", "False"),
        is_buying=(condition_of(conditions, PURCHASE) or {}).get("reason") in _UNDER_WAY,
        preemption=str((preempted or {}).get("reason") or ""),
        evictions=tuple((str(one["reason"]), int(one["count"])) for one in stats),
        priority=int(spec.get("priority") or 0),
        waits=pending_reason(conditions),
        saved=_saved(annotations.get(PROGRESS)),
        limit=_limit_seconds(annotations.get(TIME_LIMIT)),
    )


def queue_record(queue: Json) -> QueueRecord:
    """Read a ClusterQueue."""
    spec = queue.get("spec") or {}
    annotations = queue["metadata"].get("annotations") or {}
    weight = (spec.get("fairSharing") or {}).get("weight")
    slo = annotations.get("unisono.dev/wait-slo-seconds")
    return QueueRecord(
        name=queue["metadata"]["name"],
        created=time_of(queue["metadata"].get("creationTimestamp")),
        cohort=spec.get("cohortName") or spec.get("cohort") or "",
        weight=1.0 if weight is None else _amount(weight) / 1000,
        quotas=tuple(_quotas(spec.get("resourceGroups") or ())),
        is_active=_is_true((queue.get("status") or {}).get("conditions"), "Active"),
        wait_slo=_number(slo) if slo else None,
    )


def _quotas(groups: Iterable[Json]) -> Iterator[Quota]:
    for group in groups:
        flavors = group.get("flavors") or ()
        if flavors and isinstance(flavors[0], str):  # one quota for all, told of the first
            flavors = ({"name": flavors[0], "resources": group.get("resources")},)
        for flavor in flavors:
            for quota in flavor.get("resources") or ():
                if is_gpu(quota["name"]):
                    limits = map(_limit, (quota.get("borrowingLimit"), quota.get("lendingLimit")))
                    yield Quota(flavor["name"], _units(quota.get("nominalQuota", 0)), *limits)


def _asked(spec: Json, admission: Json) -> Iterator[Asked]:
    """Yield what a workload has, or what it wants if it has nothing."""
    found: dict[str, int] = {}
    assignments = admission.get("podSetAssignments") or ()
    for one in assignments:
        for resource, amount in (one.get("resourceUsage") or {}).items():
            if is_gpu(resource):
                flavor = (one.get("flavors") or {}).get(resource, "")
                found[flavor] = found.get(flavor, 0) + _units(amount)
    if not assignments:
        wanted = 0
        for pod_set in spec.get("podSets") or ():
            template = (pod_set.get("template") or {}).get("spec") or {}
            each = sum(gpus for _, gpus in _containers(template.get("containers") or ()))
            wanted += each * int(pod_set.get("count") or 0)
        if wanted:
            found[""] = wanted
    for flavor, gpus in found.items():
        yield Asked(flavor, gpus)


def _containers(containers: Iterable[Json]) -> Iterator[tuple[str, int]]:
    for one in containers:
        resources = one.get("resources") or {}
        asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        gpus = sum(_gpus_of(asked).values())
        if gpus:
            yield one["name"], gpus


def _gpus_of(amounts: Mapping[str, Any] | None) -> dict[str, int]:
    return {
        name: bounded(name, _units(one)) for name, one in (amounts or {}).items() if is_gpu(name)
    }


def _run(statuses: Iterable[Json]) -> tuple[float, float]:
    """Return when the first container began and when the last one ended."""
    begun: list[float] = []
    ended: list[float] = []
    for one in statuses:
        state = one.get("state") or {}
        if "running" in state:
            begun.append(time_of(state["running"].get("startedAt")))
        elif "terminated" in state:
            begun.append(time_of(state["terminated"].get("startedAt")))
            ended.append(time_of(state["terminated"].get("finishedAt")))
    return min(begun, default=0.0), max(ended, default=0.0)


def _limit_seconds(text: str | None) -> int:
    try:
        return (limit_ms(text) or 0) // 1000 if text else 0
    except ValueError:
        return 0


def _saved(progress: str | None) -> float:
    try:
        return time_of(str(json.loads(progress or "{}").get("saved_at") or ""))
    except (ValueError, AttributeError):
        return 0.0


def condition_of(conditions: Iterable[Json] | None, kind: str) -> Json | None:
    """Return the condition of a kind."""
    return next((one for one in conditions or () if one["type"] == kind), None)


def _is_true(conditions: Iterable[Json] | None, kind: str) -> bool:
    found = condition_of(conditions, kind)
    return found is not None and found["status"] == "True"


def _since(conditions: Iterable[Json] | None, kind: str, status: str = "True") -> float:
    found = condition_of(conditions, kind)
    if found is None or found["status"] != status:
        return 0.0
    return time_of(found.get("lastTransitionTime"))


@lru_cache(maxsize=1024)
def time_of(text: str | None) -> float:
    """Return a time that an object has, in seconds since 1970; 0 if it has none."""
    try:
        return datetime.fromisoformat(text).timestamp() if text else 0.0
    except ValueError:
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
    start: float = 0.0  # at the latest, or as far as anybody knows; 0: unknown
    is_promised: bool = False  # a date that is kept free for it, not only an estimate
    limit: float = 0.0  # how long it is expected to run then; 0: unknown
    reason: str = ""  # of its condition QuotaReserved

    @property
    def is_never(self) -> bool:
        """Whether it cannot start however long it waits: it, or its queue, has to be changed."""
        return self.reason in _NEVER


def pending_reason(conditions: Iterable[Mapping[str, Any]] | None) -> PendingReason:
    """Read the conditions of a workload."""
    found = {one["type"]: one for one in conditions or ()}
    reserved = found.get("QuotaReserved")
    if reserved is not None and reserved["status"] == "True":
        return PendingReason()
    says = str((reserved or {}).get("message") or "")
    reason = str((reserved or {}).get("reason") or "")
    try:
        told = json.loads(found[_EXPLANATION]["message"])
        facts = [one for one in told["facts"] if isinstance(one, dict)]
        dated = [one for one in facts if one.get("fact") in _TIMES]
        first = min(dated, key=lambda one: float(one["start"]), default={})
        changes = [str(one["changes"]) for one in facts if one.get("changes")]
        return PendingReason(
            str(told["stage"]),
            says,
            tuple(dict.fromkeys(changes)),
            start=float(first.get("start") or 0) / 1000,
            is_promised=first.get("fact") == "Planned",
            limit=float(first.get("limit_ms") or 0) / 1000,
            reason=reason,
        )
    except (KeyError, ValueError, TypeError):
        # There is no explanation, or one in the form of another version.
        return PendingReason(reason, says, reason=reason)
