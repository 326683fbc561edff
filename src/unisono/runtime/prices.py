"""What machines cost that do not say it themselves: the catalogue's price for their type."""

from __future__ import annotations

from unisono.monitor.records import NodeRecord
from unisono.provision.catalog.instance_types import machine_types, region_of


def catalogue_price(node: NodeRecord) -> float:
    """Return the price of a node by its instance type, region and capacity type; 0 if unknown.

    A type that is not sold in a region that we know costs what it costs where it is cheapest.
    """
    machine = machine_types().get(node.instance_type)
    if machine is None:
        return 0.0
    here = machine.price.get(region_of(node.zone))
    sold = [here] if here is not None else list(machine.price.values())
    is_spot = node.capacity_type == "spot"
    prices = [one.spot if is_spot else one.on_demand for one in sold]
    return min((one for one in prices if one), default=0.0)
