"""Two words for tests of plans: it passes the audit, or it breaks a rule."""

from __future__ import annotations

from unisono.engine.audit import Rule, Violation, audit
from unisono.engine.model.plan import Plan
from unisono.engine.model.snapshot import Snapshot


def passes(snapshot: Snapshot, plan: Plan) -> None:
    """Demand that the auditor finds nothing."""
    found = audit(snapshot, plan)
    assert not found, "\n".join(f"{each.rule}: {each.message}" for each in found)


def breaks(rule: Rule, snapshot: Snapshot, plan: Plan) -> Violation:
    """Demand that the auditor finds this rule broken, and return what it says."""
    found = audit(snapshot, plan)
    named = [each for each in found if each.rule == rule]
    assert named, f"{rule} was not noticed, but {[each.rule for each in found]}"
    return named[0]
