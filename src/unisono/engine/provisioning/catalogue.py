"""The catalogue: which offers each pool may buy, and the labels that their nodes would have.

A node that does not exist yet has labels all the same: those of its type, of its pool, of the place
where it is sold. So a pod's constraint is evaluated on an offering as on a node. Here is also how
many pods one machine holds, and which offers are unavailable because they were refused lately.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from unisono.engine.model.names import PODS, Instant
from unisono.engine.model.node import HOSTNAME
from unisono.engine.model.provisioning import (
    CAPACITY_TYPE,
    NODE_POOL,
    REGION,
    ZONE,
    CapacityType,
    InstanceType,
    Offer,
    Offerings,
    Pool,
    UnavailableOffer,
)
from unisono.engine.model.resources import Amounts
from unisono.engine.model.selection import Requirement, Taint, meets, tolerates
from unisono.engine.placement.demand import Constraint, Demand

# Keys that an offer has and a machine has not.
PLACE_KEYS = (ZONE, REGION, CAPACITY_TYPE)
# The same facts under the names of another vendor's managed nodes.
_ALIASES = (("eks.amazonaws.com/", "karpenter.k8s.aws/"),)


@dataclass(frozen=True, slots=True, eq=False)
class Offering:
    """An offer as one pool may buy it."""

    pool: Pool
    machine: InstanceType
    offer: Offer
    labels: dict[str, str]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a pool has nothing for a gang."""

    code: str
    detail: str = ""


class Catalogue:
    """Everything that some pool may buy, made from what can be bought."""

    def __init__(self, source: Offerings) -> None:
        self.source = source
        self.refused: dict[str, Refusal] = {}  # pools from which nothing can be bought at all
        self.pools = {pool.name: pool for pool in source.pools}
        self.outages: dict[tuple[str, str, str], UnavailableOffer] = {
            (one.capacity_type, one.machine, one.zone): one for one in source.outages
        }
        self.offerings: tuple[Offering, ...] = tuple(self._offerings())

    def _offerings(self) -> Iterator[Offering]:
        known = {key for machine in self.source.machines for key, _ in machine.labels}
        by_machine: dict[str, list[Offer]] = {}
        for offer in self.source.offers:
            by_machine.setdefault(offer.machine, []).append(offer)
        for pool in sorted(self.source.pools, key=lambda one: (-one.weight, one.name)):
            if pool.refused:
                self.refused[pool.name] = Refusal("NotReady", pool.refused)
                continue
            unknown = _unknown(pool, known)
            if unknown:
                text = f"no machine type has the label {unknown}"
                self.refused[pool.name] = Refusal("RequirementsUnsatisfiable", text)
                continue
            found = list(self._of(pool, by_machine))
            if not found:
                text = "no offer meets the requirements of the pool"
                self.refused[pool.name] = Refusal("RequirementsUnsatisfiable", text)
            yield from found

    def _of(self, pool: Pool, by_machine: dict[str, list[Offer]]) -> Iterator[Offering]:
        own = {**dict(pool.labels), NODE_POOL: pool.name}
        of_place = [one for one in pool.requirements if one.key in PLACE_KEYS]
        of_type = [_known_as(one) for one in pool.requirements if one.key not in PLACE_KEYS]
        for machine in self.source.machines:
            labels = {**dict(machine.labels), **own}
            if not all(meets(requirement, labels) for requirement in of_type):
                continue
            for offer in by_machine.get(machine.name, ()):
                place = {
                    ZONE: offer.zone,
                    REGION: offer.region,
                    CAPACITY_TYPE: offer.capacity_type,
                }
                if all(meets(requirement, place) for requirement in of_place):
                    yield Offering(pool, machine, offer, {**labels, **place})


def known_key(key: str) -> str:
    """Return the name under which a label is known here."""
    for other, ours in _ALIASES:
        if key.startswith(other):
            return ours + key.removeprefix(other)
    return key


def _known_as(requirement: Requirement) -> Requirement:
    key = known_key(requirement.key)
    return Requirement(key, requirement.operator, requirement.values)


def _unknown(pool: Pool, known: set[str]) -> str:
    """Return a key that the pool asks for and that nothing could have."""
    own = {key for key, _ in pool.labels}
    for requirement in pool.requirements:
        key = known_key(requirement.key)
        is_there = key in known or key in own or key in PLACE_KEYS or key == NODE_POOL
        if not is_there and requirement.operator not in ("NotIn", "DoesNotExist"):
            return requirement.key
    return ""


# --- how many pods of a demand one machine would hold, and why none, if none ----------------------


FreeAmounts = dict[str, int]


def allocatable_of(offering: Offering, overhead: Amounts) -> FreeAmounts:
    """Return what a new machine has for pods, once its agents have taken their share."""
    free: FreeAmounts = dict(offering.machine.allocatable)
    for name, amount in overhead:
        if name in free:
            free[name] -= amount
    return free


def slots_in(free: Mapping[str, int], demand: Demand) -> int:
    """Return how many pods of a demand fit into what is free."""
    most = free.get(PODS, 0)
    for name, amount in demand.requests:
        if amount > 0 and name != PODS:
            most = min(most, free.get(name, 0) // amount)
    if most > 1 and _is_alone(demand):
        most = 1
    if demand.slice_size > 1 and demand.slice_level == HOSTNAME:
        most -= most % demand.slice_size
    return max(0, most)


def take(free: FreeAmounts, demand: Demand, pods: int) -> None:
    """Subtract what pods take from what a machine has free."""
    free[PODS] = free.get(PODS, 0) - pods
    for name, amount in demand.requests:
        if name != PODS:
            free[name] = free.get(name, 0) - amount * pods


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


# --- unavailable offers ---------------------------------------------------------------------------

# An offer that was out of stock is not asked for again at once. The pause doubles with every
# refusal in a row, from three minutes to half an hour, and ends with the first success. Fewer
# machines than were refused may be asked for after one minute. An account whose quota is used up,
# or a zone that does not know a type, needs longer. Spec provisioning §5.6.


FIRST_MS = 3 * 60_000
LONGEST_MS = 30 * 60_000
FEWER_AFTER_MS = 60_000
QUOTA_MS = 15 * 60_000
UNSUPPORTED_MS = 24 * 3600_000
_FIXED = {"QuotaExceeded": QUOTA_MS, "Unsupported": UNSUPPORTED_MS}


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """An offer, and how often in a row it was refused."""

    machine: str
    zone: str
    capacity_type: CapacityType
    count: int  # the fewest machines that were refused
    failures: int
    at: Instant  # the last time
    code: str = "InsufficientCapacity"


def after_refusal(
    before: Refused | None,
    offer: tuple[str, str, CapacityType],
    count: int,
    now: Instant,
    code: str,
) -> Refused:
    """Return what to remember of one refusal more."""
    machine, zone, capacity_type = offer
    return Refused(
        machine=machine,
        zone=zone,
        capacity_type=capacity_type,
        count=count if before is None else min(count, before.count),
        failures=1 if before is None else before.failures + 1,
        at=now,
        code=code,
    )


def outage_of(refused: Refused) -> UnavailableOffer:
    """Return when the offer may be asked for again."""
    pause = _FIXED.get(refused.code)
    if pause is None:
        pause = min(FIRST_MS << min(refused.failures - 1, 10), LONGEST_MS)
    fewer = pause if refused.code in _FIXED else min(FEWER_AFTER_MS, pause)
    return UnavailableOffer(
        machine=refused.machine,
        zone=refused.zone,
        capacity_type=refused.capacity_type,
        count=refused.count,
        until=Instant(refused.at + pause),
        fewer_from=Instant(refused.at + fewer),
        at=refused.at,
    )


def is_over(refused: Refused, now: Instant) -> bool:
    """Say whether the offer may be asked for again, whatever the number."""
    return outage_of(refused).until <= now
