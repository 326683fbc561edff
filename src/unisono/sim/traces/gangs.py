"""Jobs that say only how many GPUs they want in all, as gangs of equal pods."""

from __future__ import annotations

import numpy as np

from unisono.sim.trace import IntArray

GPUS_PER_NODE = 8  # what machines for training have; a pod cannot be larger than its node


def split_gpus(total: IntArray, per_pod: int = GPUS_PER_NODE) -> tuple[IntArray, IntArray]:
    """Return pods and GPUs of each: one pod if it fits a node, else the largest equal parts.

    >>> [part.tolist() for part in split_gpus(np.array([1, 8, 12, 128]))]
    [[1, 1, 2, 16], [1, 8, 6, 8]]
    """
    each = np.minimum(total, 1)
    for size in range(2, per_pod + 1):
        each = np.where(total % size == 0, np.where(total > 0, size, 0), each)
    pods = np.where(each > 0, total // np.maximum(each, 1), 1)
    return pods, each
