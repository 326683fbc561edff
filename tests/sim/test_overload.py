"""A cluster that is asked for far too much: short cuts in the search for victims change nothing."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from unisono.cli.sim.inputs import cluster_nodes
from unisono.engine.cycle import plan
from unisono.engine.model.names import Instant
from unisono.engine.model.plan import Plan
from unisono.engine.model.queue import PreemptionRules
from unisono.engine.preemption import classical
from unisono.engine.preemption.candidates import PreemptionRequest
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.cluster_queue import Running
from unisono.sim.generators import gpu
from unisono.sim.loop import simulate
from unisono.sim.setup import POLICIES, Rules, with_overrun

pytestmark = pytest.mark.slow

URGENT = PreemptionRules(within_queue="LowerPriority", reclaim="Any")


def plans_of(rules: Rules, seed: int) -> bytes:
    """Simulate jobs of three urgencies at twenty times the load; return all plans."""
    trace = with_overrun(gpu(jobs=150, gpus=64, load=20, teams=4, seed=seed), "raise")
    trace = replace(trace, priority=np.arange(len(trace)) * 7 % 3)
    made: list[Plan] = []

    def decides(state: ClusterState, now: Instant) -> Plan:
        made.append(plan(state, now))
        return made[-1]

    simulate(trace, cluster_nodes(["8x{gpu=8}"]), rules, decides=decides)
    assert any(each.preemptions for each in made)
    return msgspec.json.encode(made)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("preemption", [None, URGENT])
def test_skipping_protected_candidates_changes_nothing(
    preemption: PreemptionRules | None, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = POLICIES["kueue"]
    if preemption is not None:
        rules = msgspec.structs.replace(rules, preemption=preemption)
    skipped = 0  # where nodes are asked about
    may_help = classical._cohort_may_help

    def noted(wish: PreemptionRequest, own: list[Running]) -> bool:
        nonlocal skipped
        found = may_help(wish, own)
        skipped += wish.has_place is not None and not found
        return found

    monkeypatch.setattr(classical, "_cohort_may_help", noted)
    quick = plans_of(rules, seed)
    assert skipped > 0
    monkeypatch.setattr(classical, "_cohort_may_help", lambda wish, own: True)
    assert plans_of(rules, seed) == quick
