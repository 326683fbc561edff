"""The request for machines, and the answer of the planner."""

from __future__ import annotations

from dataclasses import dataclass, field

from unisono.engine.model.names import Instant, NodeName
from unisono.engine.model.policy import Provisioning
from unisono.engine.model.provisioning import (
    Alternative,
    CapacityType,
    NodeClaim,
    Packing,
    ProvisioningOptions,
)
from unisono.engine.model.resources import is_gpu
from unisono.engine.placement.demand import Demand
from unisono.engine.provisioning.catalogue import FreeAmounts, Offering, Refusal, slots_in, take

AS_THE_POLICY_SAYS = ProvisioningOptions()
FIRM: tuple[CapacityType, ...] = ("reserved", "on-demand")


@dataclass(frozen=True, slots=True)
class FreeNode:
    """A node that is there, and has some room for pods of the gang."""

    name: NodeName
    zone: str
    model: str
    free: FreeAmounts
    takes: frozenset[str]  # the demands whose rules let them go there
    node_claim: NodeClaim | None = None  # it is not there yet: an orphaned NodeClaim


@dataclass(frozen=True, slots=True)
class Order:
    """Machines are wanted for these pods."""

    demands: tuple[Demand, ...]
    now: Instant
    policy: Provisioning
    buying: ProvisioningOptions = AS_THE_POLICY_SAYS
    free: tuple[FreeNode, ...] = ()
    ends_at: Instant | None = None  # when it would be over at the latest, if it says so
    beside: int = 0  # pods of the same gang that have their nodes already

    @property
    def pods(self) -> int:
        """How many pods have to start together."""
        return sum(demand.needed for demand in self.demands)

    @property
    def is_gang(self) -> bool:
        """Whether pods wait for each other."""
        return self.pods + self.beside > 1

    def packing(self, demand: Demand) -> Packing:
        """Say how pods share machines: those of a gang with GPUs talk to each other."""
        talks = self.is_gang and has_gpus(demand)
        return self.buying.packing or (self.policy.packing if talks else self.policy.single_packing)

    @property
    def wants_one_zone(self) -> bool:
        """Whether all of its machines have to be in one zone."""
        if self.buying.scope:
            return self.buying.scope != "any"
        if any(demand.mode == "required" and demand.level for demand in self.demands):
            return True
        return self.is_gang and self.policy.same_zone and any(map(has_gpus, self.demands))


def has_gpus(demand: Demand) -> bool:
    """Say whether a demand's pods need accelerators."""
    return any(amount and is_accelerator(name) for name, amount in demand.requests)


def is_accelerator(resource: str) -> bool:
    """Say whether a resource is a GPU or the like.

    >>> is_accelerator("nvidia.com/gpu"), is_accelerator("aws.amazon.com/neuron")
    (True, True)
    """
    return is_gpu(resource) or resource.startswith("aws.amazon.com/neuron")


@dataclass(slots=True)
class Box:
    """Machines that are filled alike: one that is there, or several to be bought."""

    free: FreeAmounts  # of each
    count: int = 1
    offering: Offering | None = None
    node: FreeNode | None = None
    pods: dict[str, int] = field(default_factory=dict)  # on each

    def place(self, demand: Demand, most: int) -> tuple[list[Box], int]:
        """Place as many pods as fit; return the machines after that, and how many were placed."""
        slots = slots_in(self.free, demand)
        if slots < 1 or most < 1:
            return [self], 0
        full = min(self.count, most // slots)
        rest = min(most - full * slots, slots) if full < self.count else 0
        parts = [(full, slots), (1 if rest else 0, rest), (self.count - full - bool(rest), 0)]
        made = [self._part(count, demand, pods) for count, pods in parts if count]
        return made, full * slots + rest

    def _part(self, count: int, demand: Demand, pods: int) -> Box:
        free, placed = dict(self.free), dict(self.pods)
        if pods:
            take(free, demand, pods)
            placed[demand.name] = placed.get(demand.name, 0) + pods
        return Box(free, count, self.offering, self.node, placed)


@dataclass(slots=True)
class Filled:
    """Machines on which all pods of a request have a place."""

    boxes: list[Box]
    zone: str
    model: str
    effective: int  # what it costs an hour, the risk of interruptions included

    @property
    def bought(self) -> list[Box]:
        """The machines to buy."""
        return [box for box in self.boxes if box.offering is not None]

    @property
    def price(self) -> int:
        """What they cost an hour."""
        return sum(
            box.count * box.offering.offer.price_micro
            for box in self.boxes
            if box.offering is not None
        )

    def key(self) -> tuple[object, ...]:
        """Order ways: cheaper, fewer machines, fewer types, heavier pools, then names."""
        offerings = [box.offering for box in self.boxes if box.offering is not None]
        machines = sum(box.count for box in self.bought)
        types = sorted({offering.machine.name for offering in offerings})
        weight = -max((offering.pool.weight for offering in offerings), default=0)
        pools = sorted({offering.pool.name for offering in offerings})
        return self.effective, machines, len(types), weight, self.zone, types, pools


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing complete can be bought; per pool, the first thing that stood in the way."""

    code: str
    demand: str  # the pod set that had no place
    pools: tuple[tuple[str, Refusal], ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    retry_at: Instant | None = None  # when something may be in stock again
