"""What containers and gangs are given of a machine for themselves: devices by index, free ports.

Of devices, only containers that ask for it share one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from unisono.control import names
from unisono.control.actions import Json
from unisono.engine.model.resources import MAX_GPUS
from unisono.kinds.core.gpu_parts import GPU, PART
from unisono.kinds.device_faults import broken_devices
from unisono.kinds.quantity import Quantity
from unisono.runner.process.references import CannotStartYet
from unisono.runner.simulated.script import index_of

# Variables by which programs find their devices.
_DEVICE_VARIABLES: Mapping[str, tuple[str, ...]] = {
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
            for resource, count in _wanted_devices(container).items()
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
        there = ((node or {}).get("status") or {}).get("capacity") or amounts
        total = min(Quantity.from_raw(amounts.get(resource, 0)).units, MAX_GPUS)
        size = min(max(total, Quantity.from_raw(there.get(resource, 0)).units), MAX_GPUS)
        # A node may be open though a device is broken: that one is the last to be given out.
        broken = broken_devices(node, size) if node is not None else frozenset()
        order = sorted(range(size), key=lambda index: (index in broken, index))
        free = [index for index in order if index not in taken][: max(0, total - len(taken))]
        if len(free) < count:
            why = f"requests {count} {resource}; {len(free)} of {total} are free on {name}"
            raise CannotStartYet(why, "UnexpectedAdmissionError")
        return tuple(free[:count])


def _wanted_devices(container: Json) -> dict[str, int]:
    """Return how many devices of which kind a container asks for."""
    resources = container.get("resources") or {}
    amounts = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    counts = {name: Quantity.from_raw(amounts.get(name, 0)).units for name in _DEVICE_VARIABLES}
    return {name: count for name, count in counts.items() if count > 0}


def device_variables(held: Held) -> dict[str, str]:
    """Return what a container's environment says of its devices; none at all says so, too."""
    found: dict[str, str] = {}
    for resource, called in _DEVICE_VARIABLES.items():
        indexes = held.get(resource, ())
        if indexes:
            found |= dict.fromkeys(called, _listed(indexes))
            found["UNISONO_SIMULATED_GPUS"] = str(len(indexes))
    return found or {"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"}


def _listed(indexes: Iterable[int]) -> str:
    return ",".join(map(str, indexes))


# ---- ports ---------------------------------------------------------------------------------------
#
# Ports on a machine that all pods share: none belongs to two gangs (spec jobs §8).
#
# Programs bind the wildcard address, so two jobs that say 29500 would meet and train together. A
# gang therefore gets a free port of its own wherever the port is a variable, the same for all of
# its pods; and where the port is written into the command, the first gang holds it and the next one
# waits.

# Variables that name the port of a gang's rank 0.
PORT_VARIABLES = ("PET_MASTER_PORT", "MASTER_PORT")
# Others whose value may have that port in it.
ENDPOINTS = ("PET_RDZV_ENDPOINT",)
# Below the range from which systems take ports for outgoing connections.
_FIRST, _LAST = 20_000, 29_399
_ATTEMPTS = (
    "unisono.dev/attempt",
    "jobset.sigs.k8s.io/restart-attempt",
    "volcano.sh/job-retry-count",
)
_GROUPS = ("jobset.sigs.k8s.io/jobset-name", "ray.io/cluster")
_WRITTEN = re.compile(r"--master[_-]port[= ](\d{2,5})\b|--port[= ](\d{2,5})\b")


class Ports:
    """Which gang has which ports."""

    def __init__(self, is_free: Callable[[int], bool]) -> None:
        """Take a function that says whether a port of this machine is free."""
        self._is_free = is_free
        self._given: dict[str, int] = {}  # gang and attempt → its port
        self._held: dict[int, str] = {}  # port → gang
        self._users: dict[str, set[str]] = {}  # gang (and attempt) → uids of its pods

    def learn(self, uid: str, given: Mapping[str, int], held: Mapping[int, str]) -> None:
        """Record the ports of a pod that runs already."""
        for key, port in given.items():
            self._given[key] = port
            self._users.setdefault(key, set()).add(uid)
        for port, gang in held.items():
            self._held[port] = gang
            self._users.setdefault(gang, set()).add(uid)

    def of(self, key: str, uid: str) -> int:
        """Return the port of a gang in one of its attempts; a free one if it has none."""
        self._users.setdefault(key, set()).add(uid)
        if key not in self._given:
            self._given[key] = self._choose(key)
        return self._given[key]

    def hold(self, gang: str, uid: str, wanted: Iterable[int]) -> None:
        """Take ports for a gang; raise NotYet if another has one of them."""
        ports = list(wanted)
        for port in ports:
            holder = self._held.get(port, gang)
            if holder != gang:
                raise CannotStartYet(
                    f"port {port} is taken by {holder} on this machine", "PortConflict"
                )
        for port in ports:
            self._held[port] = gang
            self._users.setdefault(gang, set()).add(uid)

    def release(self, uid: str) -> None:
        """Forget a pod; what its gang had is free when its last pod is gone."""
        for key in [key for key, uids in self._users.items() if uid in uids]:
            self._users[key].discard(uid)
            if not self._users[key]:
                del self._users[key]
                self._given.pop(key, None)
                for port in [port for port, gang in self._held.items() if gang == key]:
                    del self._held[port]

    def _choose(self, key: str) -> int:
        size = _LAST - _FIRST + 1
        digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
        start = int.from_bytes(digest, "big") % size
        taken = {*self._given.values(), *self._held}
        for step in range(size):
            port = _FIRST + (start + step) % size
            if port not in taken and self._is_free(port):
                return port
        raise CannotStartYet("no port is free on this machine", "PortConflict")


def gang_of(pod: Json) -> str:
    """Return what a pod belongs to: its workload, its job, its owner, or itself."""
    metadata = pod["metadata"]
    namespace = metadata.get("namespace", "")
    workload = (metadata.get("annotations") or {}).get(names.WORKLOAD_ANNOTATION)
    if workload:
        return f"{namespace}/{workload}"
    labels = metadata.get("labels") or {}
    for key in _GROUPS:
        if key in labels:
            return f"{namespace}/{labels[key]}"
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller"):
            return f"{namespace}/{owner['kind']}/{owner['name']}"
    return f"{namespace}/{metadata['name']}"


def attempt_of(pod: Json) -> str:
    """Return which attempt of its gang a pod is of."""
    metadata = pod["metadata"]
    texts = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    return next((str(texts[key]) for key in _ATTEMPTS if key in texts), "0")


def written_ports(pod: Json, argv: Sequence[str], hosts: Iterable[str], replaced: str) -> set[int]:
    """Return the ports that a gang needs because they stand in its command or among its ports.

    That is a port behind a pod's name, the value of --master_port, and what rank 0 serves;
    `replaced` is the port that a variable had before the gang got its own.
    """
    text = "\n".join(argv)
    found = {number for groups in _WRITTEN.findall(text) for number in groups if number}
    for host in hosts:
        found |= set(re.findall(rf"{re.escape(host)}:(\d{{2,5}})\b", text))
    if index_of(pod) in ("", "0"):
        found |= {
            str(port["containerPort"])
            for container in pod["spec"]["containers"]
            for port in container.get("ports") or ()
        }
        found.discard(replaced)
    return {int(number) for number in found if 0 < int(number) < 65_536}
