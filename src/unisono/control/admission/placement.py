"""How far a gang is on its way to its nodes: a Workload's condition `unisono.dev/Placement`.

Its message also says which GPU each pod of the gang shares:

    devices=main:0.0.1,ps:2    of each pod set, in the order of places

A pod learns its number by an annotation, where a restarted controller reads it; so it survives
crashes on both sides of binding. A gang whose pods share no GPU has nothing recorded (placement
§8.15).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.conditions import find, is_true, timestamp, with_condition
from unisono.engine.model.resources import MAX_GPUS
from unisono.engine.model.workload import Admission
from unisono.kinds.core.gpu_parts import OWN_DEVICE, device_of
from unisono.kinds.digits import whole_number
from unisono.kinds.kueue.topology_assignment import compressed, pods_per_host

PLANNED = "Planned"
COMMITTING = "Committing"
COMMITTED = "Committed"
# What is left of a placement that was taken back: its number.
RELEASED = "Released"
# In a placement's message: the phase that a repair interrupted.
WAS = "was"
NOTHING_MORE: Mapping[str, str] = MappingProxyType({})
# In a placement's message: how often a write in doubt was made impossible.
FENCE = "fence"
# How long a planned gang may wait for its pods to exist (placement §10.2).
PODS_CREATED_SECONDS = 120


def first_phase(workload: Json, conditions: list[Json]) -> str:
    """Return how far a gang is when it has its nodes (placement §10.2).

    The pods of an admitted job are made after that, and those of its last admission are gone: what
    is written now can be carried out as soon as they are there. A gang that waits for checks or
    machines may not; nor a gang whose pods have been there all along, as they may have had another
    place before: that they are to be released is a write of its own, in the state that was seen.
    """
    metadata = workload["metadata"]
    owners = metadata.get("ownerReferences") or ()
    is_held = any(owner.get("controller") for owner in owners)
    is_of_pods = names.GANG in (metadata.get("annotations") or {})
    comes_first = is_held and not is_of_pods and is_true(conditions, "Admitted")
    return COMMITTING if comes_first else PLANNED


def places(on: Iterable[tuple[str, int]]) -> Json:
    """Return how many pods go to each host, as a status has it."""
    domains = [{"values": [host], "count": pods} for host, pods in on]
    written: Json = compressed({"levels": [names.HOSTNAME], "domains": domains})
    return written


def hosts_of(workload: Json) -> list[tuple[str, int]]:
    """Return the hosts that a workload was given, and how many pods go to each."""
    return [
        place
        for one in workload["status"]["admission"].get("podSetAssignments") or ()
        for place in pods_per_host(one.get("topologyAssignment"))
    ]


def with_placement(
    conditions: list[Json],
    phase: str,
    *,
    gen: int,
    epoch: int,
    deadline: float,
    now: float,
    devices: str | None = None,
    more: Mapping[str, str] = NOTHING_MORE,
) -> list[Json]:
    """Set how far a gang is on its way to its nodes; None keeps the devices as they are."""
    message = f"gen={gen} epoch={epoch} deadline={timestamp(deadline)} mode=bind"
    message += "".join(f" {key}={value}" for key, value in more.items() if value)
    shared = placement_of(conditions)[1].get("devices", "") if devices is None else devices
    if shared:
        message += f" devices={shared}"
    return with_condition(
        conditions,
        names.PLACEMENT,
        "True" if phase == COMMITTED else "False",
        phase,
        message,
        now=now,
    )


def stamped(workload: Json, epoch: int) -> Json | None:
    """Return the status patch by which a new leader takes a gang over; None if none is needed.

    It changes nothing but the state that a write names, so that what the leader before it still
    has under way comes too late. A running gang needs no leader.
    """
    conditions = (workload.get("status") or {}).get("conditions")
    found = find(conditions, names.PLACEMENT)
    phase, parts = placement_of(conditions)
    if found is None or phase == COMMITTED or number_of(parts, "epoch") >= epoch:
        return None
    written = " ".join(f"{key}={value}" for key, value in {**parts, "epoch": epoch}.items())
    changed = {**found, "message": written}
    return {
        "status": {"conditions": [changed if one is found else one for one in conditions or ()]}
    }


def is_of_earlier_leader(workload: Json, epoch: int) -> bool:
    """Say whether a gang begins by the decision of a leader before the one of this epoch.

    Later phases keep the epoch of a gang that was committed before, which no leader marks.
    """
    phase, parts = placement_of((workload.get("status") or {}).get("conditions"))
    return phase in (PLANNED, COMMITTING) and number_of(parts, "epoch") < epoch


def fenced(workload: Json, now: float) -> Json:
    """Return the status patch that changes nothing but the state that a write names.

    An earlier write whose outcome is unknown names the state before it, and so comes too late.
    """
    conditions = (workload.get("status") or {}).get("conditions")
    found = find(conditions, names.PLACEMENT)
    parts = dict(part.partition("=")[::2] for part in found["message"].split()) if found else {}
    parts |= {"gen": parts.get("gen", "0"), FENCE: str(number_of(parts, FENCE) + 1)}
    written = with_condition(
        conditions,
        names.PLACEMENT,
        found["status"] if found else "False",
        found["reason"] if found else RELEASED,
        " ".join(f"{key}={value}" for key, value in parts.items()),
        now=now,
    )
    return {"status": {"conditions": written}}


def placement_of(conditions: list[Json] | None) -> tuple[str, dict[str, str]]:
    """Return the phase of a gang's placement and what its message says; empty if there is none."""
    found = find(conditions, names.PLACEMENT)
    if found is None:
        return "", {}
    parts = dict(part.partition("=")[::2] for part in found["message"].split())
    return found["reason"] if found["reason"] != RELEASED else "", parts


def without_placement(conditions: list[Json], now: float) -> list[Json]:
    """Take a gang's placement back; only its number stays, so that the next one is higher."""
    if find(conditions, names.PLACEMENT) is None:
        return conditions
    gen = next_gen(conditions) - 1
    return with_condition(conditions, names.PLACEMENT, "False", RELEASED, f"gen={gen}", now=now)


def next_gen(conditions: list[Json] | None) -> int:
    """Return the number of the next placement of a gang; they only grow."""
    _, parts = placement_of(conditions)
    return number_of(parts, "gen") + 1


def number_of(parts: Mapping[str, str], name: str, default: int = 0) -> int:
    """Return a number of a placement; the default where it was edited into something else."""
    number = whole_number(parts.get(name))
    return default if number is None else number


def in_phase(conditions: list[Json], phase: str, deadline: float, now: float) -> list[Json]:
    """Return conditions that say how far a gang is; which placement it is stays as it was."""
    _, about = placement_of(conditions)
    return with_placement(
        conditions,
        phase,
        gen=number_of(about, "gen", 1),
        epoch=number_of(about, "epoch", 1),
        deadline=deadline,
        now=now,
    )


# ---- shared GPUs ---------------------------------------------------------------------------------

_Devices = Mapping[str, tuple[int, ...]]  # by pod set, in the order of places


def written_devices(admission: Admission) -> str:
    """Return the devices of an admission as text; empty if no pod shares a GPU."""
    return ",".join(
        f"{one.name}:{'.'.join(map(str, one.devices))}" for one in admission.pod_sets if one.devices
    )


def read_devices(text: str) -> dict[str, tuple[int, ...]]:
    """Read devices; what is not as we write it counts as not written."""
    found: dict[str, tuple[int, ...]] = {}
    for part in filter(None, text.split(",")):
        name, _, numbers = part.rpartition(":")
        each = [whole_number(number, MAX_GPUS - 1) for number in numbers.split(".")]
        known = tuple(number for number in each if number is not None)
        if name and len(known) == len(each):
            found[name] = known
    return found


def device_annotation(device: int) -> dict[str, str]:
    """Return the annotation by which a pod learns the GPU that it shares."""
    return {OWN_DEVICE: str(device)}


class SharedGpuNumbers:
    """The numbers of shared GPUs that pods of a gang have yet to get."""

    def __init__(self, devices: _Devices, places: Mapping[str, Sequence[str]]) -> None:
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
        return device_annotation(left.pop(0)) if left else {}
