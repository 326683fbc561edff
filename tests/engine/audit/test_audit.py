"""The audit as a whole: deterministic, silent about good plans, and every rule seen to fail."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import msgspec
import pytest

from tests.support.audit_plans import passes
from tests.support.quota_builders import admit, job, plan, preempt, queue, running, snapshot
from unisono.engine.audit import Rule, Violation, audit
from unisono.engine.model.plan import Plan
from unisono.engine.model.queue import BorrowWithinCohort, PreemptionRules

HERE = Path(__file__).parent


def test_an_empty_plan_is_a_good_plan() -> None:
    passes(snapshot(), plan())
    passes(snapshot(queue("q"), admitted_workloads=(running(job("over", "q", 99)),)), plan())


def test_scenario_78_a_plan_as_users_see_it() -> None:
    """Team B borrowed 6 of 10; team A, which may preempt while borrowing, wants all of them."""
    rules = PreemptionRules(
        reclaim="Any",
        borrow=BorrowWithinCohort(policy="LowerPriority", max_priority_threshold=100),
    )
    prod, small = job("prod", "team-a", 10, priority=1000), job("small", "alone", 4)
    world = snapshot(
        queue("team-a", "0", "k", preemption=rules),
        queue("team-b", "0", "k"),
        queue("shared", "10", "k"),
        queue("alone", "4"),
        waiting=(prod, small),
        admitted_workloads=(running(job("dev", "team-b", 6, priority=100)),),
    )
    leave = preempt(prod, "dev", reason="InCohortReclaimWhileBorrowing")
    passes(world, plan(admissions=(admit(small),), preemptions=(leave,)))


def test_violations_come_in_one_order_and_encode() -> None:
    made = plan(
        based_on=3,
        admissions=tuple(admit(job(name, "nowhere")) for name in "cab"),
        preemptions=(preempt(job("p", "q"), "z", "y"),),
    )
    world = snapshot(queue("q"), waiting=(job("c", "nowhere"),))
    found = audit(world, made)
    assert found == audit(world, made)
    assert found[0] == Violation(rule="version", message="made from 3, audited with 0")
    assert msgspec.json.decode(msgspec.json.encode(found), type=tuple[Violation, ...]) == found


def test_a_plan_read_back_from_a_file_is_audited_alike() -> None:
    a = job("a", "q", 9)
    made = plan(admissions=(admit(a),))
    world = snapshot(queue("q"), waiting=(a,))
    again = msgspec.json.decode(msgspec.json.encode(made), type=Plan)
    assert audit(world, again) == audit(world, made) != ()


# "auditor" is no rule that it checks: it stands for an exception (tests/control/scheduler).
@pytest.mark.parametrize("rule", sorted({*get_args(Rule)} - {"auditor"}))
def test_every_rule_was_seen_to_fail(rule: str) -> None:
    written = "".join(path.read_text(encoding="utf-8") for path in sorted(HERE.glob("test_*.py")))
    assert f'"{rule}"' in written, f"no test breaks {rule}"
