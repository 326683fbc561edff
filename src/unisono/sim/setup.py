"""What a simulation decides with: nodes, queues and a policy, as the engine knows them.

Every queue of the trace is a LocalQueue. Policies without teams give all of them one ClusterQueue
that owns the whole cluster; the others give each its own, with its part of the cluster, in one
cohort that lends without limits.

A policy file may bring its own ClusterQueues, LocalQueues, cohorts and flavors, as on a live
cluster. Jobs of a trace go to the LocalQueue with the name of their queue, else to the ClusterQueue
with that name; a file with a single queue takes all jobs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import msgspec
import numpy as np

from unisono.engine.cluster import new_cluster
from unisono.engine.model.multifactor import Association, MultifactorRules, Weights
from unisono.engine.model.names import (
    CPU,
    CohortName,
    FlavorName,
    LocalQueueKey,
    QueueName,
    ResourceName,
)
from unisono.engine.model.node import Node
from unisono.engine.model.policy import Backfill, FairSharing, Policy
from unisono.engine.model.queue import (
    ClusterQueue,
    Cohort,
    Flavor,
    FlavorQuota,
    LocalQueue,
    PreemptionRules,
    ResourceGroup,
    ResourceQuota,
)
from unisono.engine.model.resources import WHOLE_GPU, is_gpu, share_of
from unisono.engine.model.selection import LabelSelector
from unisono.engine.model.snapshot import Namespace, Snapshot
from unisono.engine.state import changes
from unisono.engine.state.cluster import ClusterState
from unisono.sim.clusters import GPU, MIB
from unisono.sim.jobs import NAMESPACE, account_of, local_queue
from unisono.sim.trace import BadTrace, FloatArray, Trace

_FLAVOR = FlavorName("nodes")
_COHORT = CohortName("all")
_MEMORY = ResourceName("memory")
_RECLAIM = PreemptionRules(reclaim="Any")


class Rules(msgspec.Struct, frozen=True):
    """A policy to simulate: what the engine is told, and how queues are laid out."""

    name: str
    about: str
    policy: Policy = Policy()
    strict: bool = False  # StrictFIFO: no job overtakes another
    apart: bool = False  # a ClusterQueue for every queue of the trace
    preemption: PreemptionRules = PreemptionRules()
    layout: Snapshot | None = None  # the queues of a policy file, instead of these


def _policies() -> dict[str, Rules]:
    easy, conservative = Backfill(dates=1), Backfill()
    fair = Policy(fair_sharing=FairSharing())
    # Recent usage of each user counts most; age lets every job start in the end.
    multifactor = MultifactorRules(weights=Weights(fair_share=10_000, age=1_000))
    known = (
        Rules("fifo", "first come, first served; no job overtakes another", strict=True),
        Rules("best-effort", "any job that fits starts; no backfill reservations"),
        Rules(
            "kueue",
            "quota by queue, borrowing in one cohort, lent quota is reclaimed",
            apart=True,
            preemption=_RECLAIM,
        ),
        Rules(
            "kueue-fair",
            "the same, with fair sharing: the smallest share first",
            fair,
            apart=True,
            preemption=_RECLAIM,
        ),
        Rules(
            "easy",
            "a reservation for the first pending job; jobs that do not delay it start before it",
            Policy(backfill=easy),
        ),
        Rules(
            "easy-sjbf",
            "the same, and the shortest of those jobs first",
            Policy(backfill=msgspec.structs.replace(easy, shortest_first=True)),
        ),
        Rules("conservative", "a reservation for every pending job", Policy(backfill=conservative)),
        Rules(
            "multifactor",
            "priority by fair share of users and by age",
            Policy(multifactor=multifactor),
        ),
        Rules(
            "multifactor+easy",
            "the same, with a reservation for the first pending job",
            Policy(multifactor=multifactor, backfill=easy),
        ),
        Rules(
            "multifactor+conservative",
            "the same, with a reservation for every pending job",
            Policy(multifactor=multifactor, backfill=conservative),
        ),
    )
    return {rules.name: rules for rules in known}


POLICIES = _policies()


def entitlements(trace: Trace) -> FloatArray:
    """Return each queue's part of the cluster: by the work it brings."""
    size = trace.job_gpu_milli if trace.gpus.any() else trace.job_cpu
    work = size if trace.is_endless else size * trace.run
    work = np.bincount(trace.queue, work, minlength=len(trace.queues))
    total = float(work.sum())
    return work / total if total else np.full(len(trace.queues), 1 / len(trace.queues))


def make_state(
    nodes: tuple[Node, ...], rules: Rules, trace: Trace, *, buys: bool = False
) -> ClusterState:
    """Return a cluster on which nothing runs; where machines are bought, quota limits no job."""
    policy = policy_for(rules, trace)
    if buys:
        placement = msgspec.structs.replace(policy.placement, needs_nodes=True)
        policy = msgspec.structs.replace(policy, placement=placement)
    state = new_cluster(policy)
    state.apply(changes.NamespaceSet(Namespace(NAMESPACE)))
    for node in nodes:
        state.apply(changes.NodeSet(node))
    if rules.layout is not None:
        _apply_layout(state, rules.layout, rules.name, trace, _local_queues(trace))
    else:
        _lay_out(state, _whole(nodes, trace) if not buys else _wanted(trace), rules, trace)
    state.refresh()
    return state


def policy_for(rules: Rules, trace: Trace) -> Policy:
    """Return the policy for the engine, with accounts for the queues of the trace."""
    policy, replace = rules.policy, msgspec.structs.replace
    if trace.is_endless and policy.backfill is not None:
        policy = replace(policy, backfill=None)  # where no job ends, no reservation can be made
    if policy.multifactor is None:
        return policy
    return replace(
        policy, multifactor=_with_accounts(policy.multifactor, trace, _local_queues(trace))
    )


def _lay_out(
    state: ClusterState, whole: dict[ResourceName, int], rules: Rules, trace: Trace
) -> None:
    """Divide the cluster among the queues of the trace, or give it to all of them together."""
    state.apply(changes.FlavorSet(Flavor(name=_FLAVOR)))
    if rules.apart:
        state.apply(changes.CohortSet(Cohort(name=_COHORT)))
    parts = entitlements(trace) if rules.apart else np.ones(1)
    # The parts add up to all of it: rounding must not keep out a job that needs the whole cluster.
    cuts = [0.0, *np.cumsum(parts)[:-1].tolist(), 1.0]
    for number, (low, high) in enumerate(pairwise(cuts)):
        state.apply(changes.QueueSet(_cluster_queue(number, (low, high), whole, rules)))
    for number in range(len(trace.queues)):
        owner = QueueName(f"q{number if rules.apart else 0}")
        state.apply(changes.LocalQueueSet(LocalQueue(key=local_queue(number), queue=owner)))


def _apply_layout(
    state: ClusterState, given: Snapshot, name: str, trace: Trace, local_queues: list[LocalQueueKey]
) -> None:
    """Apply the given queues to the engine, and make a LocalQueue for each queue of the trace."""
    for flavor in given.flavors:
        state.apply(changes.FlavorSet(flavor))
    for topology in given.topologies:
        state.apply(changes.TopologySet(topology))
    for check in given.checks:
        state.apply(changes.CheckSet(check))
    for cohort in given.cohorts:
        state.apply(changes.CohortSet(cohort))
    for queue in given.queues:
        # Jobs of a trace have no namespaces to be selected by.
        open_to_all = msgspec.structs.replace(queue, namespace_selector=LabelSelector())
        state.apply(changes.QueueSet(open_to_all))
    for key, wanted in zip(local_queues, trace.queues, strict=True):
        state.apply(changes.LocalQueueSet(_local_queue(key, wanted, given, name)))


def _local_queue(key: LocalQueueKey, wanted: str, given: Snapshot, name: str) -> LocalQueue:
    locals_: dict[str, LocalQueue] = {}
    for one in given.local_queues:
        locals_.setdefault(one.key.partition("/")[2], one)
    queues: dict[str, ClusterQueue] = {str(queue.name): queue for queue in given.queues}
    if wanted in locals_:
        return msgspec.structs.replace(locals_[wanted], key=key)
    if wanted in queues:
        return LocalQueue(key=key, queue=QueueName(wanted))
    if len(locals_) == 1:
        return msgspec.structs.replace(next(iter(locals_.values())), key=key)
    if len(queues) == 1:
        return LocalQueue(key=key, queue=next(iter(queues.values())).name)
    there = ", ".join(locals_ or queues)
    raise BadTrace(name, f'has no queue named "{wanted}", as the trace needs; it has {there}')


def _with_accounts(
    rules: MultifactorRules, trace: Trace, local_queues: list[LocalQueueKey]
) -> MultifactorRules:
    """Give every queue of the trace an account with one share, unless accounts were given."""
    if rules.associations or rules.accounts_of or rules.default_account:
        return rules
    return msgspec.structs.replace(
        rules,
        associations=tuple(Association(account=account_of(queue)) for queue in trace.queues),
        accounts_of=tuple(
            (str(key), account_of(queue))
            for key, queue in zip(local_queues, trace.queues, strict=True)
        ),
    )


def _local_queues(trace: Trace) -> list[LocalQueueKey]:
    return [local_queue(number) for number in range(len(trace.queues))]


def _whole(nodes: tuple[Node, ...], trace: Trace) -> dict[ResourceName, int]:
    """Return the capacity of everything that jobs request."""
    asked = {CPU: bool(trace.cpu.any()), _MEMORY: bool(trace.memory.any())}
    total: dict[ResourceName, int] = {}
    for node in nodes:
        for resource, amount in node.allocatable:
            if asked.get(resource) or is_gpu(resource):
                total[resource] = total.get(resource, 0) + amount
    if bool(((trace.gpus == 1) & (trace.gpu_milli < WHOLE_GPU)).any()):
        # Parts have a quota of their own; that much of GPUs, and of parts, can be had at a time.
        gpus = [resource for resource in total if is_gpu(resource)]
        total |= {share_of(resource): total[resource] * WHOLE_GPU for resource in gpus}
    return total or {CPU: 0}


def _wanted(trace: Trace) -> dict[ResourceName, int]:
    """Return as much as all jobs together request: more can never be used at a time."""
    pods = trace.pods.astype(np.int64)
    total = {
        CPU: int((trace.cpu * pods).sum()),
        _MEMORY: int((trace.memory * pods).sum()) * MIB,
        ResourceName(GPU): int((trace.gpus * pods).sum()),
    }
    if bool(((trace.gpus == 1) & (trace.gpu_milli < WHOLE_GPU)).any()):
        total[share_of(ResourceName(GPU))] = total[ResourceName(GPU)] * WHOLE_GPU
    return {name: amount for name, amount in total.items() if amount} or {CPU: 0}


def _cluster_queue(
    number: int, part: tuple[float, float], whole: dict[ResourceName, int], rules: Rules
) -> ClusterQueue:
    low, high = part
    quotas = tuple(
        ResourceQuota(resource=resource, nominal=round(amount * high) - round(amount * low))
        for resource, amount in sorted(whole.items())
    )
    return ClusterQueue(
        name=QueueName(f"q{number}"),
        cohort=_COHORT if rules.apart else None,
        namespace_selector=LabelSelector(),
        strategy="StrictFIFO" if rules.strict else "BestEffortFIFO",
        preemption=rules.preemption,
        groups=(
            ResourceGroup(covered=tuple(sorted(whole)), flavors=(FlavorQuota(_FLAVOR, quotas),)),
        ),
    )


def with_overrun(trace: Trace, overrun: str) -> Trace:
    """Settle what happens to jobs that run longer than they asked for.

    raise: the request becomes the run time; kill: the run time is cut; allow: nothing.
    """
    if overrun == "raise":
        return replace(trace, request=np.maximum(trace.request, trace.run))
    if overrun == "kill":
        return replace(trace, run=np.minimum(trace.run, trace.request))
    return trace


@dataclass(frozen=True, slots=True)
class Restarts:
    """What an evicted job keeps of its work: nothing, its last checkpoint, or all of it."""

    checkpoint_s: float = 0.0  # 0: nothing is kept; else what was done at the last whole multiple
    restore_s: float = 0.0  # time to restore a checkpoint
    suspends: bool = False  # preempted jobs keep all of it; those of failed nodes do not

    def kept(self, done: float, *, is_lost: bool = False) -> float:
        """Return the work that is not lost; `is_lost`: its node failed."""
        if self.suspends and not is_lost:
            return done
        return done // self.checkpoint_s * self.checkpoint_s if self.checkpoint_s else 0.0
