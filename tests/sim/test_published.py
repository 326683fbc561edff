"""The published results of backfilling, through the whole engine: quota, nodes and all.

On real logs the rules leave no freedom, so that the figures are those of the plain scheduler.
"""

from __future__ import annotations

import pytest

from tests.sim.test_pool import BLUE, HPC2N, KTH, LUBLIN, PUBLISHED
from tests.support.simulations import published
from unisono.engine.model.names import NodeName
from unisono.engine.model.node import Node
from unisono.engine.model.resources import amounts
from unisono.sim.loop import simulate
from unisono.sim.measures import measure
from unisono.sim.setup import POLICIES, with_overrun
from unisono.sim.traces.swf import read_swf

OURS = {"fcfs": "fifo"}
JOBS = {KTH: (27_992, 0), BLUE: (232_536, 10_770), HPC2N: (202_876, 0), LUBLIN: (10_000, 0)}
# All of the short logs, and of the long ones what is quoted most.
REPLAYED = [
    row
    for row in PUBLISHED
    if row[0] in (KTH, LUBLIN) or (row[0] in (BLUE, HPC2N) and row[1:3] == ("easy", ""))
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "policy", "how", "wait", "slowdown", "p95"), REPLAYED)
def test_published_results(
    name: str, policy: str, how: str, wait: float, slowdown: float, p95: float
) -> None:
    trace = read_swf(published(f"swf/{name}.swf.gz"))
    assert (len(trace), trace.dropped.total) == JOBS[name]
    asked = with_overrun(trace.perfect() if how == "perfect" else trace, "raise")
    nodes = tuple(
        Node(name=NodeName(f"n{number}"), allocatable=amounts({"cpu": 1000}))
        for number in range(trace.processors)
    )
    found = measure(simulate(asked, nodes, POLICIES[OURS.get(policy, policy)]))
    assert found.completed == len(trace)
    assert found.wait.mean == pytest.approx(wait, rel=1e-3)
    assert found.slowdown.mean == pytest.approx(slowdown, rel=1e-3)
    assert found.slowdown.p95 == pytest.approx(p95, rel=1e-3)
