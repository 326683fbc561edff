"""The numbers of the quota tree, and of local queues, against those in the story.

    numbers: {a: {potential: 6, available: 5}, org: {subtree: 15}}
    numbers: {q: {usage: 512Gi, of: a100/memory}}     one flavor-resource of several
    numbers: {local x: {used: 0.449}}                 what a local queue used lately

A name is a ClusterQueue or, failing that, a cohort. Without `of` the flavor-resource is the only
one that the queue (or its tree) has. Decimals are compared as precisely as they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.scenarios.outcomes import mismatch
from tests.scenarios.reading import Part
from tests.scenarios.words import DEFAULT_NAMESPACE, resource
from unisono.engine.model.names import CohortName, LocalQueueKey, QueueName
from unisono.engine.model.resources import FlavorResource
from unisono.engine.quota.share import PER_MILLE, dominant_share, weighted_share
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.local_queue_usage import MICRO
from unisono.engine.state.quota_tree import Cell, Node, available, potential, quotas

_CELL_NUMBERS: Mapping[str, Callable[[Cell], int]] = {
    "subtree": lambda cell: cell.subtree,
    "local": lambda cell: cell.local,
    "usage": lambda cell: cell.usage,
    "potential": potential,
    # A queue that is overdrawn has nothing available; a cohort shows by how much (§4).
    "available": lambda cell: max(0, available(cell)) if cell.node.is_queue else available(cell),
}


def check_numbers(part: Part, state: ClusterState) -> None:
    """Compare every number that the step names."""
    state.refresh()
    for name, wanted in part.entries():
        if name.startswith("local "):
            _check_local(wanted, name.removeprefix("local "), state)
        else:
            _check_node(wanted, _node(wanted, name, state), state)


def _check_node(part: Part, node: Node, state: ClusterState) -> None:
    given = part.fields(*_CELL_NUMBERS, "share", "weighted_share", "of")
    share = dominant_share(node)
    for field, wanted in given.items():
        if field == "share":
            _compare(wanted, share[1] / PER_MILLE if share[0] == 0 else float("inf"))
        elif field == "weighted_share":
            _compare(wanted, weighted_share(share))
        elif field != "of":
            flavor_resource = _flavor_resource(given.get("of"), part, node, state)
            actual = _CELL_NUMBERS[field](node.cell(flavor_resource))
            if wanted.amount(flavor_resource.resource) != actual:
                problem = f"expected {wanted.value}, got {actual} ({flavor_resource.flavor})"
                raise mismatch(wanted, problem)


def _check_local(part: Part, name: str, state: ClusterState) -> None:
    given = part.fields("used")
    usage = state.local_queue_usage.decayed
    if usage is None:
        part.fail("needs the policy admission_fair_sharing")
    _compare(given["used"], usage.of(LocalQueueKey(f"{DEFAULT_NAMESPACE}/{name}")) / MICRO)


def _compare(part: Part, actual: float) -> None:
    wanted, decimals = part.decimals()
    if round(actual, decimals) != wanted:
        raise mismatch(part, f"expected {part.value}, got {actual}")


def _node(part: Part, name: str, state: ClusterState) -> Node:
    cq = state.queues.get(QueueName(name))
    if cq is not None:
        return cq.node
    node = state.cohort_trees.cohort(CohortName(name))
    if not node.children:
        part.fail(f"there is no queue and no cohort {name}")
    return node


def _flavor_resource(
    of: Part | None, part: Part, node: Node, state: ClusterState
) -> FlavorResource:
    """Return the flavor-resource that a number is about."""
    if of is not None:
        flavor, _, word = of.text().partition("/")
        return FlavorResource(flavor, resource(of, word))
    below = [state.cohort_trees.queue_at(queue).spec for queue in node.queues()]
    flavor_resources = {
        flavor_resource for spec in below for flavor_resource, _ in quotas(spec.groups)
    }
    if len(flavor_resources) != 1:
        found = ", ".join(f"{flavor}/{name}" for flavor, name in sorted(flavor_resources))
        part.fail(f"needs `of`, because there are several flavor-resources: {found}")
    return flavor_resources.pop()
