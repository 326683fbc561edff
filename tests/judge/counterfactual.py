"""What would be if causes were gone: a cluster written down anew, and its next cycles.

The judge trusts nothing of `unisono.engine.diagnosis`. A counterfactual is a `Snapshot` edited as
a value (the diagnosis edits a living state); the engine hears of the differences as of any event.
A cause that names what is not there is an error. Only the engine's public functions run it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from unisono.engine.cluster import restore
from unisono.engine.dry_run import dry_run
from unisono.engine.model import diagnosis as causes
from unisono.engine.model import explanation as facts
from unisono.engine.model.multifactor import Limits, MultifactorRules
from unisono.engine.model.names import FlavorName, Instant, NodeName, QueueName, WorkloadKey
from unisono.engine.model.node import Node, Topology
from unisono.engine.model.queue import (
    ClusterQueue,
    Flavor,
    FlavorQuota,
    LocalQueue,
    ResourceGroup,
)
from unisono.engine.model.selection import LabelSelector, Toleration
from unisono.engine.model.snapshot import AdmissionCheck, Snapshot
from unisono.engine.model.workload import CheckState, PodSet, Result, TopologyRequest, Workload
from unisono.engine.state import changes
from unisono.engine.state.cluster import ClusterState

edit = msgspec.structs.replace

# More cycles than this without a start: the engine would go on for ever.
_MOST_CYCLES = 80


class UntrueCause(Exception):
    """A cause names something that is not there, or is not as it says."""


def starts(world: Snapshot, key: WorkloadKey, at: Instant | None = None) -> bool:
    """Say whether the next cycles start a workload; `at` an instant, time passes until then."""
    state = restore(world)
    if at is not None:
        state.apply(changes.TimePassed(at))
    return _starts(state, key)


def _starts(state: ClusterState, key: WorkloadKey) -> bool:
    for _ in range(_MOST_CYCLES):
        plans = dry_run(state, state.now, checked=False, most_cycles=1)
        if any(admit.workload == key for made in plans for admit in made.admissions):
            return True
        if not plans:
            return False
    return False


def plain(world: Snapshot) -> Snapshot:
    """Return only the facts of a cluster: nothing that a cycle found out before."""
    return edit(world, verdicts=(), shared_verdicts=(), asleep=(), reminders=())


def starts_without(world: Snapshot, key: WorkloadKey, gone: Sequence[causes.Cause]) -> bool:
    """Say whether a workload starts once some causes are gone; dates pass last.

    The engine hears of what is gone as of any event, so that it evaluates again what it would.
    """
    state = restore(world)
    for number, cause in enumerate(gone):
        edited = _without(world, key, cause, number)
        for change in _differences(world, edited):
            state.apply(change)
        world = edited
    dates = [cause.instant for cause in gone if isinstance(cause, causes.Until)]
    state.apply(changes.TimePassed(max([state.now, *dates])))
    return _starts(state, key)


def _differences(old: Snapshot, new: Snapshot) -> Iterator[changes.Change]:
    """Yield the events that make one cluster the other."""
    for kind, before, after in (
        (changes.FlavorSet, old.flavors, new.flavors),
        (changes.TopologySet, old.topologies, new.topologies),
        (changes.CheckSet, old.checks, new.checks),
        (changes.QueueSet, old.queues, new.queues),
        (changes.LocalQueueSet, old.local_queues, new.local_queues),
        (changes.NodeSet, old.nodes, new.nodes),
        (changes.ResultSet, old.results, new.results),
    ):
        for one in after:
            if one not in before:
                yield kind(one)  # type: ignore[arg-type]
    if new.policy != old.policy:
        yield changes.PolicySet(new.policy)
    left = {one.workload.key for one in new.admitted_workloads}
    for admitted in old.admitted_workloads:
        if admitted.workload.key not in left:
            yield changes.WorkloadGone(admitted.workload.key)
    pods = {one.key for one in new.pods}
    for pod in old.pods:
        if pod.key not in pods:
            yield changes.PodGone(pod.key)
    waiting = {one.key: one for one in new.waiting}
    for workload in old.waiting:
        if workload.key not in waiting:
            yield changes.WorkloadGone(workload.key)
        elif waiting[workload.key] != workload:
            yield changes.WorkloadWaits(waiting[workload.key])


def alone(world: Snapshot, key: WorkloadKey) -> Snapshot:
    """Return the empty cluster: healthy nodes, no other workload, no hold, no stopped queue."""
    (own,) = (one for one in world.waiting if one.key == key)
    released = edit(
        own,
        active=True,
        gated_by="",
        on_hold=False,
        requeue_at=None,
        begin_at=None,
        may_preempt_at=None,
        submit_options=edit(
            own.submit_options, hold="", priority=own.submit_options.priority or None
        ),
        checks=tuple(CheckState(one.name, "Ready") for one in own.checks),
        # A dependency that can never be met stays.
        depends=tuple(one for one in own.depends if _is_impossible(one, world)),
    )
    policy = world.policy
    if policy.multifactor is not None:
        policy = edit(policy, multifactor=_all_up(policy.multifactor))
    return edit(
        plain(world),
        now=max(world.now, own.begin_at or world.now),
        policy=policy,
        waiting=(released,),
        admitted_workloads=(),
        preemptors=(),
        pods=(),
        nodes=tuple(map(_well, world.nodes)),
        queues=tuple(edit(one, stop="None") for one in world.queues),
        local_queues=tuple(edit(one, stop="None") for one in world.local_queues),
    )


def with_flavors(world: Snapshot, key: WorkloadKey, names: set[FlavorName]) -> Snapshot | None:
    """Return a cluster whose queue for a workload has no quota of other flavors.

    None if flavors share a pool: their quota cannot be taken from one of them.
    """
    (own,) = (one for one in world.waiting if one.key == key)
    local = next((one for one in world.local_queues if one.key == own.queue), None)
    if any(group.pool is not None for one in world.queues for group in one.groups):
        return None

    def group(one: ResourceGroup) -> ResourceGroup:
        return edit(
            one,
            flavors=tuple(
                each
                if each.flavor in names
                else edit(
                    each,
                    resources=tuple(
                        edit(quota, nominal=0, borrowing_limit=0) for quota in each.resources
                    ),
                )
                for each in one.flavors
            ),
        )

    queues = tuple(
        edit(one, groups=tuple(map(group, one.groups)))
        if local is not None and one.name == local.queue
        else one
        for one in world.queues
    )
    return edit(world, queues=queues)


def _well(node: Node) -> Node:
    """Return a node that is ready, uncordoned, and without the taints of its troubles."""
    troubles = ("node.kubernetes.io/", "unisono.dev/quarantine")
    taints = tuple(one for one in node.taints if not one.key.startswith(troubles))
    return edit(node, ready=True, unschedulable=False, taints=taints)


def _is_impossible(dependency: Any, world: Snapshot) -> bool:
    """Say whether a job ended differently than a dependency on it requires."""
    ended = {one.job: one.succeeded for one in world.results}
    if dependency.on not in ended:
        return False
    wants = {"afterok": True, "afternotok": False}.get(dependency.kind)
    return wants is not None and ended[dependency.on] != wants


# --- causes ---------------------------------------------------------------------------------------


def _without(world: Snapshot, key: WorkloadKey, cause: causes.Cause, number: int) -> Snapshot:
    match cause:
        case causes.Holder(workload=name):
            left = [one for one in world.admitted_workloads if one.workload.key != name]
            _there(len(left) < len(world.admitted_workloads), cause)
            world = edit(world, results=(*world.results, *_starts_known(world, key, name)))
            return edit(world, admitted_workloads=tuple(left))
        case causes.Ahead(workload=name):
            others = [one for one in world.waiting if one.key != name]
            _there(len(others) < len(world.waiting) and name != key, cause)
            preemptors = tuple(one for one in world.preemptors if one != name)
            return edit(world, waiting=tuple(others), preemptors=preemptors)
        case causes.OtherPod(pod=name):
            pods = [one for one in world.pods if one.key != name]
            _there(len(pods) < len(world.pods), cause)
            return edit(world, pods=tuple(pods))
        case causes.NodeOut(node=name):
            out = [one for one in world.nodes if one.name == name]
            _there(any(_well(one) != one for one in out), cause)
            nodes = tuple(_well(one) if one.name == name else one for one in world.nodes)
            return edit(world, nodes=nodes)
        case causes.Until(instant=instant):
            _there(instant > world.now, cause)
            return world
        case causes.MissingQuota():
            return _with_quota(world, cause)
        case causes.MissingNodes():
            _there(cause.count > 0, cause)
            return edit(world, nodes=(*world.nodes, *_nodes(cause, number)))
        case causes.MissingToleration(tolerations=more):
            return _with_pods(
                world, key, lambda one: edit(one, tolerations=(*one.tolerations, *more))
            )
        case causes.Condition(blocker=fact):
            return _mended(world, key, fact)
    raise UntrueCause(f"an unknown kind of cause: {cause}")


def _starts_known(world: Snapshot, key: WorkloadKey, ended: WorkloadKey) -> list[Result]:
    """Keep the start of a job that ends, where the workload only waits for that start."""
    (own,) = (one for one in world.waiting if one.key == key)
    waits_for = [one.on for one in own.depends if one.kind == "after"]
    return [
        Result(
            job=one.workload.job_name,
            succeeded=True,
            ended_at=one.running_since,
            started_at=one.running_since,
        )
        for one in world.admitted_workloads
        if one.workload.key == ended and one.workload.job_name in waits_for
    ]


def _there(holds: bool, cause: object) -> None:
    if not holds:
        raise UntrueCause(f"it is not as it says: {cause}")


def _with_quota(world: Snapshot, cause: causes.MissingQuota) -> Snapshot:
    raised = 0

    def more(quotas: Any) -> Any:
        nonlocal raised
        out = []
        for one in quotas:
            fits = one.resource == cause.resource
            raised += fits
            out.append(edit(one, nominal=one.nominal + cause.amount) if fits else one)
        return tuple(out)

    def group(one: ResourceGroup) -> ResourceGroup:
        names = sorted(each.flavor for each in one.flavors)
        if one.pool is not None:
            is_meant = cause.flavor == "pool:" + "+".join(names)
            return edit(one, pool=more(one.pool)) if is_meant else one
        return edit(
            one,
            flavors=tuple(
                edit(each, resources=more(each.resources)) if each.flavor == cause.flavor else each
                for each in one.flavors
            ),
        )

    queues = tuple(
        edit(one, groups=tuple(map(group, one.groups))) if one.name == cause.queue else one
        for one in world.queues
    )
    _there(raised == 1 and cause.amount > 0, cause)
    return edit(world, queues=queues)


def _nodes(cause: causes.MissingNodes, number: int) -> list[Node]:
    names = [NodeName(f"judge-{number}-{index}") for index in range(cause.count)]
    return [
        Node(
            name=name,
            labels=tuple(sorted((dict(cause.labels) | {"kubernetes.io/hostname": name}).items())),
            taints=cause.taints,
            allocatable=cause.requests,
        )
        for name in names
    ]


def _with_workload(
    world: Snapshot, key: WorkloadKey, edited: Callable[[Workload], Workload]
) -> Snapshot:
    waiting = tuple(edited(one) if one.key == key else one for one in world.waiting)
    return edit(world, waiting=waiting)


def _with_pods(world: Snapshot, key: WorkloadKey, edited: Callable[[PodSet], PodSet]) -> Snapshot:
    return _with_workload(
        world, key, lambda one: edit(one, pod_sets=tuple(map(edited, one.pod_sets)))
    )


# --- conditions -----------------------------------------------------------------------------------

# Facts about the workload alone, and the fields that put them right.
_FIELDS: dict[type, dict[str, Any]] = {
    facts.Deactivated: {"active": True},
    facts.Misconfigured: {"misconfigured": ""},
    facts.Gated: {"gated_by": ""},
    facts.OnHold: {"on_hold": False, "requeue_at": None},
    facts.NotBefore: {"begin_at": None},
    facts.DeadlineMissed: {"deadline": None},
}


def _mended(world: Snapshot, key: WorkloadKey, fact: facts.Blocker) -> Snapshot:
    """Put right what a fact complains about."""
    fields = _FIELDS.get(type(fact))
    if fields is not None:
        return _with_workload(world, key, lambda one: edit(one, **fields))
    match fact:
        case facts.Held():
            return _with_workload(
                world,
                key,
                lambda one: edit(
                    one,
                    submit_options=edit(
                        one.submit_options, hold="", priority=one.submit_options.priority or None
                    ),
                ),
            )
        case facts.CheckFailed(check=name):
            ready = CheckState(name, "Ready")
            return _with_workload(
                world,
                key,
                lambda one: edit(
                    one, checks=tuple(ready if c.name == name else c for c in one.checks)
                ),
            )
        case (
            facts.DependencyPending(kind=kind, on=on)
            | facts.DependencyNeverSatisfied(kind=kind, on=on)
        ):
            return _with_workload(world, key, lambda one: _independent(one, kind, on))
        case facts.NotEntitled(code="PartitionDown" | "PartitionInactive"):
            return _with_rules(world, _all_up)
        case facts.NotEntitled():
            return _entitled(world, key)
        case facts.LimitReached(owner=owner):
            return _with_rules(world, lambda rules: _unlimited(rules, owner))
        case facts.Reserved(name=name):
            left = tuple(one for one in world.policy.reservations if one.name != name)
            _there(len(left) < len(world.policy.reservations), fact)
            return edit(world, policy=edit(world.policy, reservations=left))
        case facts.FlavorMismatch() | facts.GangDoesNotFit():
            return _relaxed(world, key, fact)
        case _:
            return _queue_mended(world, fact)


def _independent(workload: Workload, kind: str, on: str) -> Workload:
    if workload.depends_on_any:
        return edit(workload, depends=())
    left = tuple(
        one
        for one in workload.depends
        if not (one.kind == kind and (one.on == on or kind == "singleton"))
    )
    return edit(workload, depends=left)


def _with_rules(
    world: Snapshot, edited: Callable[[MultifactorRules], MultifactorRules]
) -> Snapshot:
    rules = world.policy.multifactor
    if rules is None:
        raise UntrueCause("there are no limits and no accounts")
    return edit(world, policy=edit(world.policy, multifactor=edited(rules)))


def _all_up(rules: MultifactorRules) -> MultifactorRules:
    """Let partitions come up again."""
    return edit(rules, partitions=tuple(edit(one, state="UP") for one in rules.partitions))


def _entitled(world: Snapshot, key: WorkloadKey) -> Snapshot:
    """Let every user use everything, and the workload ask for nothing special."""
    world = _with_rules(
        world,
        lambda rules: edit(
            rules,
            known_users_only=False,
            associations=tuple(edit(one, qos=()) for one in rules.associations),
            partitions=tuple(
                edit(
                    one,
                    state="UP",
                    allow_accounts=(),
                    deny_accounts=(),
                    allow_qos=(),
                    deny_qos=(),
                )
                for one in rules.partitions
            ),
        ),
    )

    def plainly(one: Workload) -> Workload:
        nice = max(0, one.submit_options.nice)
        turn = edit(one.submit_options, account="", qos="", partition="", priority=None, nice=nice)
        return edit(one, submit_options=turn)

    return _with_workload(world, key, plainly)


def _unlimited(rules: MultifactorRules, owner: str) -> MultifactorRules:
    kind, _, name = owner.partition("/")
    free = {"limits": Limits()}
    if kind == "qos":
        return edit(
            rules, qos=tuple(edit(one, **free) if one.name == name else one for one in rules.qos)
        )
    if kind == "partition":
        free |= {"max_time_ms": None, "min_nodes": 0, "max_nodes": None}  # type: ignore[dict-item]
        return edit(
            rules,
            partitions=tuple(
                edit(one, **free) if one.name == name else one for one in rules.partitions
            ),
        )
    account, _, user = name.partition("/")
    target = (account, user if kind == "user" else None)
    return edit(
        rules,
        associations=tuple(
            edit(one, **free) if (one.account, one.user) == target else one
            for one in rules.associations
        ),
    )


def _relaxed(
    world: Snapshot, key: WorkloadKey, fact: facts.FlavorMismatch | facts.GangDoesNotFit
) -> Snapshot:
    """Let pods ask for less of nodes."""
    if isinstance(fact, facts.GangDoesNotFit):
        return _with_pods(
            world,
            key,
            lambda one: edit(
                one, topology=None, affinity_to=(), anti_affinity=(), spread=(), host_ports=()
            ),
        )
    if fact.why == "not-allowed":
        return _with_workload(world, key, lambda one: edit(one, replaces=None))
    if fact.why == "missing":
        return edit(world, flavors=(*world.flavors, Flavor(name=fact.flavor)))
    name, _, _ = fact.detail.partition("=")

    def relaxed(one: PodSet) -> PodSet:
        if one.name != fact.pod_set:
            return one
        if fact.why == "taint":
            return edit(
                one, tolerations=(*one.tolerations, Toleration(key=name, operator="Exists"))
            )
        if fact.why == "topology":
            return edit(one, topology=TopologyRequest("unconstrained"))
        if name not in dict(one.node_selector):
            return edit(one, affinity=())
        return edit(one, node_selector=tuple(pair for pair in one.node_selector if pair[0] != name))

    return _with_pods(world, key, relaxed)


def _queue_mended(world: Snapshot, fact: facts.Blocker) -> Snapshot:
    """Put right what is wrong with a LocalQueue or a ClusterQueue."""

    def queue(name: str, **fields: Any) -> Snapshot:
        _there(any(one.name == name for one in world.queues), fact)
        return edit(
            world,
            queues=tuple(edit(one, **fields) if one.name == name else one for one in world.queues),
        )

    match fact:
        case facts.QueueMissing(local_queue=local, queue=missing):
            name = QueueName(missing or "judge-open")
            more = ClusterQueue(name=name, unlimited=True, namespace_selector=LabelSelector())
            world = edit(world, queues=(*world.queues, more))
            if missing is None:
                entry = LocalQueue(key=local, queue=name)
                world = edit(world, local_queues=(*world.local_queues, entry))
            return world
        case facts.QueueStopped(queue=stopped, local=True):
            return edit(
                world,
                local_queues=tuple(
                    edit(one, stop="None") if one.key == stopped else one
                    for one in world.local_queues
                ),
            )
        case facts.QueueStopped(queue=stopped):
            return queue(stopped, stop="None")
        case facts.NamespaceNotSelected(queue=of):
            return queue(of, namespace_selector=LabelSelector())
        case facts.ResourceNotCovered(queue=of, resource=resource):
            (spec,) = (one for one in world.queues if one.name == of)
            if spec.groups:
                first = spec.groups[0]
                wider = edit(first, covered=(*first.covered, resource))
                return queue(of, groups=(wider, *spec.groups[1:]))
            world = edit(world, flavors=(*world.flavors, Flavor(name=FlavorName("judge-open"))))
            only = ResourceGroup(
                covered=(resource,), flavors=(FlavorQuota(FlavorName("judge-open")),)
            )
            return queue(of, groups=(only,))
        case facts.QueueInactive(queue=of, why=why, detail=detail):
            match why:
                case "Terminating":
                    return queue(of, terminating=False)
                case "CohortCycle":
                    return queue(of, cohort=None)
                case "FlavorNotFound":
                    more_flavors = (*world.flavors, Flavor(name=FlavorName(detail)))
                    return edit(world, flavors=more_flavors)
                case "TopologyNotFound":
                    return edit(world, topologies=(*world.topologies, Topology(detail)))
                case _:
                    kept = [one for one in world.checks if one.name != detail]
                    same = [one for one in world.checks if one.name == detail]
                    known = same[0] if same else AdmissionCheck(detail)
                    return edit(world, checks=(*kept, edit(known, active=True)))
        case _:
            raise UntrueCause(f"not something that can be put right: {fact}")
