"""A seat for one pod where GPUs are shared: which node and which of its devices, best of all.

Where pods come one by one and share devices, the order of nodes by how many such pods they hold
says little; what a pod leaves behind says more. All nodes are ranked at once for a shape of pod;
the ranking is kept, and renewed only for nodes that changed since. Of equal nodes the first by name
is taken, of equal devices the first. Lower ranks are better:

    leftover   fewest GPUs stranded when the node is full of such pods; then the fullest device that
               still holds the pod, then the fewest idle GPUs
    fgd        published fragmentation gradient descent: the greatest drop of it, in steps
    spare      the same; of equal nodes the one where large pods lose least, then `leftover`
    binpack    published best fit: least CPU and GPU left on the node, in steps
    spread     most GPU left on the node, then on the device

Pods without GPUs take nodes without GPUs first. Spec placement §8.15.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from unisono.engine.model.resources import WHOLE_GPU, Amounts, share_in, share_of
from unisono.engine.placement.demand import Constraint, Demand
from unisono.engine.placement.feasible import Feasibility
from unisono.engine.placement.fragments import BEST_SCORE, LOST_STEPS
from unisono.engine.placement.picture import Picture
from unisono.engine.placement.ways import Ways, ways_to_seat
from unisono.engine.state.devices import DeviceColumns
from unisono.engine.state.node_table import Integers, Rows
from unisono.engine.state.pod_mix import PodShape, SharedPodMix, shape_of

Scoring = Literal["leftover", "fgd", "spare", "binpack", "spread"]

_UNKNOWN = np.iinfo(np.int64).min  # the rank of a state that nobody has looked at yet
NEVER = (1 << 62) - 1  # the rank of a node that cannot take the pod
_HAS_GPUS = 1 << 61  # added to ranks for pods without GPUs on nodes with some
FULL_NODE_MILLI = 8 * WHOLE_GPU  # best fit measures GPUs in nodes of eight
RANKINGS_KEPT = 1024  # shapes of pods; a cluster has a few hundred


@dataclass(slots=True)
class _Ranking:
    """All nodes ranked for one shape, and the device that goes with the rank."""

    ranks: Integers
    device: Rows
    stamp: tuple[int, int, int, int]  # of everything that a ranking depends on besides usage
    picture: Picture  # which numbers the states
    version: int = -1  # of usage
    # The same by state of a node (see `Picture`), if the pod may go there at all.
    of_state: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    device_of_state: Rows = field(default_factory=lambda: np.zeros(0, np.intp))

    def hear_of(self, states: int) -> None:
        """Make room for so many states."""
        more = states - self.of_state.shape[0]
        if more > 0:
            more += states  # they come one by one
            self.of_state = np.concatenate([self.of_state, np.full(more, _UNKNOWN, np.int64)])
            self.device_of_state = np.concatenate([self.device_of_state, np.zeros(more, np.intp)])


@dataclass(slots=True)
class Seating:
    """Ranks the nodes of one table."""

    feasibility: Feasibility
    mix: SharedPodMix
    scoring: Scoring = "spare"
    _rankings: dict[tuple[Constraint, Amounts], _Ranking] = field(default_factory=dict)
    _pictures: dict[DeviceColumns, Picture] = field(default_factory=dict)

    def seat(self, demand: Demand) -> tuple[int, tuple[int, ...]] | None:
        """Find the best row for a pod, and its device if it shares one; None if it fits nowhere."""
        ranking = self._ranking(demand)
        order = self.feasibility.table.in_name_order()
        ranks = ranking.ranks[order]
        bonus = self.feasibility.preference(demand.constraint)
        if bonus is not None:  # what somebody prefers comes before any scoring
            liked = np.where(ranks < NEVER, bonus[order], np.iinfo(np.int64).min)
            ranks = np.where(liked == liked.max(initial=liked.min(initial=0)), ranks, NEVER)
        best = int(ranks.argmin()) if ranks.shape[0] else 0
        if not ranks.shape[0] or ranks[best] >= NEVER:
            return None
        row = int(order[best])
        device = int(ranking.device[row])
        return row, () if device < 0 else (device,)

    def score_by(self, scoring: Scoring) -> None:
        """Rank by another scoring from now on."""
        if scoring != self.scoring:
            self.scoring = scoring
            self._rankings.clear()

    def _ranking(self, demand: Demand) -> _Ranking:
        """Return the ranking of a shape, up to date."""
        table = self.feasibility.table
        picture = self._picture(demand)
        key = (demand.constraint, demand.requests)
        stamp = (self.mix.edition, table.traits.version, len(table), picture.numbering)
        known, version = self._rankings.get(key), table.usage.version
        if known is None or known.stamp != stamp or known.picture is not picture:
            if len(self._rankings) >= RANKINGS_KEPT:
                self._rankings.clear()
            every = np.arange(len(table))
            known = _Ranking(np.zeros(len(table), np.int64), np.zeros_like(every), stamp, picture)
            self._rankings[key] = known
            self._renew(known, demand, picture, every)
        elif known.version != version:
            changed = picture.changed_since(known.version)
            if changed.shape[0]:
                self._renew(known, demand, picture, changed)
        known.version = version
        return known

    def _renew(self, known: _Ranking, demand: Demand, picture: Picture, rows: Rows) -> None:
        """Look up the ranks of rows by their states; states that are new are ranked first."""
        allowed, state = self.feasibility.allowed(demand.constraint)[rows], picture.state[rows]
        known.hear_of(picture.states)
        new = rows[allowed & (known.of_state[state] == _UNKNOWN)]
        if new.shape[0]:
            states, first = np.unique(picture.state[new], return_index=True)
            ranked = self._rank(demand, picture, new[first])
            known.of_state[states], known.device_of_state[states] = ranked
        known.ranks[rows] = np.where(allowed, known.of_state[state], NEVER)
        known.device[rows] = known.device_of_state[state]

    def _rank(self, demand: Demand, picture: Picture, rows: Rows) -> tuple[Integers, Rows]:
        """Rank rows, each by its best device."""
        shape, shares = shape_of(demand.requests), share_in(demand.requests) is not None
        caps = self.feasibility.pods_on(demand.constraint, demand.requests, rows)
        fitting = np.flatnonzero(caps)
        there = rows[fitting]
        fullest = self.scoring in ("leftover", "binpack")
        free = picture.cpu[there], picture.room[there]
        ways = ways_to_seat(free, shape, shares=shares, fullest_only=fullest)
        ranks = np.full((rows.shape[0], picture.room.shape[1]), NEVER, np.int64)
        ranked = self._ranks_of(shape, caps[fitting], picture, there, ways)
        ranks[fitting[ways.node], ways.device] = ranked
        device = ranks.argmin(axis=1)  # of equal devices the first
        best = ranks[np.arange(rows.shape[0]), device]
        if not shape.gpus:
            best += np.where((best < NEVER) & picture.has_gpus[rows], _HAS_GPUS, 0)
        return best, device if shares else np.full_like(device, -1)

    def _picture(self, demand: Demand) -> Picture:
        """Return what devices look like that a demand is about; without GPUs, shared ones."""
        devices = self.feasibility.table.devices
        both = [devices.get(name) or devices.get(share_of(name)) for name, _ in demand.requests]
        columns = next(filter(None, both), None) or next(iter(devices.values()))
        found = self._pictures.get(columns)
        if found is None:
            self._pictures.clear()  # there are more devices than before, or another kind
            found = self._pictures[columns] = Picture(self.feasibility.table, columns, self.mix)
        found.look()
        return found

    def _ranks_of(
        self, shape: PodShape, caps: Integers, picture: Picture, rows: Rows, ways: Ways
    ) -> Integers:
        match self.scoring:
            case "leftover":
                return self._leftover(shape, caps, ways)
            case "fgd" | "spare":
                seen = picture.before_and_after(rows, ways.node, ways.cpu, ways.room)
                first = BEST_SCORE - picture.fragments.score(*seen[:2])
                if self.scoring == "fgd":
                    return first
                first *= LOST_STEPS + 1
                first += picture.large.lost(*seen[2:])
                return first * _apart(ways) + self._leftover(shape, caps, ways)
            case "binpack":
                return BEST_SCORE - _best_fit_score(ways, picture.most_cpu)
            case "spread":
                idle: Integers = ways.room.sum(axis=1)
                apart = WHOLE_GPU * ways.room.shape[1] + 1
                emptiest: Integers = (apart - idle) * (WHOLE_GPU + 1) - ways.rest
                return emptiest

    def _leftover(self, shape: PodShape, caps: Integers, ways: Ways) -> Integers:
        """Rank by GPU that nobody of this shape could use once the node is full of it."""
        idle: Integers = ways.room.sum(axis=1)
        total = shape.gpus * shape.milli
        if not total:
            return idle
        # Before or after this pod is the same: it is taken from what is idle and what is usable.
        stranded = idle + total - caps[ways.node] * total
        apart = WHOLE_GPU * ways.room.shape[1] + 1
        ranks: Integers = (stranded * (WHOLE_GPU + 1) + ways.rest) * apart + idle
        return ranks


def _best_fit_score(ways: Ways, most_cpu: int) -> Integers:
    """Return 100 - 50 * CPU left / most CPU - 50 * GPU left / eight GPUs, rounded down."""
    left = ways.cpu * FULL_NODE_MILLI + ways.room.sum(axis=1) * most_cpu
    score: Integers = BEST_SCORE - -(-left * (BEST_SCORE // 2) // (most_cpu * FULL_NODE_MILLI))
    return score


def _apart(ways: Ways) -> int:
    """Return more than any rank by `leftover`."""
    idle: int = WHOLE_GPU * ways.room.shape[1] + 1
    return idle * idle * (WHOLE_GPU + 1)
