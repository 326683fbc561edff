"""Samples of GPU fragmentation while a simulation runs."""

from __future__ import annotations

import numpy as np

from unisono.engine.model.names import CPU
from unisono.engine.model.node import Node
from unisono.engine.model.resources import is_gpu, share_of
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.devices import rooms
from unisono.engine.state.node_table import Rows
from unisono.sim.clusters import MODEL
from unisono.sim.fragmentation import Mask, fragmentation, nodes_allowing, typical_pods
from unisono.sim.outcome import Fragments
from unisono.sim.trace import WHOLE_GPU, IntArray, Names, Trace

# A mean over time does not get better with more of them, and each costs nodes times shapes.
MOST_SAMPLES = 256
_PLENTY = np.iinfo(np.int64).max


class FragmentSampler:
    """Samples the nodes after every so-many-th scheduling cycle."""

    def __init__(self, trace: Trace, nodes: tuple[Node, ...]) -> None:
        self._shapes = typical_pods(trace)
        self._models = {str(node.name): dict(node.labels).get(MODEL, "") for node in nodes}
        # Every job arrives and ends, and both cause a scheduling cycle.
        self._every = max(1, 2 * len(trace) // MOST_SAMPLES)
        self._passes = 0
        self._layout = -1  # of the node table, at which these two were made
        self._rows: Rows = np.zeros(0, np.intp)
        self._welcome: dict[Names, Mask] = {}
        self._time: list[float] = []
        self._fragmented: list[float] = []
        self._idle: list[float] = []

    def look(self, state: ClusterState, now: float) -> None:
        """Take a sample, if one is due."""
        self._passes += 1
        if self._passes % self._every != 1 and self._every > 1:
            return
        table = state.nodes.table
        if self._layout != table.layout:  # nodes came or went
            self._layout = table.layout
            self._rows = np.array([*table.row_of.values()], np.intp)
            models = [self._models[str(name)] for name in table.row_of]
            self._welcome = nodes_allowing(self._shapes, models)
        rows = self._rows
        cpu = table.column(CPU)
        free = _gpu_free(state, rows)
        found = fragmentation(
            self._shapes,
            cpu_free=np.full(len(rows), _PLENTY) if cpu is None else table.free[cpu, rows],
            gpu_free=free,
            allowed_nodes=self._welcome,
        )
        self._time.append(now)
        self._fragmented.append(float(found.sum()))
        self._idle.append(float(free.sum()))

    def found(self) -> Fragments:
        """Return all samples."""
        return Fragments(
            time=np.array(self._time),
            fragmented=np.array(self._fragmented),
            idle=np.array(self._idle),
        )


def _gpu_free(state: ClusterState, rows: Rows) -> IntArray:
    """Return what is free on every device, in thousandths: a row a node, a column a device."""
    table = state.nodes.table
    parts = []
    for resource, column in table.resources.items():
        if not is_gpu(resource):
            continue
        shared = table.devices.get(share_of(resource))
        if shared is not None:
            parts.append(rooms(table.free, shared, rows))
        else:
            most = int(table.allocatable[column].max(initial=0))
            whole = table.free[column, rows][:, None]
            parts.append(np.where(np.arange(most) < whole, WHOLE_GPU, 0))
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(rows), 0), np.int64)
