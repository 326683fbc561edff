"""A plan changes nothing: a second one from the same state is the same, explanations included.

Reservations of the last cycle are handed to the next one, which may go on from them; a plan that is
never applied (it was refused, or the leader lost its lease) must leave them as they were.
"""

from __future__ import annotations

import pytest

from tests.support.simulations import random_jobs
from unisono.engine.cycle import plan
from unisono.engine.model.names import Instant, NodeName
from unisono.engine.model.node import Node
from unisono.engine.model.plan import Plan
from unisono.engine.model.resources import amounts
from unisono.engine.state.cluster import ClusterState
from unisono.sim.loop import simulate
from unisono.sim.setup import POLICIES


def _nodes() -> tuple[Node, ...]:
    sizes = (2000, 4000, 2000, 4000, 4000, 2000, 2000, 4000)
    return tuple(
        Node(name=NodeName(f"n{number}"), allocatable=amounts({"cpu": size}))
        for number, size in enumerate(sizes)
    )


def _plans(policy: str, seed: int, *, drafts: tuple[int, ...]) -> list[Plan]:
    """Return the plans of a simulation; before each, others are made so much later and dropped."""
    made: list[Plan] = []

    def decide(state: ClusterState, now: Instant) -> Plan:
        for later in drafts:
            plan(state, Instant(now + later))
        made.append(plan(state, now))
        return made[-1]

    simulate(random_jobs(seed, (500, 1000, 1000)), _nodes(), POLICIES[policy], decides=decide)
    return made


@pytest.mark.parametrize("policy", ["fifo", "easy", "easy-sjbf", "conservative"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_plans_that_are_not_applied_leave_no_trace(policy: str, seed: int) -> None:
    assert _plans(policy, seed, drafts=(0, 0)) == _plans(policy, seed, drafts=())


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_plans_for_a_later_time_leave_no_trace(policy: str) -> None:
    assert _plans(policy, 1, drafts=(700, 5000)) == _plans(policy, 1, drafts=())
