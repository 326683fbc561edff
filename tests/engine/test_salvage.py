"""What is left of a refused plan: the workloads to blame go, everything else stays."""

from __future__ import annotations

import msgspec

from tests.support.quota_builders import job, queue, snapshot
from unisono.engine.audit import Violation
from unisono.engine.cluster import restore
from unisono.engine.cycle import plan
from unisono.engine.flight import recorded_once, replay
from unisono.engine.model.names import Instant, QueueName, WorkloadKey
from unisono.engine.model.plan import Plan, Preempt, Victim
from unisono.engine.salvage import blamed, single_decisions, without
from unisono.engine.state.cluster import ClusterState

NOW = Instant(0)
FIRST, SECOND = WorkloadKey("ns/first"), WorkloadKey("ns/second")


def two_queues() -> ClusterState:
    return restore(
        snapshot(
            queue("a"),
            queue("b"),
            waiting=(job("first", "a"), job("second", "b")),
        )
    )


def made() -> Plan:
    decided = plan(two_queues(), NOW)
    assert {one.workload for one in decided.admissions} == {FIRST, SECOND}
    return decided


def test_a_violation_blames_the_workload_that_it_names() -> None:
    named = Violation(rule="topology", message="apart", workload=FIRST)
    other = Violation(rule="over-quota", message="too much", queue=QueueName("b"))
    assert blamed(made(), [named, other]) == {FIRST: "topology: apart"}


def test_a_preemptor_is_to_blame_for_its_victims() -> None:
    decided = made()
    (admit, *_) = decided.admissions
    victim = Victim(workload=WorkloadKey("ns/runs"), reason="InClusterQueue")
    preempt = Preempt(workload=admit.workload, admission=admit.admission, victims=(victim,))
    tampered = msgspec.structs.replace(decided, admissions=(), preemptions=(preempt,))
    wrong = Violation(rule="victim-rule", message="no", workload=WorkloadKey("ns/runs"))
    assert blamed(tampered, [wrong]) == {admit.workload: "victim-rule: no"}


def test_the_rest_of_a_plan_says_nothing_about_the_blamed() -> None:
    rest = without(made(), {FIRST})
    assert [one.workload for one in rest.admissions] == [SECOND]
    assert rest.examined == ("b",), "what comes next in its queue was not looked at"


def test_every_decision_stands_alone() -> None:
    parts = dict(single_decisions(made()))
    assert parts.keys() == {FIRST, SECOND}
    assert [one.workload for one in parts[FIRST].admissions] == [FIRST]


def test_a_refused_plan_can_be_replayed() -> None:
    state = two_queues()
    decided = plan(state, NOW)
    ((again, _),) = replay(recorded_once(state, decided))
    assert again.is_identical
