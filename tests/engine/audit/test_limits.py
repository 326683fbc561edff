"""The auditor counts limits by itself: a plan that breaks one is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.support.priority_builders import TREE, cluster, job, multifactor_rules
from unisono.engine.audit import audit
from unisono.engine.cycle import plan
from unisono.engine.dry_run import dry_run
from unisono.engine.model.multifactor import Association, Limits, MultifactorRules, Qos
from unisono.engine.model.policy import Policy
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.state import changes
from unisono.engine.state.snapshots import snapshot

GPU = "gres/gpu"


def rules_of(**limits: Any) -> tuple[MultifactorRules, MultifactorRules]:
    """Return rules without limits, and the same with some on a QOS and on an account."""
    qos = Qos(name="normal", limits=Limits(**limits))
    tree = (*TREE[1:], Association(account="prod", limits=Limits(group_jobs=2)))
    free = multifactor_rules(partitions=(), qos=(Qos(name="normal"),))
    return free, multifactor_rules(partitions=(), qos=(qos,), associations=tree)


def world_with(limits: dict[str, Any], *, held: bool = False) -> tuple[Snapshot, Any]:
    """Return a plan made without limits, and its snapshot with limits."""
    free, limited = rules_of(**limits)
    state = cluster(free)
    state.apply(changes.WorkloadWaits(job("a", gpu=4, cpu=4, account="prod", user="mail")))
    dry_run(state, state.now)
    state.apply(changes.WorkloadWaits(job("b", gpu=4, cpu=4, account="prod", user="mail")))
    made = plan(state, state.now)
    seen = msgspec.structs.replace(snapshot(state), policy=Policy(multifactor=limited))
    if held:
        waiting = tuple(
            msgspec.structs.replace(
                one, submit_options=msgspec.structs.replace(one.submit_options, hold="user")
            )
            for one in seen.waiting
        )
        seen = msgspec.structs.replace(seen, waiting=waiting)
    return seen, made


@pytest.mark.parametrize(
    "limits",
    [
        {"group_tres": ((GPU, 7000),)},
        {"tres_per_user": (("mem", 8_191_000),)},
        {"group_jobs": 1},
        {"jobs_per_user": 1},
    ],
)
def test_too_much_is_found(limits: dict[str, Any]) -> None:
    seen, made = world_with(limits)
    assert [one.rule for one in audit(seen, made)] == ["over-limit"]


def test_exactly_the_limit_is_fine() -> None:
    limits = {"group_tres": ((GPU, 8000), ("cpu", 8000)), "jobs_per_user": 2}
    assert audit(*world_with(limits)) == ()


def test_a_held_workload_does_not_start() -> None:
    seen, made = world_with({}, held=True)
    assert [one.rule for one in audit(seen, made)] == ["not-queueable"]
