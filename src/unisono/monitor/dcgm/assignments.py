"""Which pod has which device: the lowest free ones of its node, kept as long as it lives.

Broken devices are given out last, as a device plug-in does that knows of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping
from itertools import chain, islice
from typing import NamedTuple

from unisono.kinds.digits import whole_number
from unisono.monitor.records import NodeRecord, PodRecord

Device = tuple[str, int]  # a node, an index


class DeviceHolder(NamedTuple):
    """The pod and the container that have a device."""

    pod: PodRecord
    container: str


class DeviceAssignments:
    """Remembers assignments, so that no pod's devices change while other pods start and end."""

    def __init__(self) -> None:
        """Begin with nothing given out."""
        self._held: dict[str, dict[str, tuple[int, ...]]] = {}  # node → uid → indexes

    def give_out(
        self, pods: Iterable[PodRecord], nodes: Mapping[str, NodeRecord] | None = None
    ) -> dict[Device, DeviceHolder]:
        """Release devices of pods that ended, assign new pods theirs; return all assignments."""
        known = nodes or {}
        by_node: dict[str, list[PodRecord]] = {}
        for pod in pods:
            if pod.gpus:
                by_node.setdefault(pod.node, []).append(pod)
        found: dict[Device, DeviceHolder] = {}
        for node in [one for one in self._held if one not in by_node]:
            del self._held[node]
        for node, here in by_node.items():
            found.update(self.on_node(node, here, known.get(node)))
        return found

    def on_node(
        self, node: str, pods: Iterable[PodRecord], record: NodeRecord | None = None
    ) -> dict[Device, DeviceHolder]:
        """Do the same for one node; `pods` are all that are there. Broken devices go last."""
        told = [whole_number(one) for one, _ in record.broken] if record is not None else []
        broken = [one for one in told if one is not None]
        size = record.gpus if record is not None else 0
        here = [one for one in pods if one.gpus]
        old = self._held.get(node, {})
        kept = {one.uid: old[one.uid] for one in here if one.uid in old}
        taken = {index for indexes in kept.values() for index in indexes}
        found: dict[Device, DeviceHolder] = {}
        for pod in sorted(here, key=lambda one: (one.bound, one.name)):
            if pod.uid not in kept:
                indexes = _lowest(taken, sum(gpus for _, gpus in pod.gpus), size, broken)
                kept[pod.uid] = indexes
                taken.update(indexes)
            found.update(_laid_out(pod, kept[pod.uid]))
        if kept:
            self._held[node] = kept
        else:
            self._held.pop(node, None)
        return found


def _lowest(taken: set[int], count: int, size: int, broken: Collection[int]) -> tuple[int, ...]:
    """Return the lowest free indexes; of a node of known size the broken ones only at the end."""
    well = [index for index in range(size) if index not in broken]
    worse = [index for index in range(size) if index in broken]
    order = chain(well, worse, itertools.count(size))
    return tuple(islice((index for index in order if index not in taken), count))


def _laid_out(pod: PodRecord, indexes: tuple[int, ...]) -> dict[Device, DeviceHolder]:
    """Give a pod's devices to its containers, in their order."""
    containers = [name for name, gpus in pod.gpus for _ in range(gpus)]
    return {
        (pod.node, index): DeviceHolder(pod, container)
        for index, container in zip(indexes, containers, strict=True)
    }
