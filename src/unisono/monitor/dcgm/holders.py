"""Which pod has which device: the lowest free ones of its node, kept as long as it lives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from unisono.monitor.records import PodRecord

Device = tuple[str, int]  # a node, an index


class Holder(NamedTuple):
    """Who has a device."""

    pod: PodRecord
    container: str


class Holders:
    """Remembers who has what, so that nobody's devices move while others come and go."""

    def __init__(self) -> None:
        """Begin with nothing given out."""
        self._held: dict[str, dict[str, tuple[int, ...]]] = {}  # node → uid → indexes

    def give_out(self, pods: Iterable[PodRecord]) -> dict[Device, Holder]:
        """Take back what nobody has any more, give the newcomers theirs; return all of it."""
        by_node: dict[str, list[PodRecord]] = {}
        for pod in pods:
            if pod.gpus:
                by_node.setdefault(pod.node, []).append(pod)
        found: dict[Device, Holder] = {}
        held: dict[str, dict[str, tuple[int, ...]]] = {}
        for node, here in by_node.items():
            old = self._held.get(node, {})
            kept = {one.uid: old[one.uid] for one in here if one.uid in old}
            taken = {index for indexes in kept.values() for index in indexes}
            for pod in sorted(here, key=lambda one: (one.bound, one.name)):
                if pod.uid not in kept:
                    indexes = _lowest(taken, sum(gpus for _, gpus in pod.gpus))
                    kept[pod.uid] = indexes
                    taken.update(indexes)
                found.update(_laid_out(pod, kept[pod.uid]))
            held[node] = kept
        self._held = held
        return found


def _lowest(taken: set[int], count: int) -> tuple[int, ...]:
    found: list[int] = []
    index = 0
    while len(found) < count:
        if index not in taken:
            found.append(index)
        index += 1
    return tuple(found)


def _laid_out(pod: PodRecord, indexes: tuple[int, ...]) -> dict[Device, Holder]:
    """Give a pod's devices to its containers, in their order."""
    containers = [name for name, gpus in pod.gpus for _ in range(gpus)]
    return {
        (pod.node, index): Holder(pod, container)
        for index, container in zip(indexes, containers, strict=True)
    }
