"""Shared GPUs: which node and which of its devices a pod gets, one pod at a time.

All nodes are ranked at once for a shape of pod; the ranking is kept, and renewed only for nodes
that changed since. Of equal nodes the one with the smallest name is taken, of equal devices the
first. Scorings:

    leftover   fewest GPUs stranded when the node is full of such pods; then the fullest device that
               still holds the pod, then the fewest idle GPUs
    spare      FGD's score; of equal nodes the one where large pods lose least, then `leftover`
    fgd        published fragmentation gradient descent (Weng et al., "Beware of Fragmentation",
               USENIX ATC 2023): the greatest drop of fragmentation, as an integer score
    best-fit   least CPU and GPU left on the node, as an integer score
    random     any node and device that fits

Spec performance §5.2. Whole GPUs without sharing are placed by `engine/place/gang.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from bench.device_mix import LOST_STEPS, Fragments, LargePlaces, PodMix
from bench.device_table import (
    MILLI,
    DeviceTable,
    Seat,
    SharedPod,
    Ways,
    ways_to_seat,
)
from unisono.engine.state.node_table import Integers, Rows

DeviceScoring = Literal["leftover", "spare", "fgd", "best-fit", "random"]

NEVER = (1 << 63) - 1  # the rank of a node that cannot take the pod
# Scores are integers from 0 to 100. The coarse steps matter: nodes that are nearly alike count as
# equal and are filled one after the other, which keeps whole nodes free.
BEST_SCORE = 100
FULL_NODE_MILLI = 8 * MILLI  # best fit measures GPUs in nodes of eight
RANKINGS_KEPT = 1024  # shapes of pods; a cluster has a few hundred


@dataclass(slots=True)
class _Ranking:
    """All nodes ranked for one shape, lower is better, and the device that goes with the rank."""

    ranks: Integers
    device: Rows
    version: int  # of the table


@dataclass(slots=True)
class DevicePlacer:
    """Seats pods on one table by one scoring."""

    table: DeviceTable
    mix: PodMix
    scoring: DeviceScoring = "leftover"
    dice: Callable[[int], int] | None = None  # a number below its argument; only for `random`
    _rankings: dict[SharedPod, _Ranking] = field(default_factory=dict)
    _fragments: Fragments = field(init=False)
    _large: LargePlaces = field(init=False)
    _drops: Integers = field(init=False)

    def __post_init__(self) -> None:
        self._fragments = Fragments(self.table, self.mix)
        self._large = LargePlaces(self.table, self.mix)
        self._drops = score_thresholds(max(1, self._fragments.pods))

    def place(self, pod: SharedPod) -> Seat | None:
        """Find the best seat for a pod; None if it fits nowhere. The caller takes it."""
        ranking = self._ranking(pod)
        if self.scoring == "random":
            return self._any_seat(pod, np.flatnonzero(ranking.ranks != NEVER))
        row = int(np.argmin(ranking.ranks)) if ranking.ranks.shape[0] else -1
        if row < 0 or ranking.ranks[row] == NEVER:
            return None
        return self._seat(pod, row, int(ranking.device[row]))

    def _seat(self, pod: SharedPod, row: int, device: int) -> Seat:
        if pod.shares:
            return Seat(pod, row, (device,))
        free = np.flatnonzero(self.table.device_free[row] >= MILLI)[: pod.gpus]
        return Seat(pod, row, tuple(free.tolist()))

    def _any_seat(self, pod: SharedPod, rows: Rows) -> Seat | None:
        assert self.dice is not None, "random scoring needs dice"
        if not rows.shape[0]:
            return None
        row = int(rows[self.dice(rows.shape[0])])
        if not pod.shares:
            return self._seat(pod, row, 0)
        devices = np.flatnonzero(self.table.device_free[row] >= pod.gpu_milli)
        return self._seat(pod, row, int(devices[self.dice(devices.shape[0])]))

    def _ranking(self, pod: SharedPod) -> _Ranking:
        """Return the ranking of a shape, up to date."""
        known, version = self._rankings.get(pod), self.table.version
        if known is None:
            if len(self._rankings) >= RANKINGS_KEPT:
                self._rankings.clear()
            every = np.arange(len(self.table.nodes))
            known = self._rankings[pod] = _Ranking(*self._rank(pod, every), version)
        elif known.version < version:
            changed = self.table.changed_since(known.version)
            known.ranks[changed], known.device[changed] = self._rank(pod, changed)
            known.version = version
        return known

    def _rank(self, pod: SharedPod, rows: Rows) -> tuple[Integers, Rows]:
        """Rank rows, each by its best device."""
        fullest_only = self.scoring in ("leftover", "best-fit")
        ways = ways_to_seat(self.table, pod, rows, fullest_only=fullest_only)
        columns = max(1, self.table.device_free.shape[1])
        ranks = np.full((rows.shape[0], columns), NEVER, np.int64)
        ranks[ways.index, ways.device] = self._ranks_of(pod, ways)
        device = ranks.argmin(axis=1)  # of equal devices the first
        return ranks[np.arange(rows.shape[0]), device], device

    def _ranks_of(self, pod: SharedPod, ways: Ways) -> Integers:
        match self.scoring:
            case "leftover":
                return self._leftover(pod, ways)
            case "spare":
                first: Integers = -self._fgd_score(ways) * (LOST_STEPS + 1) + self._large.lost(ways)
                return first * self._ranks_apart + self._leftover(pod, ways)
            case "fgd":
                return -self._fgd_score(ways)
            case "best-fit":
                return -self._best_fit_score(ways)
            case "random":
                return np.zeros(ways.rows.shape[0], np.int64)

    @property
    def _milli_apart(self) -> int:
        """More than any node has idle."""
        return MILLI * int(self.table.device_free.shape[1]) + 1

    @property
    def _ranks_apart(self) -> int:
        """More than any rank by `leftover`."""
        return self._milli_apart**2 * (MILLI + 1)

    def _leftover(self, pod: SharedPod, ways: Ways) -> Integers:
        """Rank by GPU that nobody of this shape could use once the node is full of it."""
        idle: Integers = ways.device_free.sum(axis=1)
        if not pod.gpus:
            return idle
        # Before or after this pod is the same: it is taken from what is idle and what is usable.
        usable = self.table.capacity(pod, ways.rows) * pod.total_milli
        stranded = idle + pod.total_milli - usable
        every = np.arange(ways.rows.shape[0])
        rest = ways.device_free[every, ways.device] if pod.shares else np.zeros_like(idle)
        ranks: Integers = (stranded * (MILLI + 1) + rest) * self._milli_apart + idle
        return ranks

    def _fgd_score(self, ways: Ways) -> Integers:
        """Return int(100 * sigmoid(drop of F / 1000)) by looking it up."""
        before = self._fragments.now(ways.rows)
        drop = before - self._fragments.of(ways.rows, ways.cpu_free, ways.device_free)
        return np.searchsorted(self._drops, drop, side="right").astype(np.int64)

    def _best_fit_score(self, ways: Ways) -> Integers:
        """Return 100 - 50 * CPU left / most CPU - 50 * GPU left / eight GPUs, rounded down."""
        most_cpu = max((node.cpu_milli for node in self.table.nodes), default=1) or 1
        idle = ways.device_free.sum(axis=1)
        left = (ways.cpu_free * FULL_NODE_MILLI + idle * most_cpu) * (BEST_SCORE // 2)
        score: Integers = BEST_SCORE - -(-left // (most_cpu * FULL_NODE_MILLI))
        return score


def score_thresholds(pods: int) -> Integers:
    """Return the least drop of F (milli times pods) that is worth 1, 2, ... points.

    100 * sigmoid(x) reaches s at x = ln(s / (100 - s)); one unit of x is 1,000 milli. Comparing
    integers with a table keeps rounding in this one place.
    """
    units = (math.log(s / (BEST_SCORE - s)) for s in range(1, BEST_SCORE))
    return np.array([math.ceil(unit * MILLI * pods) for unit in units], np.int64)
