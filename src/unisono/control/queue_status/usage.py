"""What a queue uses, flavor by flavor, as its status has it.

Every flavor and resource of the queue's quota is listed, used or not. What is still held of a
flavor that the queue no longer lists comes last, all of it borrowed. The flavors of a pool share
one quota: what exceeds it is put down to the later flavors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from unisono.control.actions import Json
from unisono.control.queue_status.tally import Use
from unisono.engine.model.queue import ClusterQueue, ResourceGroup
from unisono.kinds.quantity import format_amount

_MOST_FLAVORS = 64  # what the schema of the status allows


def flavors_usage(
    queue: ClusterQueue, amounts: Mapping[Use, int], *, tells_borrowed: bool
) -> list[Json]:
    """Return the list of flavors with what is used of each resource."""
    found: dict[str, list[Json]] = {}
    listed: set[Use] = set()
    for group in queue.groups:
        for use, borrowed in _listed(group, amounts):
            listed.add(use)
            total = amounts.get(use, 0)
            found.setdefault(use.flavor, []).append(_entry(use, total, borrowed, tells_borrowed))
    known = {quota.flavor for group in queue.groups for quota in group.flavors}
    for use in sorted(amounts.keys() - listed):
        total = amounts[use]
        # A resource that a flavor of the queue does not limit is not borrowed from anybody.
        borrowed = 0 if use.flavor in known else total
        found.setdefault(use.flavor, []).append(_entry(use, total, borrowed, tells_borrowed))
    return [
        {"name": name, "resources": resources}
        for name, resources in list(found.items())[:_MOST_FLAVORS]
    ]


def _listed(group: ResourceGroup, amounts: Mapping[Use, int]) -> Iterator[tuple[Use, int]]:
    """Yield what a group lists, in its order, and how much of it is borrowed."""
    if group.pool is None:
        for flavor in group.flavors:
            for quota in flavor.resources:
                use = Use(flavor.flavor, quota.resource)
                yield use, max(0, amounts.get(use, 0) - quota.nominal)
        return
    left = {quota.resource: quota.nominal for quota in group.pool}
    for flavor in group.flavors:
        for quota in group.pool:
            use = Use(flavor.flavor, quota.resource)
            total = amounts.get(use, 0)
            yield use, max(0, total - left[quota.resource])
            left[quota.resource] = max(0, left[quota.resource] - total)


def _entry(use: Use, total: int, borrowed: int, tells_borrowed: bool) -> Json:
    entry: Json = {"name": use.resource, "total": format_amount(total, use.resource)}
    if tells_borrowed:
        entry["borrowed"] = format_amount(borrowed, use.resource)
    return entry
