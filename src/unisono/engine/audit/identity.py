"""Does the plan belong to this snapshot, with one decision for every workload?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from unisono.engine.audit.snapshot_index import SnapshotIndex, started_by
from unisono.engine.audit.violation import Violation
from unisono.engine.model.names import QueueName, WorkloadKey
from unisono.engine.model.plan import Plan

# What a plan decides about one workload. A preemptor, and a workload that waits for terminating
# pods, may also be explained: they have to wait. No other two decisions go together.
_Decision = str
_TOGETHER = {("preempting", "waiting"), ("awaiting", "waiting")}


def check_identity(index: SnapshotIndex, plan: Plan) -> Iterator[Violation]:
    """Check version and clock, then which workloads are named, as what, and how often."""
    if plan.based_on != index.version:
        yield Violation(
            rule="version", message=f"made from {plan.based_on}, audited with {index.version}"
        )
    if plan.now < index.now:
        yield Violation(rule="clock", message=f"made at {plan.now}, before {index.now}")
    yield from _check_existence(index, plan)
    yield from _check_decisions(plan)
    if index.policy.backfill is None:  # with it, every pending workload is evaluated
        yield from _check_heads(plan)


def _decisions(plan: Plan) -> Iterator[tuple[WorkloadKey, _Decision]]:
    for admit in plan.admissions:
        yield admit.workload, "admitted"
        if admit.replaces is not None:
            yield admit.replaces, "replaced"
    for preemption in plan.preemptions:
        yield preemption.workload, "preempting"
        for victim in preemption.victims:
            yield victim.workload, "victim"
    for waiting in plan.awaits:
        yield waiting.workload, "awaiting"
    for eviction in plan.evictions_due:
        yield eviction.workload, "stopped"
    for wait in plan.waits:
        yield wait.explanation.workload, "waiting"


def _check_existence(index: SnapshotIndex, plan: Plan) -> Iterator[Violation]:
    for workload, decision in _decisions(plan):
        if decision in ("admitted", "preempting", "awaiting", "waiting"):
            place: Mapping[WorkloadKey, object] = index.waiting
            expected = "waiting"
        else:
            place = index.admitted_workloads
            expected = "holding quota"
        if workload not in place:
            yield Violation(
                rule="unknown-workload",
                workload=workload,
                message=f"{decision} in the plan, but it is not {expected}",
            )


def _check_decisions(plan: Plan) -> Iterator[Violation]:
    found: dict[WorkloadKey, list[_Decision]] = {}
    for workload, decision in _decisions(plan):
        found.setdefault(workload, []).append(decision)
    for workload, decisions in found.items():
        if len(decisions) > 1 and tuple(decisions) not in _TOGETHER:
            yield Violation(
                rule="twice", workload=workload, message=f"it is {' and '.join(decisions)}"
            )


def _check_heads(plan: Plan) -> Iterator[Violation]:
    heads: dict[QueueName, list[WorkloadKey]] = {}
    for decided in started_by(plan):
        heads.setdefault(decided.admission.queue, []).append(decided.workload)
    for queue, workloads in heads.items():
        if len(workloads) > 1:
            yield Violation(
                rule="one-head",
                queue=queue,
                message=f"{len(workloads)} of its workloads start in one cycle: "
                + ", ".join(workloads),
            )
