"""Rules between pods, as limits on capacities: ports, (anti-)affinity, topology spread.

Each rule only ever takes capacity away, so the answer stays "how many pods fit where" and packing
need not know about rules. Spec placement §5.5, §5.6 and §8.3.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import numpy as np

from unisono.engine.model.node import HOSTNAME, PodRule, SpreadRule
from unisono.engine.model.selection import label_map
from unisono.engine.placement.demand import Demand
from unisono.engine.placement.feasibility import Capacity, Feasibility, Mask, domain_sums
from unisono.engine.placement.packing import pack
from unisono.engine.state.node_table import ABSENT, Codes, Integers, NodeTable, natural
from unisono.engine.state.occupancy import Members, PodIndex, conflict, selects_pod


def apply_rules(
    capacity: Capacity,
    demand: Demand,
    need: int,
    pod_index: PodIndex,
    feasibility: Feasibility,
    scope: tuple[int, int] | None,
) -> Capacity:
    """Return the capacity that is left when every rule about other pods is kept.

    How pods are to be spread is only known inside a `scope`, the positions they must stay within.
    """
    table = feasibility.table
    labels = label_map(demand.labels)
    caps = capacity.caps.copy()
    _keep_ports(caps, demand, pod_index, table, capacity)
    for rule in demand.affinity_to:
        _stay_with(caps, rule, demand, pod_index, table, capacity)
    for rule in demand.anti_affinity:
        _stay_away(caps, rule, pod_index.matching(rule.selector, demand.namespace), table, capacity)
        if _is_own(rule, demand, labels):
            _one_a_domain(caps, rule.topology_key, table, capacity)
    for rule, members in pod_index.repelling(demand.namespace, labels):
        _stay_away(caps, rule, [members], table, capacity)
    if demand.spread:
        # Nodes that selector and affinity exclude make no domains; taints do not matter here.
        counted = feasibility.labels_allow(demand.constraint, capacity.view.rows)
        for spread in demand.spread:
            own = selects_pod(spread.selector, demand.namespace, demand.namespace, labels)
            if own and scope is None:
                continue
            if own and scope is not None:
                caps[: scope[0]] = 0
                caps[scope[1] :] = 0
            caps = _spread(
                caps, spread, need if own else 0, demand, pod_index, table, capacity, counted
            )
    return with_caps(capacity, caps)


def with_caps(capacity: Capacity, caps: Integers) -> Capacity:
    """Return a capacity of the same view with other numbers."""
    sums = domain_sums(caps, capacity.view)
    return Capacity(capacity.view, caps, sums, capacity.version, int(caps.sum()))


def _is_own(rule: PodRule, demand: Demand, labels: dict[str, str]) -> bool:
    return selects_pod(rule.selector, demand.namespace, demand.namespace, labels)


def _values(key: str, table: NodeTable, capacity: Capacity) -> Codes:
    """Return the label's value code of every position."""
    codes, _ = table.label_codes(key)
    return codes[capacity.view.rows]


def _keep_ports(
    caps: Integers, demand: Demand, pod_index: PodIndex, table: NodeTable, capacity: Capacity
) -> None:
    """A port is taken once a node: by others already there, and by one pod of the set."""
    if not demand.host_ports:
        return
    np.minimum(caps, 1, out=caps)
    for members in pod_index.with_ports():
        if any(conflict(a, b) for a in demand.host_ports for b in members.host_ports):
            rows = [table.row_of[name] for name in members.pods_on if name in table.row_of]
            caps[capacity.view.position_of[rows]] = 0


def _stay_away(
    caps: Integers, rule: PodRule, groups: Iterable[Members], table: NodeTable, capacity: Capacity
) -> None:
    """Close every domain that holds pods the rule speaks of; nodes without the label stay open."""
    codes, _ = table.label_codes(rule.topology_key)
    closed = _codes_of(groups, codes, table)
    if closed:
        caps[np.isin(codes[capacity.view.rows], sorted(closed))] = 0


def _stay_with(
    caps: Integers,
    rule: PodRule,
    demand: Demand,
    pod_index: PodIndex,
    table: NodeTable,
    capacity: Capacity,
) -> None:
    """Leave only domains that hold such pods; where none exist yet the first pods may start one."""
    codes, _ = table.label_codes(rule.topology_key)
    mine = codes[capacity.view.rows]
    admitted = _codes_of(pod_index.matching(rule.selector, demand.namespace), codes, table)
    if admitted:
        caps[~np.isin(mine, sorted(admitted))] = 0
    elif _is_own(rule, demand, label_map(demand.labels)):
        caps[mine == ABSENT] = 0
    else:
        caps[:] = 0


def _codes_of(groups: Iterable[Members], codes: Codes, table: NodeTable) -> set[int]:
    """Return the label values, as codes, of the nodes that pods are on."""
    found: set[int] = set()
    for members in groups:
        rows = (table.row_of.get(name) for name, count in members.pods_on.items() if count)
        found.update(int(codes[row]) for row in rows if row is not None)
    found.discard(ABSENT)
    return found


def _one_a_domain(caps: Integers, key: str, table: NodeTable, capacity: Capacity) -> None:
    """Let each domain take one pod of the set: on its tightest node."""
    if key == HOSTNAME:
        np.minimum(caps, 1, out=caps)
        return
    values = _values(key, table, capacity)
    open_ = np.flatnonzero(caps)
    order = open_[np.lexsort((open_, caps[open_]))]
    seen: set[int] = set()
    for position in order.tolist():
        value = int(values[position])
        if value != ABSENT and value in seen:
            caps[position] = 0
            continue
        seen.add(value)
        if value != ABSENT:
            caps[position] = 1


def _spread(
    caps: Integers,
    rule: SpreadRule,
    need: int,
    demand: Demand,
    pod_index: PodIndex,
    table: NodeTable,
    capacity: Capacity,
    counted: Mask,
) -> Integers:
    """Share `need` pods over domains so that no domain ever has more than `max_skew` too many.

    A rule that does not speak of the pods themselves (need 0) only closes domains.
    """
    codes, meaning = table.label_codes(rule.topology_key)
    values = codes[capacity.view.rows]
    caps = np.where(values == ABSENT, 0, caps)
    # In the order of their names: codes depend on which value was seen first.
    text = {code: value for value, code in meaning.items()}
    present = {*values[counted].tolist()} - {ABSENT}
    existing = dict.fromkeys(sorted(present, key=lambda code: natural(text[code])), 0)
    for members in pod_index.matching(rule.selector, demand.namespace):
        for name, count in members.pods_on.items():
            row = table.row_of.get(name)
            if row is None or not counted[capacity.view.position_of[row]]:
                continue
            if int(codes[row]) in existing:
                existing[int(codes[row])] += count
    if not need:
        lowest = min(existing.values(), default=0)
        full = [value for value, count in existing.items() if count - lowest > rule.max_skew]
        return np.where(np.isin(values, full), 0, caps)
    by_domain = np.bincount(values, weights=caps, minlength=len(meaning) + 1).astype(np.int64)
    limited = np.zeros_like(caps)
    for value, share in _share_out(existing, by_domain, need, rule).items():
        here = np.flatnonzero(values == value)
        if share:
            chosen, counts = pack(caps[here], share)
            limited[here[chosen]] = counts
    return limited


def _share_out(
    existing: dict[int, int], by_domain: Integers, need: int, rule: SpreadRule
) -> dict[int, int]:
    """Give pods one by one to the emptiest domain with room, as long as the skew allows."""
    counts = dict(existing)
    shares = dict.fromkeys(existing, 0)
    order = {value: place for place, value in enumerate(existing)}  # ties: as they were listed
    few = len(existing) < rule.min_domains
    heap = [(count, order[value], value) for value, count in counts.items()]
    heapq.heapify(heap)
    for _ in range(need):
        while heap and shares[heap[0][2]] >= by_domain[heap[0][2]]:
            heapq.heappop(heap)  # full; it still counts for the skew
        if not heap:
            break
        floor = 0 if few else min(counts.values())
        count, place, value = heap[0]
        if count + 1 - floor > rule.max_skew:
            break
        heapq.heapreplace(heap, (count + 1, place, value))
        counts[value] += 1
        shares[value] += 1
    return shares
