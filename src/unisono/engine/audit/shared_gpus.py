"""Shared GPUs: no GPU is overcommitted, and pods with whole GPUs share none (placement §8.15).

Added up from the device of every pod that shares one. Pods of the snapshot whose device is unknown
do not count.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.audit.node_occupancy import NodeOccupancy
from unisono.engine.model.names import NodeName
from unisono.engine.model.workload import PodSet, PodSetAssignment

WHOLE = 1000  # thousandths of one GPU


def device_faults(occupancy: NodeOccupancy, name: NodeName, resource: str) -> Iterator[str]:
    """Yield what is wrong with the shared GPUs of a node."""
    gpu = resource.removesuffix("-milli")
    there = sum(amount for each, amount in occupancy.nodes[name].allocatable if each == gpu)
    taken = shared_milli(occupancy, name, gpu)
    for device, milli in sorted(taken.items()):
        if milli > WHOLE:
            yield f"{gpu} number {device} is shared by {milli} thousandths"
        if not 0 <= device < there:
            yield f"{gpu} number {device} is one of {there}"
    whole = occupancy.free(name, gpu) - len(taken)
    if whole < 0:
        yield f"{gpu} is overbooked by {-whole}: {len(taken)} are shared"


def shared_milli(occupancy: NodeOccupancy, name: NodeName, gpu: str) -> dict[int, int]:
    """Return the thousandths in use of every shared GPU of a node."""
    taken: dict[int, int] = {}
    for placement in occupancy.sharing_gpus(name):
        milli = placement.requests.get(f"{gpu}-milli", 0)
        for device in placement.devices[name] if milli else ():
            taken[device] = taken.get(device, 0) + milli
    return taken


def naming_fault(pod_set: PodSet, assigned: PodSetAssignment) -> str:
    """Say whether the pods that share GPUs, and no others, have a device; empty if so."""
    requests = pod_set.requests if pod_set.node_requests is None else pod_set.node_requests
    shares = any(name.endswith("/gpu-milli") and amount for name, amount in requests)
    pods = sum(count for _, count in assigned.nodes) if shares else 0
    if len(assigned.devices) != pods:
        return f"{assigned.name}: {pods} pods share GPUs, {len(assigned.devices)} have one"
    return ""
