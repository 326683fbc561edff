"""What can be bought, as one value for the engine: pools, machine types, prices, refusals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from unisono.engine.model.node import Node
from unisono.engine.model.provisioning import REGION, ZONE, Market, Offer, PendingNodeClaims, Pool
from unisono.engine.model.resources import amounts
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.provisioning.outages import Refused, outage_of
from unisono.kinds.karpenter.node_overlays import Overlay
from unisono.provision.machines import MachineType, home_region, machine_types, region_of
from unisono.provision.offers import machines, offers
from unisono.provision.overlays import with_devices, with_prices

# What agents take of every node, as long as nobody says otherwise.
OVERHEAD = amounts({"cpu": 200, "memory": 300 * 2**20, "pods": 5})


def market_of(
    pools: Sequence[Pool],
    regions: Sequence[str],
    *,
    types: Mapping[str, MachineType] | None = None,
    overlays: Sequence[Overlay] = (),
    refused: Iterable[Refused] = (),
    more_offers: Iterable[Offer] = (),
    under_way: Mapping[str, int] | None = None,
    spent_micro: int = 0,
    soon_ms: int = 150_000,
    coming: Iterable[PendingNodeClaims] = (),
    adrift: Iterable[PendingNodeClaims] = (),
) -> Market | None:
    """Return the market of some pools; None without any."""
    if not pools:
        return None
    known = machine_types() if types is None else types
    return Market(
        machines=machines(known.values()),
        offers=(*with_prices(offers(known.values(), regions), known, overlays), *more_offers),
        pools=tuple(sorted(pools, key=lambda pool: pool.name)),
        outages=tuple(outage_of(one) for one in refused),
        overhead=OVERHEAD,
        soon_ms=soon_ms,
        under_way=tuple(sorted((under_way or {}).items())),
        spent_micro=spent_micro,
        coming=tuple(coming),
        adrift=tuple(adrift),
    )


def regions_of(pools: Iterable[Pool], nodes: Iterable[Node]) -> list[str]:
    """Return where machines are bought: where pools or nodes say, else at home."""
    found: dict[str, None] = {}
    for pool in pools:
        for one in pool.requirements:
            if one.operator == "In" and one.key == REGION:
                found.update(dict.fromkeys(one.values))
            elif one.operator == "In" and one.key == ZONE:
                found.update(dict.fromkeys(map(region_of, one.values)))
    for node in nodes:
        region = dict(node.labels).get(REGION)
        if region:
            found[region] = None
    return sorted(found) or [home_region()]


def with_market(
    snapshot: Snapshot, pools: Sequence[Pool], overlays: Sequence[Overlay] = ()
) -> Snapshot:
    """Return a picture in which these pools sell machines, at prices that overlays may change."""
    if not pools:
        return snapshot
    types = with_devices(machine_types(), overlays)
    regions = regions_of(pools, snapshot.nodes)
    market = market_of(pools, regions, types=types, overlays=overlays)
    return msgspec.structs.replace(snapshot, market=market)
