"""What a part of the state hears of workloads, as it happens to them.

A feature (priority order, arrays, dependencies, ...) follows workloads through these events instead
of adding a condition to every method of `ClusterState`. A method that it does not override does
nothing: that costs a call of an empty native method, less than looking up whether to call it.
"""

from __future__ import annotations

from unisono.engine.model.workload import Workload
from unisono.engine.state.cluster_queue import Running


class Feature:
    """Hears what happens to every workload."""

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
