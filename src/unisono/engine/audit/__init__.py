"""The second opinion: recompute what a plan must never break, from snapshot and plan alone.

It shares nothing with the planner but the values of `engine.model`, and is written to be obviously
right: dictionaries, loops, formulas as the spec prints them, no optimisation beyond caching a
number that was already computed. No violations means that nothing was found.

| module         | checks                                                               |
| -------------- | -------------------------------------------------------------------- |
| `identity`     | the plan belongs to this snapshot and names every workload once      |
| `admission`    | the workload may start at all, now, in that queue: holds, checks,    |
|                | array limits, dependencies; with allowed counts and flavors (§7)     |
| `quota`        | everything fits, before and after the victims have left              |
| `limits`       | accounts, QOS and users stay within their limits                     |
| `nodes`        | every pod has a node that accepts it and has room; terminating pods  |
|                | that a workload waits for terminate, and it needs their place        |
| `pod_rules`    | host ports, inter-pod (anti-)affinity, spread, required topology     |
| `purchases`    | what is bought is offered, and within the limits of its pool         |
| `preemption`   | the workload may preempt, may preempt every victim, and needs it     |
| `shrinking`    | victims that give up only some of their pods                         |
| `backfill`     | every backfill reservation can be kept if all workloads end at their |
|                | limits, and pods avoid nodes that are reserved for others            |
| `explanations` | the numbers of a "no" say no                                         |
| `evictions`    | there was a reason for every eviction that is no preemption          |

`audit_repair` checks replacement nodes of an admitted gang.
`snapshot_index` looks the snapshot up by name and keeps sums from one plan to the next;
`pods_on_nodes` and `node_occupancy` say which pods are on which nodes; `preemption_case` is one
preemption with all that its rules need. `quota_tree` holds the formulas of spec quota §4 and §9;
property tests compare the engine with it.
"""

from __future__ import annotations

import msgspec

from unisono.engine.audit.admission import check_assignments, check_candidates
from unisono.engine.audit.backfill import check_advance_reservations, check_backfill_reservations
from unisono.engine.audit.evictions import check_evictions
from unisono.engine.audit.explanations import check_explanations
from unisono.engine.audit.identity import check_identity
from unisono.engine.audit.limits import check_limits
from unisono.engine.audit.nodes import check_nodes, check_terminating_pods
from unisono.engine.audit.preemption import check_preemptions
from unisono.engine.audit.purchases import check_purchases, with_bought
from unisono.engine.audit.quota import check_quota
from unisono.engine.audit.snapshot_index import AuditCache, SnapshotIndex
from unisono.engine.audit.violation import Rule, Violation
from unisono.engine.model.names import WorkloadKey
from unisono.engine.model.plan import Admit, Plan
from unisono.engine.model.provisioning import Purchase
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import Admission, Workload

__all__ = ["AuditCache", "Rule", "Violation", "audit", "audit_repair"]


def audit(snapshot: Snapshot, plan: Plan, cache: AuditCache | None = None) -> tuple[Violation, ...]:
    """List every rule that the plan would break, in the order of the checks.

    A caller that audits one plan after the other keeps a `cache`: what has not changed since the
    last plan is then not added up again.
    """
    index = SnapshotIndex(snapshot, cache)
    return (
        *check_identity(index, plan),
        *check_candidates(index, plan),
        *check_assignments(index, plan),
        *check_quota(index, plan),
        *check_limits(index, plan),
        *check_nodes(with_bought(index, snapshot.offerings, plan), plan),
        *check_purchases(index, snapshot.offerings, plan),
        *check_advance_reservations(index, plan),
        *check_preemptions(index, plan),
        *check_backfill_reservations(index, plan),
        *check_terminating_pods(index, plan),
        *check_explanations(index, plan),
        *check_evictions(index, plan),
    )


def audit_repair(
    snapshot: Snapshot, workload: Workload, repaired: Admission, purchase: Purchase | None = None
) -> tuple[Violation, ...]:
    """Return what is wrong with the new nodes of an admitted workload."""
    repaired_workload = msgspec.structs.replace(
        workload,
        key=WorkloadKey(f"{workload.key}+repair"),
        replaces=workload.key,
        reclaimable=(),
        pod_sets=tuple(msgspec.structs.replace(one, topology=None) for one in workload.pod_sets),
    )
    placed = msgspec.structs.replace(
        repaired,
        pod_sets=tuple(  # finished pods have released their nodes
            msgspec.structs.replace(one, count=sum(pods for _, pods in one.nodes))
            for one in repaired.pod_sets
        ),
    )
    if purchase is not None:
        purchase = msgspec.structs.replace(purchase, workload=repaired_workload.key)
    admit = Admit(
        workload=repaired_workload.key, admission=placed, replaces=workload.key, purchase=purchase
    )
    plan = Plan(based_on=snapshot.version, now=snapshot.now, admissions=(admit,))
    nodes = tuple(  # nodes held for the gang are held for its repaired self
        msgspec.structs.replace(node, held_for=repaired_workload.key)
        if node.held_for == workload.key
        else node
        for node in snapshot.nodes
    )
    before = msgspec.structs.replace(snapshot, waiting=(repaired_workload,), nodes=nodes)
    return tuple(check_nodes(with_bought(SnapshotIndex(before), before.offerings, plan), plan))
