"""A violation: a rule that a plan breaks; and the names of all rules."""

from __future__ import annotations

from typing import Literal

import msgspec

from unisono.engine.model.names import QueueName, WorkloadKey

Rule = Literal[
    # identity
    "version",  # the plan was made from another state
    "clock",  # the plan is older than the snapshot
    "unknown-workload",  # not pending, or not holding quota, as the plan says
    "twice",  # one workload, two decisions
    "one-head",  # a queue starts one workload a cycle
    # admission
    "not-queueable",  # deactivated, gated, on hold, misconfigured, or a check refused
    "queue-closed",  # missing, inactive or stopped
    "wrong-queue",  # not the ClusterQueue of its LocalQueue
    "namespace",  # the queue does not select its namespace
    "dependency",  # what it depends on has not happened
    "array",  # more of an array than its limit
    "pods-not-ready",  # blockAdmission, and an admitted workload is not ready
    "checks",  # `checks_pass` contradicts the admission checks
    "slice",  # an elastic slice that does not replace its predecessor
    # assignment
    "pod-sets",  # not every pod set once
    "count",  # a number of pods that partial admission cannot yield
    "flavor",  # missing, of another group, or not the same for the whole group
    "flavor-mismatch",  # the pods cannot run on that flavor's nodes
    "uncovered",  # a resource for which the queue has no quota
    # quota
    "over-quota",  # more is used than there is
    "over-limit",  # more than an account, a QOS or a user may have
    "borrow-level",  # reported as borrowing and is not, or the reverse
    # nodes
    "unplaced",  # not as many pods have nodes as have to run
    "node-closed",  # no such node, not ready, unschedulable, or held for another workload
    "node-mismatch",  # the pods do not select it, or do not tolerate its taints
    "node-overfull",  # a node is overcommitted
    "reserved",  # pods, or a backfill reservation, on nodes reserved for others
    "neighbours",  # host ports, inter-pod affinity, anti-affinity or spread
    "topology",  # pods or slices outside their required domain
    "purchase",  # machines that are not offered, above a limit, or for no pods
    # preemption
    "no-victims",  # a preemption without victims
    "preemption-short",  # the victims leave and the preemptor still cannot start
    "preemption-backoff",  # it was preempted itself and has to wait
    "preemption-forbidden",  # spec quota §7: this shortage allows no preemption
    "victim-flag",  # `already_evicting` contradicts the snapshot
    "victim-rule",  # the queue's preemption rules do not allow this victim
    "victim-protected",  # in an inactive queue, or within its minimum run time
    "victim-unrelated",  # uses nothing that the preemptor lacks
    "victim-within-quota",  # its queue uses no more than its own quota
    "victim-reason",  # the reason given does not hold
    "victim-unfair",  # evicted although its side had the smaller share
    "victim-part",  # it would release pods that it needs, or not its highest ranks
    "victim-needless",  # the preemptor could start with this victim still there
    # backfill reservations
    "reservation",  # a backfill reservation that cannot be kept
    # waiting for terminating pods
    "await",  # they do not terminate, not soon enough, or need not
    # the rest
    "explanation",  # a "no" whose numbers do not say no
    "auditor",  # the auditor itself failed on it
    "eviction",  # an eviction without a reason
]


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """One rule that a plan breaks: which, for which workload or queue, and the numbers."""

    rule: Rule
    message: str
    workload: WorkloadKey | None = None
    queue: QueueName | None = None
