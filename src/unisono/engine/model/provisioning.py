"""Values of provisioning: node pools, offers of instance types with prices, node claims, purchases.

Prices are millionths of a US dollar an hour, so that sums are exact. What can be bought is
one value (`Offerings`): a new pool, a launched machine or a refusal makes another one.
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
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
# The resource that limits of pools count machines by.
NODES = "nodes"
MICRO = 1_000_000
# Of one purchase, and of one static pool: as many nodes as Kubernetes supports in a cluster.
# Without it, a pool without limits would provide as many as a manifest asks for.
MAX_PURCHASED_NODES = 5_000


class InstanceType(msgspec.Struct, frozen=True, kw_only=True):
    """An instance type."""

    name: str
    labels: Labels = ()  # of every node of this type
    allocatable: Amounts = ()
    capacity: Amounts = ()  # what limits of pools count
    model: str = ""  # the product name of its accelerators; empty: it has none


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """An instance type offered in one zone with one capacity type."""

    machine: str
    zone: str
    region: str = ""
    capacity_type: CapacityType = "on-demand"
    price_micro: int
    stock: int | None = None  # how many are left, where that is known (capacity reservations)
    ends_at: Instant | None = None  # of a capacity block: machines are terminated before then


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """A node pool: which machines may be bought, their labels and taints, and limits."""

    name: str
    weight: int = 0  # higher ones first
    labels: Labels = ()
    taints: tuple[Taint, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    limits: Amounts = ()
    used: Amounts = ()  # of its machines, pending ones included
    refused: str = ""  # why nothing can be bought from it; empty: it can
    allows_gang_spot: bool = False
    interruptions_milli: int | None = None  # per node and hour, in thousandths; None: the policy's


class UnavailableOffer(msgspec.Struct, frozen=True, kw_only=True):
    """An offer that was out of stock: how many were requested, and when to try again."""

    machine: str
    zone: str
    capacity_type: CapacityType
    count: int
    until: Instant
    fewer_from: Instant  # from then on fewer than `count` may be requested
    at: Instant = Instant(0)


class NodeClaim(msgspec.Struct, frozen=True, kw_only=True):
    """One machine to be bought, and the pods that will run on it."""

    node: NodeName
    pool: str
    machine: str
    zone: str
    capacity_type: CapacityType
    price_micro: int
    pods: tuple[tuple[str, int], ...]  # by pod set
    taken_over: bool = False  # bought before, for a workload that no longer needs it


class PendingNodeClaims(msgspec.Struct, frozen=True, kw_only=True):
    """Machines that were bought for a workload and are not nodes yet."""

    workload: WorkloadKey
    node_claims: tuple[NodeClaim, ...] = msgspec.field(name="lots")
    ready_by: Instant  # expected, from the usual time to readiness


class Offerings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that can be bought."""

    machines: tuple[InstanceType, ...] = ()
    offers: tuple[Offer, ...] = ()
    pools: tuple[Pool, ...] = ()
    outages: tuple[UnavailableOffer, ...] = ()
    overhead: Amounts = ()  # what daemons use of every node
    soon_ms: int = 150_000  # usual time from purchase to readiness
    # Pending purchases by pool, for pools that limit how many are made at a time.
    under_way: tuple[tuple[str, int], ...] = ()
    spent_micro: int = 0  # what all bought machines cost an hour now
    coming: tuple[PendingNodeClaims, ...] = ()  # machines that gangs wait for
    # No workload waits for these machines any more.
    orphaned: tuple[PendingNodeClaims, ...] = msgspec.field(default=(), name="adrift")


class ProvisioningOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a workload requests of machines bought for it; None: as the policy says."""

    scope: str = ""  # `any`: several zones will do; `same-zone`; or a label that all share
    mixed_models: bool = False
    spot: Literal["", "true", "mixed"] = ""
    packing: Packing | None = None
    restart_ms: int | None = None  # work that an interruption costs
    accepts_block_end: bool = False


class Alternative(msgspec.Struct, frozen=True, kw_only=True):
    """Another set of machines that would fit: how many of which types, where, at what price."""

    machines: tuple[tuple[str, int], ...]
    zone: str
    capacity_type: CapacityType
    price_micro: int
    lacks: str = ""  # why it is unavailable; empty: it is available


class Purchase(msgspec.Struct, frozen=True, kw_only=True):
    """Machines for one gang, all or none."""

    workload: WorkloadKey
    node_claims: tuple[NodeClaim, ...] = msgspec.field(name="lots")
    ready_by: Instant  # expected, from the usual time to readiness
    alternatives: tuple[Alternative, ...] = ()

    @property
    def price_micro(self) -> int:
        """What all of them cost an hour."""
        return sum(node_claim.price_micro for node_claim in self.node_claims)
