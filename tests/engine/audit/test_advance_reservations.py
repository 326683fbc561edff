"""Pods and dates on nodes that are reserved for others are caught."""

from __future__ import annotations

import msgspec

from tests.support.audit_plans import breaks, machine, of, passes, started, world
from tests.support.quota_builders import pods
from unisono.engine.model.explanation import Explanation, Reserved
from unisono.engine.model.names import Instant, NodeName
from unisono.engine.model.plan import BackfillReservation, Plan, Wait
from unisono.engine.model.policy import AdvanceReservation, Backfill, Policy
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import Workload

replace = msgspec.structs.replace
COOLING = AdvanceReservation(
    name="cooling", start=Instant(100), end=Instant(200), nodes=(NodeName("n1"),)
)
JOB = replace(of(pods(1, {"gpu": 8})), time_limit_ms=101)
SHORT = replace(JOB, time_limit_ms=100)


def cluster(workload: Workload, reservation: AdvanceReservation = COOLING) -> Snapshot:
    policy = Policy(backfill=Backfill(), reservations=(reservation,))
    return replace(world(machine("n1"), waiting=(workload,)), policy=policy)


def reserving(start: int) -> Plan:
    date = BackfillReservation(workload=JOB.key, start=Instant(start), end=Instant(start + 101))
    return Plan(based_on=0, now=Instant(0), reservations=(date,))


def test_no_workload_starts_into_an_advance_reservation() -> None:
    passes(cluster(SHORT), started(SHORT, {"n1": 1}))
    breaks("reserved", cluster(JOB), started(JOB, {"n1": 1}))
    breaks("reserved", cluster(JOB, replace(COOLING, nodes=())), started(JOB, {"n1": 1}))
    elsewhere = replace(COOLING, nodes=(NodeName("n2"),))
    passes(cluster(JOB, elsewhere), started(JOB, {"n1": 1}))
    mine = replace(COOLING, local_queues=(JOB.queue,))
    passes(cluster(JOB, mine), started(JOB, {"n1": 1}))


def test_one_that_comes_again_counts_every_time() -> None:
    day = 24 * 3600 * 1000
    again = replace(COOLING, start=Instant(100 - day), end=Instant(200 - day))
    passes(cluster(JOB, again), started(JOB, {"n1": 1}))
    breaks("reserved", cluster(JOB, replace(again, repeat="daily")), started(JOB, {"n1": 1}))
    passes(cluster(SHORT, replace(again, repeat="daily")), started(SHORT, {"n1": 1}))


def test_a_backfill_reservation_avoids_reserved_nodes() -> None:
    breaks("reserved", cluster(JOB), reserving(1))
    breaks("reserved", cluster(JOB), reserving(199))
    passes(cluster(JOB), reserving(200))


def test_what_is_reported_as_reserved_is() -> None:
    fact = Reserved(name="cooling", start=Instant(100), end=Instant(200), nodes=1, limit_ms=101)
    why = Explanation(workload=JOB.key, queue=None, blockers=(fact,))
    plan = Plan(based_on=0, now=Instant(0), waits=(Wait(outcome="line", explanation=why),))
    passes(cluster(JOB), plan)
    breaks("explanation", cluster(SHORT), plan)
