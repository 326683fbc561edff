"""Is no GPU shared by more than it holds, and are those who want whole ones left whole ones?

Counted by hand from who has which part of which device (spec placement §8.15). Pods of others of
which nobody says where they are do not count: then nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.audit.parties import Floor
from unisono.engine.model.names import NodeName
from unisono.engine.model.workload import PodSet, PodSetAssignment

WHOLE = 1000  # thousandths of one GPU


def device_faults(floor: Floor, name: NodeName, resource: str) -> Iterator[str]:
    """Say what is wrong with the GPUs of a node of which pods ask for parts."""
    gpu = resource.removesuffix("-milli")
    there = sum(amount for each, amount in floor.nodes[name].allocatable if each == gpu)
    taken = parts_taken(floor, name, gpu)
    for device, milli in sorted(taken.items()):
        if milli > WHOLE:
            yield f"{gpu} number {device} is shared by {milli} thousandths"
        if not 0 <= device < there:
            yield f"{gpu} number {device} is one of {there}"
    whole = floor.free(name, gpu) - len(taken)
    if whole < 0:
        yield f"{gpu} is overbooked by {-whole}: {len(taken)} are shared"


def parts_taken(floor: Floor, name: NodeName, gpu: str) -> dict[int, int]:
    """Return how much of every GPU that is shared has been taken."""
    taken: dict[int, int] = {}
    for party in floor.sharing(name):
        milli = party.requests.get(f"{gpu}-milli", 0)
        for device in party.devices[name] if milli else ():
            taken[device] = taken.get(device, 0) + milli
    return taken


def naming_fault(pod_set: PodSet, assigned: PodSetAssignment) -> str:
    """Say whether not every pod that shares a GPU has one, or one that does not has."""
    requests = pod_set.requests if pod_set.node_requests is None else pod_set.node_requests
    shares = any(name.endswith("/gpu-milli") and amount for name, amount in requests)
    pods = sum(count for _, count in assigned.nodes) if shares else 0
    if len(assigned.devices) != pods:
        return f"{assigned.name}: {pods} pods share GPUs, {len(assigned.devices)} have one"
    return ""
