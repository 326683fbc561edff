"""Ways to seat one pod on nodes whose GPUs are shared: one a node, or one a device if it shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unisono.engine.model.resources import WHOLE_GPU
from unisono.engine.state.node_table import Integers, Rows
from unisono.engine.state.pod_mix import PodShape


@dataclass(slots=True)
class Ways:
    """On which node (by place in what was asked about), which device, and what is free then."""

    node: Rows
    device: Rows
    cpu: Integers
    room: Integers  # by device
    rest: Integers  # of the device that is shared; 0 if none is


def ways_to_seat(
    free: tuple[Integers, Integers], shape: PodShape, *, shares: bool, fullest_only: bool = False
) -> Ways:
    """Return all ways to seat a pod on nodes that hold it, given their CPU and their devices.

    Devices of a node with the same amount free are alike; the first stands for all of them.
    """
    cpu, room = free
    every = np.arange(room.shape[0])
    if not shares:
        after = room.copy()
        whole = room == WHOLE_GPU
        after[whole & (np.cumsum(whole, axis=1) <= shape.gpus)] = 0
        nothing = np.zeros_like(cpu)
        return Ways(every, np.zeros_like(every), cpu - shape.cpu, after, nothing)
    enough = room >= shape.milli
    if fullest_only:
        node, device = every, np.where(enough, room, WHOLE_GPU + 1).argmin(axis=1)
    else:
        for column in range(1, room.shape[1]):
            seen = (room[:, :column] == room[:, column, None]).any(axis=1)
            enough[:, column] &= ~seen
        node, device = np.nonzero(enough)
    after, ways = room[node], np.arange(node.shape[0])
    after[ways, device] -= shape.milli
    return Ways(node, device, cpu[node] - shape.cpu, after, after[ways, device])
