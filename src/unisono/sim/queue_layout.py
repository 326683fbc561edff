"""The queues of a policy file, and which of them each queue of a trace uses.

A policy file may bring its own ClusterQueues, LocalQueues, cohorts and flavors, as on a live
cluster. Jobs of a trace go to the LocalQueue with the name of their queue, else to the ClusterQueue
with that name; a file with a single queue takes all jobs.
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
from unisono.sim.trace import BadTrace, Trace


def set_up(
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
    for local_queue in given.local_queues:
        locals_.setdefault(local_queue.key.partition("/")[2], local_queue)
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


def with_accounts(
    rules: MultifactorRules, trace: Trace, local_queues: list[LocalQueueKey]
) -> MultifactorRules:
    """Give every queue of the trace an account with one share, unless accounts were given."""
    if rules.associations or rules.accounts_of or rules.default_account:
        return rules
    return msgspec.structs.replace(
        rules,
        associations=tuple(Association(account=_account(queue)) for queue in trace.queues),
        accounts_of=tuple(
            (str(local_queue), _account(queue))
            for local_queue, queue in zip(local_queues, trace.queues, strict=True)
        ),
    )


def submit_options_of(trace: Trace, rules: MultifactorRules | None) -> list[SubmitOptions]:
    """Return user and account of each job; the account has the name of its queue or group."""
    without_account = SubmitOptions()
    if rules is None:
        return [without_account] * len(trace)
    accounts = {one.account for one in rules.associations}
    known: dict[tuple[int, int, int], SubmitOptions] = {}
    found: list[SubmitOptions] = []
    rows = zip(trace.queue.tolist(), trace.group.tolist(), trace.user.tolist(), strict=True)
    for row in rows:
        options = known.get(row)
        if options is None:
            queue, group, user = row
            names = (_account(trace.queues[queue]), _account(trace.groups[group]))
            account = next((name for name in names if name in accounts), "")
            options = known[row] = SubmitOptions(account=account, user=trace.users[user])
        found.append(options)
    return found


def _account(name: str) -> str:
    return name or "unnamed"
