"""The second opinion: recompute what a plan must never break, from snapshot and plan alone.

It shares nothing with the planner but the values of `engine.model`, and is written to be obviously
right: dictionaries, loops, formulas as the spec prints them, no optimisation beyond caching a
number that was already computed. No violations means that nothing was found.

| module                  | checks                                                              |
| ----------------------- | ------------------------------------------------------------------- |
| `identity`              | the plan belongs to this snapshot and names every workload once     |
| `admission`             | the workload may start at all, now, in that queue: holds, checks,   |
|                         | array limits, dependencies                                          |
| `assignment`            | counts and flavors are ones that spec quota §7 allows               |
| `quota`                 | everything fits, before and after the victims have left             |
| `limits`                | accounts, QOS and users stay within their limits                    |
| `nodes`                 | every pod has a node that accepts it and has room                   |
| `shared_gpus`           | no GPU is overcommitted                                             |
| `pod_rules`             | host ports, inter-pod (anti-)affinity and spread are kept           |
| `topology`              | pods with a required topology are in one domain                     |
| `purchases`             | what is bought is offered, and within the limits of its pool        |
| `advance_reservations`  | pods avoid nodes that are reserved for others                       |
| `preemption`            | the workload may preempt, and every victim is needed                |
| `victims`               | this workload may be preempted, for the reason given                |
| `shrinking`             | victims that give up only some of their pods                        |
| `backfill_reservations` | every reservation can be kept if all workloads end at their limits  |
| `terminating_pods`      | pods that a workload waits for terminate, and it needs their place  |
| `explanations`          | the numbers of a "no" say no                                        |
| `evictions`             | there was a reason for every eviction that is no preemption         |
| `repair`                | replacement nodes of an admitted gang                               |

`snapshot_index` looks the snapshot up by name; `cache` keeps sums from one plan to the next;
`pods_on_nodes` and `node_occupancy` say which pods are on which nodes; `preemption_case` is one
preemption with all that its rules need. `quota_tree` holds the formulas of spec quota §4 and §9;
property tests compare the engine with it.
"""

from __future__ import annotations

from unisono.engine.audit.admission import check_candidates
from unisono.engine.audit.advance_reservations import check_advance_reservations
from unisono.engine.audit.assignment import check_assignments
from unisono.engine.audit.backfill_reservations import check_backfill_reservations
from unisono.engine.audit.cache import AuditCache
from unisono.engine.audit.evictions import check_evictions
from unisono.engine.audit.explanations import check_explanations
from unisono.engine.audit.identity import check_identity
from unisono.engine.audit.limits import check_limits
from unisono.engine.audit.nodes import check_nodes
from unisono.engine.audit.preemption import check_preemptions
from unisono.engine.audit.purchases import check_purchases, with_bought
from unisono.engine.audit.quota import check_quota
from unisono.engine.audit.snapshot_index import SnapshotIndex
from unisono.engine.audit.terminating_pods import check_terminating_pods
from unisono.engine.audit.violation import Rule, Violation
from unisono.engine.model.plan import Plan
from unisono.engine.model.snapshot import Snapshot

__all__ = ["AuditCache", "Rule", "Violation", "audit"]


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
        *check_nodes(with_bought(index, snapshot.market, plan), plan),
        *check_purchases(index, snapshot.market, plan),
        *check_advance_reservations(index, plan),
        *check_preemptions(index, plan),
        *check_backfill_reservations(index, plan),
        *check_terminating_pods(index, plan),
        *check_explanations(index, plan),
        *check_evictions(index, plan),
    )
