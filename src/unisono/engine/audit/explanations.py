"""Do the numbers of a "no" say no? (spec quota §7, placement §8.10)"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.audit.quota_tree import queue_node
from unisono.engine.audit.snapshot_index import SnapshotIndex, flavor_resource_of
from unisono.engine.audit.violation import Violation
from unisono.engine.model.explanation import (
    Blocker,
    ExceedsMaximum,
    GangDoesNotFit,
    QuotaExhausted,
)
from unisono.engine.model.plan import Plan
from unisono.engine.model.resources import FlavorResource


def check_explanations(index: SnapshotIndex, plan: Plan) -> Iterator[Violation]:
    """Check that every wait has a reason, and that facts about quota and nodes hold."""
    for wait in plan.waits:
        explanation = wait.explanation
        problems = [_problem(index, blocker) for blocker in explanation.blockers]
        if not explanation.blockers:
            problems = ["it waits without a reason"]
        for problem in problems:
            if problem:
                yield Violation(
                    rule="explanation",
                    workload=explanation.workload,
                    queue=explanation.queue,
                    message=problem,
                )


def _problem(index: SnapshotIndex, blocker: Blocker) -> str:
    if isinstance(blocker, GangDoesNotFit):
        return _problem_with_nodes(index, blocker)
    if not isinstance(blocker, QuotaExhausted | ExceedsMaximum):
        return ""
    queue = index.queues.get(blocker.queue)
    if queue is None:
        return f"no queue {blocker.queue}"
    flavor_resource = flavor_resource_of(queue.groups, blocker.resource, blocker.flavor)
    if blocker.flavor.startswith("pool:"):
        flavor_resource = FlavorResource(blocker.flavor, blocker.resource)
    if flavor_resource is None:
        return f"{blocker.resource} of {blocker.flavor} has no limit in {queue.name}"
    maximum = index.tree.potential(queue_node(queue.name), flavor_resource)
    what = f"{blocker.resource} of {blocker.flavor} in {queue.name}"
    if isinstance(blocker, ExceedsMaximum):
        if blocker.maximum != maximum:
            return f"the maximum {what} is {maximum}, not {blocker.maximum}"
        if blocker.wanted <= maximum:
            return f"{blocker.wanted} wanted is not above the maximum {maximum} {what}"
        return ""
    if blocker.wanted <= blocker.available:
        return f"{blocker.wanted} wanted, {blocker.available} available {what}: that fits"
    if blocker.wanted > maximum:
        return f"{blocker.wanted} wanted exceeds the maximum {maximum} {what} for good"
    return ""


def _problem_with_nodes(index: SnapshotIndex, blocker: GangDoesNotFit) -> str:
    if not index.has_nodes:
        return "there are no nodes that it could lack"
    if blocker.pods_placeable >= blocker.pods:
        return f"{blocker.pods_placeable} of {blocker.pods} pods fit: that is all of them"
    refused = sum(nodes for _, nodes in blocker.refusals)
    if blocker.nodes != len(index.nodes) or refused > blocker.nodes:
        return f"{refused} of {blocker.nodes} nodes refused it, and there are {len(index.nodes)}"
    return ""
