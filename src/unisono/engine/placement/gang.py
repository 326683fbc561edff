"""Placing a gang: all of it, or nothing (spec placement §8.4 to §8.7).

Demands that share a domain are placed together; groups of demands one after the other, those with
GPUs first. For every group the levels of its topology are tried from the requested one upwards:
the narrowest domain that holds all of it, and of those the one with the least room to spare. What a
step takes is booked on the node table and given back at the end; the caller books the result.

Elastic demands (least < most) first find a place for what the gang needs, then grow within the same
domain, or anywhere if the domain is only preferred.

Where pods share GPUs, nodes are chosen by how many pods they hold, as for any gang; on a node every
pod gets the fullest device that still holds its part, so that empty devices stay whole (§8.15).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations

import msgspec
import numpy as np

from unisono.engine.model.explanation import GangDoesNotFit
from unisono.engine.model.names import NodeName
from unisono.engine.model.node import HOSTNAME
from unisono.engine.model.policy import Placement
from unisono.engine.model.resources import Amounts, gpu_milli, share_in, wants_gpus
from unisono.engine.placement.demand import Demand
from unisono.engine.placement.domains import Together, candidate_domains, place_slices
from unisono.engine.placement.feasibility import Capacity, Feasibility
from unisono.engine.placement.misfit import misfit
from unisono.engine.placement.packing import Score, Taken, descend, fill
from unisono.engine.placement.pod_rules import apply_rules, with_caps
from unisono.engine.placement.scoring import score_for
from unisono.engine.placement.shared_gpus import SharedGpuRanking
from unisono.engine.state.change_journal import Move
from unisono.engine.state.devices import free_by_device, fullest_first, share
from unisono.engine.state.node_table import Integers, NodeTable, Rows
from unisono.engine.state.occupancy import Members, PodIndex
from unisono.engine.state.pod_mix import PodMix

# Up to this many demands every order is tried before a domain is given up.
ALL_ORDERS = 3


_EVERYWHERE = (0, sys.maxsize)  # all positions


class Gang(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that has to start together."""

    key: str  # of the workload: nodes held for others are closed to it
    demands: tuple[Demand, ...]
    min_total: int | None = None  # over all demands; None: each demand's own minimum is enough
    anonymous: tuple[Demand, ...] = ()  # the same without namespace and labels, if known


class PodSetPlacement(msgspec.Struct, frozen=True):
    """Where the pods of one demand go, in topology order."""

    demand: str
    nodes: tuple[tuple[NodeName, int], ...]
    devices: tuple[int, ...] = ()  # of pods that share GPUs, in the order of nodes

    @property
    def pods(self) -> int:
        """How many pods have a place."""
        return sum(count for _, count in self.nodes)


@dataclass(slots=True)
class _Part:
    """What one demand got so far."""

    demand: Demand
    rows: list[Rows] = field(default_factory=list)
    counts: list[Integers] = field(default_factory=list)
    devices: dict[int, list[int]] = field(default_factory=dict)  # by row, if its pods share GPUs
    scope: tuple[int, int, int] | None = None  # level and slice of positions it must stay within
    is_done: bool = False  # it found no domain, and must not grow anywhere else

    @property
    def pods(self) -> int:
        return sum(int(counts.sum()) for counts in self.counts)


@dataclass(slots=True)
class Placer:
    """Finds places on one node table."""

    feasibility: Feasibility
    pod_index: PodIndex
    placement: Placement = field(default_factory=Placement)
    mix: PodMix = field(default_factory=PodMix)  # typical pods, for scoring by fragmentation
    shared_ranking: SharedGpuRanking | None = None  # for single pods, where GPUs are shared
    _booked: list[Booked] = field(default_factory=list)
    _is_closing: bool = False  # it is the last group: no later one reads what it takes
    _with_rules: bool = False  # pods of this gang, or on nodes, have rules about each other

    def place(self, gang: Gang) -> tuple[PodSetPlacement, ...] | GangDoesNotFit:
        """Find a place for every demand, or say why there is none. Nothing stays booked."""
        table = self.feasibility.table
        if table.devices and self.shared_ranking is not None and self._is_alone(gang):
            return self._place_one(gang, self.shared_ranking)
        groups = _groups(gang.demands)
        plain = all(demand.is_plain for demand in gang.demands)
        self._with_rules = self.pod_index.has_rules or not plain
        # A group that is placed first may take the one domain that another needs. Trying all orders
        # would be exponential; the two ends find nearly everything (spec placement §8.6).
        orders = [groups, groups[::-1]] if len(groups) > 1 else [groups]
        first_no: GangDoesNotFit | None = None
        usage = table.usage
        before = usage.version
        for order in orders:
            answer = self._place_groups(gang, order)
            self._rollback(0)
            usage.put_back(before)  # nothing changed, so that capacities need not be read again
            if not isinstance(answer, GangDoesNotFit):
                by_name = {part.demand.name: part for part in answer}
                return tuple(self._placement_of(by_name[demand.name]) for demand in gang.demands)
            first_no = first_no or answer  # the hardest group first: its refusal explains most
        assert first_no is not None, "there is at least one order"
        return first_no

    def _is_alone(self, gang: Gang) -> bool:
        """Say whether a gang is one pod that may go anywhere."""
        if len(gang.demands) != 1 or gang.demands[0].most != 1 or gang.demands[0].least != 1:
            return False
        demand = gang.demands[0]
        is_free = demand.mode != "required" and not self.pod_index.has_rules and demand.is_plain
        return is_free and not self.feasibility.table.has_held_rows

    def _place_one(
        self, gang: Gang, ranking: SharedGpuRanking
    ) -> tuple[PodSetPlacement, ...] | GangDoesNotFit:
        """Find the best node, and device, for one pod."""
        demand = gang.demands[0]
        found = ranking.best(demand)
        if found is None:
            return self._refuse(gang.key, gang.demands, level=None)
        row, devices = found
        names = self.feasibility.table.names(np.array([row]))
        return (PodSetPlacement(demand.name, ((names[0], 1),), devices),)

    def _place_groups(
        self, gang: Gang, groups: list[tuple[Demand, ...]]
    ) -> list[_Part] | GangDoesNotFit:
        parts: list[_Part] = []
        fixed = all(demand.most == demand.least for demand in gang.demands)
        for group in groups:
            self._is_closing = fixed and group is groups[-1]
            found = self._place_group(gang.key, group)
            if isinstance(found, GangDoesNotFit):
                return found
            parts.extend(found)
        for part in parts:
            self._grow(gang.key, part)
        total, wanted = sum(part.pods for part in parts), gang.min_total
        if wanted is not None and total < wanted:
            part = parts[0]
            capacity = self._capacity(gang.key, part.demand, 1)
            no = misfit(gang.key, part.demand, wanted, capacity, self.feasibility, level=None)
            return msgspec.structs.replace(no, pods_placeable=total)
        return parts

    def _place_group(self, key: str, group: tuple[Demand, ...]) -> list[_Part] | GangDoesNotFit:
        """Place demands that share a domain."""
        lead = group[0]
        if lead.mode == "unconstrained":
            return self._everywhere(key, group)
        depth = len(lead.levels)
        start = depth if lead.level in ("", HOSTNAME) else lead.levels.index(lead.level)
        bottom = start if lead.mode == "required" else 0
        together = self._together(group)
        for level in range(start, bottom - 1, -1):
            for low, high in self._domains(key, group, level, together):
                found = self._within(key, group, level, low, high)
                if found is not None:
                    return found
        if all(demand.least == 0 for demand in group):  # nothing is needed, and no domain found
            bound = lead.mode == "required"
            return [_Part(demand, is_done=bound) for demand in group]
        if lead.mode == "required":
            return self._refuse(key, group, level=start)
        whole = self._within(key, group, -1, 0, self._capacity(key, lead, 1).caps.shape[0])
        return whole if whole is not None else self._refuse(key, group, level=None)

    def _refuse(self, key: str, group: tuple[Demand, ...], level: int | None) -> GangDoesNotFit:
        """Name the demand of a group that lacks most."""
        scope = _EVERYWHERE if level is None else None
        facts = [
            misfit(
                key,
                demand,
                demand.least,
                self._capacity(key, demand, demand.least, scope),
                self.feasibility,
                level=level,
            )
            for demand in group
        ]
        worst = min(facts, key=lambda fact: fact.pods_placeable / max(1, fact.pods))
        if worst.pods_placeable < worst.pods:
            return worst
        # Each would fit alone, but not beside the others (or not spread as it must be).
        total = sum(demand.least for demand in group)
        smallest = min(demand.least for demand in group if demand.least) if len(group) > 1 else 1
        return msgspec.structs.replace(
            worst,
            pod_set=" and ".join(demand.name for demand in group),
            pods=total,
            pods_placeable=total - smallest,
        )

    # --- one domain ------------------------------------------------------------------------------

    def _together(self, group: tuple[Demand, ...]) -> Together | None:
        """Add up what several demands ask for; one alone is compared by its capacity."""
        if len(group) == 1:
            return None
        return Together(group, self.feasibility, self.feasibility.view(group[0].levels))

    def _domains(
        self, key: str, group: tuple[Demand, ...], level: int, together: Together | None
    ) -> Iterator[tuple[int, int]]:
        """Yield the domains of a level that could hold the group, best first."""
        capacities = [self._capacity(key, demand, demand.least) for demand in group]
        lead = group[0]
        return candidate_domains(
            group,
            capacities,
            level,
            self.feasibility.preference(lead.constraint),
            self._score(lead, capacities[0]) if level >= len(lead.levels) else None,
            together,
        )

    def _within(
        self, key: str, group: tuple[Demand, ...], level: int, low: int, high: int
    ) -> list[_Part] | None:
        """Place a group inside positions [low, high), trying orders until one works."""
        for order in _orders(group):
            mark = len(self._booked)
            parts: list[_Part] = []
            for demand in order:
                capacity = self._capacity(key, demand, demand.least, (low, high))
                taken = self._take_within(capacity, demand, level, low, high)
                if taken is None:
                    break
                part = _Part(demand, scope=(level, low, high))
                self._book(part, capacity, taken, is_last=demand is order[-1])
                parts.append(part)
            else:
                return parts
            self._rollback(mark)
        return None

    def _take_within(
        self, capacity: Capacity, demand: Demand, level: int, low: int, high: int
    ) -> Taken | None:
        need = demand.least
        if not need:
            return np.zeros(0, np.intp), np.zeros(0, np.int64)
        if demand.slice_size > 1:
            return place_slices(capacity, demand, low, high)
        whole = high - low == capacity.caps.shape[0]
        if (capacity.total if whole else int(capacity.caps[low:high].sum())) < need:
            return None
        score = self._score(demand, capacity)
        return descend(capacity, low, high, level + 1, need, score)

    def _everywhere(self, key: str, group: tuple[Demand, ...]) -> list[_Part] | GangDoesNotFit:
        """Place demands wherever there are holes, the smallest first."""
        parts = []
        for demand in group:
            capacity = self._capacity(key, demand, demand.least, _EVERYWHERE)
            part = _Part(demand)
            if demand.slice_size > 1:
                taken = place_slices(capacity, demand, 0, capacity.caps.shape[0])
            elif capacity.total >= demand.least:
                taken = self._fill(capacity, demand, demand.least) if demand.least else None
            else:
                taken = None
            if taken is not None:
                self._book(part, capacity, taken, is_last=demand is group[-1])
            elif demand.least:
                return self._refuse(key, (demand,), level=None)
            parts.append(part)
        return parts

    def _fill(self, capacity: Capacity, demand: Demand, need: int) -> Taken:
        """Fill holes; a pod without GPUs keeps off nodes with GPUs as long as it can."""
        score = self._score(demand, capacity)
        if wants_gpus(demand.requests):
            return fill(capacity.caps, need, score)
        plain = np.where(self._has_gpus(capacity), 0, capacity.caps)
        off_gpus = int(plain.sum())
        if off_gpus >= need:
            return fill(plain, need, score)
        chosen = np.flatnonzero(plain)
        rest = fill(capacity.caps - plain, need - off_gpus, score)
        return np.concatenate([chosen, rest[0]]), np.concatenate([plain[chosen], rest[1]])

    def _has_gpus(self, capacity: Capacity) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        table = self.feasibility.table
        columns = table.gpu_columns()
        if not columns:
            return np.zeros(capacity.caps.shape[0], np.bool_)
        found: np.ndarray[tuple[int], np.dtype[np.bool_]] = (
            table.allocatable[columns][:, capacity.view.rows].sum(axis=0) > 0
        )
        return found

    # --- growing ---------------------------------------------------------------------------------

    def _grow(self, key: str, part: _Part) -> None:
        """Give an elastic demand more pods, up to what it can use."""
        demand = part.demand
        wanted = demand.most - part.pods
        if wanted <= 0 or part.is_done or demand.slice_size > 1:
            return
        if part.scope is not None:
            level, low, high = part.scope
            capacity = self._capacity(key, demand, wanted, (low, high))
            more = min(wanted, int(capacity.caps[low:high].sum()))
            if more:
                score = self._score(demand, capacity)
                self._book(part, capacity, descend(capacity, low, high, level + 1, more, score))
            if demand.mode == "required":
                return
        capacity = self._capacity(key, demand, demand.most - part.pods, _EVERYWHERE)
        more = min(demand.most - part.pods, capacity.total)
        if more > 0:
            self._book(part, capacity, self._fill(capacity, demand, more))

    def _score(self, demand: Demand, capacity: Capacity) -> Score | None:
        return score_for(demand, capacity, self.feasibility, self.placement, self.mix.typical)

    # --- booking ---------------------------------------------------------------------------------

    def _capacity(
        self, key: str, demand: Demand, need: int, scope: tuple[int, int] | None = None
    ) -> Capacity:
        """Return how many pods of a demand fit where, now, with every rule kept."""
        capacity = self.feasibility.capacity(demand.constraint, demand.requests, demand.levels)
        table = self.feasibility.table
        held = table.held_rows(key)
        if held:
            caps = capacity.caps.copy()
            caps[capacity.view.position_of[held]] = 0
            capacity = with_caps(capacity, caps)
        if self._with_rules:
            capacity = apply_rules(capacity, demand, need, self.pod_index, self.feasibility, scope)
        return capacity

    def _book(
        self, part: _Part, capacity: Capacity, taken: Taken, *, is_last: bool = False
    ) -> None:
        """Count pods on nodes, and among those that rules speak of, until the gang is placed."""
        positions, counts = taken
        rows = capacity.view.rows[positions]
        part.rows.append(rows)
        part.counts.append(counts)
        demand, table = part.demand, self.feasibility.table
        if table.devices:
            devices_of(table, demand.requests, rows, counts, part.devices)
        if is_last and self._is_closing:
            return
        booking = book(table, demand.requests, rows, counts, part.devices)
        if self._with_rules:
            pods_on = dict(zip(table.names(rows), counts.tolist(), strict=True))
            members = Members(
                demand.namespace,
                dict(demand.labels),
                demand.host_ports,
                demand.anti_affinity,
                pods_on,
            )
            self.pod_index.add(booking, members)
        self._booked.append(booking)

    def _rollback(self, mark: int) -> None:
        while len(self._booked) > mark:
            booking = self._booked.pop()
            give_back(self.feasibility.table, booking)
            self.pod_index.remove(booking)

    def _placement_of(self, part: _Part) -> PodSetPlacement:
        """Write a part down by node, in topology order."""
        view = self.feasibility.view(part.demand.levels)
        if not part.rows:
            return PodSetPlacement(part.demand.name, ())
        if len(part.rows) == 1 and part.rows[0].shape[0] == 1:
            name, pods = self.feasibility.table.names(part.rows[0])[0], part.counts[0].item()
            devices = tuple(part.devices[part.rows[0].item()]) if part.devices else ()
            return PodSetPlacement(part.demand.name, ((name, pods),), devices)
        if len(part.rows) == 1:
            rows, counts = part.rows[0], part.counts[0]
        else:
            rows, counts = np.concatenate(part.rows), np.concatenate(part.counts)
        order = view.position_of[rows].argsort()
        rows, counts = rows[order], counts[order]
        if len(part.rows) > 1 and rows.shape[0]:  # a set that grew may be twice on a node
            starts = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
            rows, counts = rows[starts], np.add.reduceat(counts, starts)
        names = self.feasibility.table.names(rows)
        devices = ()
        if part.devices:
            devices = tuple(one for row in rows.tolist() for one in part.devices.get(row, ()))
        return PodSetPlacement(
            part.demand.name, tuple(zip(names, counts.tolist(), strict=True)), devices
        )


def _groups(demands: tuple[Demand, ...]) -> list[tuple[Demand, ...]]:
    """Put demands that share a domain together, GPUs first; the largest demand leads its group."""
    if len(demands) == 1:
        return [demands]
    by_group: dict[str, list[Demand]] = {}
    for demand in demands:
        # Only demands that live in the same topology can share a domain of it.
        group = f"{demand.group}/{demand.levels}" if demand.group else f"={demand.name}"
        by_group.setdefault(group, []).append(demand)
    groups = [tuple(sorted(group, key=_weight)) for group in by_group.values()]
    return sorted(groups, key=lambda group: _weight(group[0]))


def _weight(demand: Demand) -> tuple[int, int, str]:
    """Sort key: the hardest to place first."""
    milli = gpu_milli(demand.requests)
    return -milli, -milli * demand.least, demand.name


def _orders(group: tuple[Demand, ...]) -> Iterator[tuple[Demand, ...]]:
    """Yield the orders in which demands are tried inside a domain."""
    yield group
    if len(group) == 1:
        return
    yield group[::-1]
    if len(group) <= ALL_ORDERS:
        for order in permutations(group):
            if order not in (group, group[::-1]):
                yield order


Devices = dict[int, list[int]]  # by row


@dataclass(slots=True, eq=False)
class Booked:
    """Pods that are counted on nodes while the rest of their gang looks for a place."""

    rows: Rows
    counts: Integers
    requests: Amounts
    came: Move | None = None  # how they are counted
    parts: list[tuple[int, int]] = field(default_factory=list)  # row and device of each that shares


def devices_of(
    table: NodeTable, requests: Amounts, rows: Rows, counts: Integers, chosen: Devices
) -> None:
    """Choose devices for pods that share GPUs; there is room for them."""
    wanted = share_in(requests)
    if wanted is None:
        return
    name, milli = wanted
    device_free = free_by_device(table.free, table.devices[name], rows).tolist()
    for row, free, pods in zip(rows.tolist(), device_free, counts.tolist(), strict=True):
        chosen.setdefault(row, []).extend(fullest_first(free, milli, pods))


def book(
    table: NodeTable, requests: Amounts, rows: Rows, counts: Integers, chosen: Devices
) -> Booked:
    """Count pods on nodes; those chosen last are the ones that come."""
    booked = Booked(rows, counts, requests)
    booked.came = table.take(rows, counts, requests, fits=True)
    if chosen:
        booked.parts = [
            (row, device)
            for row, pods in zip(rows.tolist(), counts.tolist(), strict=True)
            for device in chosen[row][-pods:]
        ]
        _book_parts(table, booked, 1)
    return booked


def give_back(table: NodeTable, booked: Booked) -> None:
    """Undo `book`."""
    table.give_back(booked.rows, booked.counts, booked.requests, came=booked.came)
    if booked.parts:
        _book_parts(table, booked, -1)


def _book_parts(table: NodeTable, booked: Booked, sign: int) -> None:
    wanted = share_in(booked.requests)
    assert wanted is not None, "only pods that share GPUs have parts of them"
    name, milli = wanted
    rows, devices = zip(*booked.parts, strict=True)
    share(table.free, table.devices[name], rows, devices, sign * milli)
