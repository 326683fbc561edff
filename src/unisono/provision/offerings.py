"""What can be bought now, read from the cluster: pools, claims, refusals, the cloud's own keys.

What was refused lately is remembered here, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import msgspec

from unisono.control import names
from unisono.control.actions import Create, Json, Patch, Ref, Steps
from unisono.control.admission.purchases import UNDER_WAY, is_holding, purchase_of
from unisono.control.conditions import find
from unisono.control.view import View
from unisono.engine.model.names import Instant, NodeName, WorkloadKey
from unisono.engine.model.provisioning import (
    MICRO,
    NODES,
    CapacityType,
    NodeClaim,
    Offerings,
    PendingNodeClaims,
    Pool,
)
from unisono.engine.provisioning.catalogue import Refused, after_refusal, is_over
from unisono.kinds.decode import decode
from unisono.kinds.karpenter import NodePool, pool_of
from unisono.kinds.quantity import Quantity
from unisono.kube.mapping import Kind
from unisono.provision import keys
from unisono.provision.catalog.instance_types import MachineType
from unisono.provision.catalog.nodes import capacity_of
from unisono.provision.catalog.offers import (
    merged,
    offerings_of,
    overlays_in,
    regions_of,
    with_devices,
)
from unisono.provision.claims import drift_of, launched_at, pool_name, wanted_of
from unisono.provision.occupancy import is_orphaned
from unisono.provision.simulated_cloud import Cloud, cloud_of

_OURS = (keys.STOCK, keys.CLOUD)


class OfferingsReader:
    """Reads what can be bought. It keeps nothing that it could not read again."""

    kinds: Sequence[Kind] = (
        names.NODE_POOL,
        names.NODE_CLAIM,
        names.NODE_OVERLAY,
        names.CONFIG_MAP,
    )

    def __init__(self, speed: float = 1.0, home: str = keys.SYSTEM) -> None:
        """Machines come so many times faster than a cloud says; refusals are read at `home`."""
        self._speed = speed
        self._home = home

    def concerns(self, kind: Kind, obj: Json) -> bool:
        """Say whether a change of an object may change what can be bought."""
        if kind == names.CONFIG_MAP:
            return obj["metadata"]["name"] in _OURS
        if kind == names.WORKLOAD:  # machines that it waited for may be for others now
            found = find((obj.get("status") or {}).get("conditions"), names.PURCHASE)
            return found is not None and found["status"] == "False"
        return kind in (names.NODE_POOL, names.NODE_CLAIM, names.NODE_OVERLAY)

    def read(self, view: View, *, with_static: bool = False) -> Offerings | None:
        """Return what can be bought now; None without pools."""
        written = [pool for pool in view.all(names.NODE_POOL) if _is_there(pool)]
        if not written:
            return None
        cloud = cloud_of(view.get(names.CONFIG_MAP, keys.CLOUD, keys.SYSTEM))
        overlays = overlays_in(view)
        known = merged({one.name: one for one in cloud.instance_types})
        types = with_devices(known, overlays)
        used, busy, spent = _use(view, types)
        soon_ms = round(_soon_ms(cloud) / self._speed)
        pools = []
        for obj in written:
            made, _ = decode(NodePool, obj, ignore_unknown=True)
            if made is not None:
                pool = pool_of(made, used.get(made.metadata.name, {}))
                if with_static and made.spec.replicas is not None:
                    pool = msgspec.structs.replace(pool, refused="")
                pools.append(pool)
        return offerings_of(
            pools,
            _regions(pools, cloud, view),
            types=types,
            overlays=overlays,
            refused=refusals(view, self._home),
            under_way=busy,
            spent_micro=spent,
            soon_ms=soon_ms,
            coming=_coming(view),
            orphaned=_orphaned(view, soon_ms),
        )


def _is_there(pool: Json) -> bool:
    return "deletionTimestamp" not in pool["metadata"]


def _regions(pools: list[Pool], cloud: Cloud, view: View) -> list[str]:
    named = regions_of(pools, ())
    names_place = any(
        one.key in (keys.ZONE, keys.REGION) for pool in pools for one in pool.requirements
    )
    if names_place:
        return named
    there = {
        (node["metadata"].get("labels") or {}).get(keys.REGION, "") for node in view.all(names.NODE)
    }
    return [cloud.region] if cloud.region else sorted(there - {"", "local"}) or [cloud.home]


def _soon_ms(cloud: Cloud) -> int:
    steps = sum(cloud.seconds(step, "typical") for step in ("api", "boot", "plugin", "startup"))
    return int(steps * 1000)


def _use(
    view: View, types: dict[str, MachineType]
) -> tuple[dict[str, dict[str, int]], dict[str, int], int]:
    """Return what machines of each pool have, how many purchases are under way, and the costs."""
    used: dict[str, dict[str, int]] = {}
    busy: dict[str, int] = {}
    spent = 0
    seen: set[str] = set()
    for claim in view.all(names.NODE_CLAIM):
        seen.add(claim["metadata"]["name"])
        _count(used, pool_name(claim), types.get(wanted_of(claim, keys.INSTANCE_TYPE)))
        spent += _price(claim)
    for workload in view.all(names.WORKLOAD):
        found = purchase_of(workload)
        if found is None or found[0] not in UNDER_WAY or not is_holding(workload):
            continue
        for pool in {alike.pool for alike in found[1].machines}:
            busy[pool] = busy.get(pool, 0) + 1
        for node_claim in found[1].node_claims():
            if node_claim.node not in seen:  # decided, and not written yet
                _count(used, node_claim.pool, types.get(node_claim.machine))
                spent += node_claim.price_micro
    return used, busy, spent


def _coming(view: View) -> Iterator[PendingNodeClaims]:
    """Yield the machines that gangs wait for."""
    for workload in view.all(names.WORKLOAD):
        found = purchase_of(workload)
        if found is not None and found[0] in UNDER_WAY and is_holding(workload):
            due = Instant(found[1].ready_by * 1000)
            key = f"{workload['metadata']['namespace']}/{workload['metadata']['name']}"
            yield PendingNodeClaims(
                workload=WorkloadKey(key), node_claims=tuple(found[1].node_claims()), ready_by=due
            )


def _orphaned(view: View, soon_ms: int) -> Iterator[PendingNodeClaims]:
    """Yield launching machines that no workload waits for."""
    for claim in view.all(names.NODE_CLAIM):
        pool = view.get(names.NODE_POOL, pool_name(claim))
        if is_orphaned(claim, view) and not drift_of(claim, None, pool):
            holder = claim["metadata"]["annotations"][keys.HELD_FOR]
            due = Instant(round(launched_at(claim) * 1000) + soon_ms)
            yield PendingNodeClaims(
                workload=WorkloadKey(holder), node_claims=(_node_claim(claim),), ready_by=due
            )


def _node_claim(claim: Json) -> NodeClaim:
    return NodeClaim(
        node=NodeName(claim["metadata"]["name"]),
        pool=pool_name(claim),
        machine=wanted_of(claim, keys.INSTANCE_TYPE),
        zone=wanted_of(claim, keys.ZONE),
        capacity_type=cast(CapacityType, wanted_of(claim, keys.CAPACITY_TYPE)),
        price_micro=_price(claim),
        pods=(),
    )


def _count(used: dict[str, dict[str, int]], pool: str, machine: MachineType | None) -> None:
    mine = used.setdefault(pool, {})
    mine[NODES] = mine.get(NODES, 0) + 1
    for name, text in (capacity_of(machine) if machine is not None else {}).items():
        mine[name] = mine.get(name, 0) + Quantity.from_raw(text).amount(name)


def _price(claim: Json) -> int:
    text = (claim["metadata"].get("annotations") or {}).get(keys.PRICE, "")
    try:
        return round(float(text) * MICRO)
    except ValueError:
        return 0


# ---- refusals ------------------------------------------------------------------------------------
#
# What was refused lately, kept in a ConfigMap so that a restart does not forget it.
#
# kube-system/unisono-stock (on a real cluster: in the namespace of the installation)
# data: {"on-demand:p5.48xlarge:us-east-1a": '{"count":8,"failures":2,…}'}

Offered = tuple[str, str, CapacityType]  # type, zone, how it is sold
_FORGET_MS = 3600_000  # so long after its pause a refusal no longer makes the next one longer


def refusals(view: View, home: str = keys.SYSTEM) -> Iterator[Refused]:
    """Yield what is remembered in a namespace."""
    stored = view.get(names.CONFIG_MAP, keys.STOCK, home)
    for text in ((stored or {}).get("data") or {}).values():
        try:
            yield msgspec.json.decode(text, type=Refused)
        except msgspec.DecodeError:  # edited by hand; nothing depends on it for long
            continue


def _key_of(offer: Offered) -> str:
    """Return under which key an offer is remembered.

    >>> key_of(("p5.48xlarge", "us-east-1a", "on-demand"))
    'on-demand.p5.48xlarge.us-east-1a'
    """
    machine, zone, sold = offer
    return f"{sold}.{machine}.{zone}"


def remember(view: View, home: str, counts: dict[Offered, int], now: float, code: str) -> Steps:
    """Write down that so many of these were refused."""
    instant = Instant(int(now * 1000))
    known = {
        _key_of((one.machine, one.zone, one.capacity_type)): one for one in refusals(view, home)
    }
    data: dict[str, str | None] = {
        key: None for key, one in known.items() if is_over(one, Instant(instant - _FORGET_MS))
    }
    for offer, count in counts.items():
        key = _key_of(offer)
        before = known.get(key) if key not in data else None
        data[key] = _text(after_refusal(before, offer, count, instant, code))
    yield from _write(view, home, data)


def forget(view: View, home: str, offers: Iterable[Offered]) -> Steps:
    """Forget refusals of what was granted."""
    stored = view.get(names.CONFIG_MAP, keys.STOCK, home)
    known = (stored or {}).get("data") or {}
    gone: dict[str, str | None] = {
        key: None for key in dict.fromkeys(map(_key_of, offers)) if key in known
    }
    if gone:
        yield from _write(view, home, gone)


def _text(refused: Refused) -> str:
    return msgspec.json.encode(refused).decode()


def _write(view: View, home: str, data: dict[str, str | None]) -> Steps:
    stored = view.get(names.CONFIG_MAP, keys.STOCK, home)
    if stored is not None:
        yield Patch(Ref.to(stored), {"data": data})
        return
    made: Json = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": keys.STOCK, "namespace": home},
        "data": {key: text for key, text in data.items() if text is not None},
    }
    yield Create(made)
