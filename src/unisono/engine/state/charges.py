"""What a reservation is charged, from what was written down about it (spec quota §2–§3)."""

from __future__ import annotations

from unisono.engine.model.names import PODS, FlavorName, ResourceName
from unisono.engine.model.queue import ClusterQueue, ResourceGroup
from unisono.engine.model.resources import FlavorResource, pool_name
from unisono.engine.model.workload import Admission, Workload
from unisono.engine.state.quota_tree import Cell, Node
from unisono.engine.state.transaction import Charges


def charges_of(
    workload: Workload, admission: Admission, queue: ClusterQueue, node: Node
) -> Charges:
    """Return what an admitted workload uses, one entry a cell.

    A flavor that the queue no longer lists is still charged, to a cell without quota: the usage
    counts as borrowed until it drains (spec quota §18.8).
    """
    group_of = {resource: group for group in queue.groups for resource in group.covered}
    pod_sets = {pod_set.name: pod_set for pod_set in workload.pod_sets}
    done = dict(workload.reclaimable)
    totals: dict[Cell, int] = {}
    for assigned in admission.pod_sets:
        pod_set = pod_sets.get(assigned.name)
        if pod_set is None:
            continue
        wanted = {**dict(pod_set.requests), PODS: 1}
        count = max(0, assigned.count - done.get(assigned.name, 0))
        for resource, flavor in assigned.flavors:
            amount = wanted.get(resource, 0) * count
            flavor_resource = flavor_resource_of(flavor, resource, group_of.get(resource))
            if amount and flavor_resource is not None:
                cell = node.cell(flavor_resource)
                totals[cell] = totals.get(cell, 0) + amount
    return tuple(totals.items())


def flavor_resource_of(
    flavor: FlavorName, resource: ResourceName, group: ResourceGroup | None
) -> FlavorResource | None:
    """Return the flavor-resource of a flavor's resource; None if the queue does not meter it."""
    listed = next((q for q in group.flavors if q.flavor == flavor), None) if group else None
    if group is None or listed is None:
        return FlavorResource(flavor, resource)
    if group.pool is not None:
        metered = any(quota.resource == resource for quota in group.pool)
        pool = pool_name(quota.flavor for quota in group.flavors)
        return FlavorResource(pool, resource) if metered else None
    metered = any(quota.resource == resource for quota in listed.resources)
    return FlavorResource(flavor, resource) if metered else None
