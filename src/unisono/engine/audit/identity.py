"""Does the plan belong to this snapshot, and does everybody in it have one fate?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from unisono.engine.audit.snapshot_index import SnapshotIndex, started_by
from unisono.engine.audit.violation import Violation
from unisono.engine.model.names import QueueName, WorkloadKey
from unisono.engine.model.plan import Plan

# What a plan may do with one workload. A preemptor may also be explained, and who waits for
# pods: they have to wait. Nothing else goes together.
_Fate = str
_TOGETHER = {("preempting", "waiting"), ("awaiting", "waiting")}


def check_identity(index: SnapshotIndex, plan: Plan) -> Iterator[Violation]:
    """Check version and clock, then who is named, where, and how often."""
    if plan.based_on != index.version:
        yield Violation(
            rule="version", message=f"made from {plan.based_on}, audited with {index.version}"
        )
    if plan.now < index.now:
        yield Violation(rule="clock", message=f"made at {plan.now}, before {index.now}")
    yield from _check_existence(index, plan)
    yield from _check_fates(plan)
    if index.policy.backfill is None:  # with it, everybody who waits has a turn
        yield from _check_heads(plan)


def _fates(plan: Plan) -> Iterator[tuple[WorkloadKey, _Fate]]:
    for admit in plan.admissions:
        yield admit.workload, "admitted"
        if admit.replaces is not None:
            yield admit.replaces, "replaced"
    for preemption in plan.preemptions:
        yield preemption.workload, "preempting"
        for victim in preemption.victims:
            yield victim.workload, "victim"
    for patient in plan.awaits:
        yield patient.workload, "awaiting"
    for stop in plan.stops:
        yield stop.workload, "stopped"
    for wait in plan.waits:
        yield wait.explanation.workload, "waiting"


def _check_existence(index: SnapshotIndex, plan: Plan) -> Iterator[Violation]:
    for workload, fate in _fates(plan):
        if fate in ("admitted", "preempting", "awaiting", "waiting"):
            place: Mapping[WorkloadKey, object] = index.waiting
            expected = "waiting"
        else:
            place = index.holdings
            expected = "holding quota"
        if workload not in place:
            yield Violation(
                rule="unknown-workload",
                workload=workload,
                message=f"{fate} in the plan, but it is not {expected}",
            )


def _check_fates(plan: Plan) -> Iterator[Violation]:
    found: dict[WorkloadKey, list[_Fate]] = {}
    for workload, fate in _fates(plan):
        found.setdefault(workload, []).append(fate)
    for workload, fates in found.items():
        if len(fates) > 1 and tuple(fates) not in _TOGETHER:
            yield Violation(rule="twice", workload=workload, message=f"it is {' and '.join(fates)}")


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
