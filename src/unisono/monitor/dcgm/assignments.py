"""Which pod has which device: the lowest free ones of its node, kept as long as it lives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from unisono.monitor.records import PodRecord

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

    def give_out(self, pods: Iterable[PodRecord]) -> dict[Device, DeviceHolder]:
        """Release devices of pods that ended, assign new pods theirs; return all assignments."""
        by_node: dict[str, list[PodRecord]] = {}
        for pod in pods:
            if pod.gpus:
                by_node.setdefault(pod.node, []).append(pod)
        found: dict[Device, DeviceHolder] = {}
        for node in [one for one in self._held if one not in by_node]:
            del self._held[node]
        for node, here in by_node.items():
            found.update(self.on_node(node, here))
        return found

    def on_node(self, node: str, pods: Iterable[PodRecord]) -> dict[Device, DeviceHolder]:
        """Do the same for one node; `pods` are all that are there."""
        here = [one for one in pods if one.gpus]
        old = self._held.get(node, {})
        kept = {one.uid: old[one.uid] for one in here if one.uid in old}
        taken = {index for indexes in kept.values() for index in indexes}
        found: dict[Device, DeviceHolder] = {}
        for pod in sorted(here, key=lambda one: (one.bound, one.name)):
            if pod.uid not in kept:
                indexes = _lowest(taken, sum(gpus for _, gpus in pod.gpus))
                kept[pod.uid] = indexes
                taken.update(indexes)
            found.update(_laid_out(pod, kept[pod.uid]))
        if kept:
            self._held[node] = kept
        else:
            self._held.pop(node, None)
        return found


def _lowest(taken: set[int], count: int) -> tuple[int, ...]:
    found: list[int] = []
    index = 0
    while len(found) < count:
        if index not in taken:
            found.append(index)
        index += 1
    return tuple(found)


def _laid_out(pod: PodRecord, indexes: tuple[int, ...]) -> dict[Device, DeviceHolder]:
    """Give a pod's devices to its containers, in their order."""
    containers = [name for name, gpus in pod.gpus for _ in range(gpus)]
    return {
        (pod.node, index): DeviceHolder(pod, container)
        for index, container in zip(indexes, containers, strict=True)
    }
