"""Which of equally good nodes: scores, lower is better (spec placement §8.8).

What a user prefers (node affinity, soft taints) always outweighs what the operator's scoring says.

Scoring by fragmentation follows FGD (Weng et al., "Beware of Fragmentation", ATC 2023), for whole
GPUs. With a mix of typical pods (size m, weight p_m), the fragmentation of a node is the weighted
number of its free GPUs that pods of each size would leave unused, were the node full of them:

    F(node) = sum over m of p_m * (free GPUs - GPUs of m * how many m fit on the node)
"""

from __future__ import annotations

import numpy as np

from unisono.engine.model.names import ResourceName
from unisono.engine.model.policy import Placement
from unisono.engine.model.resources import Amounts, is_gpu, share_in
from unisono.engine.placement.demand import Demand
from unisono.engine.placement.feasibility import Capacity, Feasibility
from unisono.engine.placement.packing import Score
from unisono.engine.state.devices import free_by_device
from unisono.engine.state.node_table import Integers, NodeTable, Rows
from unisono.engine.state.pod_mix import MILLI, PRIOR, TypicalPod

# One step of preference is worth more than any scoring; scorings stay below this.
_STEP = 1 << 32
_PER_MILLION = 1_000_000


def score_for(
    demand: Demand,
    capacity: Capacity,
    feasibility: Feasibility,
    placement: Placement,
    mix: tuple[TypicalPod, ...] = PRIOR,
) -> Score | None:
    """Return how to rank positions for a demand; None when only the order of nodes counts."""
    table = feasibility.table
    bonus = feasibility.preference(demand.constraint)
    if placement.scoring == "none" and bonus is None:
        return None
    rows_of = capacity.view.rows

    def score(positions: Rows) -> Integers:
        rows = rows_of[positions]
        ranked = _scoring(demand, capacity, positions, rows, table, placement, mix)
        return ranked if bonus is None else ranked - bonus[rows] * _STEP

    return score


def _scoring(
    demand: Demand,
    capacity: Capacity,
    positions: Rows,
    rows: Rows,
    table: NodeTable,
    placement: Placement,
    mix: tuple[TypicalPod, ...],
) -> Integers:
    match placement.scoring:
        case "leftover" | "auto" | "spare":
            return _leftover(demand, capacity.caps[positions], rows, table)
        case "binpack":
            return -_used_share(demand, rows, table)
        case "spread":
            return _used_share(demand, rows, table)
        case "fgd":
            return _fragmentation_growth(demand, rows, table, mix)
        case "none":
            return np.zeros(rows.shape[0], np.int64)


def gpu_request(demand: Demand) -> tuple[ResourceName, int]:
    """Return the GPU resource that a demand asks for and how many a pod; none asks for 0."""
    for resource, amount in demand.requests:
        if amount and is_gpu(resource):
            return resource, amount
    return ResourceName(""), 0


def _leftover(demand: Demand, caps: Integers, rows: Rows, table: NodeTable) -> Integers:
    """Count GPUs that no pod of this size could use once the node is full of them."""
    resource, amount = gpu_request(demand)
    column = table.column(resource) if amount else None
    if column is None:
        return _idle_parts(demand, caps, rows, table)
    left: Integers = table.free_of(column)[rows] - caps * amount
    return left


def _idle_parts(demand: Demand, caps: Integers, rows: Rows, table: NodeTable) -> Integers:
    """Count the same in thousandths, for pods that share GPUs."""
    share = share_in(demand.requests) if table.devices else None
    if share is None:
        return np.zeros(rows.shape[0], np.int64)
    left: Integers = free_by_device(table.free, table.devices[share[0]], rows).sum(axis=1)
    left -= caps * share[1]
    return left


def _fragmentation_growth(
    demand: Demand, rows: Rows, table: NodeTable, mix: tuple[TypicalPod, ...]
) -> Integers:
    """Return how much one more pod would fragment each node (FGD)."""
    resource, amount = gpu_request(demand)
    column = table.column(resource) if amount else None
    if column is None:
        return np.zeros(rows.shape[0], np.int64)
    after = fragmentation(table, rows, column, mix, demand.requests)
    growth: Integers = after - fragmentation(table, rows, column, mix)
    return growth


def _used_share(demand: Demand, rows: Rows, table: NodeTable) -> Integers:
    """Return how full nodes are of what the demand asks for, in millionths, summed."""
    total = np.zeros(rows.shape[0], np.int64)
    for resource, amount in demand.requests:
        column = table.column(resource)
        if column is None or not amount:
            continue
        whole = table.allocatable[column][rows]
        used = whole - table.free_of(column)[rows]
        total += used * _PER_MILLION // np.maximum(whole, 1)
    return total


def fragmentation(
    table: NodeTable, rows: Rows, gpu_column: int, mix: tuple[TypicalPod, ...], taken: Amounts = ()
) -> Integers:
    """Return F of every row, in thousandths of a GPU, after one pod of `taken` was added."""
    minus = dict(taken)
    free = {
        column: table.free_of(column)[rows] - minus.get(resource, 0)
        for resource, column in table.resources.items()
    }
    gpus = np.maximum(free[gpu_column], 0)
    total = np.zeros(rows.shape[0], np.int64)
    for typical in mix:
        fitting = gpus // typical.gpus
        for resource, amount in typical.requests:
            column = table.column(resource)
            if column is not None and amount:
                fitting = np.minimum(fitting, np.maximum(free[column], 0) // amount)
        total += typical.weight_milli * (gpus - typical.gpus * fitting)
    return total


def fragmented_gpus(
    table: NodeTable, gpu_column: int, mix: tuple[TypicalPod, ...] = PRIOR
) -> float:
    """Return the fragmentation of the whole cluster, in GPUs."""
    rows = np.flatnonzero(table.usable[: len(table)])
    return float(fragmentation(table, rows, gpu_column, mix).sum()) / MILLI
