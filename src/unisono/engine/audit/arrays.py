"""Do no more workloads of an array run than may at a time? (spec time §9)"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.audit.violation import Violation
from unisono.engine.audit.world import World
from unisono.engine.model.plan import Plan


def check_arrays(world: World, plan: Plan) -> Iterator[Violation]:
    """Count every array that the plan starts somebody of."""
    for admit in plan.admissions:
        workload = world.waiting.get(admit.workload)
        if workload is None or not workload.array:
            continue
        starting = {one.workload for one in plan.admissions}
        ending = {one.replaces for one in plan.admissions}
        running = [
            holding.workload.key
            for holding in world.holdings.values()
            if holding.workload.array == workload.array and holding.workload.key not in ending
        ]
        with_it = [
            other.key
            for other in world.waiting.values()
            if other.array == workload.array and other.key in starting
        ]
        if len(running) + len(with_it) > workload.array_limit:
            message = f"{len(running)} of {workload.array} run and {len(with_it)} start"
            yield Violation(
                rule="array",
                workload=workload.key,
                message=f"{message}; at most {workload.array_limit} may",
            )
