"""A plan as sentences: queues evaluated, evictions, admissions with their nodes, waits."""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.explain.formatting import format_duration, format_instant
from unisono.engine.explain.messages import message_of
from unisono.engine.explain.purchases import purchase_sentence
from unisono.engine.model.names import NodeName
from unisono.engine.model.plan import Admit, Plan, evictions, shrinks
from unisono.engine.state.cluster import ClusterState

_MOST_NODES = 8  # of one pod set, before a line gets too long to read
_OUTCOMES = {
    "retry": "is evaluated again when something changes",
    "park": "is inadmissible until what it lacks is freed",
    "stall": "blocks its queue until what it lacks is freed",
    "sticky": "stays head of its queue until its victims have ended",
    "line": "stays pending",
    "bar": "is blocked until usage under its limit falls",
}


def narrate(state: ClusterState, made: Plan) -> Iterator[str]:
    """Describe a plan that was made on this state and is not applied yet."""
    nodes = len(state.nodes.table.row_of)
    alone = "" if state.nodes.has_nodes else ", so that quota alone decides"
    where = f"on {nodes} node{_s(nodes)}" if nodes else f"without nodes{alone}"
    pending = len(state.waiting)
    yield (
        f"At {format_instant(made.now)} {pending} workload{_s(pending)} pending and "
        f"{len(state.running)} admitted, {where}."
    )
    looked = ", ".join(made.examined) if made.examined else "no queue"
    yield f"Evaluated: {looked}."
    for due in made.evictions_due:
        yield f"{due.workload} is evicted: {due.reason}."
    for eviction in evictions(made):
        if eviction.by is not None:
            yield f"{eviction.workload} is preempted for {eviction.by} ({eviction.reason})."
    for shrink in shrinks(made):
        yield f"{shrink.workload} releases pods for {shrink.by} and runs on with the others."
    for awaited in made.awaits:
        yield f"{awaited.workload} waits for terminating pods: {', '.join(awaited.pods)}."
    for admit in made.admissions:
        yield _starts(state, admit)
    for wait in made.waits:
        why = wait.explanation
        yield f"{why.workload} waits and {_OUTCOMES[wait.outcome]}: {message_of(why)}."
    for reserved in made.reservations:
        yield (
            f"{reserved.workload} has a reservation at {format_instant(reserved.start)} for "
            f"{format_duration(reserved.end - reserved.start)}."
        )
    if not (made.admissions or made.preemptions or made.evictions_due or made.waits):
        yield "Nothing changes."


def _starts(state: ClusterState, admit: Admit) -> str:
    workload = state.waiting[admit.workload].workload
    since = format_duration(max(0, state.now - workload.created_at))
    parts = [
        f"{one.count} of {one.name}{_on(one.nodes)}{_flavors(one.flavors)}"
        for one in admit.admission.pod_sets
    ]
    lent = " with borrowed quota" if admit.borrow_level else ""
    bought = admit.purchase
    first = f" It first buys {purchase_sentence(bought)}." if bought is not None else ""
    return (
        f"{admit.workload} (priority {workload.priority}, waiting for {since}) starts in queue "
        f"{admit.admission.queue}{lent}: {'; '.join(parts)}.{first}"
    )


def _on(nodes: tuple[tuple[NodeName, int], ...]) -> str:
    if not nodes:
        return ""
    shown = [f"{name}" if pods == 1 else f"{name} ({pods})" for name, pods in nodes[:_MOST_NODES]]
    more = f" and {len(nodes) - _MOST_NODES} more" if len(nodes) > _MOST_NODES else ""
    return f" on {', '.join(shown)}{more}"


def _flavors(flavors: tuple[tuple[object, object], ...]) -> str:
    names = dict.fromkeys(str(flavor) for _, flavor in flavors)
    return f", flavor {', '.join(names)}" if names else ""


def _s(count: int) -> str:
    return "" if count == 1 else "s"
