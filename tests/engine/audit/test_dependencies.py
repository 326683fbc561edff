"""A workload that starts before its dependencies are satisfied is caught."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.audit_plans import breaks, passes
from tests.support.quota_builders import admit, job, plan, queue, running, snapshot
from unisono.engine.model.names import Instant
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import (
    AdmittedWorkload,
    Dependency,
    DependencyKind,
    Result,
    Workload,
)

replace = msgspec.structs.replace


def after(kind: DependencyKind, delay_ms: int = 0) -> Workload:
    each = Dependency(kind=kind, on="ns/x", delay_ms=delay_ms)
    return replace(job("a", "q"), depends=(each,))


def cluster(
    waiting: Workload,
    *,
    succeeded: bool | None = None,
    admitted_workloads: tuple[AdmittedWorkload, ...] = (),
) -> Snapshot:
    result = Result(job="ns/x", succeeded=bool(succeeded), ended_at=Instant(0))
    return snapshot(
        queue("q", "9"),
        waiting=(waiting,),
        admitted_workloads=admitted_workloads,
        results=() if succeeded is None else (result,),
    )


@pytest.mark.parametrize(
    ("kind", "succeeded", "is_met"),
    [
        ("afterok", True, True),
        ("afterok", False, False),
        ("afterok", None, False),
        ("afternotok", True, False),
        ("afternotok", False, True),
        ("afterany", False, True),
        ("afterany", None, False),
        ("after", True, True),
        ("after", None, False),
    ],
)
def test_results_decide(kind: DependencyKind, succeeded: bool | None, is_met: bool) -> None:
    waiting = after(kind)
    seen, made = cluster(waiting, succeeded=succeeded), plan(admissions=(admit(waiting),))
    if is_met:
        passes(seen, made)
    else:
        breaks("dependency", seen, made)


def test_one_that_runs_is_not_over_but_started() -> None:
    runs = (running(replace(job("x", "q"), job="ns/x")),)
    waiting = after("afterany")
    breaks(
        "dependency", cluster(waiting, admitted_workloads=runs), plan(admissions=(admit(waiting),))
    )
    waiting = after("after")
    passes(cluster(waiting, admitted_workloads=runs), plan(admissions=(admit(waiting),)))
    waiting = after("after", delay_ms=10**9)
    breaks(
        "dependency", cluster(waiting, admitted_workloads=runs), plan(admissions=(admit(waiting),))
    )


def test_any_of_several_will_do() -> None:
    both = replace(after("afterok"), depends=(*after("afterok").depends, *after("after").depends))
    seen = cluster(both, succeeded=False)
    breaks("dependency", seen, plan(admissions=(admit(both),)))
    either = replace(both, depends_on_any=True)
    passes(cluster(either, succeeded=False), plan(admissions=(admit(either),)))
