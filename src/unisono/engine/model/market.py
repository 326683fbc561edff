"""What can be bought: pools that say which machines may come, and offers of machines with prices.

Prices are millionths of a US dollar an hour, so that sums are exact. A market is one value: who
hears of a new pool, a launched machine or a refusal hands in a new one.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from unisono.engine.model.names import Instant, NodeName, WorkloadKey
from unisono.engine.model.resources import Amounts
from unisono.engine.model.selection import Labels, Requirement, Taint

CapacityType = Literal["reserved", "on-demand", "spot"]
Packing = Literal["MinCost", "Balanced", "FewestNodes"]

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
NODE_POOL = "karpenter.sh/nodepool"
MACHINE_TYPE = "node.kubernetes.io/instance-type"
# How limits of pools call the number of machines.
NODES = "nodes"
MICRO = 1_000_000
# Of one purchase, and of one static pool: as many nodes as Kubernetes supports in a cluster. A pool
# without limits would otherwise sell as many as a manifest asks for.
MOST_MACHINES = 5_000


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A type of machine."""

    name: str
    labels: Labels = ()  # those that every node of this type has
    allocatable: Amounts = ()
    capacity: Amounts = ()  # what limits of pools count
    model: str = ""  # the product name of its accelerators; empty: it has none


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A type of machine that is for sale somewhere, in one way."""

    machine: str
    zone: str
    region: str = ""
    capacity_type: CapacityType = "on-demand"
    price_micro: int
    stock: int | None = None  # how many there are at most, where that is known (reservations)
    ends_at: Instant | None = None  # of a block of capacity: machines are taken away before then


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """Which machines may come, what they are called and how much of them."""

    name: str
    weight: int = 0  # higher ones first
    labels: Labels = ()
    taints: tuple[Taint, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    limits: Amounts = ()
    used: Amounts = ()  # what its machines have, those on their way included
    refused: str = ""  # why nothing can be bought from it; empty: it can
    allows_gang_spot: bool = False
    interruptions_milli: int | None = None  # per node and hour, in thousandths; None: the policy's


class Outage(msgspec.Struct, frozen=True, kw_only=True):
    """An offer that was refused lately: how many were asked for, and when to ask again."""

    machine: str
    zone: str
    capacity_type: CapacityType
    count: int
    until: Instant
    fewer_from: Instant  # from then on fewer than `count` may be asked for
    at: Instant = Instant(0)


class Lot(msgspec.Struct, frozen=True, kw_only=True):
    """One machine to be bought, and who will sit on it."""

    node: NodeName
    pool: str
    machine: str
    zone: str
    capacity_type: CapacityType
    price_micro: int
    pods: tuple[tuple[str, int], ...]  # by pod set
    taken_over: bool = False  # on its way already, for somebody who gave it up


class Coming(msgspec.Struct, frozen=True, kw_only=True):
    """Machines that were bought for somebody and are not nodes yet."""

    workload: WorkloadKey
    lots: tuple[Lot, ...]
    ready_by: Instant  # if they take as long as machines mostly do


class Market(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that can be bought."""

    machines: tuple[Machine, ...] = ()
    offers: tuple[Offer, ...] = ()
    pools: tuple[Pool, ...] = ()
    outages: tuple[Outage, ...] = ()
    overhead: Amounts = ()  # what agents take of every node before pods come
    soon_ms: int = 150_000  # how long machines take from purchase to readiness, mostly
    # Purchases under way by pool, for those that may only have so many at a time.
    under_way: tuple[tuple[str, int], ...] = ()
    spent_micro: int = 0  # what machines cost an hour by now
    coming: tuple[Coming, ...] = ()  # machines that gangs wait for
    adrift: tuple[Coming, ...] = ()  # machines on their way that nobody waits for any more


class Buying(msgspec.Struct, frozen=True, kw_only=True):
    """What a workload wishes of machines that are bought for it; None: as the policy says."""

    scope: str = ""  # `any`: several zones will do; `same-zone`; or a label that all share
    mixed_models: bool = False
    spot: Literal["", "true", "mixed"] = ""
    packing: Packing | None = None
    restart_ms: int | None = None  # work that an interruption costs
    accepts_block_end: bool = False


class Alternative(msgspec.Struct, frozen=True, kw_only=True):
    """What else would have done: so many machines of which types, where, for how much."""

    machines: tuple[tuple[str, int], ...]
    zone: str
    capacity_type: CapacityType
    price_micro: int
    lacks: str = ""  # why it cannot be had; empty: it could


class Purchase(msgspec.Struct, frozen=True, kw_only=True):
    """Machines for one gang, all or none."""

    workload: WorkloadKey
    lots: tuple[Lot, ...]
    ready_by: Instant  # if they take as long as machines mostly do
    alternatives: tuple[Alternative, ...] = ()

    @property
    def price_micro(self) -> int:
        """What all of it costs an hour."""
        return sum(lot.price_micro for lot in self.lots)
