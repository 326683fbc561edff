"""The second opinion: recompute what a plan must never break, from snapshot and plan alone.

It shares nothing with the planner but the model's values, and is written for being obviously
right: dictionaries, loops, formulas as the spec prints them, no cleverness, no speed beyond
caching a number that was already computed. An empty answer means that nothing was found.

| module        | asks                                                                      |
| ------------- | ------------------------------------------------------------------------- |
| `identity`    | does the plan belong to this snapshot, and is everybody in it once?        |
| `admission`   | may this workload start at all, now, in that queue?                        |
| `arrays`      | do no more of an array run than may at a time?                             |
| `dependencies`| has happened what it depends on?                                           |
| `assignment`  | are its counts and flavors ones that spec quota §7 allows?                 |
| `quota`       | does everything fit, before and after the victims have left?               |
| `limits`      | do accounts, QOS and users stay within what they may have?                 |
| `nodes`       | has every pod a node where it may run and where there is room?             |
| `pod_rules`   | are ports, (anti-)affinity and spread between pods kept?                   |
| `reservations`| do pods keep off nodes that are reserved for others?                        |
| `topology`    | are pods in one domain that have to be?                                    |
| `purchases`   | is what is bought for sale, and within the limits of its pool?             |
| `preemption`  | may it make others leave, is each victim needed, was the quota borrowed?   |
| `victims`     | may this victim be made to leave, for the reason given?                    |
| `dates`       | can every date be kept if everybody ends at their limit?                   |
| `awaits`      | do the pods leave that somebody waits for, and does it need them gone?     |
| `explanations`| do the numbers of a "no" say no?                                           |
| `stops`       | was there a reason to take quota away?                                     |

`snapshot_index` looks the snapshot up by name, `cache` keeps the sums of the plan before,
`pods_on_nodes` and `node_occupancy` list pods, `preemption_case` is one preemption with all its
rules need. `quota_tree` holds the formulas of spec quota §4 and §9; property tests compare the
engine with it.
"""

from __future__ import annotations

from unisono.engine.audit.admission import check_candidates
from unisono.engine.audit.arrays import check_arrays
from unisono.engine.audit.assignment import check_assignments
from unisono.engine.audit.awaits import check_awaits
from unisono.engine.audit.cache import AuditCache
from unisono.engine.audit.dates import check_dates
from unisono.engine.audit.dependencies import check_dependencies
from unisono.engine.audit.explanations import check_explanations
from unisono.engine.audit.identity import check_identity
from unisono.engine.audit.limits import check_limits
from unisono.engine.audit.nodes import check_nodes
from unisono.engine.audit.preemption import check_preemptions
from unisono.engine.audit.purchases import check_purchases, with_bought
from unisono.engine.audit.quota import check_quota
from unisono.engine.audit.reservations import check_reservations
from unisono.engine.audit.snapshot_index import SnapshotIndex
from unisono.engine.audit.stops import check_stops
from unisono.engine.audit.violation import Rule, Violation
from unisono.engine.model.plan import Plan
from unisono.engine.model.snapshot import Snapshot

__all__ = ["AuditCache", "Rule", "Violation", "audit"]


def audit(snapshot: Snapshot, plan: Plan, cache: AuditCache | None = None) -> tuple[Violation, ...]:
    """List every promise that the plan would break, in the order in which it was looked for.

    A caller that audits one plan after the other keeps a `cache`: what has not changed since the
    last plan is then not added up again.
    """
    index = SnapshotIndex(snapshot, cache)
    return (
        *check_identity(index, plan),
        *check_candidates(index, plan),
        *check_arrays(index, plan),
        *check_dependencies(index, plan),
        *check_assignments(index, plan),
        *check_quota(index, plan),
        *check_limits(index, plan),
        *check_nodes(with_bought(index, snapshot.market, plan), plan),
        *check_purchases(index, snapshot.market, plan),
        *check_reservations(index, plan),
        *check_preemptions(index, plan),
        *check_dates(index, plan),
        *check_awaits(index, plan),
        *check_explanations(index, plan),
        *check_stops(index, plan),
    )
