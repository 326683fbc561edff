"""A victim that gives up the wrong pods, too many of them, or pods that it needs, is caught."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.support.audit_plans import breaks, passes
from tests.support.quota_builders import job, plan, pods, preempt, queue, running, snapshot
from unisono.engine.model.plan import Plan
from unisono.engine.model.policy import Policy
from unisono.engine.model.queue import PreemptionRules
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import Admission, AdmittedWorkload

replace = msgspec.structs.replace
WITHIN = PreemptionRules(within_queue="LowerPriority")


def elastic(least: int = 2, **options: Any) -> AdmittedWorkload:
    """Five pods of one GPU, of which some may go."""
    sets = (pods(5, {"gpu": 1}, min_count=least),)
    return running(job("elastic", "q", pod_sets=sets, can_shrink=True, **options))


def world(held: AdmittedWorkload, wanted: int = 2, **options: Any) -> Snapshot:
    """A queue of five GPUs, all in use, and a workload that may preempt."""
    high = job("high", "q", wanted, priority=9)
    rules = queue("q", "5", preemption=WITHIN)
    return snapshot(rules, waiting=(high,), admitted_workloads=(held,), **options)


def shrinking(around: Snapshot, count: int, **changed: Any) -> Plan:
    """Let the gang go on with so many pods."""
    held = around.admitted_workloads[0]
    first = replace(held.admission.pod_sets[0], count=count, **changed)
    keeps = replace(held.admission, pod_sets=(first,))
    return _keeping(around, keeps)


def _keeping(around: Snapshot, keeps: Admission, *, marked: bool = False) -> Plan:
    made = preempt(around.waiting[0], "elastic")
    victim = replace(made.victims[0], keeps=keeps, already_evicting=marked)
    return plan(preemptions=(replace(made, victims=(victim,)),))


def test_as_many_pods_as_are_needed_may_be_released() -> None:
    around = world(elastic())
    passes(around, shrinking(around, 3))


def test_neither_too_few_nor_too_many() -> None:
    around = world(elastic())
    breaks("preemption-short", around, shrinking(around, 4))
    assert "keep more" in breaks("victim-needless", around, shrinking(around, 2)).message


def test_a_victim_that_can_shrink_is_not_evicted() -> None:
    around = world(elastic())
    leaves = plan(preemptions=(preempt(around.waiting[0], "elastic"),))
    assert "keep more" in breaks("victim-needless", around, leaves).message
    passes(world(elastic(least=4)), leaves)


@pytest.mark.parametrize(
    ("held", "problem"),
    [
        (elastic(least=4), "at least 4"),
        (elastic(min_total=4), "4 have to run together"),
        (running(job("elastic", "q", pod_sets=(pods(5, {"gpu": 1}, min_count=2),))), "cannot do"),
    ],
)
def test_what_it_needs_stays(held: AdmittedWorkload, problem: str) -> None:
    around = world(held)
    assert problem in breaks("victim-part", around, shrinking(around, 3)).message


def test_it_stays_what_it_is() -> None:
    around = world(elastic())
    breaks("victim-part", around, shrinking(around, 5))
    breaks("victim-part", around, shrinking(around, 3, flavors=()))
    breaks("victim-part", around, shrinking(around, 3, name="other"))
    breaks("victim-part", world(elastic(), policy=Policy(strict=True)), shrinking(around, 3))


def test_only_the_highest_ranks_are_released() -> None:
    held = elastic()
    placed = replace(held.admission.pod_sets[0], nodes=(("n1", 3), ("n2", 2)))
    around = world(replace(held, admission=replace(held.admission, pod_sets=(placed,))))
    breaks("victim-part", around, shrinking(around, 3, nodes=(("n1", 1), ("n2", 2))))


def test_a_shrinking_victim_is_marked_and_keeps_no_more_pods() -> None:
    around = world(elastic())
    three = shrinking(around, 3).preemptions[0].victims[0].keeps
    assert three is not None
    marked = replace(
        around, admitted_workloads=(replace(around.admitted_workloads[0], keeps=three),)
    )
    passes(marked, _keeping(marked, three, marked=True))
    breaks("victim-flag", marked, shrinking(marked, 3))
    breaks("victim-part", marked, shrinking(marked, 4))
