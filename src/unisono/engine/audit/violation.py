"""A broken promise, and the names of all promises that are looked after."""

from __future__ import annotations

from typing import Literal

import msgspec

from unisono.engine.model.names import QueueName, WorkloadKey

Rule = Literal[
    # identity
    "version",  # the plan was made from another state
    "clock",  # the plan is older than the snapshot
    "unknown-workload",  # it is not where the plan says that it is
    "twice",  # one workload, two fates
    "one-head",  # a queue decides about one workload a cycle
    # admission
    "not-queueable",  # deactivated, gated, on hold, misconfigured, or a check said no
    "queue-closed",  # missing, inactive or stopped
    "wrong-queue",  # not the queue that its local queue leads to
    "namespace",  # the queue does not take workloads from there
    "dependency",  # what it depends on has not happened
    "array",  # more of an array than may run at a time
    "pods-not-ready",  # blockAdmission, and somebody's pods are not ready
    "checks",  # `checks_pass` does not say what the checks say
    "slice",  # an elastic slice that does not replace the one it grew out of
    # assignment
    "pod-sets",  # not every pod set once
    "count",  # a number of pods that partial admission cannot give
    "flavor",  # missing, of another group, or not the same for the whole group
    "flavor-mismatch",  # the pods cannot run on that flavor's nodes
    "uncovered",  # a resource for which the queue has no quota
    # quota
    "over-quota",  # more is used than there is
    "over-limit",  # more than an account or a QOS may have together
    "borrow-level",  # says that it borrows and does not, or the reverse
    # nodes
    "unplaced",  # not as many pods have nodes as have to run
    "node-closed",  # no such node, not ready, unschedulable, or held for somebody else
    "node-mismatch",  # the pods do not select it, or do not tolerate its taints
    "node-overfull",  # more is used of a node than it has
    "reserved",  # pods, or a date, on nodes that are reserved for others meanwhile
    "neighbours",  # ports, affinity, anti-affinity or spread between pods
    "topology",  # pods or slices that must be close to each other are not
    "purchase",  # machines that are not for sale, above a limit, or for nobody
    # preemption
    "no-victims",  # a preemption that makes nobody leave
    "preemption-short",  # the victims leave and the preemptor still cannot start
    "preemption-backoff",  # it was preempted lately and has to wait
    "preemption-forbidden",  # spec quota §7: this shortage allows no preemption
    "victim-flag",  # `already_evicting` is not what the snapshot says
    "victim-rule",  # the queue's preemption rules do not allow this victim
    "victim-protected",  # in an inactive queue, or not there for long enough
    "victim-unrelated",  # uses nothing that the preemptor lacks
    "victim-within-quota",  # its queue uses no more than its own quota
    "victim-reason",  # the reason given does not hold
    "victim-unfair",  # evicted although its side had the smaller share
    "victim-part",  # it would give up pods that it needs, or not its highest ranks
    "victim-needless",  # the preemptor could start with this victim still there
    # dates
    "date",  # a date that cannot be kept, or at which somebody is in the way who goes first
    # waiting for pods of others
    "await",  # they do not leave, not soon enough, or need not
    # the rest
    "explanation",  # a "no" whose numbers do not say no
    "auditor",  # the auditor itself failed on it
    "stop",  # quota taken away without cause
]


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """One promise that a plan breaks: which, about whom, and with which numbers."""

    rule: Rule
    message: str
    workload: WorkloadKey | None = None
    queue: QueueName | None = None
