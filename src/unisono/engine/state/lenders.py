"""Lenders: gangs whose machines are on their way, and who keep free nodes meanwhile.

Such a gang has started nothing: whoever is over before its last machine is expected may use the
nodes that it keeps (`provisioning/opportunistic.py`). Spec provisioning §5.16.
"""

from __future__ import annotations

from unisono.engine.model.names import WorkloadKey
from unisono.engine.model.workload import Workload
from unisono.engine.state.queue_book import Running


class Lenders:
    """Who has nodes to lend."""

    __slots__ = ("all", "is_new")

    def __init__(self) -> None:
        self.all: dict[WorkloadKey, Running] = {}
        self.is_new = False  # the first one came, or the last one went: others are alike now

    def note(self, running: Running) -> None:
        """Take in what is known of a holding, whose pods are seated."""
        holding = running.holding
        if (
            holding.ready_by is None  # as most are: this is heard of every start
            or holding.evicting
            or not any(tenant.rows.shape[0] for tenant in running.tenants)
        ):
            if self.all:
                self.forget(holding.workload.key)
            return
        self.is_new = self.is_new or not self.all
        self.all[holding.workload.key] = running

    def forget(self, key: WorkloadKey) -> None:
        """Forget somebody who lends nothing."""
        if self.all.pop(key, None) is not None and not self.all:
            self.is_new = True

    def class_of(self, workload: Workload) -> str:
        """Name those who are alike to all lenders: how long they run decides."""
        return f"+{workload.longest_ms}" if self.all else ""
