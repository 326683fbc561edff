"""Quota trees in one line, for tests of the engine's own tree: no queues, no workloads, no state.

Quotas are written as in spec quota §19 ("4/bl2/ll1"); everything is `gpu` of flavor `f` unless
groups are given.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.quota_builders import ACCOUNT, group
from unisono.engine.model.resources import FlavorResource
from unisono.engine.state.quota_tree import Cell, Node, charge, link, set_groups

Places = Mapping[str, tuple[str, str | None]]  # name: (quota, name of the cohort above)


def tree(*, cohorts: Places | None = None, queues: Places | None = None) -> dict[str, Node]:
    """Grow a tree; a cohort that is only named as a parent owns nothing."""
    nodes: dict[str, Node] = {}
    places = [(name, place, False) for name, place in (cohorts or {}).items()]
    places += [(name, place, True) for name, place in (queues or {}).items()]
    for name, (text, _), is_queue in places:
        nodes[name] = Node(name, is_queue=is_queue)
        set_groups(nodes[name], (group({"f": {"gpu": text}}),))
    for name, (_, parent), _ in places:
        if parent is not None:
            above = nodes.setdefault(parent, Node(parent, is_queue=False))
            link(nodes[name], above)
    return nodes


def cell(node: Node, flavor_resource: FlavorResource = ACCOUNT) -> Cell:
    """Return the node's cell for the one flavor-resource of most tests."""
    return node.cell(flavor_resource)


def use(node: Node, amount: int) -> None:
    """Let a queue use so much more."""
    charge(cell(node), amount)


def numbers(nodes: Mapping[str, Node]) -> dict[str, tuple[int, int, int]]:
    """Return subtree, local and usage of every node."""
    return {
        name: (cell(node).subtree, cell(node).local, cell(node).usage)
        for name, node in nodes.items()
    }
