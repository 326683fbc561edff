"""Quota and usage of every queue, as a table."""

from __future__ import annotations

from unisono.cli.tables import table
from unisono.engine.model.resources import FlavorResource
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.quota_tree import available
from unisono.kinds.quantity import format_amount


def usage_table(state: ClusterState) -> str:
    """Return one row a queue and flavor-resource that has quota or usage."""
    rows = []
    for name in sorted(state.queues):
        node = state.queues[name].node
        for flavor_resource, cell in sorted(node.cells.items()):
            if not cell.nominal and not cell.usage and available(cell) <= 0:
                continue
            borrowed = max(0, cell.usage - cell.nominal)
            numbers = (cell.nominal, cell.usage, borrowed, max(0, available(cell)))
            shown = [format_amount(number, flavor_resource.resource) for number in numbers]
            cohort = node.parent.name if node.parent else None
            rows.append([name, cohort, _label(flavor_resource), *shown])
    headings = ["QUEUE", "COHORT", "FLAVOR/RESOURCE", "NOMINAL", "USED", "BORROWED", "FREE"]
    return table(headings, rows)


def _label(flavor_resource: FlavorResource) -> str:
    return f"{flavor_resource.flavor.removeprefix('pool:')}/{flavor_resource.resource}"
