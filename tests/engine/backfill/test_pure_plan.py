"""A plan changes nothing: a second one from the same state is the same, explanations included.

Reservations of the last cycle are handed to the next one, which may go on from them; a plan that is
never applied (it was refused, or the leader lost its lease) must leave them as they were.
"""

from __future__ import annotations

import random

import pytest

from unisono.engine.cycle import plan
from unisono.engine.model.names import Instant, NodeName
from unisono.engine.model.node import Node
from unisono.engine.model.plan import Plan
from unisono.engine.model.resources import amounts
from unisono.engine.state.cluster import ClusterState
from unisono.sim.loop import simulate
from unisono.sim.setup import POLICIES
from unisono.sim.trace import Trace, make_trace


def _jobs(seed: int) -> Trace:
    chance = random.Random(seed)
    count = 60
    run = [chance.randint(1, 60) for _ in range(count)]
    return make_trace(
        "random",
        submit=sorted(chance.randint(0, 300) for _ in range(count)),
        run=run,
        request=[each * chance.choice((1, 1, 2, 5)) for each in run],
        pods=[chance.choice((1, 1, 2, 3, 6, 11)) for _ in range(count)],
        cpu=[chance.choice((500, 1000, 1000)) for _ in range(count)],
    )


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

    simulate(_jobs(seed), _nodes(), POLICIES[policy], decides=decide)
    return made


@pytest.mark.parametrize("policy", ["fifo", "easy", "easy-sjbf", "conservative"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_plans_that_are_not_applied_leave_no_trace(policy: str, seed: int) -> None:
    assert _plans(policy, seed, drafts=(0, 0)) == _plans(policy, seed, drafts=())


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_plans_for_a_later_time_leave_no_trace(policy: str) -> None:
    assert _plans(policy, 1, drafts=(700, 5000)) == _plans(policy, 1, drafts=())
