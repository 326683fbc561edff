"""Advance reservations: which nodes are reserved, when and for which workloads (backfill §8)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unisono.engine.model.explanation import Reserved
from unisono.engine.model.names import Instant, NodeName
from unisono.engine.model.policy import AdvanceReservation, Backfill
from unisono.engine.model.workload import Workload
from unisono.engine.state.config import Config
from unisono.engine.state.node_table import NodeTable
from unisono.engine.state.timers import NODES, Timers


class ExcludedNodes:
    """Nodes that a workload must not use, by name."""

    __slots__ = ("nodes",)

    def __init__(self, nodes: frozenset[NodeName] | None) -> None:
        self.nodes = nodes  # None: all of them

    def rows(self, table: NodeTable) -> NDArray[np.bool_]:
        """Say for every row of a table whether it is excluded."""
        if self.nodes is None:
            return np.ones(len(table), np.bool_)
        found = np.zeros(len(table), np.bool_)
        rows = [table.row_of[name] for name in self.nodes if name in table.row_of]
        found[rows] = True
        return found


# Of a reservation that comes again and again, so many ends are considered.
MOST_ENDS = 32

InForce = tuple[
    AdvanceReservation, Instant, Instant
]  # from when until when, the time that is meant


class AdvanceReservations:
    """The operator's reservations, and the nodes that they exclude."""

    def __init__(self, config: Config, timers: Timers) -> None:
        self._config = config
        self._timers = timers
        self._reminded: Instant | None = None
        self._excluded: dict[tuple[str, ...], ExcludedNodes] = {}

    @property
    def all(self) -> tuple[AdvanceReservation, ...]:
        """Return every reservation there is."""
        return self._config.policy.reservations

    def renew(self, now: Instant) -> None:
        """Take in that the policy changed."""
        self._excluded.clear()
        self._reminded = None
        self.remind(now)

    def remind(self, now: Instant) -> None:
        """Have nodes evaluated again when the next reservation is over."""
        ends = [times[1] for each in self.all if (times := each.times_from(now)) is not None]
        if ends and self._reminded != min(ends):
            self._reminded = min(ends)
            self._timers.remind(self._reminded, NODES)

    # --- questions -------------------------------------------------------------------------------

    def against(self, workload: Workload, start: Instant) -> tuple[InForce, ...]:
        """Return the reservations that a workload would run into if it started then."""
        if not self.all:
            return ()
        end = start + self._limit_ms(workload)
        found = []
        for each in self.all:
            times = None if each.is_open_to(workload) else each.times_from(start)
            if times is not None and times[0] < end:
                found.append((each, *times))
        return tuple(found)

    def facts(self, workload: Workload, start: Instant) -> tuple[Reserved, ...]:
        """Say the same as facts."""
        limit = self._limit_ms(workload)
        return tuple(
            Reserved(name=each.name, start=begin, end=end, nodes=len(each.nodes), limit_ms=limit)
            for each, begin, end in self.against(workload, start)
        )

    def excluded_nodes(self, workload: Workload, start: Instant) -> ExcludedNodes | None:
        """Return the nodes that a workload must keep off if it starts then."""
        names = tuple(each.name for each, _, _ in self.against(workload, start))
        if not names:
            return None
        known = self._excluded.get(names)
        if known is None:
            known = self._excluded[names] = ExcludedNodes(self._nodes(names))
        return known

    def _nodes(self, names: tuple[str, ...]) -> frozenset[NodeName] | None:
        meant = [each for each in self.all if each.name in names]
        if not all(each.nodes for each in meant):
            return None
        return frozenset(node for each in meant for node in each.nodes)

    def concern(self, workload: Workload, now: Instant) -> bool:
        """Say whether some reservation, now or later, is against a workload."""
        return any(
            not each.is_open_to(workload) and each.times_from(now) is not None for each in self.all
        )

    def subclass_of(self, workload: Workload) -> str:
        """Name the workloads that are alike to all reservations; empty while there are none."""
        if not self.all:
            return ""
        open_to = [each.name for each in self.all if each.is_open_to(workload)]
        return f"~{workload.longest_ms}:{','.join(open_to)}"

    def ends(self, now: Instant) -> list[Instant]:
        """Return when reservations are over, in order: nodes come free by that."""
        found: set[Instant] = set()
        for each in self.all:
            at = now
            for _ in range(MOST_ENDS if each.repeat else 1):
                times = each.times_from(at)
                if times is not None:
                    at = times[1]
                    found.add(at)
        return sorted(found)

    def _limit_ms(self, workload: Workload) -> int:
        longest = workload.longest_ms
        rules = self._config.policy.backfill or Backfill()
        return rules.default_limit_ms if longest is None else longest
