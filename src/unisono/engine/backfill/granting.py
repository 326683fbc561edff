"""The limit that a workload is started with, where it left open how long it runs (spec time §1).

It is planned with the least. When it starts, the limit is raised as far as it asked for, and as far
as nobody's date moves because of it; from then on it is fixed.
"""

from __future__ import annotations

from collections.abc import Callable

from unisono.engine.model.names import Instant
from unisono.engine.model.policy import Backfill
from unisono.engine.model.workload import Workload
from unisono.engine.state.cluster import ClusterState

# Slurm counts limits in minutes, too.
_STEP_MS = 60_000


def most_granted(state: ClusterState, workload: Workload, now: Instant) -> int | None:
    """Return the longest limit that a workload could be started with; None if it is not open.

    Nobody runs into a reservation, or beyond its own deadline.
    """
    least = workload.least_limit_ms
    if least is None:
        return None
    if state.policy.reservations and state.reserved.concern(workload, now):
        return least
    most = workload.time_limit_ms
    if most is None:
        most = (state.policy.backfill or Backfill()).default_limit_ms
    if workload.deadline is not None:
        most = min(most, workload.deadline - now)
    return max(least, most)


def raised(least: int, most: int, allows: Callable[[int], bool]) -> int:
    """Return the longest limit that is allowed, in whole minutes above the least, which is.

    >>> raised(60_000, 600_000, lambda limit: limit <= 250_000)
    240000
    """
    if allows(most):
        return most
    low, high = 0, (most - least) // _STEP_MS + 1  # steps: the first is allowed, the last is not
    while high - low > 1:
        middle = (low + high) // 2
        if allows(least + middle * _STEP_MS):
            low = middle
        else:
            high = middle
    found = least + low * _STEP_MS
    allows(found)  # who allows remembers whom it looked at last
    return found
