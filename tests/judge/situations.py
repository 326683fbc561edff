"""Random clusters in which workloads wait, for many reasons at once.

Each cluster is small (a few nodes, queues and workloads), so that thousands take minutes and a
failure can be read. It is drawn from what a user configures; then workloads arrive, run, end and
are evicted in a few cycles. What is left pending is diagnosed and judged.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Literal, TypeVar

import msgspec

from unisono.engine.cluster import restore
from unisono.engine.cycle import plan
from unisono.engine.dry_run import dry_run, one_cycle
from unisono.engine.model.multifactor import (
    Association,
    Limits,
    MultifactorRules,
    Partition,
    Qos,
    SubmitOptions,
    Weights,
)
from unisono.engine.model.names import (
    CohortName,
    FlavorName,
    Instant,
    LocalQueueKey,
    NodeName,
    QueueName,
    ResourceName,
    WorkloadKey,
)
from unisono.engine.model.node import HOSTNAME, Node, NodePod, Topology
from unisono.engine.model.policy import (
    AdvanceReservation,
    Backfill,
    FairSharing,
    Placement,
    PodsReady,
    Policy,
)
from unisono.engine.model.provisioning import (
    INSTANCE_TYPE,
    InstanceType,
    Offer,
    Offerings,
    Pool,
    UnavailableOffer,
)
from unisono.engine.model.queue import (
    BorrowWithinCohort,
    CheckRule,
    ClusterQueue,
    Cohort,
    Flavor,
    FlavorFungibility,
    FlavorQuota,
    LocalQueue,
    PreemptionRules,
    ResourceGroup,
    ResourceQuota,
)
from unisono.engine.model.resources import Amounts, amounts
from unisono.engine.model.selection import LabelSelector, Requirement, Taint, Toleration
from unisono.engine.model.snapshot import AdmissionCheck, Namespace, Snapshot
from unisono.engine.model.workload import (
    CheckState,
    Dependency,
    PodSet,
    TopologyRequest,
    Workload,
)
from unisono.engine.state import changes
from unisono.engine.state.apply_plan import apply_plan
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import snapshot

GPU, CPU = ResourceName("nvidia.com/gpu"), ResourceName("cpu")
SHARE = ResourceName("nvidia.com/gpu-milli")
TYPE, RACK, BLOCK = "gpu-type", "rack", "block"
START, SECOND, MINUTE = Instant(1_700_000_000_000), 1000, 60_000
# The types of nodes: GPUs of one node, cores.
TYPES = {"a100": (8, 64), "t4": (4, 32), "l4": (2, 16)}
MOST_WORKLOADS = 9
# What nodes are tainted with: one stays, the others go with their cause.
_NODE_TAINTS = (
    (Taint("maintenance"),),
    (Taint("node.kubernetes.io/disk-pressure"),),
    (Taint("unisono.dev/quarantine", "xid-79"), Taint("node.kubernetes.io/not-ready")),
)

T = TypeVar("T")


class Dice:
    """Random choices from one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def one(self, *options: T) -> T:
        """Choose one of several."""
        return self._random.choice(options)

    def chance(self, percent: float) -> bool:
        """Say yes in so many of a hundred cases."""
        return self._random.random() * 100 < percent

    def number(self, low: int, high: int) -> int:
        """Choose a number, both ends included."""
        return self._random.randint(low, high)

    def some(self, options: Sequence[T], least: int = 1) -> list[T]:
        """Choose some of several, in random order."""
        count = self._random.randint(min(least, len(options)), len(options))
        return self._random.sample(list(options), count)


def situation(seed: int) -> Snapshot:
    """Return a random cluster after some cycles; what is pending in it is to be diagnosed.

    Every third is busy: nothing is misconfigured, everything fits by itself, and what waits does so
    for others.
    """
    dice = Dice(seed)
    if seed % 3 == 2:
        state = restore(busy(dice))
        _play(dice, state, fits=True)
    else:
        state = restore(configured(dice))
        _play(dice, state)
    return snapshot(state)


# --- what is configured ---------------------------------------------------------------------------


def configured(dice: Dice) -> Snapshot:
    """Return a random cluster without workloads."""
    types = dice.some(tuple(TYPES))
    nodes = () if dice.chance(12) else _nodes(dice, types)
    names = [QueueName(name) for name in ("red", "green", "blue")[: dice.one(1, 1, 2, 2, 3)]]
    shares_gpus = bool(nodes) and dice.chance(12)
    cohort = CohortName("all") if len(names) > 1 and dice.chance(75) else None
    pooled = len(types) > 1 and dice.chance(10)
    checked = dice.chance(4)
    queues = tuple(
        _queue(dice, name, cohort, types, nodes, shares_gpus, pooled, checked) for name in names
    )
    topology = dice.chance(20)
    levels = (BLOCK, RACK, HOSTNAME)
    return Snapshot(
        now=START,
        policy=_policy(dice, nodes),
        flavors=tuple(
            Flavor(
                name=FlavorName(name),
                node_labels=((TYPE, name),),
                node_taints=(Taint("dedicated", name),) if dice.chance(7) else (),
                topology="racks" if topology else "",
            )
            for name in types
            if not dice.chance(1.5)
        ),
        topologies=(Topology("racks", levels),) if topology and not dice.chance(4) else (),
        cohorts=(
            (Cohort(name=cohort, groups=_groups(dice, types, nodes, shares_gpus, pooled, 4)),)
            if cohort is not None and dice.chance(30)
            else ()
        ),
        queues=queues,
        local_queues=tuple(
            LocalQueue(
                key=LocalQueueKey(f"ns/{name}"),
                queue=name,
                stop="Hold" if dice.chance(2) else "None",
            )
            for name in names
        ),
        namespaces=(Namespace("ns", (("team", "a"),)),),
        checks=(AdmissionCheck("approved", active=not dice.chance(10)),) if checked else (),
        nodes=nodes,
        pods=_pods(dice, nodes),
        offerings=_offerings(dice) if nodes and dice.chance(15) else None,
    )


def _nodes(dice: Dice, types: Sequence[str]) -> tuple[Node, ...]:
    found = []
    for number in range(dice.number(3, 6)):
        kind = dice.one(*types)
        gpus, cores = TYPES[kind]
        name = f"{kind}-{number}"
        rack = dice.one("r1", "r2", "r3")
        labels = {TYPE: kind, HOSTNAME: name}
        if not dice.chance(5):
            labels |= {RACK: rack, BLOCK: "b1" if rack == "r1" else "b2"}
        found.append(
            Node(
                name=NodeName(name),
                labels=tuple(sorted(labels.items())),
                taints=dice.one(*_NODE_TAINTS) if dice.chance(7) else (),
                allocatable=amounts({GPU: gpus, CPU: cores * 1000, "pods": dice.one(110, 110, 3)}),
                ready=not dice.chance(7),
                unschedulable=dice.chance(6),
            )
        )
    return tuple(found)


def _pods(dice: Dice, nodes: tuple[Node, ...]) -> tuple[NodePod, ...]:
    """Pods of others on the nodes; some are terminating."""
    return tuple(
        NodePod(
            key=f"other/pod-{number}",
            node=dice.one(*nodes).name,
            requests=amounts({GPU: dice.one(1, 1, 2), CPU: 1000}),
            leaves_at=Instant(START + dice.number(1, 30) * MINUTE) if dice.chance(35) else None,
        )
        for number in range(dice.one(0, 0, 0, 1, 2) if nodes else 0)
    )


def _queue(
    dice: Dice,
    name: QueueName,
    cohort: CohortName | None,
    types: Sequence[str],
    nodes: tuple[Node, ...],
    shares_gpus: bool,
    pooled: bool,
    checked: bool,
) -> ClusterQueue:
    reclaim: Literal["Never", "Any", "LowerPriority"] = dice.one("Never", "Any", "LowerPriority")
    return ClusterQueue(
        name=name,
        cohort=None if dice.chance(10) else cohort,
        groups=_groups(dice, types, nodes, shares_gpus, pooled, 16),
        strategy="StrictFIFO" if dice.chance(20) else "BestEffortFIFO",
        namespace_selector=(
            LabelSelector((Requirement("team", "In", ("b",)),))
            if dice.chance(1.5)
            else LabelSelector()
        ),
        fungibility=FlavorFungibility(
            when_can_borrow=dice.one("MayStopSearch", "TryNextFlavor"),
            when_can_preempt=dice.one("MayStopSearch", "TryNextFlavor"),
        ),
        preemption=PreemptionRules(
            within_queue=dice.one("Never", "LowerPriority", "LowerOrNewerEqualPriority"),
            reclaim=reclaim,
            borrow=BorrowWithinCohort(
                policy="LowerPriority" if reclaim != "Never" and dice.chance(30) else "Never"
            ),
            min_runtime_ms=dice.one(0, 0, 0, 10 * MINUTE),
        ),
        checks=(CheckRule("approved"),) if checked else (),
        stop=dice.one("Hold", "HoldAndDrain") if dice.chance(3) else "None",
        terminating=dice.chance(1),
        weight_milli=dice.one(1000, 1000, 2000),
    )


def _groups(
    dice: Dice,
    types: Sequence[str],
    nodes: tuple[Node, ...],
    shares_gpus: bool,
    pooled: bool,
    most: int,
) -> tuple[ResourceGroup, ...]:
    gpu = SHARE if shares_gpus else GPU
    covered = (gpu, CPU) if dice.chance(15) else (gpu,)

    def quota(kind: str, resource: ResourceName) -> ResourceQuota:
        there = sum(dict(node.labels)[TYPE] == kind for node in nodes) if nodes else 2
        whole = TYPES[kind][0] * there if resource != CPU else 1000 * TYPES[kind][1] * there
        each = 1000 if resource == SHARE else 1
        nominal = dice.one(whole, whole, whole, whole // 2, dice.number(0, most), 1000) * each
        return ResourceQuota(
            resource=resource,
            nominal=nominal,
            borrowing_limit=dice.one(None, None, None, 0, 4 * each),
            lending_limit=dice.one(None, None, None, 0, nominal // 2),
        )

    if pooled:
        flavors = tuple(FlavorQuota(FlavorName(kind)) for kind in types)
        pool = tuple(quota(types[0], resource) for resource in covered)
        return (ResourceGroup(covered=covered, flavors=flavors, pool=pool),)
    order = dice.some(types, least=len(types))
    return (
        ResourceGroup(
            covered=covered,
            flavors=tuple(
                FlavorQuota(FlavorName(kind), tuple(quota(kind, one) for one in covered))
                for kind in order
            ),
        ),
    )


def _policy(dice: Dice, nodes: tuple[Node, ...]) -> Policy:
    backfill = None
    if dice.chance(40):
        backfill = Backfill(dates=dice.one(1, None), default_limit_ms=dice.one(60, 6000) * MINUTE)
    reservations: tuple[AdvanceReservation, ...] = ()
    if nodes and dice.chance(10):
        begin = START + dice.one(-10, 5, 60) * MINUTE
        reservations = (
            AdvanceReservation(
                name="service",
                start=Instant(begin),
                end=Instant(begin + dice.one(30, 120) * MINUTE),
                nodes=tuple(node.name for node in dice.some(nodes)) if dice.chance(70) else (),
                repeat="daily" if dice.chance(20) else "",
            ),
        )
    return Policy(
        fair_sharing=FairSharing() if dice.chance(15) else None,
        pods_ready=PodsReady(block_admission=True) if dice.chance(4) else None,
        placement=Placement(wait_for_leaving_ms=dice.one(0, 0, 5 * MINUTE, 60 * MINUTE)),
        multifactor=_turns(dice) if dice.chance(25) else None,
        backfill=backfill,
        reservations=reservations,
        undeclared="Ignore" if dice.chance(10) else "Block",
        strict=dice.chance(8),
    )


def _turns(dice: Dice) -> MultifactorRules:
    limits = Limits(
        group_jobs=dice.one(None, 1, 2),
        tres_per_user=dice.one((), (("gres/gpu", 6_000),)),
        wall_per_job_ms=dice.one(None, None, 30 * MINUTE),
    )
    return MultifactorRules(
        weights=Weights(age=1000, fair_share=1000, qos=100),
        max_age_ms=3600 * SECOND,
        associations=(
            Association(
                account="a", limits=Limits(group_tres=dice.one((), (("gres/gpu", 8_000),)))
            ),
            Association(account="b", shares=3, limits=Limits(group_jobs=dice.one(None, 1, 3))),
        ),
        qos=(Qos(name="plain"), Qos(name="tight", priority=10, limits=limits)),
        partitions=(
            Partition(name="main", is_default=True, state="DOWN" if dice.chance(3) else "UP"),
            Partition(name="small", max_nodes=1),
        ),
        default_account="b",
    )


def _offerings(dice: Dice) -> Offerings:
    kinds = dice.some(tuple(TYPES))
    zones = ("z1", "z2")
    machines = tuple(
        InstanceType(
            name=f"m-{kind}",
            labels=((TYPE, kind), (INSTANCE_TYPE, f"m-{kind}")),
            allocatable=amounts({GPU: TYPES[kind][0], CPU: TYPES[kind][1] * 1000, "pods": 110}),
            capacity=amounts({GPU: TYPES[kind][0], CPU: TYPES[kind][1] * 1000}),
            model=kind.upper(),
        )
        for kind in kinds
    )
    until = Instant(START + dice.number(1, 90) * MINUTE)
    return Offerings(
        machines=machines,
        offers=tuple(
            Offer(
                machine=machine.name,
                zone=zone,
                price_micro=dice.number(1, 30) * 1_000_000,
                stock=dice.one(None, 0, 1, 2),
            )
            for machine in machines
            for zone in zones
        ),
        pools=(
            Pool(
                name="bought",
                limits=dice.one((), ((GPU, 8),)),
                refused="the node class does not exist" if dice.chance(10) else "",
            ),
        ),
        outages=tuple(
            UnavailableOffer(
                machine=machine.name,
                zone=zone,
                capacity_type="on-demand",
                count=1,
                until=until,
                fewer_from=until,
            )
            for machine in machines
            for zone in zones
            if dice.chance(30)
        ),
    )


def busy(dice: Dice) -> Snapshot:
    """Return a random cluster in which everything works: flavors, cohorts, preemption, backfill."""
    types = dice.some(tuple(TYPES), least=2)
    nodes = tuple(
        msgspec.structs.replace(one, taints=(), ready=True, unschedulable=False)
        for one in _nodes(dice, types)
    )
    names = [QueueName(name) for name in ("red", "green", "blue")[: dice.one(1, 2, 2, 3)]]
    shares_gpus = dice.chance(15)
    cohort = CohortName("all") if len(names) > 1 else None
    gpu = SHARE if shares_gpus else GPU
    each = 1000 if shares_gpus else 1

    def quota(kind: str) -> ResourceQuota:
        there = sum(dict(node.labels)[TYPE] == kind for node in nodes) * TYPES[kind][0]
        share = there if cohort is None or dice.chance(30) else -(-there // len(names))
        return ResourceQuota(resource=gpu, nominal=max(1, share) * each)

    topology = dice.chance(35)
    return Snapshot(
        now=START,
        policy=msgspec.structs.replace(_policy(dice, nodes), undeclared="Ignore", reservations=()),
        flavors=tuple(
            Flavor(
                name=FlavorName(name),
                node_labels=((TYPE, name),),
                topology="racks" if topology else "",
            )
            for name in types
        ),
        topologies=(Topology("racks", (BLOCK, RACK, HOSTNAME)),) if topology else (),
        queues=tuple(
            ClusterQueue(
                name=name,
                cohort=cohort,
                groups=(
                    ResourceGroup(
                        covered=(gpu,),
                        flavors=tuple(
                            FlavorQuota(FlavorName(kind), (quota(kind),)) for kind in types
                        ),
                    ),
                ),
                strategy="StrictFIFO" if dice.chance(20) else "BestEffortFIFO",
                namespace_selector=LabelSelector(),
                fungibility=FlavorFungibility(
                    when_can_borrow=dice.one("MayStopSearch", "TryNextFlavor"),
                    when_can_preempt=dice.one("MayStopSearch", "TryNextFlavor"),
                ),
                preemption=PreemptionRules(
                    within_queue=dice.one("Never", "LowerPriority", "LowerOrNewerEqualPriority"),
                    reclaim=dice.one("Never", "Any", "LowerPriority"),
                    min_runtime_ms=dice.one(0, 0, 10 * MINUTE),
                ),
                weight_milli=dice.one(1000, 1000, 2000),
            )
            for name in names
        ),
        local_queues=tuple(
            LocalQueue(key=LocalQueueKey(f"ns/{name}"), queue=name) for name in names
        ),
        namespaces=(Namespace("ns", (("team", "a"),)),),
        nodes=nodes,
        pods=_pods(dice, nodes),
        offerings=_offerings(dice) if dice.chance(25) else None,
    )


# --- workloads ------------------------------------------------------------------------------------


def workload(dice: Dice, number: int, world: Snapshot, now: Instant) -> Workload:
    """Return a random workload for a cluster."""
    queues = [one.key for one in world.local_queues]
    queue = LocalQueueKey("ns/nowhere") if dice.chance(1) else dice.one(*queues)
    shared = any(SHARE in group.covered for one in world.queues for group in one.groups)
    sets = [_pod_set(dice, "main", world, shared)]
    if dice.chance(10):
        sets.append(_pod_set(dice, "more", world, shared))
    limit = dice.one(None, 10, 30, 120)
    return Workload(
        key=WorkloadKey(f"ns/job-{number}"),
        uid=f"uid-{number}",
        queue=queue,
        pod_sets=tuple(sets),
        priority=dice.one(0, 0, 0, 5, 10),
        created_at=now,
        active=not dice.chance(1),
        gated_by="example.com/gate" if dice.chance(1) else "",
        misconfigured="a request above its limit" if dice.chance(0.5) else "",
        time_limit_ms=None if limit is None else limit * MINUTE,
        least_limit_ms=5 * MINUTE if limit and dice.chance(6) else None,
        begin_at=Instant(now + dice.number(1, 60) * MINUTE) if dice.chance(2) else None,
        deadline=Instant(now + dice.number(1, 200) * MINUTE) if dice.chance(2) else None,
        can_shrink=dice.chance(5),
        array=(array := "ns/array" if dice.chance(4) else ""),
        array_limit=1 if array else 0,
        depends=(
            (
                Dependency(
                    kind=dice.one("afterok", "afterany", "after"),
                    on=f"ns/job-{dice.number(0, number)}",
                    delay_ms=dice.one(0, 5 * MINUTE),
                ),
            )
            if number and dice.chance(4)
            else ()
        ),
        submit_options=SubmitOptions(
            account=dice.one("", "a", "b", "b") if not dice.chance(2) else "nope",
            user=dice.one("ann", "ben"),
            qos=dice.one("", "plain", "tight"),
            partition=dice.one("", "", "", "small"),
            hold="user" if dice.chance(1.5) else "",
        ),
    )


def _pod_set(dice: Dice, name: str, world: Snapshot, shared: bool) -> PodSet:
    count = dice.one(1, 1, 1, 1, 2, 2, 3)
    if shared:
        wanted: dict[str, int] = {SHARE: dice.one(250, 500, 500, 750, 1000)}
    else:
        wanted = {GPU: dice.one(1, 1, 2, 2, 2, 4, 4, 8, 16 if dice.chance(20) else 2)}
    covers_cores = any(CPU in group.covered for one in world.queues for group in one.groups)
    if dice.chance(30 if covers_cores else 1):
        wanted[CPU] = dice.one(1000, 4000, 16_000)
    if dice.chance(1):
        wanted["example.com/fpga"] = 1
    selector: Amounts | tuple[tuple[str, str], ...] = ()
    if dice.chance(12):
        selector = ((TYPE, dice.one(*TYPES)),)
    topology = None
    if dice.chance(18):
        topology = TopologyRequest(
            dice.one("required", "required", "preferred", "unconstrained"),
            level=dice.one(RACK, RACK, BLOCK, HOSTNAME),
        )
        if topology.mode == "unconstrained":
            topology = TopologyRequest("unconstrained")
    tolerations = (Toleration(operator="Exists"),) if dice.chance(15) else ()
    return PodSet(
        name=name,
        count=count,
        min_count=dice.number(1, count) if dice.chance(8) else None,
        requests=amounts(wanted),
        node_selector=tuple(selector),  # type: ignore[arg-type]
        tolerations=tolerations,
        topology=topology,
        group="",
    )


def _play(dice: Dice, state: ClusterState, *, fits: bool = False) -> None:
    """Let workloads arrive, run and end."""
    world = snapshot(state)
    for number in range(dice.number(4, MOST_WORKLOADS)):
        now = Instant(state.now + dice.one(0, 1, 60) * SECOND)
        state.apply(changes.TimePassed(now))
        arrives = workload(dice, number, world, now)
        state.apply(changes.WorkloadWaits(_plain(arrives) if fits else arrives))
        if dice.chance(70):
            dry_run(state, state.now, checked=False, most_cycles=200)
        if dice.chance(15) and state.running:
            state.apply(changes.WorkloadGone(dice.one(*sorted(state.running))))
    if dice.chance(85):
        dry_run(state, state.now, checked=False, most_cycles=200)
    if dice.chance(12):
        _hold_back(dice, state)
    if dice.chance(15):
        _disturb(dice, state)
        one_cycle(state, state.now, checked=False)
    if dice.chance(20):  # what is evicted has not left yet
        apply_plan(state, plan(state, state.now))
    if dice.chance(15):
        state.apply(changes.TimePassed(Instant(state.now + dice.number(1, 20) * MINUTE)))
        one_cycle(state, state.now, checked=False)


def _plain(one: Workload) -> Workload:
    """Return a workload with nothing of its own in its way, and a few GPUs for each pod."""
    pod_sets = tuple(
        msgspec.structs.replace(
            pod_set,
            requests=tuple(
                (name, amount if name == SHARE else min(amount, 4))
                for name, amount in pod_set.requests
                if name in (GPU, SHARE)
            ),
            node_selector=(),
        )
        for pod_set in one.pod_sets
    )
    return msgspec.structs.replace(
        one,
        queue=one.queue if one.queue != "ns/nowhere" else LocalQueueKey("ns/red"),
        pod_sets=pod_sets,
        active=True,
        gated_by="",
        misconfigured="",
        depends=(),
        deadline=None,
        submit_options=msgspec.structs.replace(
            one.submit_options, hold="", account="b", partition="", qos=""
        ),
    )


def _hold_back(dice: Dice, state: ClusterState) -> None:
    """Let a pending workload be requeued later, be not allowed to preempt, or fail a check."""
    if not state.waiting:
        return
    one = state.waiting[dice.one(*sorted(state.waiting))].workload
    later = Instant(state.now + dice.number(1, 30) * MINUTE)
    edited = dice.one(
        msgspec.structs.replace(one, requeue_at=later, on_hold=True),
        msgspec.structs.replace(one, may_preempt_at=later, preemptions=1),
        msgspec.structs.replace(
            one, checks=(CheckState("approved", dice.one("Rejected", "Retry", "Pending")),)
        ),
    )
    state.apply(changes.WorkloadWaits(edited))
    one_cycle(state, state.now, checked=False)


def _disturb(dice: Dice, state: ClusterState) -> None:
    """Let something of the cluster change while workloads run."""
    nodes = [node for node in state.nodes.table.nodes if node is not None]
    if nodes and dice.chance(60):
        node = dice.one(*nodes)
        state.apply(changes.NodeSet(msgspec.structs.replace(node, unschedulable=True)))
    elif state.running:
        running = state.running[dice.one(*sorted(state.running))]
        evicting = msgspec.structs.replace(running.admitted, evicting=True)
        state.apply(changes.WorkloadHolds(evicting))
