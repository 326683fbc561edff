"""Queues that somebody wrote down, and who of a trace stands where.

A policy file may bring its own ClusterQueues, LocalQueues, cohorts and flavors, as on a living
cluster. Jobs of a trace go to the LocalQueue that is called like their queue, else to the
ClusterQueue that is; a file with only one of them takes everybody.
"""

from __future__ import annotations

import msgspec

from unisono.engine.model.multifactor import Association, MultifactorRules, SubmitOptions
from unisono.engine.model.names import LocalQueueKey, QueueName
from unisono.engine.model.queue import ClusterQueue, LocalQueue
from unisono.engine.model.selection import LabelSelector
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.state import changes
from unisono.engine.state.cluster import ClusterState
from unisono.sim.errors import BadTrace
from unisono.sim.trace import Trace


def set_up(
    state: ClusterState, given: Snapshot, name: str, trace: Trace, doors: list[LocalQueueKey]
) -> None:
    """Tell the engine about queues as they were given, and open a door for each of the trace's."""
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
    for key, wanted in zip(doors, trace.queues, strict=True):
        state.apply(changes.LocalQueueSet(_door(key, wanted, given, name)))


def _door(key: LocalQueueKey, wanted: str, given: Snapshot, name: str) -> LocalQueue:
    locals_: dict[str, LocalQueue] = {}
    for door in given.local_queues:
        locals_.setdefault(door.key.partition("/")[2], door)
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
    raise BadTrace(name, f'has no queue for the trace\'s "{wanted}"; it has {there}')


def with_accounts(
    turns: MultifactorRules, trace: Trace, doors: list[LocalQueueKey]
) -> MultifactorRules:
    """Give every queue of the trace an account with one share, unless accounts were given."""
    if turns.associations or turns.accounts_of or turns.default_account:
        return turns
    return msgspec.structs.replace(
        turns,
        associations=tuple(Association(account=_account(queue)) for queue in trace.queues),
        accounts_of=tuple(
            (str(door), _account(queue)) for door, queue in zip(doors, trace.queues, strict=True)
        ),
    )


def turns_of(trace: Trace, turns: MultifactorRules | None) -> list[SubmitOptions]:
    """Return whose each job is: its user, and the account called like its queue or its group."""
    nobody = SubmitOptions()
    if turns is None:
        return [nobody] * len(trace)
    accounts = {one.account for one in turns.associations}
    known: dict[tuple[int, int, int], SubmitOptions] = {}
    found: list[SubmitOptions] = []
    rows = zip(trace.queue.tolist(), trace.group.tolist(), trace.user.tolist(), strict=True)
    for row in rows:
        turn = known.get(row)
        if turn is None:
            queue, group, user = row
            names = (_account(trace.queues[queue]), _account(trace.groups[group]))
            account = next((name for name in names if name in accounts), "")
            turn = known[row] = SubmitOptions(account=account, user=trace.users[user])
        found.append(turn)
    return found


def _account(name: str) -> str:
    return name or "everybody"
