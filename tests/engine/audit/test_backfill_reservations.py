"""Dates that cannot be kept are caught."""

from __future__ import annotations

import msgspec

from tests.support.audit_plans import breaks, machine, of, passes, started, there, world
from tests.support.quota_builders import pods
from unisono.engine.model.names import Instant
from unisono.engine.model.plan import BackfillReservation, Plan
from unisono.engine.model.policy import Backfill, Policy
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import Workload

replace = msgspec.structs.replace
POLICY = Policy(backfill=Backfill(dates=1))


def lasting(workload: Workload, ms: int, name: str) -> Workload:
    return replace(workload, time_limit_ms=ms, key=f"ns/{name}", uid=name)


BIG = lasting(of(pods(1, {"gpu": 8})), 100, "big")
RUNS = lasting(of(pods(1, {"gpu": 4})), 50, "runs")
SHORT = lasting(of(pods(1, {"gpu": 4})), 50, "short")
LONG = lasting(of(pods(1, {"gpu": 4})), 51, "long")


def cluster(*waiting: Workload) -> Snapshot:
    admitted = there(RUNS, {"n1": 1})
    return replace(
        world(machine("n1"), waiting=waiting, admitted_workloads=(admitted,)), policy=POLICY
    )


def reserving(plan: Plan, start: int) -> Plan:
    date = BackfillReservation(workload=BIG.key, start=Instant(start), end=Instant(start + 100))
    return replace(plan, reservations=(date,))


def test_a_reservation_starts_when_enough_has_ended() -> None:
    passes(cluster(BIG), reserving(Plan(based_on=0, now=Instant(0)), 50))
    breaks("reservation", cluster(BIG), reserving(Plan(based_on=0, now=Instant(0)), 49))


def test_backfilled_workloads_end_before_the_reservation() -> None:
    passes(cluster(BIG, SHORT), reserving(started(SHORT, {"n1": 1}), 50))
    breaks("reservation", cluster(BIG, LONG), reserving(started(LONG, {"n1": 1}), 50))


def test_a_reservation_is_in_the_future() -> None:
    breaks("reservation", cluster(BIG), reserving(Plan(based_on=0, now=Instant(60)), 60))
