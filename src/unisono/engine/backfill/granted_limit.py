"""The time limit a workload starts with, where its submission gives a range (spec backfill §1).

It is planned with the least. When it starts, the limit is raise_limit as far as it asks for and no
reservation is delayed by it; from then on it is fixed.
"""

from __future__ import annotations

from collections.abc import Callable

from unisono.engine.model.names import Instant
from unisono.engine.model.policy import Backfill
from unisono.engine.model.workload import Workload
from unisono.engine.state.cluster import ClusterState

# Slurm counts limits in minutes, too.
_STEP_MS = 60_000


def longest_limit(state: ClusterState, workload: Workload, now: Instant) -> int | None:
    """Return the longest limit that a workload could be started with; None if it is fixed.

    It must not run into an advance reservation, or beyond its deadline.
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


def raise_limit(least: int, most: int, allows: Callable[[int], bool]) -> int:
    """Return the longest limit that is allowed, in whole minutes above the least, which is.

    >>> raise_limit(60_000, 600_000, lambda limit: limit <= 250_000)
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
    allows(
        found
    )  # the caller keeps the nodes of the last limit that it tried: leave it with this one
    return found
