"""Which GPU each pod of a gang shares: recorded with its placement, and annotated on bound pods.

    devices=main:0.0.1,ps:2    in the message of the placement; of each set, in the order of places

A pod learns its number by an annotation, where a restarted controller reads it; so it survives
crashes on both sides of binding. A gang whose pods share no GPU has nothing recorded.
Spec placement §8.15.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from unisono.control.actions import Json
from unisono.engine.model.resources import MAX_GPUS
from unisono.engine.model.workload import Admission
from unisono.kinds.core.gpu_parts import OWN_DEVICE, device_of
from unisono.kinds.digits import whole_number

Devices = Mapping[str, tuple[int, ...]]  # by pod set, in the order of places


def written(admission: Admission) -> str:
    """Return the devices of an admission as text; empty if no pod shares a GPU."""
    return ",".join(
        f"{one.name}:{'.'.join(map(str, one.devices))}" for one in admission.pod_sets if one.devices
    )


def read(text: str) -> dict[str, tuple[int, ...]]:
    """Read devices; what is not as we write it counts as not written."""
    found: dict[str, tuple[int, ...]] = {}
    for part in filter(None, text.split(",")):
        name, _, numbers = part.rpartition(":")
        each = [whole_number(number, MAX_GPUS - 1) for number in numbers.split(".")]
        known = tuple(number for number in each if number is not None)
        if name and len(known) == len(each):
            found[name] = known
    return found


def annotation_for(device: int) -> dict[str, str]:
    """Return the annotation by which a pod learns the GPU that it shares."""
    return {OWN_DEVICE: str(device)}


class Numbers:
    """The numbers of shared GPUs that pods of a gang have yet to get."""

    def __init__(self, devices: Devices, places: Mapping[str, Sequence[str]]) -> None:
        """Begin with all of them; `places` are the nodes of each set, a pod each."""
        self._left: dict[tuple[str, str], list[int]] = {}
        for name, numbers in devices.items():
            if len(places.get(name, ())) == len(numbers):
                for node, number in zip(places[name], numbers, strict=True):
                    self._left.setdefault((name, node), []).append(number)

    def has(self, name: str, pods: Iterable[Json]) -> None:
        """Take out the numbers that pods of a set have already."""
        for pod in pods:
            left = self._left.get((name, pod["spec"].get("nodeName", "")), [])
            number = device_of(pod["metadata"].get("annotations") or {})
            if number in left:
                left.remove(number)

    def take(self, name: str, node: str) -> dict[str, str]:
        """Return the annotation of a pod that goes to a node; empty if it shares no GPU."""
        left = self._left.get((name, node))
        return annotation_for(left.pop(0)) if left else {}
