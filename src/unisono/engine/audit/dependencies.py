"""Does nobody start before what it depends on has happened? (spec time §11)

Told by results and by who runs; whether a job of the same name waits again is not looked at.
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
    """Check everybody who starts and depends on others."""
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
        return True  # names that are alike are the planner's business
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
