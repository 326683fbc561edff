"""A workload: a gang of pod sets that is admitted whole, and its admission."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from unisono.engine.model.multifactor import SubmitOptions
from unisono.engine.model.names import (
    FlavorName,
    Instant,
    LocalQueueKey,
    NodeName,
    QueueName,
    ResourceName,
    WorkloadKey,
)
from unisono.engine.model.node import HostPort, PodRule, SpreadRule
from unisono.engine.model.provisioning import ProvisioningOptions
from unisono.engine.model.resources import Amounts
from unisono.engine.model.selection import AffinityTerm, Labels, Toleration

# --- dependencies: how other jobs must end, or start, before a workload may (backfill §11) --------


DependencyKind = Literal["afterok", "afterany", "afternotok", "after", "singleton"]


class Dependency(msgspec.Struct, frozen=True, kw_only=True):
    """One dependency."""

    kind: DependencyKind
    on: str = ""  # namespace/name of a job; empty for a singleton
    delay_ms: int = 0  # `after`: time since the job has started


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How a job ended."""

    job: str  # namespace/name
    succeeded: bool
    ended_at: Instant
    started_at: Instant | None = None  # None: never, or unknown


# --- a workload and its admission -----------------------------------------------------------------


# Where the time limit of a workload comes from: its request, its job's activeDeadlineSeconds, its
# queue; what was learned from earlier runs is only an estimate.
LimitSource = Literal["request", "job", "queue", "history"]
# Also Kueue's maximumExecutionTimeSeconds, and the policy's default.
LimitWord = Literal["request", "job", "queue", "history", "execution", "policy"]


class TopologyRequest(msgspec.Struct, frozen=True):
    """The topology domain that the pods of a set must, or should, share."""

    mode: Literal["required", "preferred", "unconstrained"]
    level: str = ""
    slice_level: str = ""
    slice_size: int = 0


class WeightedTerm(msgspec.Struct, frozen=True):
    """A node affinity term that is preferred, and how much (1..100)."""

    weight: int
    term: AffinityTerm


class PodSet(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True, gc=False):
    """Pods of one template. `requests` is what one pod asks for."""

    name: str = "main"
    count: int
    min_count: int | None = None  # partial admission may shrink the set to this
    requests: Amounts = ()
    node_selector: Labels = ()
    affinity: tuple[AffinityTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    topology: TopologyRequest | None = None
    node_requests: Amounts | None = (
        None  # what it uses of a node, if that differs from what quota counts
    )
    group: str = ""  # pod sets with the same group take the same flavors and the same domain
    # What placement needs besides; unset fields cost nothing.
    preferred: tuple[WeightedTerm, ...] = ()  # preferred node affinity
    labels: Labels = ()
    host_ports: tuple[HostPort, ...] = ()
    affinity_to: tuple[PodRule, ...] = ()  # required pod affinity
    anti_affinity: tuple[PodRule, ...] = ()  # required pod anti-affinity
    spread: tuple[SpreadRule, ...] = ()
    # The parts of the affinity that come from volumes: only for explanations.
    volumes: tuple[tuple[AffinityTerm, ...], ...] = ()


PositionKey = tuple[int, Instant, str]


def position_key(priority: int, time: Instant, tie: str) -> PositionKey:
    """Return what orders a workload in a pending queue: the higher priority, then the older."""
    return -priority, time, tie


def tie_of(number: int, task: int, uid: str) -> str:
    """Return what orders workloads of one instant: the job's number if it has one, else the uid."""
    return f"{number:010}.{task:010}.{uid}" if number else uid


class CheckState(msgspec.Struct, frozen=True):
    """The state of an admission check for one workload."""

    name: str
    state: Literal["Pending", "Ready", "Retry", "Rejected"] = "Pending"


class Workload(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The request and its history; never what it holds now."""

    key: WorkloadKey
    uid: str
    queue: LocalQueueKey
    pod_sets: tuple[PodSet, ...]
    priority: int = 0
    created_at: Instant = Instant(0)
    # Orders it in its queue when the creation time does not (evicted by a readiness time-out or by
    # an admission check). Preempted workloads keep their creation time.
    queued_at: Instant | None = None
    active: bool = True
    gated_by: str = ""  # kueue.x-k8s.io/admission-gated-by
    requeue_at: Instant | None = None  # on hold until then
    on_hold: bool = False  # condition Requeued=False
    checks: tuple[CheckState, ...] = ()
    # Pods of each set that have finished for good: their quota is free again.
    reclaimable: tuple[tuple[str, int], ...] = ()
    replaces: WorkloadKey | None = None  # elastic job: the slice that this one replaces
    # How often it was preempted, and when it may next preempt (spec quota §18.2b).
    preemptions: int = 0
    may_preempt_at: Instant | None = None
    requeues: int = 0  # how often its pods were not ready in time
    max_execution_ms: int | None = None
    past_execution_ms: int = 0  # admitted time before the current admission
    # Its time limit, for planning (spec backfill §1); None: it has none.
    time_limit_ms: int | None = None
    limit_from: LimitSource = "request"
    # The shortest limit it may be started with, if it starts earlier that way (spec backfill §1).
    least_limit_ms: int | None = None
    begin_at: Instant | None = None  # not before then
    deadline: Instant | None = None  # it must be able to end by then
    # A request above its limit, an unreadable template: waiting does not help.
    misconfigured: str = ""
    # How many pods must start together, over all sets; None: all of them (every set's minimum).
    min_total: int | None = None
    # Account, user, QOS: for multifactor priority (spec priority §1).
    submit_options: SubmitOptions = msgspec.field(default=SubmitOptions(), name="turn")
    # It may be shrunk while it runs, pod by pod, down to its minimum.
    can_shrink: bool = False
    # Sets scaled to nothing, each as one pod of it: it takes nothing, and yet its flavors are told.
    empty_sets: tuple[PodSet, ...] = ()
    # An array, and how many of its workloads may run at a time (spec backfill §9); empty: none.
    array: str = ""
    array_limit: int = 0
    # namespace/name of its job, by which dependencies refer to it; empty: its key.
    job: str = ""
    buying: ProvisioningOptions = ProvisioningOptions()  # for machines that are bought for it
    depends: tuple[Dependency, ...] = ()  # on all of them, or on any (spec backfill §11)
    depends_on_any: bool = False

    @property
    def longest_ms(self) -> int | None:
        """Its time limit for planning, the shortest that it accepts; None: it has none."""
        limit = self.time_limit_ms if self.least_limit_ms is None else self.least_limit_ms
        if self.max_execution_ms is None:
            return limit
        left = max(0, self.max_execution_ms - self.past_execution_ms)
        return left if limit is None else min(left, limit)

    @property
    def longest_from(self) -> LimitWord:
        """Where that limit comes from."""
        longest = self.longest_ms
        if longest is None:
            return "policy"
        requested = (self.time_limit_ms, self.least_limit_ms)
        return self.limit_from if longest in requested else "execution"

    def granted(self, limit_ms: int) -> Workload:
        """Return the workload with the limit that it was started with."""
        return msgspec.structs.replace(self, time_limit_ms=limit_ms, least_limit_ms=None)

    @property
    def job_name(self) -> str:
        """What dependencies refer to: namespace/name of its job."""
        return self.job or self.key

    @property
    def tie(self) -> str:
        """What orders equals of one instant: its job's number if it has one, else its uid.

        Objects are created in whole seconds, and scripts submit several in one.
        """
        return tie_of(self.submit_options.number, self.submit_options.task, self.uid)

    @property
    def position_time(self) -> Instant:
        """The instant that orders it among equals."""
        return self.created_at if self.queued_at is None else self.queued_at

    @property
    def position_key(self) -> PositionKey:
        """What orders it in a pending queue by priority and time."""
        return position_key(self.priority, self.position_time, self.tie)


class PodSetAssignment(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How many pods of a set may run, and which flavor each of its resources comes from."""

    name: str
    count: int
    flavors: tuple[tuple[ResourceName, FlavorName], ...] = ()
    nodes: tuple[tuple[NodeName, int], ...] = ()  # pods per node, in topology order; () if unplaced
    # Of pods that share GPUs: the device of each, in the order of nodes; () if they do not.
    devices: tuple[int, ...] = ()


class Admission(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A quota reservation with node assignments: which queue is charged, and for what."""

    queue: QueueName
    pod_sets: tuple[PodSetAssignment, ...]


class AdmittedWorkload(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A workload that holds quota now, with its admission; its pods may have to wait for more."""

    workload: Workload
    admission: Admission
    reserved_at: Instant = Instant(0)
    evicting: bool = False  # being evicted; keeps its quota until its pods are gone
    # All admission checks are ready, and so are machines that were bought for it. Stored under the
    # name of Kueue's condition.
    may_start: bool = msgspec.field(default=True, name="admitted")
    admitted_at: Instant | None = None  # None: when it was reserved
    ready: bool = True  # its pods are ready (waitForPodsReady)
    # Since when its pods are not ready any more; None if they never were.
    unready_since: Instant | None = None
    # What it shrinks to: it keeps the quota of the other pods until they are gone.
    keeps: Admission | None = None
    # When the last of the machines that it waits for is expected; no pod has started yet.
    ready_by: Instant | None = None

    @property
    def running_since(self) -> Instant:
        """When it was admitted, as far as that is known."""
        return self.reserved_at if self.admitted_at is None else self.admitted_at


def first_pods(
    nodes: tuple[tuple[NodeName, int], ...], most: int
) -> tuple[tuple[NodeName, int], ...]:
    """Return the first pods, up to `most`: a set that shrinks loses its highest ranks."""
    kept: list[tuple[NodeName, int]] = []
    for name, count in nodes:
        staying = min(count, most)
        if staying:
            kept.append((name, staying))
        most -= staying
    return tuple(kept)


def joined_pods(
    *parts: tuple[tuple[tuple[NodeName, int], ...], tuple[int, ...]],
) -> tuple[tuple[tuple[NodeName, int], ...], tuple[int, ...]]:
    """Put pods together that are given as nodes and devices; each node is named once.

    >>> joined_pods(((("a", 1), ("b", 1)), (0, 1)), ((("a", 1),), (3,)))
    ((('a', 2), ('b', 1)), (0, 3, 1))
    """
    totals: dict[NodeName, int] = {}
    devices: dict[NodeName, tuple[int, ...]] = {}
    for nodes, of_pods in parts:
        before = 0
        for name, count in nodes:
            totals[name] = totals.get(name, 0) + count
            devices[name] = devices.get(name, ()) + of_pods[before : before + count]
            before += count
    return tuple(totals.items()), tuple(one for some in devices.values() for one in some)


def first_of(admission: Admission, counts: Mapping[str, int]) -> Admission:
    """Return an admission with only the first pods of the sets named."""
    return msgspec.structs.replace(
        admission,
        pod_sets=tuple(
            msgspec.structs.replace(
                one,
                count=counts[one.name],
                nodes=first_pods(one.nodes, counts[one.name]),
                devices=one.devices[: counts[one.name]],
            )
            if one.name in counts
            else one
            for one in admission.pod_sets
        ),
    )
