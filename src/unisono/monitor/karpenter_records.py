"""What metrics need to know of NodePools and NodeClaims.

Names of labels and annotations are those that provisioning writes; this package is below it.
"""

from __future__ import annotations

from dataclasses import dataclass

from unisono.kinds import views
from unisono.kinds.core.nodes import HELD_FOR
from unisono.kinds.scalar import duration_ms
from unisono.kinds.views import seconds_of
from unisono.monitor.records import CAPACITY_TYPE, INSTANCE_TYPE, POOL, PRICE

_ZONE = "topology.kubernetes.io/zone"
_IDLE_SINCE = "unisono.dev/idle-since"
_RELEASED = "unisono.dev/released"
FOREVER = -1.0


@dataclass(frozen=True, slots=True)
class PoolRecord:
    """A NodePool."""

    name: str
    weight: int
    limits: tuple[tuple[str, str], ...]
    types: tuple[str, ...]  # that it names; empty: any
    capacity_types: tuple[str, ...]
    keeps: float  # seconds that an empty node of it stays; FOREVER if nothing ends it
    replicas: int | None  # of a static one
    is_ready: bool
    says: str  # why it is not


@dataclass(frozen=True, slots=True)
class ClaimRecord:
    """A NodeClaim: a machine that is on its way, or a node already."""

    name: str
    pool: str
    node: str  # empty as long as it is none
    instance_type: str
    zone: str
    capacity_type: str
    price: float
    state: str  # launching, launched, ready, refused, going
    says: str  # why it is refused
    held_for: str  # the gang that it was bought for, as namespace/name
    created: float
    idle_since: float  # 0: it is in use
    is_released: bool  # of a purchase that did not come together

    def idle_until(self, pool: PoolRecord | None, reuse: float) -> float:
        """Return when it is removed if it stays idle; 0 if unknown, or in use."""
        if not self.idle_since:
            return 0.0
        keeps = reuse if self.is_released else FOREVER if pool is None else pool.keeps
        return 0.0 if keeps == FOREVER else self.idle_since + keeps


def pool_record(pool: views.NodePool) -> PoolRecord:
    """Read a NodePool."""
    spec = pool.spec
    template, ready = spec.template.spec, pool.conditions.get("Ready")
    return PoolRecord(
        name=pool.name,
        weight=spec.weight or 0,
        limits=tuple((name, str(one)) for name, one in spec.limits.items()),
        types=template.values_of(INSTANCE_TYPE),
        capacity_types=template.values_of(CAPACITY_TYPE),
        keeps=_seconds(spec.disruption.consolidate_after or "0s"),
        replicas=spec.replicas,
        is_ready=ready is None or ready.is_true,
        says=ready.message if ready is not None else "",
    )


def claim_record(claim: views.NodeClaim) -> ClaimRecord:
    """Read a NodeClaim."""
    metadata, spec, conditions = claim.metadata, claim.spec, claim.conditions
    annotations = metadata.annotations
    return ClaimRecord(
        name=metadata.name,
        pool=metadata.labels.get(POOL, ""),
        node=claim.status.node_name,
        instance_type=spec.value_of(INSTANCE_TYPE),
        zone=spec.value_of(_ZONE),
        capacity_type=spec.value_of(CAPACITY_TYPE),
        price=_price(annotations.get(PRICE)),
        state=_state(claim),
        says=conditions.message("Launched") if conditions.is_false("Launched") else "",
        held_for=annotations.get(HELD_FOR, ""),
        created=metadata.created,
        idle_since=seconds_of(annotations.get(_IDLE_SINCE, "")),
        is_released=_RELEASED in annotations,
    )


def _state(claim: views.NodeClaim) -> str:
    conditions = claim.conditions
    if claim.is_terminating:
        return "going"
    if conditions.is_false("Launched"):
        return "refused"
    if conditions.is_true("Initialized"):
        return "ready"
    return "launched" if conditions.is_true("Launched") else "launching"


def _seconds(text: str) -> float:
    try:
        return FOREVER if text == "Never" else duration_ms(text) / 1000
    except ValueError:
        return FOREVER


def _price(text: str | None) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0
