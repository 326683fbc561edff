"""Nodes to measure placement on: eight GPUs each, in racks of 16, blocks of 16 racks, zones.

Everything is made from a number and a seed. A cluster that is "about half full" has nodes with none
to seven GPUs in use, each number equally likely, and CPU and memory in proportion; that leaves 4.5
free GPUs a node, in holes of every size.
"""

from __future__ import annotations

import random

import numpy as np

from bench.worlds import GIB, GPU, MEMORY
from unisono.engine.model.names import CPU, PODS, NodeName
from unisono.engine.model.node import DEFAULT_LEVELS, Node
from unisono.engine.model.resources import Amounts, amounts
from unisono.engine.placement.demand import Demand
from unisono.engine.placement.feasibility import Feasibility
from unisono.engine.placement.gang import Gang, Placer
from unisono.engine.state.node_table import NodeTable
from unisono.engine.state.occupancy import PodIndex

GPUS = 8
CORES_A_GPU = 8
MEMORY_A_GPU = 64 * GIB
IN_A_RACK = 16
RACKS_IN_A_BLOCK = 16
BLOCKS_IN_A_ZONE = 16
ZONE, BLOCK, RACK = LEVELS = (DEFAULT_LEVELS[0], *DEFAULT_LEVELS[4:6])
POOL = "example.com/pool"  # a label with few values, to select nodes by


def node(number: int) -> Node:
    """Make a node; numbers fill one rack after the other."""
    rack = number // IN_A_RACK
    block = rack // RACKS_IN_A_BLOCK
    zone = block // BLOCKS_IN_A_ZONE
    labels = {
        ZONE: f"zone-{zone}",
        BLOCK: f"block-{block}",
        RACK: f"rack-{rack}",
        POOL: f"pool-{number % 4}",
    }
    return Node(
        name=NodeName(f"node-{number:06}"),
        labels=tuple(sorted(labels.items())),
        allocatable=amounts({**dict(request(GPUS, more_bytes=GIB)), PODS: 110}),
    )


def request(gpus: int, *, more_bytes: int = 0) -> Amounts:
    """Return what a pod with so many GPUs asks for; some bytes more make a shape of its own."""
    wanted = {CPU: 1000 * CORES_A_GPU * gpus, MEMORY: MEMORY_A_GPU * gpus + more_bytes, GPU: gpus}
    return amounts(wanted)


def table_of(nodes: int, *, seed: int = 1) -> NodeTable:
    """Make a cluster that is about half full."""
    table = NodeTable()
    dice = random.Random(seed)
    # In no order, as nodes join a cluster: neighbours of a rack are not neighbours in memory.
    for number in dice.sample(range(nodes), nodes):
        table.put(node(number))
    used = np.array([dice.randrange(GPUS) for _ in range(nodes)], np.int64)
    for gpus in range(1, GPUS):
        rows = np.flatnonzero(used == gpus)
        table.take(rows, np.ones(rows.shape[0], np.int64), request(gpus))
    return table


def placer_of(table: NodeTable) -> Placer:
    """Make a placer over a table, with the default scoring."""
    return Placer(Feasibility(table), PodIndex())


def gang(pods: int, sets: int = 1, *, more_bytes: int = 0) -> Gang:
    """Ask for pods with one GPU each that stay close together; a second set asks for two each."""
    shares = (pods,) if sets == 1 else (pods // 2, pods - pods // 2)
    return Gang(
        key="team/train",
        demands=tuple(
            demand(f"set-{number}", share, request(number, more_bytes=more_bytes))
            for number, share in enumerate(shares, start=1)
        ),
    )


def demand(name: str, pods: int, requests: Amounts) -> Demand:
    """Ask for pods that would like to share a node, a rack, a block or a zone, in this order."""
    return Demand(
        name=name,
        least=pods,
        most=pods,
        requests=requests,
        mode="preferred",
        levels=LEVELS,
        group="together",
    )
