"""Machines that are bought, as rows: for `unisono nodes`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from unisono.cli.listing import Sheet

if TYPE_CHECKING:
    from unisono.kube.client import Client

Json = dict[str, Any]
_COLUMNS = {
    "CLAIM": "name",
    "POOL": "pool",
    "TYPE": "type",
    "ZONE": "zone",
    "SOLD AS": "capacityType",
    "US$/H": "price",
    "STATE": "state",
    "HELD FOR": "heldFor",
}


async def read_claims(client: Client) -> list[Json]:
    """Return the machines that are bought, or about to be; none where there is no such kind."""
    from unisono.control.names import NODE_CLAIM
    from unisono.kube.errors import Forbidden, NotFound, UnknownKind

    try:
        claims = (await client.list(NODE_CLAIM)).items
    except (Forbidden, NotFound, UnknownKind):
        return []
    return [_row(one) for one in sorted(claims, key=lambda one: str(one["metadata"]["name"]))]


def claim_sheet(claims: Sequence[Json]) -> Sheet:
    """Return a sheet of machines that are not nodes yet."""
    rows = [[one[word] for word in _COLUMNS.values()] for one in claims]
    return Sheet("claims", tuple(_COLUMNS), rows, list(claims))


def price_and_holder(node: Json, bought: Mapping[str, Json]) -> tuple[str, str]:
    """Return the hourly price of a node, and the workload that it is kept for."""
    own = bought.get(node["name"], {})
    return str(own.get("price", node["price"])), str(own.get("heldFor", ""))


def _row(claim: Json) -> Json:
    from unisono.provision import keys
    from unisono.provision.claims import node_name, pool_name, state_of, wanted_of

    annotations = claim["metadata"].get("annotations") or {}
    return {
        "name": claim["metadata"]["name"],
        "node": node_name(claim),
        "pool": pool_name(claim),
        "type": wanted_of(claim, keys.INSTANCE_TYPE),
        "zone": wanted_of(claim, keys.ZONE),
        "capacityType": wanted_of(claim, keys.CAPACITY_TYPE),
        "price": annotations.get(keys.PRICE, ""),
        "state": state_of(claim),
        "heldFor": annotations.get(keys.HELD_FOR, ""),
    }
