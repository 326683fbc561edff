"""Nodes that come only after an admission check has agreed: until then quota alone decides (§12).

Which nodes an autoscaler will bring is not ours to know, so such a workload is reserved without a
place; it is seated when they are there (`seating.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from unisono.engine.model.workload import Workload
from unisono.engine.placement.seek import Seeker
from unisono.engine.quota.assign import Assignment
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.queue_book import QueueBook

# Says of an assignment whether its nodes come later.
Late = Callable[[Assignment], bool]


def never(assignment: Assignment) -> bool:
    """Say that the nodes are those that are there."""
    return False


def late_for(state: ClusterState, book: QueueBook, workload: Workload) -> Late:
    """Return what knows whether a workload of a queue gets its nodes later."""
    config, checks = state.config, workload.checks
    return lambda found: config.nodes_come_later(book.spec, found.flavors.values(), checks)


def finds_place(seeker: Seeker | None, late: Late) -> Callable[[Assignment], bool] | None:
    """Return what knows whether there is a place, if one is needed now; None without nodes."""
    if seeker is None or late is never:
        return None if seeker is None else seeker.fits
    return lambda assignment: late(assignment) or seeker.fits(assignment)
