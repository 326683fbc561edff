"""A full pass over a backlog of gangs: quota and nodes decided together, through the real cycle.

A hundred queues hold gangs of forty shapes, from one pod with one GPU to 32 pods with eight each;
there is quota for all of them. Cycles run until no more gang can start. Nodes have eight GPUs.

room for all     two nodes a gang: the gangs ask for seven eighths of the GPUs
more than fits   fewer nodes: they ask for a quarter more than there is
"""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from dataclasses import dataclass

from bench.floors import node
from bench.harness import Finding, Note, Scale, row, seconds, target
from bench.worlds import Layout, empty_cluster, pods, settle, submit, workload
from unisono.engine.model.workload import PodSet, Workload
from unisono.engine.state import changes
from unisono.engine.state.cluster import ClusterState

PASS_S = 10  # 10,000 gangs on 20,000 nodes (spec placement §14, scenario 30)
QUOTA = 1 << 40  # GPUs a queue owns: only nodes are ever short
# How many pods, and GPUs a pod, with weights: most gangs are small, most GPUs are in large ones.
PODS = {1: 40, 2: 20, 4: 20, 8: 15, 32: 5}
GPUS = {1: 40, 2: 20, 4: 20, 8: 20}
MEMORY_GIB = (32, 64)  # a GPU; nodes have 64
NODES_A_GANG = {"room for all": 2.0, "more than fits": 1.4}


@dataclass(frozen=True)
class Sizes:
    """How many gangs wait, in how many queues."""

    gangs: tuple[int, ...]
    queues: int


SIZES: dict[Scale, Sizes] = {
    "full": Sizes((1_000, 3_000, 10_000), 100),
    "quick": Sizes((300, 1_000), 20),
    "tiny": Sizes((10, 20), 2),
}


def measure(scale: Scale) -> Iterator[Finding]:
    """Decide backlogs of several lengths on as many more nodes."""
    sizes = SIZES[scale]
    for kind, nodes_a_gang in NODES_A_GANG.items():
        for gangs in sizes.gangs:
            nodes = int(gangs * nodes_a_gang)
            state = _cluster(nodes, gangs, sizes.queues)
            gc.collect()
            taken = seconds(lambda state=state: settle(state))  # type: ignore[misc]  # bound now
            measured = row(f"{kind}, the whole pass", gangs, "gangs", [taken], "s")
            yield measured
            yield row(f"{kind}, a gang", gangs, "gangs", [taken / gangs], "us")
            if gangs == max(sizes.gangs):
                yield Note(f"{kind}: {len(state.running):,} of {gangs:,} start on {nodes:,} nodes")
                if kind == "room for all":
                    yield target(measured.what, measured, PASS_S, better="below")


def _cluster(nodes: int, gangs: int, queues: int) -> ClusterState:
    """Make an empty cluster with a backlog."""
    state = empty_cluster(Layout(queues, gpus=QUOTA))
    for number in range(nodes):
        state.apply(changes.NodeSet(node(number)))
    submit(state, backlog(gangs, queues))
    return state


def backlog(gangs: int, queues: int, seed: int = 1) -> list[Workload]:
    """Make gangs of every shape, dealt round to the queues."""
    dice = random.Random(seed)
    return [workload(number, number % queues, _shape(dice)) for number in range(gangs)]


def _shape(dice: random.Random) -> PodSet:
    count = dice.choices([*PODS], [*PODS.values()])[0]
    gpus = dice.choices([*GPUS], [*GPUS.values()])[0]
    return pods(count, gpus, memory_gib=dice.choice(MEMORY_GIB))
