"""Plans that are applied and not stored yet: how many of them are written together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from unisono.engine.model.names import WorkloadKey
from unisono.engine.model.plan import Plan, evictions, shrinks
from unisono.engine.model.workload import Workload

# So many plans that only admit are written at once: they share a commit, and the first of them
# does not wait long for the last.
MOST_PLANS = 8
# With so many admissions no further plan joins them: an API server stores some hundred a second,
# and a workload of higher priority that arrives meanwhile waits for the last of them.
MOST_ADMISSIONS = 32


class Decided(NamedTuple):
    """A plan that counts already, and what the workloads that it admits asked for."""

    made: Plan
    asked: Mapping[WorkloadKey, Workload]
    changed: bool  # the next cycle may decide otherwise


def has_room(unwritten: Sequence[Decided]) -> bool:
    """Say whether another plan may be written together with these."""
    admitted = sum(len(one.asked) for one in unwritten)
    return len(unwritten) < MOST_PLANS and admitted < MOST_ADMISSIONS


def only_admits(made: Plan) -> bool:
    """Say whether a plan evicts, shrinks and stops nothing."""
    return not any(evictions(made)) and not any(shrinks(made)) and not made.stops
