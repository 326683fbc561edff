"""How long deciding takes, phase by phase.

    total   one decision: admit and place together
    place   looking for nodes, within it
    admit   the rest of it: order, quota, preemption, dates that are kept free
    plan    estimating when the others start; apart from decisions, once a minute at most
    bind    bringing one gang's pods to their nodes, writes included

The engine has no clock. It tells its listener when a search for nodes begins and ends.
"""

from __future__ import annotations

import asyncio
from time import perf_counter

from unisono.control.reconciling.driver import Outcome
from unisono.engine.cycle import Decides
from unisono.engine.estimates import estimates
from unisono.engine.model.explanation import Expected, GangDoesNotFit
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import Plan
from unisono.engine.model.provisioning import MICRO
from unisono.engine.placement.placement import Answer, placement_of
from unisono.engine.state.cluster import ClusterState
from unisono.monitor.exposition import Histogram

_BINDS = "gangs"  # the controller that does


class Timed:
    """Wraps a decider, and measures how long its decisions take."""

    def __init__(self, decides: Decides) -> None:
        """Measure nothing until there are histograms."""
        self._decides = decides
        self.cycles: Histogram | None = None
        self.placements: Histogram | None = None
        self.most_usd_hour: float | None = None  # as the policy said the last time
        self.state: ClusterState | None = None  # that was decided about the last time
        self._placing = 0.0  # seconds of the decision that is being made
        self._search_began = 0.0
        self._decided = asyncio.Event()

    def __call__(self, state: ClusterState, now: Instant) -> Plan:
        """Decide one cycle."""
        most = state.policy.provisioning.most_per_hour_micro
        self.most_usd_hour = None if most is None else most / MICRO
        self.state = state
        placement_of(state).listener = self
        self._placing = 0.0
        before = perf_counter()
        made = self._decides(state, now)
        if self.cycles is not None:
            total = perf_counter() - before
            self.cycles.observe(total, "total")
            self.cycles.observe(self._placing, "place")
            self.cycles.observe(max(0.0, total - self._placing), "admit")
        self._decided.set()
        return made

    async def has_decided(self) -> None:
        """Wait for the first decision."""
        await self._decided.wait()

    def search_begins(self) -> None:
        """Hear that nodes are looked for."""
        self._search_began = perf_counter()

    def search_ends(self, answer: Answer) -> None:
        """Hear that nodes were found, or none."""
        seconds = perf_counter() - self._search_began
        self._placing += seconds
        if self.placements is not None:
            result = "refused" if isinstance(answer, GangDoesNotFit) else "placed"
            self.placements.observe(seconds, result)

    def estimates(
        self, state: ClusterState, now: Instant, *, most: int
    ) -> dict[WorkloadKey, Expected]:
        """Estimate the starts of pending workloads."""
        before = perf_counter()
        found = estimates(state, now, most=most)
        if self.cycles is not None:
            self.cycles.observe(perf_counter() - before, "plan")
        return found

    def attended(self, outcome: Outcome, seconds: float) -> None:
        """Hear what a controller did, and how long it took."""
        if outcome.task.controller == _BINDS and outcome.actions and self.cycles is not None:
            self.cycles.observe(seconds, "bind")
