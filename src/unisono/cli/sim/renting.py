"""Machines that a simulation may buy: NodePools of a file, with the simulated cloud's manners."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unisono.engine.model.errors import InvalidManifest

if TYPE_CHECKING:
    from unisono.engine.model.names import NodeName
    from unisono.engine.model.node import Node
    from unisono.engine.model.provisioning import Market
    from unisono.provision.simulated_cloud import Cloud
    from unisono.sim.provisioning import ProvisioningRules

# What bought machines are called in tables, beside the policy.
BOUGHT = "bought"


def add_renting(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument(
        "--pools",
        type=Path,
        metavar="FILE",
        help="buy machines as these NodePools say (with the ConfigMap unisono-cloud: stock, "
        "delays), and compare with the cluster of --nodes, if there is one",
    )
    parser.add_argument(
        "--base",
        action="append",
        default=[],
        metavar="WHERE",
        help="with --pools: nodes that are always there beside those that are bought",
    )


def terms_of(path: Path) -> ProvisioningRules:
    """Return what can be bought by a file, how soon, and for how long machines stay."""
    from unisono.cli.up import pools_of_file
    from unisono.kinds.decode import decode
    from unisono.kinds.karpenter import NodePool, pool_of
    from unisono.provision.catalog.offers import market_of, merged, regions_of
    from unisono.provision.catalog.overlays import usable_overlays, with_devices
    from unisono.provision.keys import CLOUD
    from unisono.provision.lifecycle.occupancy import stays_for
    from unisono.provision.simulated_cloud import cloud_of
    from unisono.sim.provisioning import ProvisioningRules

    documents = pools_of_file(path)
    written = [one for one in documents if one["kind"] == "NodePool"]
    config = next((one for one in documents if one["metadata"].get("name") == CLOUD), None)
    cloud = cloud_of(config)
    pools = []
    for one in written:
        made, problems = decode(NodePool, one, ignore_unknown=True)
        if made is None:
            raise InvalidManifest("--pools", problems[0].message)
        pools.append(pool_of(made))
    regions = [cloud.region] if cloud.region else regions_of(pools, ())
    overlays = usable_overlays(one for one in documents if one["kind"] == "NodeOverlay")
    types = with_devices(merged({one.name: one for one in cloud.instance_types}), overlays)
    market = market_of(pools, regions, types=types, overlays=overlays)
    if market is None:
        raise InvalidManifest("--pools", f"{path} has no NodePool")
    return ProvisioningRules(
        market=_for_sale(market, cloud),
        launch_s=lambda name: cloud.seconds("api", name),
        ready_s=lambda name: sum(cloud.seconds(step, name) for step in _STEPS),
        idle_s={one["metadata"]["name"]: stays_for(_NO_CLAIM, one, reuse=0.0) for one in written},
    )


_STEPS = ("api", "boot", "plugin", "startup")
_NO_CLAIM: dict[str, Any] = {"metadata": {}}


def _for_sale(market: Market, cloud: Cloud) -> Market:
    """Leave out what no pool would buy, and say how many there are of the rest."""
    import msgspec

    from unisono.engine.provisioning.catalogue import Catalogue

    offerings = Catalogue(market).offerings
    if not offerings:
        raise InvalidManifest("--pools", "no machine type meets what the NodePools require")
    sold = {(one.offer.machine, one.offer.zone, one.offer.capacity_type) for one in offerings}
    offers = tuple(
        msgspec.structs.replace(one, stock=cloud.left(one.machine, one.zone, one.capacity_type))
        for one in market.offers
        if (one.machine, one.zone, one.capacity_type) in sold
    )
    names = {one.machine for one in offers}
    machines = tuple(one for one in market.machines if one.name in names)
    steps = sum(cloud.seconds(step, "typical") for step in _STEPS)
    replace = msgspec.structs.replace
    return replace(market, machines=machines, offers=offers, soon_ms=int(steps * 1000))


def prices_of(nodes: Sequence[Node]) -> Mapping[NodeName, int]:
    """Return what nodes cost an hour: the on-demand price of their type, where it is known."""
    from unisono.engine.model.provisioning import INSTANCE_TYPE, MICRO, ZONE
    from unisono.provision.catalog.instance_types import default_zone, machine_types, region_of

    found: dict[NodeName, int] = {}
    for node in nodes:
        labels = dict(node.labels)
        machine = machine_types().get(labels.get(INSTANCE_TYPE, ""))
        if machine is None:
            continue
        region = region_of(labels.get(ZONE) or default_zone(machine))
        price = machine.price.get(region)
        asked = None if price is None else price.on_demand or price.estimate_on_demand
        if asked is not None:
            found[node.name] = round(asked * MICRO)
    return found
