"""More of an array than may run at a time are caught."""

from __future__ import annotations

import msgspec

from tests.support.audit_plans import breaks, passes
from tests.support.quota_builders import admit, job, plan, queue, running, snapshot
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import Workload

A, B = (msgspec.structs.replace(job(name, "q"), array="ns/sweep", array_limit=1) for name in "ab")


def cluster(*waiting: Workload, admitted: Workload | None = None) -> Snapshot:
    admitted_workloads = () if admitted is None else (running(admitted),)
    return snapshot(queue("q", "9"), waiting=waiting, admitted_workloads=admitted_workloads)


def test_starting_and_running_workloads_count_together() -> None:
    passes(cluster(A), plan(admissions=(admit(A),)))
    breaks("array", cluster(B, admitted=A), plan(admissions=(admit(B),)))
    other = msgspec.structs.replace(A, array="ns/other")
    passes(cluster(B, admitted=other), plan(admissions=(admit(B),)))
