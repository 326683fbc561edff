"""The catalogue: which offers each pool may buy, and the labels that their nodes would have.

A node that does not exist yet has labels all the same: those of its type, of its pool, of the place
where it is sold. So a pod's constraint is evaluated on an offering as on a node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from unisono.engine.model.provisioning import (
    CAPACITY_TYPE,
    NODE_POOL,
    REGION,
    ZONE,
    InstanceType,
    Market,
    Offer,
    Pool,
    UnavailableOffer,
)
from unisono.engine.model.selection import Requirement, meets

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
    """Everything that some pool may buy, made from a market."""

    def __init__(self, market: Market) -> None:
        self.market = market
        self.refused: dict[str, Refusal] = {}  # pools from which nothing can be bought at all
        self.pools = {pool.name: pool for pool in market.pools}
        self.outages: dict[tuple[str, str, str], UnavailableOffer] = {
            (one.capacity_type, one.machine, one.zone): one for one in market.outages
        }
        self.offerings: tuple[Offering, ...] = tuple(self._offerings())

    def _offerings(self) -> Iterator[Offering]:
        known = {key for machine in self.market.machines for key, _ in machine.labels}
        by_machine: dict[str, list[Offer]] = {}
        for offer in self.market.offers:
            by_machine.setdefault(offer.machine, []).append(offer)
        for pool in sorted(self.market.pools, key=lambda one: (-one.weight, one.name)):
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
        for machine in self.market.machines:
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
