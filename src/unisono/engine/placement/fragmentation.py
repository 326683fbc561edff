"""GPU fragmentation as a quantity: how many free GPUs a typical pod could not use where they are.

After FGD (Weng et al., "Beware of Fragmentation", ATC 2023), for whole GPUs. With a mix of typical
pods (shape m, weight p_m), the fragmentation of a node is the weighted number of its free GPUs that
pods of each shape would leave unused if the node were filled with them:

    F(node) = sum over m of p_m * (free GPUs - GPUs of m * how many m fit on the node)
"""

from __future__ import annotations

import numpy as np

from unisono.engine.model.resources import Amounts
from unisono.engine.state.node_table import Integers, NodeTable, Rows
from unisono.engine.state.pod_mix import MILLI, PRIOR, TypicalPod


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
