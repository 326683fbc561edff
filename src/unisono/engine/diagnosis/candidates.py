"""Everything that could keep a pending workload from starting, in order of preference.

Conditions and dates of its own come first: as long as they are there, nothing else matters. Then
what takes its place: workloads with quota, those that end soonest first; pods of others; nodes that
are out. Then the pending workloads that could go first, those of its own queue before others.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.diagnosis.removal import remove
from unisono.engine.model import explanation as facts
from unisono.engine.model.diagnosis import (
    Ahead,
    Cause,
    Condition,
    HeldAmount,
    Holder,
    InstantOf,
    NodeOut,
    OtherPod,
    Until,
)
from unisono.engine.model.explanation import Blocker
from unisono.engine.model.names import Instant, ResourceName, WorkloadKey
from unisono.engine.model.node import node_problem
from unisono.engine.model.resources import is_share, shared_gpu
from unisono.engine.model.workload import AdmittedWorkload, Workload
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.cluster_queue import Running
from unisono.engine.state.pending_queue import PendingWorkload

# A workload has fewer conditions of its own than this.
_MOST_CONDITIONS = 16
# So many instants are tried; there are more only with many advance reservations or offerings.
MOST_DATES = 8


def own_conditions(state: ClusterState, key: WorkloadKey) -> list[Cause]:
    """Return what keeps a workload out of its pending queue, one after the other.

    Each is put right on the state before the next one is looked for: only the first shows.
    """
    found: list[Cause] = []
    for _ in range(_MOST_CONDITIONS):
        state.refresh()
        waiting = state.waiting.get(key)
        cause = _condition(state, waiting) if waiting is not None else None
        if cause is None or cause in found:
            break
        found.append(cause)
        remove(state, key, [cause])
    # The last of several dates is enough.
    dates = [cause for cause in found if isinstance(cause, Until)]
    last = max(dates, key=lambda one: one.instant, default=None)
    return [cause for cause in found if not isinstance(cause, Until) or cause is last]


def _condition(state: ClusterState, waiting: PendingWorkload) -> Cause | None:
    """Return the first thing that keeps a workload out of its pending queue."""
    workload = waiting.workload
    lq = state.local_queue(workload.queue)
    blocker: Blocker | None = state.held.get(workload.key)
    if _is_about_others(blocker):
        blocker = None
    blocker = blocker or lq.blocker
    if blocker is None and lq.cq is not None:
        blocker = lq.cq.blocker
    match blocker:
        case None:
            return None  # others are in its way
        case facts.NotBefore(begin=begin):
            return Until(instant=begin, what="begin")
        case facts.OnHold(until=int(until)):
            return Until(instant=Instant(until), what="requeue")
        case facts.DependencyPending(kind="after", on=job):
            due = state.dependencies.reminders(workload, state.now)
            if due:
                return Until(instant=min(due), what="dependency delay", name=job)
            return Condition(blocker=blocker)
        case _:
            return Condition(blocker=blocker)


def _is_about_others(blocker: Blocker | None) -> bool:
    """Say whether a workload is kept out of its queue by what others use."""
    if isinstance(blocker, facts.LimitReached):
        return not exceeds_alone(blocker)
    return isinstance(blocker, facts.ArrayLimit)


def exceeds_alone(limit: facts.LimitReached) -> bool:
    """Say whether a workload exceeds a limit by itself, whatever else runs."""
    return limit.denied or limit.per in ("job", "node", "least") or limit.used == 0


def holders(state: ClusterState, key: WorkloadKey) -> list[Holder]:
    """Return all workloads with quota: what is being evicted, then those that end soonest."""
    wanted = _wanted(state.waiting[key].workload)
    found = [holder(running, wanted) for running in state.running.values()]
    replaced = state.waiting[key].workload.replaces
    return sorted(
        found,
        key=lambda one: (
            one.workload == replaced,
            not one.evicting,
            one.ends is None,
            one.ends or 0,
            one.workload,
        ),
    )


def holder(running: Running, wanted: frozenset[ResourceName]) -> Holder:
    """Describe one workload with quota: what it holds of the resources that are asked for."""
    admitted = running.admitted
    workload = admitted.workload
    limit = workload.longest_ms
    nodes = (name for one in admitted.admission.pod_sets for name, _ in one.nodes)
    return Holder(
        workload=workload.key,
        queue=admitted.admission.queue,
        amounts=_held(admitted, wanted),
        nodes=tuple(dict.fromkeys(nodes)),
        ends=Instant(admitted.running_since + limit) if limit is not None else None,
        ends_from=workload.longest_from,
        evicting=admitted.evicting,
        unready=not admitted.ready,
    )


def _wanted(workload: Workload) -> frozenset[ResourceName]:
    """Return the resources that a workload asks for."""
    found: set[ResourceName] = set()
    for pod_set in workload.pod_sets:
        for resource, amount in (*pod_set.requests, *(pod_set.node_requests or ())):
            if amount:
                found.add(resource)
                if is_share(resource):
                    found.add(shared_gpu(resource))
    return frozenset(found)


def _held(admitted: AdmittedWorkload, wanted: frozenset[ResourceName]) -> tuple[HeldAmount, ...]:
    requests = {one.name: one.requests for one in admitted.workload.pod_sets}
    totals: dict[tuple[str, ResourceName], int] = {}
    for assigned in admitted.admission.pod_sets:
        flavors = dict(assigned.flavors)
        for resource, amount in requests.get(assigned.name, ()):
            if resource in wanted and amount and assigned.count:
                place = (str(flavors.get(resource, "")), resource)
                totals[place] = totals.get(place, 0) + amount * assigned.count
    return tuple(
        HeldAmount(flavor=flavor, resource=resource, amount=amount)
        for (flavor, resource), amount in sorted(totals.items())
    )


def others_ahead(state: ClusterState, key: WorkloadKey) -> list[Ahead]:
    """Return all other pending workloads: those of its own queue first, in their order."""
    own = state.local_queue(state.waiting[key].workload.queue).cq
    found: dict[WorkloadKey, Ahead] = {}
    queues = sorted(state.queues.values(), key=lambda cq: (cq is not own, cq.spec.name))
    for cq in queues:
        for waiting in cq.pending.in_order():
            found[waiting.key] = Ahead(workload=waiting.key, queue=cq.spec.name)
    for other in sorted(state.waiting):
        if other not in found:
            local = state.config.local_queues.get(state.waiting[other].workload.queue)
            found[other] = Ahead(workload=other, queue=local.queue if local else None)
    found.pop(key, None)
    return [*found.values()]


def other_pods(state: ClusterState) -> list[OtherPod]:
    """Return the pods on nodes that belong to no workload of ours."""
    pods = (pod for pod, _ in state.nodes.pods.values())
    return sorted(
        (
            OtherPod(pod=pod.key, node=pod.node, amounts=pod.requests, leaves_at=pod.leaves_at)
            for pod in pods
        ),
        key=lambda one: (one.leaves_at is None, one.leaves_at or 0, one.pod),
    )


def nodes_out(state: ClusterState) -> list[NodeOut]:
    """Return the nodes that take no pods now."""
    nodes = (node for node in state.nodes.table.nodes if node is not None)
    return sorted(
        (
            NodeOut(node=node.name, why=why)
            for node in nodes
            if (why := node_problem(node)) is not None
        ),
        key=lambda one: one.node,
    )


def dates(state: ClusterState, key: WorkloadKey, known: tuple[Blocker, ...]) -> list[Until]:
    """Return the instants at which things may change for it although nothing ends, in order."""
    now = state.now
    found: dict[Instant, Until] = {}
    for instant, what, name in _instants(state, key, known):
        if instant > now:
            found.setdefault(instant, Until(instant=instant, what=what, name=name))
    return [found[instant] for instant in sorted(found)][:MOST_DATES]


def _instants(
    state: ClusterState, key: WorkloadKey, known: tuple[Blocker, ...]
) -> Iterator[tuple[Instant, InstantOf, str]]:
    workload, now = state.waiting[key].workload, state.now
    if workload.may_preempt_at is not None:
        yield workload.may_preempt_at, "preemption back-off", ""
    for fact in known:
        if isinstance(fact, facts.LimitReached) and fact.until is not None:
            yield fact.until, "usage decay", fact.owner
        if isinstance(fact, facts.WaitingForPods):
            yield fact.until, "terminating pods", ""
        if isinstance(fact, facts.CannotBuy) and fact.retry_at is not None:
            yield fact.retry_at, "stock", ""
    for reservation, _, end in state.reserved.against(workload, now):
        yield end, "advance reservation", reservation.name
    cq = state.local_queue(workload.queue).cq
    if cq is not None:
        for running in state.running.values():
            protected_ms = running.cq.spec.preemption.min_runtime_ms
            if protected_ms:
                until = Instant(running.admitted.running_since + protected_ms)
                yield until, "protection from preemption", running.key
    offerings = state.config.offerings
    for outage in offerings.outages if offerings is not None else ():
        yield outage.fewer_from, "stock", outage.machine
        yield outage.until, "stock", outage.machine
