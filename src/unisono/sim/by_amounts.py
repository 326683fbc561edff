"""A course of things by amounts alone: who starts when, if one resource were all that counts.

Where thousands wait ahead of a job, playing their starts on nodes takes longer than anybody waits
for an answer. Here the scarcest resource that the job asks for is one number: what the quota of
its cohort tree allows, or what the nodes have, if that is less. Whoever is ahead of the job and
fits starts, in turn, whenever somebody ends; in a queue that is strict nobody overtakes. Nodes,
shapes of gangs, preemption and dates do not count: this is an estimate, and says so. Half of the
draws were before 17 h, 51 h and 215 h for jobs of one, four and sixteen nodes behind a hundred
others on twenty; played on nodes it was 15 h, 44 h and 213 h, and 22 h, 44 h and 240 h with EASY.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from unisono.engine.model.names import Instant, ResourceName
from unisono.engine.model.node import Node
from unisono.engine.model.workload import Workload
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.cluster_queue import ClusterQueueState, Running
from unisono.engine.state.pending_queue import Waiting
from unisono.engine.state.quota_tree import NO_LIMIT, potential
from unisono.engine.state.quota_tree import Node as Tree
from unisono.sim.dice import Dice

NOBODY = 1 << 60  # comes after everybody

Turns = Sequence[tuple[ClusterQueueState, Waiting]]


@dataclass(slots=True)
class _Line:
    """Some of a queue who start one after the other: all alike, or all of a strict queue."""

    queue: int
    rows: list[int] = field(default_factory=list)  # in turn


class Pool:
    """What a job and everybody ahead of it compete for; those behind it are left out."""

    def __init__(
        self,
        state: ClusterState,
        turns: Turns,
        nodes: Iterable[Node],
        *,
        shortest: float,
        default_ms: int | None,
    ) -> None:
        """Take those who wait in turn; the last of them is who is asked about."""
        self._now = state.now
        self._shortest = shortest
        _, asked = turns[-1]
        has_dates = state.policy.backfill is not None  # which let others overtake
        self.resource, capacity, tree = _scarcest(state, turns, [*nodes])
        running = [
            one
            for one in state.running.values()
            if _amount(one.holding.workload, self.resource) and _shares(one.cq, tree)
        ]
        ahead = [
            (one, waiting.workload)
            for one, waiting in turns
            if waiting is asked or (_amount(waiting.workload, self.resource) and _shares(one, tree))
        ]
        queues = {one: number for number, one in enumerate(state.queues.values())}
        self._queue_of = [queues[one.cq] for one in running]
        self._wanted = [_amount(one, self.resource) for _, one in ahead]
        self._held = [_amount(one.holding.workload, self.resource) for one in running]
        self._most = [_most(one.node, self.resource) for one in queues]
        self._free = max(0, capacity - sum(self._held))
        limits = [one.holding.workload.longest_ms or default_ms for one in running]
        self._limits = _column(limits)
        self._past = _column([_past(one, self._now) for one in running])
        self._lengths = _column([one.longest_ms or default_ms for _, one in ahead])
        lines: dict[tuple[int, int], _Line] = {}
        for row, (one, _) in enumerate(ahead):
            queue = queues[one]
            alike = 0 if one.is_strict and not has_dates else self._wanted[row]
            lines.setdefault((queue, alike), _Line(queue)).rows.append(row)
        self._lines = [*lines.values()]

    def start(self, chance: Dice | None) -> Instant | None:
        """Return when the job starts if run times are drawn; without dice all run to the limit."""
        ends = self._ends(chance)
        lasts: list[float] = (self._lengths * self._part(chance)).tolist()
        used = [0] * len(self._most)
        for amount, queue in zip(self._held, self._queue_of, strict=True):
            used[queue] += amount
        wanted, asked = self._wanted, len(self._wanted) - 1
        rest = [iter(line.rows) for line in self._lines]
        heads = [next(rows) for rows in rest]  # of every line, who is next; then nobody
        free, now = self._free, float(self._now)
        while True:
            while (line := self._next(free, used, heads)) is not None:
                row, queue = heads[line], self._lines[line].queue
                if row == asked:
                    return Instant(int(now))
                heads[line] = next(rest[line], NOBODY)
                free -= wanted[row]
                used[queue] += wanted[row]
                if lasts[row] < math.inf:
                    heapq.heappush(ends, (now + lasts[row], wanted[row], queue))
            if not ends:
                return None  # whoever is left ahead never ends
            now = max(now, ends[0][0])
            while ends and ends[0][0] <= now:
                _, amount, queue = heapq.heappop(ends)
                free += amount
                used[queue] -= amount

    def _next(self, free: int, used: list[int], heads: list[int]) -> int | None:
        """Return the line whose first fits, and comes before those of other lines who do."""
        best, best_row, wanted, most = None, NOBODY, self._wanted, self._most
        for number, row in enumerate(heads):
            if row < best_row and wanted[row] <= free:
                queue = self._lines[number].queue
                if used[queue] + wanted[row] <= most[queue]:
                    best, best_row = number, row
        return best

    def _part(self, chance: Dice | None) -> NDArray[np.float64]:
        """Draw which part of its limit everybody runs who waits."""
        count = len(self._wanted)
        return np.ones(count) if chance is None else chance.uniform(self._shortest, 1.0, count)

    def _ends(self, chance: Dice | None) -> list[tuple[float, int, int]]:
        """Draw when those end who run; whoever is overdue ends at once."""
        least = np.clip(self._past / self._limits, self._shortest, 1.0)
        whole = self._limits * (1.0 if chance is None else chance.uniform(least, 1.0))
        at = np.maximum(self._now + 1000, self._now - self._past + whole)
        ends = [
            (when, amount, queue)
            for when, amount, queue in zip(at.tolist(), self._held, self._queue_of, strict=True)
            if when < math.inf
        ]
        heapq.heapify(ends)
        return ends


def _scarcest(
    state: ClusterState, turns: Turns, nodes: list[Node]
) -> tuple[ResourceName, int, Tree | None]:
    """Return what most is asked for of what there is, how much there is, and whose it is.

    The tree is None where nodes are what is short: then everybody competes.
    """
    cq, asked = turns[-1]
    found: tuple[float, ResourceName, int, Tree | None] | None = None
    root = cq.node.root()
    for resource in sorted({name for one in asked.workload.pod_sets for name, _ in one.requests}):
        quota = sum(cell.subtree for at, cell in root.cells.items() if at.resource == resource)
        listed = any(at.resource == resource for at in root.cells)
        there = sum(dict(node.allocatable).get(resource, 0) for node in nodes)
        capacity, tree = (
            (quota, root) if listed and (quota <= there or not nodes) else (there, None)
        )
        if not capacity:
            continue
        wanted = sum(_amount(one.workload, resource) for one_, one in turns if _shares(one_, tree))
        if found is None or wanted / capacity > found[0]:
            found = (wanted / capacity, resource, capacity, tree)
    assert found is not None, "who asks for what is nowhere never starts"
    return found[1:]


def _shares(cq: ClusterQueueState, tree: Tree | None) -> bool:
    return tree is None or cq.node.root() is tree


def _most(queue: Tree, resource: ResourceName) -> int:
    """Return how much a queue may use if it is alone; without such quota as much as it likes."""
    cells = [cell for at, cell in queue.cells.items() if at.resource == resource]
    return sum(potential(cell) for cell in cells) if cells else NO_LIMIT


def _amount(workload: Workload, resource: ResourceName) -> int:
    return sum(
        one.count * amount
        for one in workload.pod_sets
        for name, amount in one.requests
        if name == resource
    )


def _past(running: Running, now: Instant) -> int:
    return max(0, now - running.holding.running_since)


def _column(values: Sequence[int | None]) -> NDArray[np.float64]:
    """Return milliseconds; who does not say how long it runs never ends."""
    return np.array([np.inf if one is None else float(one) for one in values])
