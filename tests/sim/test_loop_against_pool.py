"""The engine in virtual time against the plainest schedulers: on one pool they start alike.

Times are whole seconds, so that nothing depends on how either of them rounds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.simulations import published, schedule
from unisono.engine.model.names import NodeName
from unisono.engine.model.node import Node
from unisono.engine.model.resources import amounts
from unisono.sim.generators import lublin
from unisono.sim.loop import simulate
from unisono.sim.outcome import Outcome
from unisono.sim.setup import POLICIES, with_overrun
from unisono.sim.trace import Trace
from unisono.sim.traces.swf import read_swf

# What the engine calls a policy, and what the plain scheduler calls it.
PAIRS = [
    ("fifo", "fcfs"),
    ("easy", "easy"),
    ("easy-sjbf", "easy-sjbf"),
    ("conservative", "conservative"),
]


def whole_seconds(trace: Trace) -> Trace:
    rounded = {name: np.ceil(getattr(trace, name)) for name in ("submit", "run", "request")}
    return with_overrun(replace(trace, **rounded), "raise")


def both(trace: Trace, ours: str, plain: str) -> tuple[Outcome, Outcome]:
    nodes = tuple(
        Node(name=NodeName(f"n{number}"), allocatable=amounts({"cpu": 1000}))
        for number in range(trace.processors)
    )
    return simulate(trace, nodes, POLICIES[ours]), schedule(trace, plain)


def assert_alike(trace: Trace, ours: str, plain: str) -> None:
    found, expected = both(trace, ours, plain)
    different = np.flatnonzero(found.start != expected.start)
    assert not len(different), f"first of {len(different)}: row {different[0]}"
    assert np.array_equal(found.end, expected.end)
    assert found.depth.cpu.max() == expected.depth.cpu.max()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("ours", "plain"), PAIRS)
def test_small_machines(ours: str, plain: str, seed: int) -> None:
    trace = lublin(jobs=120, processors=24, load=0.9 + 0.3 * seed, seed=seed)
    assert_alike(whole_seconds(trace), ours, plain)


@pytest.mark.slow
@pytest.mark.parametrize(("ours", "plain"), PAIRS)
def test_the_beginning_of_a_real_log(ours: str, plain: str) -> None:
    trace = read_swf(published("swf/KTH-SP2-1996-2.1-cln.swf.gz"))
    assert_alike(whole_seconds(trace.take(range(2000))), ours, plain)
