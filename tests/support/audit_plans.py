"""Plans that name nodes, and the demand that they pass the audit or break a rule.

All workloads are in one queue `q` with plenty of quota and may preempt lower priorities; the GPUs
of nodes have the short name `gpu`, as in tests of quota.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tests.support.quota_builders import admission, admit, job, plan, queue, running, snapshot
from unisono.engine.audit import Rule, Violation, audit
from unisono.engine.model.names import NodeName
from unisono.engine.model.node import Node
from unisono.engine.model.plan import Plan
from unisono.engine.model.queue import PreemptionRules
from unisono.engine.model.resources import amounts
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import Admission, AdmittedWorkload, PodSet, Workload


def passes(snapshot: Snapshot, plan: Plan) -> None:
    """Demand that the auditor finds nothing."""
    found = audit(snapshot, plan)
    assert not found, "\n".join(f"{each.rule}: {each.message}" for each in found)


def breaks(rule: Rule, snapshot: Snapshot, plan: Plan) -> Violation:
    """Demand that the auditor finds this rule broken, and return what it says."""
    found = audit(snapshot, plan)
    named = [each for each in found if each.rule == rule]
    assert named, f"{rule} was not noticed, but {[each.rule for each in found]}"
    return named[0]


replace = msgspec.structs.replace
BIG = queue("q", "99", preemption=PreemptionRules(within_queue="LowerPriority"))


def machine(name: str, gpus: int = 8, labels: Mapping[str, str] | None = None, **kw: Any) -> Node:
    """Make a node; `more` is what it has besides GPUs."""
    return Node(
        name=NodeName(name),
        labels=tuple(sorted((labels or {}).items())),
        allocatable=amounts({"gpu": gpus, **kw.pop("more", {})}),
        **kw,
    )


def on(given: Admission, *places: Mapping[str, int]) -> Admission:
    """Say how many pods of each set are on which node."""
    return replace(
        given,
        pod_sets=tuple(
            replace(each, nodes=tuple((NodeName(n), c) for n, c in place.items()))
            for each, place in zip(given.pod_sets, places, strict=True)
        ),
    )


def started(workload: Workload, *places: Mapping[str, int]) -> Plan:
    """Admit a workload whole, with these nodes for its pod sets."""
    return plan(admissions=(admit(workload, admission=on(admission(workload), *places)),))


def there(workload: Workload, *places: Mapping[str, int], **options: Any) -> AdmittedWorkload:
    """Let a workload run on nodes."""
    held = running(workload, **options)
    return replace(held, admission=on(held.admission, *places))


def world(*nodes: Node, **options: Any) -> Snapshot:
    """Make a snapshot of the one queue and these nodes."""
    return snapshot(BIG, nodes=nodes, **options)


def of(*pod_sets: PodSet, name: str = "a", **options: Any) -> Workload:
    """Make a workload of these pod sets."""
    return job(name, "q", pod_sets=pod_sets, **options)
