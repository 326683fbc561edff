"""The short ways (counting, filling holes) decide what the general way decides, node by node."""

from __future__ import annotations

import random

import pytest

from unisono.engine.model.names import NodeName
from unisono.engine.model.node import Node
from unisono.engine.model.resources import amounts
from unisono.engine.reserve import backfill, dates
from unisono.sim.loop import simulate
from unisono.sim.outcome import Outcome
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
        cpu=[chance.choice((500, 1000, 2000)) for _ in range(count)],
    )


def _nodes(seed: int) -> tuple[Node, ...]:
    chance = random.Random(seed)
    return tuple(
        Node(name=NodeName(f"n{number}"), allocatable=amounts({"cpu": chance.choice((2000, 4000))}))
        for number in range(8)
    )


def _told(outcome: Outcome) -> tuple[bytes, bytes, bytes]:
    assert outcome.spans is not None
    return outcome.start.tobytes(), outcome.spans.node.tobytes(), outcome.spans.pods.tobytes()


@pytest.mark.parametrize("policy", ["easy", "easy-sjbf", "conservative"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_short_ways_lead_to_the_same_nodes(
    policy: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, nodes = _jobs(seed), _nodes(seed)
    short = simulate(trace, nodes, POLICIES[policy], spans=True)
    monkeypatch.setattr(backfill, "offer", lambda *_: None)
    by_counting = simulate(trace, nodes, POLICIES[policy], spans=True)
    assert _told(short) == _told(by_counting)
    monkeypatch.setattr(backfill, "counted", lambda *_: None)
    monkeypatch.setattr(dates, "counted", lambda *_: None)
    general = simulate(trace, nodes, POLICIES[policy], spans=True)
    assert _told(short) == _told(general)
