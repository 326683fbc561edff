"""States of clusters that are not drawn: those of simulated runs, and of the stories of the demo.

In both the engine decides as it always does; now and then the state is written down before it
decides, and what is pending there is judged afterwards.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator

import pytest

from unisono.cli.demo.command import parser, run
from unisono.control.scheduler.root_causes import RootCauses
from unisono.engine.cycle import plan
from unisono.engine.model.explanation import Explanation
from unisono.engine.model.names import Instant, NodeName, WorkloadKey
from unisono.engine.model.node import Node
from unisono.engine.model.plan import Plan
from unisono.engine.model.resources import amounts
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.state.changes import TimePassed
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import snapshot
from unisono.sim.generators import gpu
from unisono.sim.loop import simulate
from unisono.sim.setup import POLICIES

# States of one simulated run that are judged, and pending workloads of one state: those at the head
# of long queues tell as much as all of them.
_MOST_STATES = 8
MOST_PENDING = 6


def simulated(seed: int) -> Iterator[Snapshot]:
    """Yield states of a simulated run; policies take turns."""
    names = sorted(POLICIES)
    nodes = tuple(
        Node(
            name=NodeName(f"n{number}"),
            allocatable=amounts({"nvidia.com/gpu": 8, "cpu": 192_000, "memory": 2 << 40}),
        )
        for number in range(4)
    )
    trace = gpu(jobs=60, gpus=32, load=1.3, teams=3, seed=seed)
    found: list[Snapshot] = []
    asked = 0

    def decides(state: ClusterState, now: Instant) -> Plan:
        nonlocal asked
        asked += 1
        if asked % 11 == seed % 11 and state.waiting and len(found) < _MOST_STATES:
            found.append(snapshot(state))
        return plan(state, now)

    simulate(trace, nodes, POLICIES[names[seed % len(names)]], seed=seed, decides=decides)
    yield from found


def of_story(name: str) -> list[Snapshot]:
    """Return the states in which something is pending, one for every change, of a story."""
    found: dict[object, Snapshot] = {}
    original = RootCauses.refresh

    def refresh(
        self: RootCauses, now: Instant, explanations: dict[WorkloadKey, Explanation]
    ) -> bool:
        state = self._state
        if state.waiting:
            # What can change for what is pending: which workloads there are, where, and the nodes.
            key = (
                tuple(sorted(state.waiting)),
                tuple(sorted((one, run.admitted.evicting) for one, run in state.running.items())),
                tuple(node for node in state.nodes.table.nodes if node is not None),
            )
            if key not in found:
                state.apply(TimePassed(max(now, state.now)))
                found[key] = snapshot(state)
        return original(self, now, explanations)

    with pytest.MonkeyPatch.context() as patched, contextlib.redirect_stdout(io.StringIO()):
        patched.setattr(RootCauses, "refresh", refresh)
        code = run(parser().parse_args([name]))
    assert code == 0, f"story {name} did not end well"
    return [*found.values()]
