"""Digests of every plan of some simulations, to compare engines.

Run `python -m tests.support.plan_digests`.

The first line says which engine made them. Each other line is a case: how many plans, and a digest
of all their bytes, and of when every job started where.
"""

from __future__ import annotations

import hashlib
import sys

import msgspec

from unisono.engine.cycle import plan
from unisono.engine.model.names import Instant, NodeName
from unisono.engine.model.node import Node
from unisono.engine.model.plan import Plan
from unisono.engine.model.resources import Amounts, amounts
from unisono.engine.state.cluster import ClusterState
from unisono.runtime.engine_build import engine_kind
from unisono.sim.generators import gpu, lublin
from unisono.sim.loop import simulate
from unisono.sim.setup import POLICIES
from unisono.sim.trace import Trace

BY = ("easy", "conservative", "kueue-fair", "multifactor+easy")
_CPUS = 64
_GPU_NODES = 8


def main() -> int:
    """Print a line for every policy and trace."""
    print(f"engine: {engine_kind()}")
    for name in BY:
        for trace, nodes in _cases():
            print(f"{name}, {trace.name}: {decided(trace, nodes, name)}", flush=True)
    return 0


def decided(trace: Trace, nodes: tuple[Node, ...], policy: str) -> str:
    """Simulate, and return what was decided in two words."""
    count, found = 0, hashlib.sha256()

    def decide(state: ClusterState, now: Instant) -> Plan:
        nonlocal count
        made = plan(state, now)
        count += 1
        found.update(msgspec.json.encode(made))
        return made

    outcome = simulate(trace, nodes, POLICIES[policy], spans=True, decides=decide)
    assert outcome.spans is not None
    for column in (outcome.start, outcome.spans.node, outcome.spans.pods):
        found.update(column.tobytes())
    return f"{count} plans, {found.hexdigest()}"


def _cases() -> tuple[tuple[Trace, tuple[Node, ...]], ...]:
    """Return queues that are long at times: of processors, and of gangs with GPUs on few nodes."""
    machine = amounts({"cpu": 128_000, "memory": 2 << 40, "nvidia.com/gpu": 8})
    return (
        (lublin(jobs=250, processors=_CPUS, load=1.2), _alike(_CPUS, amounts({"cpu": 1000}))),
        (gpu(jobs=250, gpus=8 * _GPU_NODES, load=1.2), _alike(_GPU_NODES, machine)),
    )


def _alike(count: int, each: Amounts) -> tuple[Node, ...]:
    return tuple(Node(name=NodeName(f"n{one}"), allocatable=each) for one in range(count))


if __name__ == "__main__":
    sys.exit(main())
