"""GPU fragmentation as published: how many idle GPUs a typical pod could not use.

After Weng et al., "Beware of Fragmentation" (ATC 2023). A typical pod is a shape (CPU, GPUs, share
of each, allowed models); the shapes that cover 95 % of a trace's pods count, each by its share.
With GPUs in thousandths, the fragment of a node for a shape is

    all that is idle                       if the shape needs no GPU or does not fit the node
    the idle parts too small for a share   otherwise

and the node's fragmentation is the mean over the shapes, weighted. The engine's own measure, which
decides where pods go, is about whole GPUs and lives in `engine.placement.scoring`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unisono.sim.trace import FloatArray, IntArray, Names, Trace

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
