"""Dominant resource shares: how far above its own quota a queue or cohort is (spec quota §9).

A share is an integer in units of 10^-18 of the tree's capacity, never a float: equal fractions
give equal integers on every machine. The pair (tier, value) orders "infinite" shares (weight 0
and borrowing) above all finite ones.
"""

from __future__ import annotations

from unisono.engine.model.queue import MILLI
from unisono.engine.model.resources import FlavorResource
from unisono.engine.state.quota_tree import Node, potential

Share = tuple[int, int]
NOTHING: Share = (0, 0)
# The whole capacity: eighteen digits separate any two fractions that real quotas can produce, and
# the product with byte-sized usages is still a small Python integer.
WHOLE = 10**18
PER_MILLE = WHOLE // 1000


def dominant_share(node: Node) -> Share:
    """Return the node's share of what its parent can offer, divided by its weight."""
    parent = node.parent
    if parent is None:
        return NOTHING
    over: dict[str, int] = {}
    for flavor_resource, cell in node.cells.items():
        if cell.usage > cell.subtree:
            resource = flavor_resource.resource
            over[resource] = over.get(resource, 0) + cell.usage - cell.subtree
    if not over:
        return NOTHING
    lendable = dict.fromkeys(over, 0)
    for flavor_resource in node.root().cells:  # a root has a cell for all of its tree
        if flavor_resource.resource in lendable:
            lendable[flavor_resource.resource] += _potential_at(parent, flavor_resource)
    # One division, so that equal fractions are equal integers whatever the weights.
    tier, weight = (0, node.weight_milli) if node.weight_milli else (1, MILLI)
    parts = [over[r] * WHOLE * MILLI // (lendable[r] * weight) for r in over if lendable[r] > 0]
    highest = max(parts, default=0)
    return (tier, highest) if highest else NOTHING


def _potential_at(node: Node, flavor_resource: FlavorResource) -> int:
    """Return what a node could use; one without quota of its own passes its parent's on."""
    for ancestor in node.path():
        cell = ancestor.cells.get(flavor_resource)
        if cell is not None:
            return potential(cell)
    return 0


def is_borrowing(node: Node) -> bool:
    """Say whether the node uses more than its subtree owns, of anything."""
    return any(cell.usage > cell.subtree for cell in node.cells.values())


def weighted_share(share: Share) -> int:
    """Return the number that status shows: per mille, rounded up; the largest int64 if infinite."""
    tier, value = share
    return 2**63 - 1 if tier else -(-value // PER_MILLE)
