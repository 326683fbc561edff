"""The accelerators of each container, by index; only containers that ask for it share one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from unisono.control.actions import Json
from unisono.engine.model.resources import MAX_GPUS
from unisono.kinds.core.gpu_parts import GPU, PART
from unisono.kinds.quantity import Quantity
from unisono.runner.process.references import CannotStartYet

# Variables by which programs find their devices.
_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "nvidia.com/gpu": ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"),
    "amd.com/gpu": ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
}

Held = Mapping[str, tuple[int, ...]]  # by resource: the indexes that a container has


class Devices:
    """The devices that each container has on its node."""

    def __init__(self) -> None:
        """Begin with all of them free."""
        self._held: dict[tuple[str, str], tuple[str, Held]] = {}  # (uid, container) → node, devices

    def learn(self, node: str, uid: str, container: str, held: Held) -> None:
        """Record what a container has."""
        self._held[uid, container] = (node, held)

    def release(self, uid: str) -> None:
        """Take back what the containers of a pod had."""
        for key in [key for key in self._held if key[0] == uid]:
            del self._held[key]

    def of(self, node: Json | None, uid: str, container: Json, shared: int | None = None) -> Held:
        """Return what a container has on its node; the lowest free indexes if it has none yet.

        Containers that share a GPU, which they know by the same number, have the same one.
        """
        key = (uid, str(container["name"]))
        if key in self._held:
            return self._held[key][1]
        name = (node or {}).get("metadata", {}).get("name", "")
        found = {
            resource: self._free(node, name, resource, count)
            for resource, count in wanted(container).items()
            if shared is None or resource != GPU
        }
        if shared is not None:
            found |= {GPU: self._of_number(node, name, shared), PART: (shared,)}
        self._held[key] = (name, found)
        return found

    def _of_number(self, node: Json | None, name: str, number: int) -> tuple[int, ...]:
        """Return the GPU that containers with this number share, or a free one."""
        for held_on, held in self._held.values():
            if held_on == name and held.get(PART) == (number,):
                return held[GPU]
        return self._free(node, name, GPU, 1)

    def _free(self, node: Json | None, name: str, resource: str, count: int) -> tuple[int, ...]:
        taken = {
            index
            for held_on, held in self._held.values()
            if held_on == name
            for index in held.get(resource, ())
        }
        amounts = ((node or {}).get("status") or {}).get("allocatable") or {}
        total = min(Quantity.from_raw(amounts.get(resource, 0)).units, MAX_GPUS)
        free = [index for index in range(total) if index not in taken][:count]
        if len(free) < count:
            why = f"requests {count} {resource}; {len(free)} of {total} are free on {name}"
            raise CannotStartYet(why, "UnexpectedAdmissionError")
        return tuple(free)


def wanted(container: Json) -> dict[str, int]:
    """Return how many devices of which kind a container asks for."""
    resources = container.get("resources") or {}
    amounts = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    counts = {name: Quantity.from_raw(amounts.get(name, 0)).units for name in _VARIABLES}
    return {name: count for name, count in counts.items() if count > 0}


def variables(held: Held) -> dict[str, str]:
    """Return what a container's environment says of its devices; none at all says so, too."""
    found: dict[str, str] = {}
    for resource, called in _VARIABLES.items():
        indexes = held.get(resource, ())
        if indexes:
            found |= dict.fromkeys(called, _listed(indexes))
            found["UNISONO_SIMULATED_GPUS"] = str(len(indexes))
    return found or {"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"}


def _listed(indexes: Iterable[int]) -> str:
    return ",".join(map(str, indexes))
