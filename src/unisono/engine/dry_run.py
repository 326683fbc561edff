"""Dry run: apply plans to the engine's own state, as if the cluster obeyed at once.

`unisono decide`, scenarios and simulations ask "and then?": victims are gone immediately, give
their quota back and are pending again. Every plan passes the auditor before it counts.
"""

from __future__ import annotations

import msgspec

from unisono.engine.audit import AuditCache, audit, audit_repair
from unisono.engine.cycle import Decides, plan
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import DueEviction, Plan, evictions, shrinks
from unisono.engine.model.provisioning import Purchase
from unisono.engine.model.workload import Admission
from unisono.engine.state.apply_plan import apply_plan
from unisono.engine.state.changes import TimePassed, WorkloadHolds, WorkloadWaits
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.lifecycle import after_eviction, after_preemption
from unisono.engine.state.snapshots import snapshot_for

# With the two anti-thrash rules every event ends in a fixed point. Kueue's own rules may loop for
# ever (spec quota §18.2), so a dry run stops after this many that changed something.
MOST_CYCLES = 100_000


class BrokenPlan(AssertionError):
    """The auditor found a plan that breaks an invariant: a bug in the engine."""


def one_cycle(
    state: ClusterState, now: Instant, *, checked: bool = True, decides: Decides = plan
) -> tuple[Plan, bool]:
    """Decide and file one cycle; victims stay on their way out. Say whether it changed anything."""
    if now > state.now:
        state.apply(TimePassed(now))
    made = decides(state, now)
    if checked:
        refuse_if_broken(state, made)
    return made, apply_plan(state, made)


def dry_run(
    state: ClusterState,
    now: Instant,
    *,
    most_cycles: int = MOST_CYCLES,
    checked: bool = True,
    decides: Decides = plan,
) -> list[Plan]:
    """Decide until a cycle changes nothing; return the plans that changed something."""
    made: list[Plan] = []
    while len(made) < most_cycles:
        current, changed = one_cycle(state, now, checked=checked, decides=decides)
        if not changed:
            break
        made.append(current)
        due = {one.workload: one for one in current.evictions_due}
        for eviction in evictions(current):
            leave(state, eviction.workload, now, due.get(eviction.workload))
        for shrink in shrinks(current):
            give_up(state, shrink.workload)
    return made


def refuse_if_broken(state: ClusterState, made: Plan, cache: AuditCache | None = None) -> None:
    """Ask the auditor for a second opinion; with a cache it counts only what has changed."""
    violations = audit(snapshot_for(state, made), made, cache)
    if violations:
        raise BrokenPlan("; ".join(str(violation) for violation in violations))


def refuse_broken_repair(
    state: ClusterState, key: WorkloadKey, repaired: Admission, purchase: Purchase | None = None
) -> None:
    """Ask the auditor about the new nodes of an admitted workload."""
    nothing = Plan(based_on=state.version, now=state.now)
    workload = state.running[key].admitted.workload
    violations = audit_repair(snapshot_for(state, nothing), workload, repaired, purchase)
    if violations:
        raise BrokenPlan("; ".join(str(violation) for violation in violations))


def leave(
    state: ClusterState, key: WorkloadKey, now: Instant, due: DueEviction | None = None
) -> None:
    """Let an evicted workload's pods be gone: it gives its quota back and waits again."""
    running = state.running[key]
    if due is not None:
        workload = after_eviction(running.admitted, due, state.policy, now)
    else:
        calm_ms = running.cq.spec.preemption.min_runtime_ms
        workload = after_preemption(running.admitted, now, calm_ms=calm_ms)
    state.apply(WorkloadWaits(workload))


def give_up(state: ClusterState, key: WorkloadKey) -> None:
    """Let the pods be gone that a workload has to give up: it goes on with the others."""
    admitted = state.running[key].admitted
    assert admitted.keeps is not None, f"{key} has nothing to give up"
    smaller = msgspec.structs.replace(admitted, admission=admitted.keeps, keeps=None)
    state.apply(WorkloadHolds(smaller))
