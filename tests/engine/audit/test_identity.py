"""Plans that belong to another snapshot, or decide twice about a workload, are caught."""

from __future__ import annotations

from tests.support.audit_plans import breaks, passes
from tests.support.quota_builders import admit, job, plan, preempt, queue, running, snapshot
from unisono.engine.model.explanation import Deactivated, Explanation, WaitingForVictims
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import DueEviction, Outcome, Wait
from unisono.engine.model.queue import PreemptionRules
from unisono.engine.model.workload import Workload

RULES = PreemptionRules(within_queue="LowerPriority")
A = job("a", "q", 2)
LOW = job("low", "q", 4)
HIGH = job("high", "q", 4, priority=9)


def wait(workload: Workload, outcome: Outcome = "retry") -> Wait:
    explanation = Explanation(workload=workload.key, queue=None, blockers=(Deactivated(),))
    return Wait(outcome=outcome, explanation=explanation)


def test_a_plan_belongs_to_one_version() -> None:
    world = snapshot(queue("q"), version=7)
    passes(world, plan(based_on=7))
    breaks("version", world, plan(based_on=6))


def test_a_plan_is_not_older_than_its_snapshot() -> None:
    world = snapshot(queue("q"), now=Instant(5))
    passes(world, plan(now=Instant(5)))
    breaks("clock", world, plan(now=Instant(4)))


def test_workloads_are_pending_or_admitted_as_the_plan_says() -> None:
    empty = snapshot(queue("q"))
    breaks("unknown-workload", empty, plan(admissions=(admit(A),)))
    breaks("unknown-workload", empty, plan(waits=(wait(A),)))
    breaks("unknown-workload", empty, plan(preemptions=(preempt(A, "low"),)))
    stop = DueEviction(workload=A.key, reason="ClusterQueueStopped")
    breaks("unknown-workload", empty, plan(evictions_due=(stop,)))
    runs = snapshot(queue("q"), admitted_workloads=(running(A),))
    breaks("unknown-workload", runs, plan(admissions=(admit(A),)))
    waits = snapshot(queue("q", preemption=RULES), waiting=(HIGH, LOW))
    breaks("unknown-workload", waits, plan(preemptions=(preempt(HIGH, "low"),)))
    gone = admit(A, replaces=WorkloadKey("ns/gone"))
    breaks("unknown-workload", snapshot(queue("q"), waiting=(A,)), plan(admissions=(gone,)))


def test_one_decision_per_workload() -> None:
    world = snapshot(queue("q"), waiting=(A,))
    passes(world, plan(admissions=(admit(A),)))
    breaks("twice", world, plan(admissions=(admit(A), admit(A))))
    breaks("twice", world, plan(admissions=(admit(A),), waits=(wait(A),)))
    breaks("twice", world, plan(waits=(wait(A), wait(A))))


def test_a_preemptor_may_have_an_explanation() -> None:
    world = snapshot(
        queue("q", preemption=RULES), waiting=(HIGH,), admitted_workloads=(running(LOW),)
    )
    explanation = Explanation(
        workload=HIGH.key, queue=None, blockers=(WaitingForVictims(victims=(LOW.key,)),)
    )
    preemption = preempt(HIGH, "low")
    explained = Wait(outcome="sticky", explanation=explanation)
    passes(world, plan(preemptions=(preemption,), waits=(explained,)))
    breaks("twice", world, plan(preemptions=(preemption,), waits=(explained, explained)))
    breaks("twice", world, plan(preemptions=(preemption,), admissions=(admit(HIGH),)))


def test_a_victim_has_one_preemptor() -> None:
    reclaim = PreemptionRules(reclaim="Any")
    h, t = job("h", "h", 4), job("t", "t", 2)
    big = job("big", "r", 8)
    world = snapshot(
        queue("h", "4", "k", preemption=reclaim),
        queue("t", "2", "k", preemption=reclaim),
        queue("r", "2", "k"),
        waiting=(h, t),
        admitted_workloads=(running(big),),
    )
    for_h = preempt(h, "big", reason="InCohortReclamation")
    for_t = preempt(t, "big", reason="InCohortReclamation")
    passes(world, plan(preemptions=(for_h,)))
    breaks("twice", world, plan(preemptions=(for_h, for_t)))
    stop = DueEviction(workload=big.key, reason="ClusterQueueStopped")
    breaks("twice", world, plan(preemptions=(for_h,), evictions_due=(stop,)))


def test_a_queue_decides_about_one_workload_a_cycle() -> None:
    b = job("b", "q", 2)
    world = snapshot(queue("q"), waiting=(A, b))
    breaks("one-head", world, plan(admissions=(admit(A), admit(b))))
