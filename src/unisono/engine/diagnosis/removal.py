"""What it means that a cause is gone: each kind as changes of the state.

A holder, a workload ahead and a pod of others leave without a trace; a node is repaired; the clock
says the instant; quota and nodes are there. A condition is gone when what it complains about is
put right in the most modest way: the queue that is missing exists (without limits), the stopped one
runs, the held workload is released. The judge of explanations (`tests/judge`) does the same by its
own code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from unisono.engine.model import explanation as facts
from unisono.engine.model.diagnosis import (
    Ahead,
    Cause,
    Condition,
    Holder,
    MissingNodes,
    MissingQuota,
    MissingToleration,
    NodeOut,
    OtherPod,
    Until,
)
from unisono.engine.model.explanation import Blocker
from unisono.engine.model.multifactor import Limits, MultifactorRules
from unisono.engine.model.names import FlavorName, LocalQueueKey, NodeName, QueueName, WorkloadKey
from unisono.engine.model.node import HOSTNAME, Node, Topology, repaired
from unisono.engine.model.queue import (
    ClusterQueue,
    Flavor,
    FlavorQuota,
    LocalQueue,
    ResourceGroup,
    ResourceQuota,
)
from unisono.engine.model.resources import pool_name
from unisono.engine.model.selection import LabelSelector, Toleration
from unisono.engine.model.snapshot import AdmissionCheck
from unisono.engine.model.workload import (
    AdmittedWorkload,
    CheckState,
    PodSet,
    Result,
    TopologyRequest,
    Workload,
)
from unisono.engine.state import changes
from unisono.engine.state.cluster import ClusterState

replace = msgspec.structs.replace

# A queue for workloads whose LocalQueue does not exist.
OPEN_QUEUE = QueueName("unisono-diagnosis-open")

# Why a partition takes no workloads: it comes up again.
CLOSED = ("PartitionDown", "PartitionInactive")


def remove(state: ClusterState, key: WorkloadKey, causes: Iterable[Cause]) -> None:
    """Let causes be gone for one pending workload."""
    now = state.now
    added = 0
    for cause in causes:
        match cause:
            case Holder(workload=other) | Ahead(workload=other):
                waiting, running = state.waiting.get(key), state.running.get(other)
                if waiting is not None and running is not None:
                    for started in starts_awaited(waiting.workload, [running.admitted]):
                        state.apply(changes.ResultSet(started))
                state.apply(changes.WorkloadGone(other))
            case OtherPod(pod=pod):
                state.apply(changes.PodGone(pod))
            case NodeOut(node=name):
                _repair(state, name)
            case Until(instant=instant):
                now = max(now, instant)
            case MissingQuota():
                _add_quota(state, cause)
            case MissingNodes():
                for node in new_nodes(cause, added):
                    state.apply(changes.NodeSet(node))
                added += cause.count
            case MissingToleration(tolerations=tolerations):
                _edit_pods(
                    state,
                    key,
                    lambda one: replace(one, tolerations=(*one.tolerations, *tolerations)),
                )
            case Condition(blocker=blocker):
                lift(state, key, blocker)
    if now > state.now:
        state.apply(changes.TimePassed(now))


def starts_awaited(workload: Workload, running: Iterable[AdmittedWorkload]) -> Iterator[Result]:
    """Yield results of jobs whose start a workload depends on: they did start, and have ended."""
    awaited = {one.on for one in workload.depends if one.kind == "after"}
    for one in running if awaited else ():
        job, since = one.workload.job_name, one.running_since
        if job in awaited:
            yield Result(job=job, succeeded=True, ended_at=since, started_at=since)


def _repair(state: ClusterState, name: NodeName) -> None:
    row = state.nodes.table.row_of.get(name)
    node = state.nodes.table.nodes[row] if row is not None else None
    if node is not None:
        state.apply(changes.NodeSet(repaired(node)))


# --- what is missing ------------------------------------------------------------------------------


def _add_quota(state: ClusterState, missing: MissingQuota) -> None:
    """Raise the nominal quota of a queue."""
    queue = state.config.queues.get(missing.queue)
    if queue is not None:
        groups = tuple(_raised(group, missing) for group in queue.groups)
        state.apply(changes.QueueSet(replace(queue, groups=groups)))


def _raised(group: ResourceGroup, missing: MissingQuota) -> ResourceGroup:
    def more(quotas: tuple[ResourceQuota, ...]) -> tuple[ResourceQuota, ...]:
        return tuple(
            replace(quota, nominal=quota.nominal + missing.amount)
            if quota.resource == missing.resource
            else quota
            for quota in quotas
        )

    if group.pool is not None:
        if missing.flavor != pool_name(quota.flavor for quota in group.flavors):
            return group
        return replace(group, pool=more(group.pool))
    flavors = tuple(
        replace(one, resources=more(one.resources)) if one.flavor == missing.flavor else one
        for one in group.flavors
    )
    return replace(group, flavors=flavors)


def new_nodes(missing: MissingNodes, first: int = 0) -> list[Node]:
    """Return the nodes that are missing; `first` keeps the names of several kinds apart."""
    return [
        Node(
            name=NodeName(f"unisono-diagnosis-{number}"),
            labels=tuple(
                sorted({**dict(missing.labels), HOSTNAME: f"unisono-diagnosis-{number}"}.items())
            ),
            taints=missing.taints,
            allocatable=missing.requests,
        )
        for number in range(first, first + missing.count)
    ]


# --- conditions -----------------------------------------------------------------------------------


_OfQueue = (
    facts.QueueMissing
    | facts.QueueInactive
    | facts.QueueStopped
    | facts.NamespaceNotSelected
    | facts.ResourceNotCovered
)


def lift(state: ClusterState, key: WorkloadKey, blocker: Blocker) -> None:
    """Put right what a fact complains about, for one pending workload."""
    waiting = state.waiting.get(key)
    if waiting is None:
        return
    if isinstance(blocker, _OfQueue):
        _mend_queue(state, blocker)
        return
    if isinstance(blocker, facts.LimitReached | facts.NotEntitled | facts.Reserved):
        _relax_policy(state, blocker)
    if isinstance(blocker, facts.FlavorMismatch | facts.GangDoesNotFit):
        _relax_pods(state, key, blocker)
        return
    edited = _released(waiting.workload, blocker)
    if edited != waiting.workload:
        state.apply(changes.WorkloadWaits(edited))


def _released(workload: Workload, blocker: Blocker) -> Workload:
    """Return the workload as it is once a fact about itself is put right."""
    match blocker:
        case facts.Deactivated():
            return replace(workload, active=True)
        case facts.Misconfigured():
            return replace(workload, misconfigured="")
        case facts.Gated():
            return replace(workload, gated_by="")
        case facts.Held():
            options = workload.submit_options
            priority = options.priority or None  # a priority of 0 holds as well
            return replace(workload, submit_options=replace(options, hold="", priority=priority))
        case facts.OnHold():
            return replace(workload, on_hold=False, requeue_at=None)
        case facts.NotBefore():
            return replace(workload, begin_at=None)
        case facts.DeadlineMissed():
            return replace(workload, deadline=None)
        case facts.CheckFailed(check=name):
            checks = tuple(
                CheckState(one.name, "Ready") if one.name == name else one
                for one in workload.checks
            )
            return replace(workload, checks=checks)
        case (
            facts.DependencyPending(kind=kind, on=on)
            | facts.DependencyNeverSatisfied(kind=kind, on=on)
        ):
            if workload.depends_on_any:
                return replace(workload, depends=())
            left = tuple(
                one
                for one in workload.depends
                if one.kind != kind or (one.on != on and one.kind != "singleton")
            )
            return replace(workload, depends=left)
        case facts.NotEntitled(code=code) if code not in CLOSED:
            options = workload.submit_options
            plain = replace(
                options, account="", qos="", partition="", priority=None, nice=max(0, options.nice)
            )
            return replace(workload, submit_options=plain)
        case _:
            return workload


def _mend_queue(state: ClusterState, blocker: _OfQueue) -> None:
    """Put right what is wrong with a LocalQueue or a ClusterQueue."""
    config = state.config
    match blocker:
        case facts.QueueMissing(local_queue=local, queue=None):
            state.apply(changes.QueueSet(_open_queue(OPEN_QUEUE)))
            state.apply(changes.LocalQueueSet(LocalQueue(key=local, queue=OPEN_QUEUE)))
        case facts.QueueMissing(queue=name):
            assert name is not None, "the case above took None"
            state.apply(changes.QueueSet(_open_queue(QueueName(name))))
        case facts.QueueStopped(queue=name, local=True):
            local_queue = config.local_queues.get(LocalQueueKey(name))
            if local_queue is not None:
                state.apply(changes.LocalQueueSet(replace(local_queue, stop="None")))
        case facts.QueueStopped(queue=name):
            _edit_queue(state, QueueName(name), stop="None")
        case facts.NamespaceNotSelected(queue=name):
            _edit_queue(state, name, namespace_selector=LabelSelector())
        case facts.ResourceNotCovered(queue=name, resource=resource):
            groups = config.queues[name].groups if name in config.queues else ()
            if groups:
                first = replace(groups[0], covered=(*groups[0].covered, resource))
                _edit_queue(state, name, groups=(first, *groups[1:]))
            else:
                flavor = Flavor(name=FlavorName(OPEN_QUEUE))
                state.apply(changes.FlavorSet(flavor))
                group = ResourceGroup(covered=(resource,), flavors=(FlavorQuota(flavor.name),))
                _edit_queue(state, name, groups=(group,))
        case facts.QueueInactive():
            _activate(state, blocker)


def _activate(state: ClusterState, blocker: facts.QueueInactive) -> None:
    """Let there be what makes a ClusterQueue inactive by being absent."""
    match blocker.why:
        case "Terminating":
            _edit_queue(state, blocker.queue, terminating=False)
        case "FlavorNotFound":
            state.apply(changes.FlavorSet(Flavor(name=FlavorName(blocker.detail))))
        case "AdmissionCheckNotFound" | "AdmissionCheckInactive":
            known = state.config.checks.get(blocker.detail) or AdmissionCheck(blocker.detail)
            state.apply(changes.CheckSet(replace(known, active=True)))
        case "TopologyNotFound":
            state.apply(changes.TopologySet(Topology(blocker.detail)))
        case "CohortCycle":
            _edit_queue(state, blocker.queue, cohort=None)


def _open_queue(name: QueueName) -> ClusterQueue:
    return ClusterQueue(name=name, unlimited=True, namespace_selector=LabelSelector())


def _edit_queue(state: ClusterState, name: QueueName, **fields: object) -> None:
    queue = state.config.queues.get(name)
    if queue is not None:
        state.apply(changes.QueueSet(replace(queue, **fields)))


def _edit_pods(state: ClusterState, key: WorkloadKey, edited: Callable[[PodSet], PodSet]) -> None:
    """Edit every pod set of the workload."""
    waiting = state.waiting.get(key)
    if waiting is not None:
        pod_sets = tuple(map(edited, waiting.workload.pod_sets))
        state.apply(changes.WorkloadWaits(replace(waiting.workload, pod_sets=pod_sets)))


def _relax_pods(
    state: ClusterState, key: WorkloadKey, blocker: facts.FlavorMismatch | facts.GangDoesNotFit
) -> None:
    """Let pods ask for less of nodes: what a flavor refuses, or every rule between pods."""
    if isinstance(blocker, facts.FlavorMismatch) and blocker.why == "not-allowed":
        waiting = state.waiting[key]
        state.apply(changes.WorkloadWaits(replace(waiting.workload, replaces=None)))
        return
    if isinstance(blocker, facts.FlavorMismatch) and blocker.why == "missing":
        state.apply(changes.FlavorSet(Flavor(name=blocker.flavor)))
        return

    def relaxed(pod_set: PodSet) -> PodSet:
        if isinstance(blocker, facts.GangDoesNotFit):
            return replace(
                pod_set, topology=None, affinity_to=(), anti_affinity=(), spread=(), host_ports=()
            )
        if pod_set.name != blocker.pod_set:
            return pod_set
        match blocker.why:
            case "taint":
                taint_key = blocker.detail.partition("=")[0]
                more = Toleration(key=taint_key, operator="Exists")
                return replace(pod_set, tolerations=(*pod_set.tolerations, more))
            case "labels":
                unasked = dict(pod_set.node_selector)
                label = blocker.detail.partition("=")[0]
                if label not in unasked:
                    return replace(pod_set, affinity=())
                del unasked[label]
                return replace(pod_set, node_selector=tuple(sorted(unasked.items())))
            case _:
                return replace(pod_set, topology=TopologyRequest("unconstrained"))

    _edit_pods(state, key, relaxed)


def _relax_policy(
    state: ClusterState, blocker: facts.LimitReached | facts.NotEntitled | facts.Reserved
) -> None:
    """Take a limit's owner, an entitlement or an advance reservation out of the way."""
    policy = state.policy
    if isinstance(blocker, facts.Reserved):
        left = tuple(one for one in policy.reservations if one.name != blocker.name)
        state.apply(changes.PolicySet(replace(policy, reservations=left)))
        return
    rules = policy.multifactor
    if rules is None:
        return
    if isinstance(blocker, facts.LimitReached):
        relaxed = _without_limits(rules, blocker.owner)
    elif blocker.code in CLOSED:
        relaxed = replace(
            rules, partitions=tuple(replace(one, state="UP") for one in rules.partitions)
        )
    else:
        relaxed = replace(
            rules,
            known_users_only=False,
            associations=tuple(replace(one, qos=()) for one in rules.associations),
            partitions=tuple(
                replace(
                    one,
                    state="UP",
                    allow_accounts=(),
                    deny_accounts=(),
                    allow_qos=(),
                    deny_qos=(),
                )
                for one in rules.partitions
            ),
        )
    state.apply(changes.PolicySet(replace(policy, multifactor=relaxed)))


def _without_limits(rules: MultifactorRules, owner: str) -> MultifactorRules:
    """Return the rules without any limit of one owner."""
    kind, _, name = owner.partition("/")
    none = Limits()
    match kind:
        case "qos":
            return replace(
                rules,
                qos=tuple(replace(q, limits=none) if q.name == name else q for q in rules.qos),
            )
        case "partition":
            return replace(
                rules,
                partitions=tuple(
                    replace(one, limits=none, max_time_ms=None, min_nodes=0, max_nodes=None)
                    if one.name == name
                    else one
                    for one in rules.partitions
                ),
            )
        case _:
            account, _, user = name.partition("/")
            of_user = user if kind == "user" else None
            return replace(
                rules,
                associations=tuple(
                    replace(one, limits=none)
                    if (one.account, one.user) == (account, of_user)
                    else one
                    for one in rules.associations
                ),
            )
