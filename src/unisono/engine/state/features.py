"""What a part of the state hears of workloads, as it happens to them.

A feature (priority order, arrays, dependencies, ...) follows workloads through these events instead
of adding a condition to every method of `ClusterState`.

Most clusters use few features, and events are most of the work, so a call that does nothing is not
made: an event reaches the features that override it (`hearing`), and of plain workloads only those
that are on.
"""

from __future__ import annotations

from unisono.engine.model.workload import Workload
from unisono.engine.state.cluster_queue import Running


class Feature:
    """Hears what happens to workloads."""

    # There is something to follow: it hears of every workload. While this is False it hears of
    # those only that may turn it on (`is_plain` says which cannot), and of none that ends.
    is_on: bool = False

    def entered(self, workload: Workload, *, was_held: bool) -> None:
        """A workload is pending; `was_held`: until now a user or an operator held it."""

    def left(self, workload: Workload) -> None:
        """A workload is no longer pending: it starts, ends, or is about to be queued anew."""

    def started(self, running: Running) -> None:
        """A workload holds quota and has its nodes."""

    def changed(self, running: Running) -> None:
        """What a workload holds has changed."""

    def ended(self, running: Running) -> None:
        """A workload holds neither quota nor nodes any more."""


def hearing(event: str, features: tuple[Feature, ...]) -> tuple[Feature, ...]:
    """Return the features that override what happens at an event, in their order."""
    ignores = getattr(Feature, event)
    return tuple(each for each in features if getattr(type(each), event) is not ignores)
