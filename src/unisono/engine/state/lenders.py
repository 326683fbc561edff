"""Lenders: admitted gangs that hold free nodes while their last machines are provisioned.

Such a gang has started nothing: a job that is over before the last machine is expected may use the
nodes it holds (`provisioning/opportunistic.py`). Spec provisioning §5.16.
"""

from __future__ import annotations

from unisono.engine.model.names import WorkloadKey
from unisono.engine.model.overriding import override
from unisono.engine.model.workload import Workload
from unisono.engine.state.cluster_queue import Running
from unisono.engine.state.features import Feature


class Lenders(Feature):
    """The gangs that have nodes to lend."""

    def __init__(self) -> None:
        self.all: dict[WorkloadKey, Running] = {}
        self.is_new = False  # the first one came, or the last one went: equivalence classes change

    @override
    def started(self, running: Running) -> None:
        """Take in a workload that has its nodes."""
        if self.is_on or running.admitted.ready_by is not None:
            self.changed(running)

    @override
    def changed(self, running: Running) -> None:
        """Take in whether a workload waits for machines and keeps nodes meanwhile."""
        admitted = running.admitted
        if (
            admitted.ready_by is None
            or admitted.evicting
            or not any(placed.rows.shape[0] for placed in running.placed_pods)
        ):
            if self.is_on:
                self._forget(admitted.workload.key)
            return
        self.is_new = self.is_new or not self.is_on
        self.is_on = True
        self.all[admitted.workload.key] = running

    @override
    def ended(self, running: Running) -> None:
        """Forget a workload that keeps no nodes any more."""
        self._forget(running.key)

    def _forget(self, key: WorkloadKey) -> None:
        if self.all.pop(key, None) is not None and not self.all:
            self.is_new = True
            self.is_on = False

    def class_of(self, workload: Workload) -> str:
        """Return what tells a workload apart while nodes are lent: how long it runs."""
        return f"+{workload.longest_ms}" if self.is_on else ""
