"""Does no workload start before its dependencies are satisfied? (spec time §11)

Read off results and holdings; whether a job of the same name is pending again is not checked.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.audit.snapshot_index import SnapshotIndex
from unisono.engine.audit.violation import Violation
from unisono.engine.model.dependency import Dependency
from unisono.engine.model.names import Instant
from unisono.engine.model.plan import Plan
from unisono.engine.model.workload import Workload


def check_dependencies(index: SnapshotIndex, plan: Plan) -> Iterator[Violation]:
    """Check every admitted workload with dependencies."""
    for admit in plan.admissions:
        workload = index.waiting.get(admit.workload)
        if workload is None or not workload.depends:
            continue
        met = [_is_met(index, each, plan.now) for each in workload.depends]
        if not (any(met) if workload.depends_on_any else all(met)):
            each = workload.depends[met.index(False)]
            message = f"{each.kind}:{each.on} is not satisfied"
            yield Violation(rule="dependency", workload=workload.key, message=message)


def _is_met(index: SnapshotIndex, each: Dependency, now: Instant) -> bool:
    if each.kind == "singleton":
        return True  # left to the planner: it compares names
    running = [one for one in index.holdings.values() if _job(one.workload) == each.on]
    result = index.results.get(each.on)
    if each.kind == "after":
        starts = [one.running_since for one in running]
        if not starts and result is not None:
            starts = [result.ended_at if result.started_at is None else result.started_at]
        return any(start + each.delay_ms <= now for start in starts)
    if running or result is None:
        return False
    return each.kind == "afterany" or result.succeeded == (each.kind == "afterok")


def _job(workload: Workload) -> str:
    return workload.job or workload.key
