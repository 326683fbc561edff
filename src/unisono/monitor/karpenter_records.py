"""The little of node pools and machines that are bought which figures need.

Names of labels and annotations are those that provisioning writes; this package is below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from unisono.kinds.core.nodes import HELD_FOR
from unisono.kinds.scalar import duration_ms
from unisono.monitor.records import CAPACITY_TYPE, INSTANCE_TYPE, POOL, PRICE

Json = Mapping[str, Any]

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
    idle_since: float  # 0: somebody is on it
    is_released: bool  # of a purchase that did not come together

    def idle_until(self, pool: PoolRecord | None, reuse: float) -> float:
        """Return when it goes if nobody comes; 0 if nobody knows, or it is in use."""
        if not self.idle_since:
            return 0.0
        keeps = reuse if self.is_released else FOREVER if pool is None else pool.keeps
        return 0.0 if keeps == FOREVER else self.idle_since + keeps


def pool_record(pool: Json) -> PoolRecord:
    """Read a NodePool."""
    spec = pool.get("spec") or {}
    template = ((spec.get("template") or {}).get("spec")) or {}
    disruption = spec.get("disruption") or {}
    ready = _condition(pool, "Ready")
    return PoolRecord(
        name=pool["metadata"]["name"],
        weight=int(spec.get("weight") or 0),
        limits=tuple((str(name), str(one)) for name, one in (spec.get("limits") or {}).items()),
        types=_values(template, INSTANCE_TYPE),
        capacity_types=_values(template, CAPACITY_TYPE),
        keeps=_seconds(str(disruption.get("consolidateAfter") or "0s")),
        replicas=spec.get("replicas"),
        is_ready=ready is None or ready["status"] == "True",
        says=str((ready or {}).get("message") or ""),
    )


def claim_record(claim: Json) -> ClaimRecord:
    """Read a NodeClaim."""
    metadata = claim["metadata"]
    annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
    launched = _condition(claim, "Launched")
    is_refused = launched is not None and launched["status"] == "False"
    return ClaimRecord(
        name=metadata["name"],
        pool=labels.get(POOL, ""),
        node=str((claim.get("status") or {}).get("nodeName") or ""),
        instance_type=_first(claim["spec"], INSTANCE_TYPE),
        zone=_first(claim["spec"], _ZONE),
        capacity_type=_first(claim["spec"], CAPACITY_TYPE),
        price=_price(annotations.get(PRICE)),
        state=_state(claim, launched),
        says=str((launched or {}).get("message") or "") if is_refused else "",
        held_for=annotations.get(HELD_FOR, ""),
        created=_time(metadata.get("creationTimestamp")),
        idle_since=_time(annotations.get(_IDLE_SINCE)),
        is_released=_RELEASED in annotations,
    )


def _state(claim: Json, launched: Json | None) -> str:
    if "deletionTimestamp" in claim["metadata"]:
        return "going"
    if launched is not None and launched["status"] == "False":
        return "refused"
    ready = _condition(claim, "Initialized")
    if ready is not None and ready["status"] == "True":
        return "ready"
    return "launched" if launched is not None and launched["status"] == "True" else "launching"


def _condition(obj: Json, kind: str) -> Json | None:
    conditions: Iterable[Json] = (obj.get("status") or {}).get("conditions") or ()
    return next((one for one in conditions if one["type"] == kind), None)


def _values(spec: Json, key: str) -> tuple[str, ...]:
    for one in spec.get("requirements") or ():
        if one.get("key") == key and one.get("operator") == "In":
            return tuple(str(value) for value in one.get("values") or ())
    return ()


def _first(spec: Json, key: str) -> str:
    return next(iter(_values(spec, key)), "")


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


def _time(text: str | None) -> float:
    try:
        return datetime.fromisoformat(text).timestamp() if text else 0.0
    except ValueError:
        return 0.0
