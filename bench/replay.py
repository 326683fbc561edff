"""Whole simulations of GPU clusters: a real trace under every policy, and a generated one.

    pods of 2023   the Alibaba GPU trace as it arrived and left, on all of its nodes, under every
                   policy that the simulator has a name for
    gangs          training jobs of one to 1,024 GPUs on nodes of eight, of four teams with quota
                   that is lent and taken back: queues, gangs and preemption together; and again
                   at a load of ten, so that thousands wait

Processor time is counted, whatever clock the run was asked for.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time

from bench.harness import Finding, Note, Row, Scale, figures, row, target
from bench.traces import NO_TRACES, openb_folder, pod_list
from unisono.cli.sim.inputs import cluster_nodes
from unisono.engine.model.node import Node
from unisono.sim.clusters import read_cluster
from unisono.sim.generators import gpu
from unisono.sim.loop import simulate
from unisono.sim.measures import measure as measured
from unisono.sim.outcome import Outcome
from unisono.sim.setup import POLICIES, Rules, with_overrun
from unisono.sim.trace import Trace
from unisono.sim.traces.published import read_openb

REPLAY_S = 10.0
JOBS_A_SECOND = 1_000
TIMES_REAL_TIME = 10_000
GPUS_A_NODE = 8
TEAMS = 4
OVERLOAD = 10.0  # times what the cluster can do while they arrive
LENDING = "kueue"


@dataclass(frozen=True)
class Sizes:
    """How many pods of the trace on every how many-th node, and gangs on nodes of a shape."""

    pods: int
    every: int
    gangs: int
    nodes: int


SIZES: dict[Scale, Sizes] = {
    "full": Sizes(8_152, 1, 10_000, 1_000),
    "quick": Sizes(400, 4, 500, 100),
    "tiny": Sizes(20, 1, 20, 4),
}


def measure(scale: Scale) -> Iterator[Finding]:
    """Replay the trace under every policy, then the gangs."""
    sizes, folder = SIZES[scale], openb_folder()
    if folder is None:
        yield Note(NO_TRACES)
    else:
        yield from _pods(folder, sizes)
    yield from _gangs(sizes)


def _pods(folder: Path, sizes: Sizes) -> Iterator[Finding]:
    nodes = read_cluster(folder / "openb_node_list_all_node.csv")[:: sizes.every]
    whole = read_openb(pod_list(folder, "default"))
    trace = with_overrun(whole.take(range(min(sizes.pods, len(whole)))), "raise")
    slowest: Row | None = None
    for name, rules in POLICIES.items():
        taken, _ = replayed(trace, nodes, rules)
        found = row(f"pods of 2023, {name}", len(trace), "pods", [taken], "s")
        yield found
        if slowest is None or found.median > slowest.median:
            slowest = found
    assert slowest is not None, "there are policies"
    yield target("the slowest policy", slowest, REPLAY_S, better="below")


def _gangs(sizes: Sizes) -> Iterator[Finding]:
    nodes = cluster_nodes([f"{sizes.nodes}x{{gpu={GPUS_A_NODE}}}"])
    trace = _training(sizes, load=0.9)
    taken, outcome = replayed(trace, nodes, POLICIES[LENDING])
    of = f"jobs on {sizes.nodes:,} nodes"
    rate = figures(f"gangs, {LENDING}", len(trace), of, [len(trace) / taken], "1/s")
    yield rate
    yield target("gangs a second", rate, JOBS_A_SECOND, better="above")
    times = measured(outcome).makespan / taken
    faster = figures("times real time", len(trace), of, [times], "ratio")
    yield faster
    yield target("times real time", faster, TIMES_REAL_TIME, better="above")
    taken, _ = replayed(_training(sizes, load=OVERLOAD), nodes, POLICIES[LENDING])
    what = f"gangs, {LENDING}, load {OVERLOAD:.0f}"
    yield figures(what, len(trace), of, [len(trace) / taken], "1/s")


def _training(sizes: Sizes, *, load: float) -> Trace:
    gpus = sizes.nodes * GPUS_A_NODE
    return with_overrun(gpu(jobs=sizes.gangs, gpus=gpus, teams=TEAMS, load=load), "raise")


def replayed(trace: Trace, nodes: tuple[Node, ...], rules: Rules) -> tuple[float, Outcome]:
    """Return the processor seconds that a simulation took, and what became of the jobs."""
    gc.collect()
    before = process_time()
    outcome = simulate(trace, nodes, rules)
    return process_time() - before, outcome
