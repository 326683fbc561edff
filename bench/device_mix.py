"""What pods are like that share GPUs, and what that makes of a node: fragments and places.

Typical pods decide how useful what is idle on a node is (FGD's fragmentation, Weng et al., "Beware
of Fragmentation", USENIX ATC 2023); large pods, however rare, decide which
nodes are worth keeping whole.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from bench.device_table import MILLI, DeviceTable, Mask, SharedPod, Ways
from unisono.engine.state.node_table import Integers, Rows

# Typical pods are the commonest shapes that together make up this share of all pods.
TYPICAL_PERCENT = 95
LARGE_GPUS = 2  # pods with so many devices need a node that has them free at the same time
LOST_STEPS = 10_000  # what large pods lose is compared in ten-thousandths of their demand


class PodMix(msgspec.Struct, frozen=True):
    """What pods are like: the typical shapes and all large ones, with how often each was seen."""

    typical: tuple[tuple[SharedPod, int], ...]  # memory left out
    large: tuple[tuple[SharedPod, int], ...]


def pod_mix(pods: Iterable[SharedPod]) -> PodMix:
    """Count shapes; fragmentation does not look at memory, so neither does this."""
    counts: dict[SharedPod, int] = {}
    for pod in pods:
        shape = msgspec.structs.replace(pod, memory_bytes=0)
        counts[shape] = counts.get(shape, 0) + 1
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    wanted, typical = sum(counts.values()) * TYPICAL_PERCENT, []
    for shape, count in ordered:
        if wanted <= 0:
            break
        typical.append((shape, count))
        wanted -= 100 * count
    large = tuple(item for item in ordered if item[0].gpus >= LARGE_GPUS)
    return PodMix(tuple(typical), large)


class _Shapes:
    """Shapes of pods as columns, to ask of many nodes at once which of them they could take."""

    def __init__(self, table: DeviceTable, shapes: list[SharedPod]) -> None:
        self.table = table
        self.cpu: Integers = np.array([shape.cpu_milli for shape in shapes], np.int64)
        self.gpus: Integers = np.array([shape.gpus for shape in shapes], np.int64)
        # By model, not by node: a cluster has few of them.
        self._allowed: Mask = np.array(
            [[_allows(shape, model) for shape in shapes] for model in table.models], np.bool_
        ).reshape(len(table.models), len(shapes))

    def hosted(self, rows: Rows, cpu_free: Integers, devices: Integers) -> Mask:
        """Say by row and shape whether it could be taken; `devices` counts those large enough."""
        allowed: Mask = self._allowed[self.table.model_of[rows]]
        return (devices >= self.gpus) & (cpu_free[:, None] >= self.cpu) & allowed


class Fragments:
    """FGD's measure on one table: idle GPU that typical pods could not use where it is.

    For one shape and one node: all that is idle if the shape needs no GPU or the node cannot take
    it (model, CPU, too few devices with enough free); otherwise what is idle on devices too small
    for it. Shapes are weighed by how often they were seen, so F is an integer: milli times pods.
    """

    def __init__(self, table: DeviceTable, mix: PodMix) -> None:
        shapes = [shape for shape, _ in mix.typical]
        sizes = sorted({shape.gpu_milli for shape in shapes})
        self._shapes = _Shapes(table, shapes)
        self._weights: Integers = np.array([count for _, count in mix.typical], np.int64)
        self.pods = int(self._weights.sum())
        self._sizes: Integers = np.array(sizes, np.int64)
        self._size_of: Rows = np.array([sizes.index(shape.gpu_milli) for shape in shapes], np.intp)
        every = np.arange(len(table.nodes))
        self._now = self.of(every, table.cpu_free, table.device_free)
        self._version = table.version

    def of(self, rows: Rows, cpu_free: Integers, device_free: Integers) -> Integers:
        """Return F of nodes that have this much free."""
        idle = device_free.sum(axis=1)
        fitting = device_free[:, None, :] >= self._sizes[:, None]
        too_small = np.where(fitting, 0, device_free[:, None, :]).sum(axis=2)[:, self._size_of]
        devices = fitting.sum(axis=2)[:, self._size_of]
        useful = self._shapes.hosted(rows, cpu_free, devices) & (self._shapes.gpus > 0)
        total: Integers = np.where(useful, too_small, idle[:, None]) @ self._weights
        return total

    def now(self, rows: Rows) -> Integers:
        """Return F of nodes as they are."""
        table = self._shapes.table
        changed = table.changed_since(self._version)
        if changed.shape[0]:
            free = table.cpu_free[changed], table.device_free[changed]
            self._now[changed] = self.of(changed, *free)
            self._version = table.version
        return self._now[rows]

    def cluster_milli(self) -> float:
        """Return the fragmentation of the whole cluster, in milli GPUs."""
        every = np.arange(len(self._shapes.table.nodes))
        return float(self.now(every).sum()) / max(1, self.pods)


class LargePlaces:
    """Which large pods a node could take, and what each way to seat another pod costs them."""

    def __init__(self, table: DeviceTable, mix: PodMix) -> None:
        self._shapes = _Shapes(table, [shape for shape, _ in mix.large])
        self._worth: Integers = np.array([n * shape.gpus for shape, n in mix.large], np.int64)
        self._most = max(1, int(self._worth.sum()))

    def lost(self, ways: Ways) -> Integers:
        """Return which share of the demand of large pods loses its place here, of `LOST_STEPS`."""
        rows, table = ways.rows, self._shapes.table
        before = self._worth_of(rows, table.cpu_free[rows], table.device_free[rows])
        after = self._worth_of(rows, ways.cpu_free, ways.device_free)
        return (before - after) * LOST_STEPS // self._most

    def _worth_of(self, rows: Rows, cpu_free: Integers, device_free: Integers) -> Integers:
        whole = (device_free == MILLI).sum(axis=1, keepdims=True)
        worth: Integers = self._shapes.hosted(rows, cpu_free, whole) @ self._worth
        return worth


def _allows(pod: SharedPod, model: str) -> bool:
    return not pod.models or model in pod.models
