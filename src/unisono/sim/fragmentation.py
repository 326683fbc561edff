"""GPU fragmentation as published: how many idle GPUs a typical pod could not use.

After Weng et al., "Beware of Fragmentation" (ATC 2023). A typical pod is a shape (CPU, GPUs, share
of each, allowed models); the shapes that cover 95 % of a trace's pods count, each by its share.
With GPUs in thousandths, the fragment of a node for a shape is

    all that is idle                       if the shape needs no GPU or does not fit the node
    the idle parts too small for a share   otherwise

and the node's fragmentation is the mean over the shapes, weighted. The engine's own measure, which
decides where pods go, is about whole GPUs and lives in `engine.placement.scoring`.

A sampler takes this measure now and then while a simulation runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unisono.engine.model.names import CPU
from unisono.engine.model.node import Node
from unisono.engine.model.resources import is_gpu, share_of
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.devices import free_by_device
from unisono.engine.state.node_table import Rows
from unisono.sim.clusters import MODEL
from unisono.sim.outcome import Fragments
from unisono.sim.trace import WHOLE_GPU, FloatArray, IntArray, Names, Trace

COVERAGE = 0.95
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TypicalPod:
    """A typical pod and how often it comes."""

    cpu: int  # millicores
    gpus: int
    gpu_milli: int  # of each
    models: Names = ()  # empty: any
    weight: float = 1.0


def typical_pods(trace: Trace, coverage: float = COVERAGE) -> tuple[TypicalPod, ...]:
    """Return the most frequent shapes until so much of the pods is covered; weights sum to one."""
    if not len(trace):
        return ()
    columns = np.stack([trace.cpu, trace.gpus, trace.gpu_milli, trace.model], axis=1)
    shapes, place = np.unique(columns, axis=0, return_inverse=True)
    counts = np.bincount(place.ravel(), trace.pods, len(shapes))
    # Equally frequent ones in the order of their columns, which np.unique sorted.
    order = np.argsort(-counts, kind="stable")
    covered = np.cumsum(counts[order])
    kept = order[: int(np.searchsorted(covered, coverage * covered[-1])) + 1]
    total = counts[kept].sum()
    return tuple(
        TypicalPod(
            cpu=int(cpu),
            gpus=int(gpus),
            gpu_milli=int(gpu_milli),
            models=trace.model_sets[model],
            weight=float(counts[one] / total),
        )
        for one, (cpu, gpus, gpu_milli, model) in zip(kept, shapes[kept].tolist(), strict=True)
    )


def nodes_allowing(shapes: Sequence[TypicalPod], models: Sequence[str]) -> dict[Names, Mask]:
    """Return for each set of GPU models which nodes it allows, given the models of the nodes."""
    there = np.asarray(models, np.str_)
    return {allowed: np.isin(there, allowed) for allowed in {shape.models for shape in shapes}}


def fragmentation(
    shapes: Sequence[TypicalPod],
    *,
    cpu_free: IntArray,
    gpu_free: IntArray,
    allowed_nodes: Mapping[Names, Mask],
) -> FloatArray:
    """Return the fragmentation of every node, in thousandths of GPUs.

    `gpu_free` has a row per node and a column per device; a device that is not there has 0 free.
    """
    idle = gpu_free.sum(axis=1)
    found = np.zeros(len(idle))
    by_size = {size: _devices(gpu_free, size) for size in {shape.gpu_milli for shape in shapes}}
    for shape in shapes:
        devices, too_small = by_size[shape.gpu_milli]
        fits = (devices >= shape.gpus) & (cpu_free >= shape.cpu) & (shape.gpus > 0)
        if shape.models:
            fits &= allowed_nodes[shape.models]
        found += shape.weight * np.where(fits, too_small, idle)
    return found


def _devices(gpu_free: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """Return how many devices of each node are large enough, and what is idle on the others."""
    usable = gpu_free >= max(size, 1)
    return usable.sum(axis=1), np.where(usable, 0, gpu_free).sum(axis=1)


# ---- samples while a simulation runs -------------------------------------------------------------

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
            parts.append(free_by_device(table.free, shared, rows))
        else:
            most = int(table.allocatable[column].max(initial=0))
            whole = table.free[column, rows][:, None]
            parts.append(np.where(np.arange(most) < whole, WHOLE_GPU, 0))
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(rows), 0), np.int64)
