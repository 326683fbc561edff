"""Does an array run no more workloads than its limit? (spec time §9)"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.audit.snapshot_index import SnapshotIndex
from unisono.engine.audit.violation import Violation
from unisono.engine.model.plan import Plan


def check_arrays(index: SnapshotIndex, plan: Plan) -> Iterator[Violation]:
    """Check every array of which the plan starts a workload."""
    for admit in plan.admissions:
        workload = index.waiting.get(admit.workload)
        if workload is None or not workload.array:
            continue
        starting = {one.workload for one in plan.admissions}
        ending = {one.replaces for one in plan.admissions}
        running = [
            holding.workload.key
            for holding in index.holdings.values()
            if holding.workload.array == workload.array and holding.workload.key not in ending
        ]
        with_it = [
            other.key
            for other in index.waiting.values()
            if other.array == workload.array and other.key in starting
        ]
        if len(running) + len(with_it) > workload.array_limit:
            message = f"{len(running)} of {workload.array} run and {len(with_it)} start"
            yield Violation(
                rule="array",
                workload=workload.key,
                message=f"{message}; at most {workload.array_limit} may",
            )
