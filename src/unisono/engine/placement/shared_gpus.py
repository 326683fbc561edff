"""Placing one pod where GPUs are shared: which node and which of its devices, best of all.

Where pods come one by one and share devices, the order of nodes by how many such pods they hold
says little; what a pod leaves behind says more. All nodes are ranked at once for a size of pod;
the ranking is kept, and renewed only for nodes that changed since. Of equal nodes the first by name
is taken, of equal devices the first. Lower ranks are better:

    leftover   fewest GPUs stranded when the node is full of such pods; then the fullest device that
               still holds the pod, then the fewest idle GPUs
    fgd        published fragmentation gradient descent: the greatest drop of it, in steps
    spare      the same; of equal nodes the one where large pods lose least, then `leftover`
    binpack    published best fit: least CPU and GPU left on the node, in steps
    spread     most GPU left on the node, then on the device

Pods without GPUs take nodes without GPUs first. Spec placement §8.15.

Nodes on which the very same is free are in the same *state*: pods of one size rank them alike, so
that every state is ranked once, and a node that is again as it was has its rank already.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unisono.engine.model.names import CPU
from unisono.engine.model.resources import WHOLE_GPU, Amounts, share_in, share_of
from unisono.engine.placement.demand import Constraint, Demand
from unisono.engine.placement.feasibility import Feasibility
from unisono.engine.state.devices import DeviceColumns, free_by_device
from unisono.engine.state.node_table import Integers, NodeTable, Rows
from unisono.engine.state.pod_mix import PodSize, SharedPodMix, Weighted, size_of

Scoring = Literal["leftover", "fgd", "spare", "binpack", "spread"]

_UNKNOWN = np.iinfo(np.int64).min  # the rank of a state that is not ranked yet
NEVER = (1 << 62) - 1  # the rank of a node that cannot take the pod
_HAS_GPUS = 1 << 61  # added to ranks for pods without GPUs on nodes with some
FULL_NODE_MILLI = 8 * WHOLE_GPU  # best fit measures GPUs in nodes of eight
RANKINGS_KEPT = 1024  # sizes of pods; a cluster has a few hundred


@dataclass(slots=True)
class _Ranking:
    """All nodes ranked for one size, and the device that goes with the rank."""

    ranks: Integers
    device: Rows
    stamp: tuple[int, int, int, int]  # of everything that a ranking depends on besides usage
    view: DeviceView  # which numbers the states
    version: int = -1  # of usage
    # The same by state of a node (see `DeviceView`), if the pod may go there at all.
    of_state: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    device_of_state: Rows = field(default_factory=lambda: np.zeros(0, np.intp))

    def extend(self, states: int) -> None:
        """Extend for so many states."""
        more = states - self.of_state.shape[0]
        if more > 0:
            more += states  # they come one by one
            self.of_state = np.concatenate([self.of_state, np.full(more, _UNKNOWN, np.int64)])
            self.device_of_state = np.concatenate([self.device_of_state, np.zeros(more, np.intp)])


@dataclass(slots=True)
class SharedGpuRanking:
    """Ranks the nodes of one table for single pods."""

    feasibility: Feasibility
    mix: SharedPodMix
    scoring: Scoring = "spare"
    _rankings: dict[tuple[Constraint, Amounts], _Ranking] = field(default_factory=dict)
    _views: dict[DeviceColumns, DeviceView] = field(default_factory=dict)

    def best(self, demand: Demand) -> tuple[int, tuple[int, ...]] | None:
        """Find the best row for a pod, and its device if it shares one; None if it fits nowhere."""
        ranking = self._ranking(demand)
        order = self.feasibility.table.in_name_order()
        ranks = ranking.ranks[order]
        bonus = self.feasibility.preference(demand.constraint)
        if bonus is not None:  # what the pod prefers comes before any scoring
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
        """Return the ranking of a size, up to date."""
        table = self.feasibility.table
        view = self._view(demand)
        key = (demand.constraint, demand.requests)
        stamp = (self.mix.edition, table.traits.version, len(table), view.numbering)
        known, version = self._rankings.get(key), table.usage.version
        if known is None or known.stamp != stamp or known.view is not view:
            if len(self._rankings) >= RANKINGS_KEPT:
                self._rankings.clear()
            every = np.arange(len(table))
            known = _Ranking(np.zeros(len(table), np.int64), np.zeros_like(every), stamp, view)
            self._rankings[key] = known
            self._renew(known, demand, view, every)
        elif known.version != version:
            changed = view.changed_since(known.version)
            if changed.shape[0]:
                self._renew(known, demand, view, changed)
        known.version = version
        return known

    def _renew(self, known: _Ranking, demand: Demand, view: DeviceView, rows: Rows) -> None:
        """Look up the ranks of rows by their states; states that are new are ranked first."""
        allowed, state = self.feasibility.allowed(demand.constraint)[rows], view.state[rows]
        known.extend(view.states)
        new = rows[allowed & (known.of_state[state] == _UNKNOWN)]
        if new.shape[0]:
            states, first = np.unique(view.state[new], return_index=True)
            ranked = self._rank(demand, view, new[first])
            known.of_state[states], known.device_of_state[states] = ranked
        known.ranks[rows] = np.where(allowed, known.of_state[state], NEVER)
        known.device[rows] = known.device_of_state[state]

    def _rank(self, demand: Demand, view: DeviceView, rows: Rows) -> tuple[Integers, Rows]:
        """Rank rows, each by its best device."""
        size, shares = size_of(demand.requests), share_in(demand.requests) is not None
        caps = self.feasibility.pods_on(demand.constraint, demand.requests, rows)
        fitting = np.flatnonzero(caps)
        there = rows[fitting]
        fullest = self.scoring in ("leftover", "binpack")
        free = view.cpu[there], view.device_free[there]
        options = device_options(free, size, shares=shares, fullest_only=fullest)
        ranks = np.full((rows.shape[0], view.device_free.shape[1]), NEVER, np.int64)
        ranked = self._ranks_of(size, caps[fitting], view, there, options)
        ranks[fitting[options.node], options.device] = ranked
        device = ranks.argmin(axis=1)  # of equal devices the first
        best = ranks[np.arange(rows.shape[0]), device]
        if not size.gpus:
            best += np.where((best < NEVER) & view.has_gpus[rows], _HAS_GPUS, 0)
        return best, device if shares else np.full_like(device, -1)

    def _view(self, demand: Demand) -> DeviceView:
        """Return what devices look like that a demand is about; without GPUs, shared ones."""
        devices = self.feasibility.table.devices
        both = [devices.get(name) or devices.get(share_of(name)) for name, _ in demand.requests]
        columns = next(filter(None, both), None) or next(iter(devices.values()))
        found = self._views.get(columns)
        if found is None:
            self._views.clear()  # there are more devices than before, or another kind
            found = self._views[columns] = DeviceView(self.feasibility.table, columns, self.mix)
        found.refresh()
        return found

    def _ranks_of(
        self, size: PodSize, caps: Integers, view: DeviceView, rows: Rows, options: DeviceOptions
    ) -> Integers:
        match self.scoring:
            case "leftover":
                return self._leftover(size, caps, options)
            case "fgd" | "spare":
                seen = view.before_and_after(rows, options.node, options.cpu, options.device_free)
                first = BEST_SCORE - view.fragments.score(*seen[:2])
                if self.scoring == "fgd":
                    return first
                first *= LOST_STEPS + 1
                first += view.large.lost(*seen[2:])
                return first * _apart(options) + self._leftover(size, caps, options)
            case "binpack":
                return BEST_SCORE - _best_fit_score(options, view.most_cpu)
            case "spread":
                idle: Integers = options.device_free.sum(axis=1)
                apart = WHOLE_GPU * options.device_free.shape[1] + 1
                emptiest: Integers = (apart - idle) * (WHOLE_GPU + 1) - options.rest
                return emptiest

    def _leftover(self, size: PodSize, caps: Integers, options: DeviceOptions) -> Integers:
        """Rank by GPU that no pod of this size could use once the node is full of them."""
        idle: Integers = options.device_free.sum(axis=1)
        total = size.gpus * size.milli
        if not total:
            return idle
        # Before or after this pod is the same: it is taken from what is idle and what is usable.
        stranded = idle + total - caps[options.node] * total
        apart = WHOLE_GPU * options.device_free.shape[1] + 1
        ranks: Integers = (stranded * (WHOLE_GPU + 1) + options.rest) * apart + idle
        return ranks


def _best_fit_score(options: DeviceOptions, most_cpu: int) -> Integers:
    """Return 100 - 50 * CPU left / most CPU - 50 * GPU left / eight GPUs, rounded down."""
    left = options.cpu * FULL_NODE_MILLI + options.device_free.sum(axis=1) * most_cpu
    score: Integers = BEST_SCORE - -(-left * (BEST_SCORE // 2) // (most_cpu * FULL_NODE_MILLI))
    return score


def _apart(options: DeviceOptions) -> int:
    """Return more than any rank by `leftover`."""
    idle: int = WHOLE_GPU * options.device_free.shape[1] + 1
    return idle * idle * (WHOLE_GPU + 1)


@dataclass(slots=True)
class DeviceOptions:
    """Ways to place one pod: on which node (by index), which device, and what is free then."""

    node: Rows
    device: Rows
    cpu: Integers
    device_free: Integers  # by device
    rest: Integers  # of the device that is shared; 0 if none is


def device_options(
    free: tuple[Integers, Integers], size: PodSize, *, shares: bool, fullest_only: bool = False
) -> DeviceOptions:
    """Return all ways to place a pod on nodes that hold it, given their CPU and their devices.

    Devices of a node with the same amount free are alike; the first stands for all of them.
    """
    cpu, device_free = free
    every = np.arange(device_free.shape[0])
    if not shares:
        after = device_free.copy()
        whole = device_free == WHOLE_GPU
        after[whole & (np.cumsum(whole, axis=1) <= size.gpus)] = 0
        nothing = np.zeros_like(cpu)
        return DeviceOptions(every, np.zeros_like(every), cpu - size.cpu, after, nothing)
    enough = device_free >= size.milli
    if fullest_only:
        node, device = every, np.where(enough, device_free, WHOLE_GPU + 1).argmin(axis=1)
    else:
        for column in range(1, device_free.shape[1]):
            seen = (device_free[:, :column] == device_free[:, column, None]).any(axis=1)
            enough[:, column] &= ~seen
        node, device = np.nonzero(enough)
    after, options = device_free[node], np.arange(node.shape[0])
    after[options, device] -= size.milli
    return DeviceOptions(node, device, cpu[node] - size.cpu, after, after[options, device])


# So many states are told apart, or twice as many as there are nodes; then they are numbered anew.
STATES_KEPT = 2048


class DeviceView:
    """What is free by row: CPU, and every device of one resource; all rankings read it."""

    def __init__(self, table: NodeTable, columns: DeviceColumns, mix: SharedPodMix) -> None:
        self._table = table
        self._columns = columns
        self._mix = mix
        self._edition = -1  # of the mix
        self._version = -1  # of usage
        self._traits = -1
        self._rows = 0
        self._seen: Integers = np.zeros(0, np.int64)  # the version at which a row was last read
        self.most_cpu = 1
        self._numbers: dict[tuple[bytes, bool], int] = {}  # of states
        self.numbering = 0  # grows when states are numbered anew
        self._begin()

    def _begin(self) -> None:
        count = len(self._table)
        self._rows = count
        self._version = -1
        self._numbers.clear()
        self.numbering += 1
        self.state: Rows = np.zeros(count, np.intp)
        self._seen = np.zeros(count, np.int64)
        self.has_gpus: Mask = np.zeros(count, np.bool_)
        self.cpu: Integers = np.zeros(count, np.int64)
        self.device_free: Integers = np.zeros((count, len(self._columns.devices)), np.int64)

    def refresh(self) -> None:
        """Read the rows that changed since."""
        table = self._table
        if self._rows != len(table):
            self._begin()
        if self._edition != self._mix.edition:
            self._edition = self._mix.edition
            self.fragments = Fragments(self._mix.typical)
            self.large = LargePlaces(self._mix.large)
        version = table.usage.version
        if self._version == version:
            return
        if len(self._numbers) > max(STATES_KEPT, 2 * self._rows):
            self._begin()
        changed = None if self._version < 0 else table.usage.since(self._version)
        rows = np.arange(self._rows) if changed is None else changed
        self._version = version
        if rows.shape[0]:
            self._read(rows)
            self._seen[rows] = version

    def _read(self, rows: Rows) -> None:
        table, columns = self._table, self._columns
        cpu = table.column(CPU)
        if cpu is not None:
            self.cpu[rows] = table.free_of(cpu)[rows]
            if self._traits != table.traits.version:
                self._traits = table.traits.version
                self.most_cpu = max(1, int(table.allocatable[cpu].max(initial=0)))
        self.has_gpus[rows] = table.allocatable[columns.whole][rows] > 0
        self.device_free[rows] = free_by_device(table.free, columns, rows)
        free, numbers = np.ascontiguousarray(table.free[:, rows].T), self._numbers
        for row, has, has_gpus in zip(
            rows.tolist(), free, self.has_gpus[rows].tolist(), strict=True
        ):
            self.state[row] = numbers.setdefault((has.tobytes(), has_gpus), len(numbers))

    @property
    def states(self) -> int:
        """Return how many states there have been; they are numbered from 0."""
        return len(self._numbers)

    def changed_since(self, version: int) -> Rows:
        """Return the rows that were read after a version."""
        return np.flatnonzero(self._seen > version)

    def before_and_after(
        self, rows: Rows, node: Rows, cpu: Integers, device_free: Integers
    ) -> tuple[Integers, Integers, Integers, Integers]:
        """Return F of rows as they are and as options make them, and which large pods they take.

        `node` says which of the rows an option is on. Both at once cost half.
        """
        every_cpu = np.concatenate([self.cpu[rows], cpu])
        every_device = np.concatenate([self.device_free[rows], device_free])
        count = rows.shape[0]
        torn = self.fragments.of(every_cpu, every_device)
        large = self.large.of(every_cpu, every_device)
        return torn[:count][node], torn[count:], large[:count][node], large[count:]

    def fragmented_milli(self) -> float:
        """Return the fragmentation of the whole cluster, in thousandths of GPUs."""
        self.refresh()
        return float(self.fragments.of(self.cpu, self.device_free).sum()) / self.fragments.pods


Mask = NDArray[np.bool_]

# Scores are integers from 0 to 100. The coarse steps matter: nodes that are nearly alike count as
# equal and are filled one after the other, which keeps whole nodes free.
BEST_SCORE = 100
LOST_STEPS = 10_000  # what large pods lose is compared in ten-thousandths of their demand


class _Sizes:
    """Sizes of pods as columns, to ask of many nodes at once which of them they could take."""

    def __init__(self, sizes: Weighted) -> None:
        self.cpu: Integers = np.array([size.cpu for size, _ in sizes], np.int64)
        self.gpus: Integers = np.array([size.gpus for size, _ in sizes], np.int64)
        self.weight: Integers = np.array([count for _, count in sizes], np.int64)

    def hosted(self, cpu: Integers, devices: Integers) -> Mask:
        """Say by node and size whether it could be taken; `devices` counts those large enough."""
        found: Mask = (devices >= self.gpus) & (cpu[:, None] >= self.cpu)
        return found


class Fragments:
    """FGD's measure: idle GPU that typical pods could not use where it is.

    For one size and one node: all that is idle if the size needs no GPU or the node cannot take
    it (CPU, too few devices with enough free); otherwise what is idle on devices too small for it.
    Sizes are weighed by how often they were seen, so F is an integer: thousandths times pods.
    """

    def __init__(self, typical: Weighted) -> None:
        parts = sorted({size.milli for size, _ in typical})
        self._sizes = _Sizes(typical)
        self.pods = max(1, int(self._sizes.weight.sum()))
        self._parts: Integers = np.array(parts, np.int64)
        self._part_of: Rows = np.array([parts.index(size.milli) for size, _ in typical], np.intp)
        self._thresholds = score_thresholds(self.pods)

    def of(self, cpu: Integers, device_free: Integers) -> Integers:
        """Return F of nodes that have this much free."""
        idle = device_free.sum(axis=1)
        fitting = device_free[:, None, :] >= self._parts[:, None]
        too_small = np.where(fitting, 0, device_free[:, None, :]).sum(axis=2)[:, self._part_of]
        devices = fitting.sum(axis=2)[:, self._part_of]
        useful = self._sizes.hosted(cpu, devices) & (self._sizes.gpus > 0)
        total: Integers = np.where(useful, too_small, idle[:, None]) @ self._sizes.weight
        return total

    def score(self, before: Integers, after: Integers) -> Integers:
        """Return int(100 * sigmoid(drop of F / 1000)) by looking it up."""
        found = np.searchsorted(self._thresholds, before - after, side="right")
        return found.astype(np.int64)


class LargePlaces:
    """Which large pods a node could take, and what each way to place another pod costs them."""

    def __init__(self, large: Weighted) -> None:
        self._sizes = _Sizes(large)
        self._worth: Integers = self._sizes.weight * self._sizes.gpus
        self._most = max(1, int(self._worth.sum()))

    def of(self, cpu: Integers, device_free: Integers) -> Integers:
        """Return how much of the demand of large pods nodes could take, with this much free."""
        whole = (device_free == WHOLE_GPU).sum(axis=1, keepdims=True)
        worth: Integers = self._sizes.hosted(cpu, whole) @ self._worth
        return worth

    def lost(self, before: Integers, after: Integers) -> Integers:
        """Return which share of that demand loses its place, of `LOST_STEPS`."""
        return (before - after) * LOST_STEPS // self._most


def score_thresholds(pods: int) -> Integers:
    """Return the least drop of F (thousandths times pods) that is worth 1, 2, ... points.

    100 * sigmoid(x) reaches s at x = ln(s / (100 - s)); one unit of x is 1,000 thousandths.
    Comparing integers with a table keeps rounding in this one place.
    """
    units = (math.log(s / (BEST_SCORE - s)) for s in range(1, BEST_SCORE))
    return np.array([math.ceil(unit * WHOLE_GPU * pods) for unit in units], np.int64)
