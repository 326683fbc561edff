"""Reading the state: the whole of it as a snapshot, and a state made from one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from unisono.engine.model.explanation import Explanation
from unisono.engine.model.names import QueueName, WorkloadKey
from unisono.engine.model.node import Node
from unisono.engine.model.plan import Outcome, Plan, Wait
from unisono.engine.model.snapshot import Namespace, Snapshot
from unisono.engine.model.workload import Result
from unisono.engine.state import changes
from unisono.engine.state.apply_plan import file_verdict
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.pending_queue import equivalence_class_of


def snapshot(state: ClusterState) -> Snapshot:
    """Return everything the next decision depends on, in an order that history does not change."""
    state.refresh()
    return msgspec.structs.replace(
        _configuration(state),
        admitted_workloads=tuple(state.running[key].admitted for key in sorted(state.running)),
        waiting=tuple(state.waiting[key].workload for key in sorted(state.waiting)),
        preemptors=tuple(
            sorted(cq.pending.preemptor for cq in state.queues.values() if cq.pending.preemptor)
        ),
        admitted_lately=state.nodes.mix.recent(),
        shared_lately=state.nodes.shared_mix.recent(),
        verdicts=tuple(_verdicts(state)),
        shared_verdicts=tuple(_shared_in_time(state)),
        asleep=tuple(name for name, cq in sorted(state.queues.items()) if cq in cq.tree.asleep),
        reminders=state.timers.all(),
        usage=state.priority_order.usage(),
        accruing=state.priority_order.accruing(),
        results=state.dependencies.results(),
    )


def snapshot_for(state: ClusterState, plan: Plan) -> Snapshot:
    """Return the part of a snapshot that a plan can be judged by.

    Pending workloads that the plan does not name do not matter to whether it is sound, and they are
    most of a snapshot. All admitted workloads stay: they are what quota and nodes are counted from.
    """
    state.refresh()
    named = {admit.workload for admit in plan.admissions}
    named.update(preemption.workload for preemption in plan.preemptions)
    named.update(wait.explanation.workload for wait in plan.waits)
    named.update(reserved.workload for reserved in plan.reservations)
    return msgspec.structs.replace(
        _configuration(state, nodes=[node for node in state.nodes.table.nodes if node is not None]),
        # In no certain order: sorting ten thousand names takes longer than judging most plans.
        admitted_workloads=tuple(running.admitted for running in state.running.values()),
        results=_results_for(state, named),
        waiting=tuple(state.waiting[key].workload for key in sorted(named & state.waiting.keys())),
    )


def _results_for(state: ClusterState, named: set[WorkloadKey]) -> tuple[Result, ...]:
    """Return what became of the jobs that one of these depends on."""
    there = (state.waiting[key].workload for key in named if key in state.waiting)
    wanted = {each.on for workload in there for each in workload.depends}
    known = state.dependencies.results() if wanted else ()
    return tuple(result for result in known if result.job in wanted)


def _configuration(state: ClusterState, nodes: Iterable[Node] | None = None) -> Snapshot:
    """Return what is configured, and the nodes: by name, unless they are given."""
    config = state.config
    return Snapshot(
        version=state.version,
        now=state.now,
        policy=config.policy,
        flavors=tuple(config.flavors[name] for name in sorted(config.flavors)),
        cohorts=tuple(config.cohorts[name] for name in sorted(config.cohorts)),
        queues=tuple(config.queues[name] for name in sorted(config.queues)),
        local_queues=tuple(
            state.local_queue_usage.stored(config.local_queues[key])
            for key in sorted(config.local_queues)
        ),
        namespaces=tuple(
            Namespace(name, config.namespaces[name]) for name in sorted(config.namespaces)
        ),
        checks=tuple(config.checks[name] for name in sorted(config.checks)),
        topologies=tuple(config.topologies[name] for name in sorted(config.topologies)),
        offerings=config.offerings,
        nodes=tuple(known_nodes(state) if nodes is None else nodes),
        pods=tuple(state.nodes.pods[key][0] for key in sorted(state.nodes.pods)),
    )


def known_nodes(state: ClusterState) -> list[Node]:
    """Return all nodes, by name."""
    table = state.nodes.table
    found = (table.nodes[table.row_of[name]] for name in sorted(table.row_of))
    return [node for node in found if node is not None]


def _verdicts(state: ClusterState) -> Iterator[Wait]:
    """Yield what is filed about workloads that are not examined again for now."""
    if state.timeline.is_on:
        yield from _filed_in_time(state)
        return
    for name in sorted(state.queues):
        cq = state.queues[name]
        for waiting in cq.pending.inadmissible_heads():
            blockers = cq.pending.inadmissible[equivalence_class_of(waiting)]
            why = Explanation(workload=waiting.workload.key, queue=name, blockers=blockers)
            short = cq.tree.wakes.shortages(
                (name, equivalence_class_of(waiting)), state.active_queues.available_to
            )
            nodes = state.active_queues.waits_for_nodes((name, equivalence_class_of(waiting)))
            watches = cq.tree.wakes.watches_admitted((name, equivalence_class_of(waiting)))
            yield Wait(
                outcome="park",
                explanation=why,
                unblocked_by=short,
                watches_admitted=watches,
                lacks_nodes=nodes,
            )
        for waiting, blockers in cq.pending.limit_blocked_heads():
            why = Explanation(workload=waiting.workload.key, queue=name, blockers=blockers)
            yield Wait(outcome="bar", explanation=why)
        if cq.head_wait is not None:
            key, blockers = cq.head_wait
            why = Explanation(workload=key, queue=name, blockers=blockers)
            short = (
                cq.tree.wakes.shortages((name, None), state.active_queues.available_to)
                if cq.blocked_by_head
                else None
            )
            nodes = state.active_queues.waits_for_nodes((name, None))
            nodes = nodes and (cq.blocked_by_head or cq.pending.preemptor == key)
            outcome: Outcome = "stall" if cq.blocked_by_head else "sticky" if nodes else "retry"
            watches = cq.blocked_by_head and cq.tree.wakes.watches_admitted((name, None))
            yield Wait(
                outcome=outcome,
                explanation=why,
                unblocked_by=short,
                watches_admitted=watches,
                lacks_nodes=nodes,
            )


def _filed_in_time(state: ClusterState) -> Iterator[Wait]:
    timeline = state.timeline
    for key in sorted(timeline.verdicts):
        waiting = state.waiting[key]
        queue = state.config.local_queues[waiting.workload.queue].queue
        blockers = timeline.own(waiting)
        if blockers is not None:
            why = timeline.as_reserved_now(blockers, waiting)
            explanation = Explanation(workload=key, queue=queue, blockers=why)
            yield Wait(outcome="line", explanation=explanation)


def _shared_in_time(state: ClusterState) -> Iterator[Explanation]:
    """Yield the newest verdict of every equivalence class, by the first of each."""
    found = [
        Explanation(
            workload=group.members[0].waiting.key,
            queue=group.cq.spec.name,
            blockers=state.timeline.as_reserved_now(group.blockers, group.members[0].waiting),
        )
        for group in state.timeline.groups
        if group.blockers
    ]
    yield from sorted(found, key=lambda why: why.workload)


def as_changes(recorded: Snapshot) -> Iterator[changes.Change]:
    """Tell a snapshot's objects as changes, each after what it refers to."""
    yield from map(changes.FlavorSet, recorded.flavors)
    yield from map(changes.CheckSet, recorded.checks)
    yield from map(changes.TopologySet, recorded.topologies)
    yield from map(changes.NamespaceSet, recorded.namespaces)
    yield changes.OfferingsSet(recorded.offerings)
    yield from map(changes.NodeSet, recorded.nodes)
    yield from map(changes.PodOnNode, recorded.pods)
    yield from map(changes.CohortSet, recorded.cohorts)
    yield from map(changes.QueueSet, recorded.queues)
    yield from map(changes.LocalQueueSet, recorded.local_queues)
    yield from map(changes.ResultSet, recorded.results)
    yield from map(changes.WorkloadHolds, recorded.admitted_workloads)
    yield from map(changes.WorkloadWaits, recorded.waiting)
    yield from map(changes.UsageSet, recorded.usage)


def load(state: ClusterState, recorded: Snapshot) -> None:
    """Fill an empty state with a snapshot, at the same version."""
    for change in as_changes(recorded):
        state.apply(change)
    for key in recorded.preemptors:
        cq = state.local_queue(state.waiting[key].workload.queue).cq
        if cq is not None:
            cq.pending.preemptor = key
            state.active_queues.with_preemptor[cq] = None
    state.priority_order.load_accruing(recorded.accruing)
    state.refresh()
    state.nodes.restore_mix(recorded.admitted_lately, recorded.shared_lately)
    for verdict in recorded.verdicts:
        file_verdict(state, verdict)
    for shared in recorded.shared_verdicts:
        group = state.timeline.group_of(state.waiting[shared.workload])
        assert group is not None, "a workload with a recorded verdict is pending"
        group.record(shared.blockers, group.recorded_in)
    for name in recorded.asleep:
        state.active_queues.let_sleep(state.queues[name])
    if recorded.reminders:
        state.timers.set_all(recorded.reminders)
    state.version = recorded.version


def pending(state: ClusterState, queue: QueueName) -> list[WorkloadKey]:
    """Return the pending workloads of a queue, in order."""
    state.refresh()
    return [waiting.workload.key for waiting in state.queues[queue].pending.in_order()]
