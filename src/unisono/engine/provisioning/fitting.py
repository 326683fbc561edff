"""How many pods of a demand one machine would hold, and why none, if none."""

from __future__ import annotations

from collections.abc import Mapping

from unisono.engine.model.names import PODS
from unisono.engine.model.node import HOSTNAME
from unisono.engine.model.provisioning import CAPACITY_TYPE, ZONE
from unisono.engine.model.resources import Amounts
from unisono.engine.model.selection import Requirement, Taint, meets, tolerates
from unisono.engine.placement.demand import Constraint, Demand
from unisono.engine.provisioning.catalogue import Offering, Refusal

Room = dict[str, int]


def room_of(offering: Offering, overhead: Amounts) -> Room:
    """Return what a new machine has for pods, once its agents have taken their share."""
    room: Room = dict(offering.machine.allocatable)
    for name, amount in overhead:
        if name in room:
            room[name] -= amount
    return room


def slots_in(room: Mapping[str, int], demand: Demand) -> int:
    """Return how many pods of a demand fit into some room."""
    most = room.get(PODS, 0)
    for name, amount in demand.requests:
        if amount > 0 and name != PODS:
            most = min(most, room.get(name, 0) // amount)
    if most > 1 and _is_alone(demand):
        most = 1
    if demand.slice_size > 1 and demand.slice_level == HOSTNAME:
        most -= most % demand.slice_size
    return max(0, most)


def take(room: Room, demand: Demand, pods: int) -> None:
    """Subtract what pods take from the room of a machine."""
    room[PODS] = room.get(PODS, 0) - pods
    for name, amount in demand.requests:
        if name != PODS:
            room[name] = room.get(name, 0) - amount * pods


def _is_alone(demand: Demand) -> bool:
    """Say whether a machine takes one of its pods only."""
    return bool(demand.host_ports) or any(
        rule.topology_key == HOSTNAME for rule in demand.anti_affinity
    )


def taint_in_the_way(taints: tuple[Taint, ...], constraint: Constraint) -> Refusal | None:
    """Return the taint that keeps pods away."""
    for taint in taints:
        if taint.effect != "PreferNoSchedule" and not any(
            tolerates(toleration, taint) for toleration in constraint.tolerations
        ):
            text = f"taint {taint.key}={taint.value}:{taint.effect} is not tolerated"
            return Refusal("NoCompatibleNodePool", text)
    return None


def label_in_the_way(offering: Offering, constraint: Constraint) -> Refusal | None:
    """Return what the pods ask for and the machine would not be."""
    labels = offering.labels
    for key, value in constraint.selector:
        if labels.get(key) != value:
            return _mismatch(labels, key, f"{key}={value}")
    if not constraint.affinity:
        return None
    missed = [_unmet(term, labels) for term in constraint.affinity]
    if any(one is None for one in missed):
        return None
    first = next(one for one in missed if one is not None)
    return _mismatch(labels, first.key, f"{first.key} {first.operator} {','.join(first.values)}")


def _unmet(term: tuple[Requirement, ...], labels: dict[str, str]) -> Requirement | None:
    """Return the requirement of a term that does not hold; an empty term never does."""
    if not term:
        return Requirement("an empty term", "Exists")
    return next((one for one in term if not meets(one, labels)), None)


def _mismatch(labels: dict[str, str], key: str, wanted: str) -> Refusal:
    if key not in labels:
        return Refusal("RequirementsUnsatisfiable", f'label "{key}" does not have known values')
    if key == CAPACITY_TYPE:
        return Refusal("SpotOptInRequired", f"pods ask for {wanted}")
    return Refusal("RequirementsUnsatisfiable", f"no offer has {wanted}")


def topology_in_the_way(demand: Demand) -> Refusal | None:
    """Return the topology that machines which do not exist yet cannot promise."""
    wide = (ZONE, HOSTNAME, "")
    apart = [rule.topology_key for rule in demand.anti_affinity]
    apart += [rule.topology_key for rule in demand.spread]
    keys = list(apart)
    if demand.mode == "required":
        keys.append(demand.level)
    if demand.slice_size > 1:
        keys.append(demand.slice_level)
    for key in keys:
        if key not in wide:
            return Refusal("TopologyUnsatisfiable", f"new machines have no {key} to choose by")
    if ZONE in apart:
        return Refusal("TopologyUnsatisfiable", "its pods have to be spread over zones")
    return None
