"""What became of all GPUs of a period, second by second: allocated, held, free or down.

Every row of a node is a lane of its own, in which pods and what is kept for them begin and end. All
lanes are sorted one behind the other and walked through at once: what begins in a lane also ends in
it, so running sums are zero where the next lane begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from unisono.monitor.ledger.attempts import Tries, holds
from unisono.monitor.ledger.periods import SIZES, STATES, Account, Sort, priced
from unisono.monitor.ledger.rows import PodRow
from unisono.monitor.ledger.stretches import Integers, Nodes, Stretches, prices


def lump(account: Account, nodes: Nodes, stretches: Stretches) -> None:
    """Count GPU-seconds as allocated or free, without looking at the order of things."""
    count = len(nodes.rows)
    allocated = _sums(stretches.row, stretches.gpu_seconds, count)
    money = _sums(stretches.row, prices(stretches.gpu_seconds, nodes, stretches.row), count)
    there = nodes.gpus * (nodes.until - nodes.since)
    for at, row in enumerate(nodes.rows):
        sort = account.sorts.setdefault((row.model, row.capacity_type), Sort())
        sort.seconds["allocated"] += int(allocated[at])
        sort.seconds["free"] += int(there[at] - allocated[at])
        sort.micro_usd["allocated"] += int(money[at])
        sort.micro_usd["free"] += priced(int(there[at]), row) - int(money[at])


def sweep(
    account: Account, nodes: Nodes, stretches: Stretches, pods: Sequence[PodRow], tries: Tries
) -> None:
    """Walk through the period, from change to change."""
    kept = _kept(nodes, pods, tries)
    lane, at, allocated, held = _events(nodes, stretches, kept)
    gpus = nodes.gpus[lane]
    is_up = np.array([one.is_up for one in nodes.rows], dtype=bool)[lane]
    left = gpus - np.minimum(allocated, gpus)
    kept_now = np.where(is_up, np.minimum(held, left), 0)
    passed = np.zeros(len(at), np.int64)
    passed[:-1] = np.where(lane[1:] == lane[:-1], at[1:] - at[:-1], 0)
    rest = left - kept_now
    amounts = {
        "allocated": gpus - left,
        "held": kept_now,
        "free": np.where(is_up, rest, 0),
        "down": np.where(is_up, 0, rest),
    }
    count = len(nodes.rows)
    seconds = {state: _sums(lane, amounts[state] * passed, count) for state in STATES}
    for number, row in enumerate(nodes.rows):
        sort = account.sorts.setdefault((row.model, row.capacity_type), Sort())
        for state in STATES:
            amount = int(seconds[state][number])
            sort.seconds[state] += amount
            sort.micro_usd[state] += priced(amount, row)
    used = {*stretches.row.tolist(), *kept[0].tolist()}
    for rows in nodes.of_name.values():
        _count(account, nodes, rows, is_used=not used.isdisjoint(rows))
    by_free = np.bincount(rest[is_up], passed[is_up]).astype(np.int64)
    account.fragmentation = _fragmentation(dict(enumerate(by_free.tolist())))


def _events(
    nodes: Nodes, stretches: Stretches, kept: tuple[Integers, Integers, Integers, Integers]
) -> tuple[Integers, Integers, Integers, Integers]:
    """Return lanes and times, sorted, with what is allocated and held from each time on."""
    row, gpus, since, until = kept
    every, nothing = np.arange(len(nodes.rows)), np.zeros(len(nodes.rows), np.int64)
    none, none_kept = np.zeros(len(stretches.row), np.int64), np.zeros(len(row), np.int64)
    lane = np.concatenate([every, every, stretches.row, stretches.row, row, row])
    at = np.concatenate([nodes.since, nodes.until, stretches.since, stretches.until, since, until])
    more = stretches.gpus
    allocated = np.concatenate([nothing, nothing, more, -more, none_kept, none_kept])
    held = np.concatenate([nothing, nothing, none, none, gpus, -gpus])
    order = np.lexsort((at, lane))
    return lane[order], at[order], np.cumsum(allocated[order]), np.cumsum(held[order])


def _kept(
    nodes: Nodes, pods: Sequence[PodRow], tries: Tries
) -> tuple[Integers, Integers, Integers, Integers]:
    """Return what was kept for pods that came later: lane, GPUs, from when, to when."""
    found = [
        (row, hold.gpus, hold.since, hold.until)
        for hold in holds(pods, tries)
        for row in nodes.of_name.get(hold.node, ())
    ]
    row, gpus, since, until = np.array(found, dtype=np.int64).reshape(len(found), 4).T
    since, until = np.maximum(since, nodes.since[row]), np.minimum(until, nodes.until[row])
    is_there = since < until
    return row[is_there], gpus[is_there], since[is_there], until[is_there]


def _count(account: Account, nodes: Nodes, rows: Sequence[int], *, is_used: bool) -> None:
    """Count a node, and whether it was there for nothing."""
    last = max((nodes.rows[at] for at in rows), key=lambda one: one.since)
    sort = account.sorts[last.model, last.capacity_type]
    sort.nodes += 1
    if last.until and not is_used:
        sort.unused_nodes += 1
        for at in rows:
            seconds = int(nodes.until[at] - nodes.since[at])
            sort.unused_seconds += seconds
            sort.unused_micro_usd += priced(nodes.rows[at].gpus * seconds, nodes.rows[at])


def _fragmentation(seconds_free: Mapping[int, int]) -> dict[int, float]:
    """Return the part of the free GPUs that pods of a size could not use, by size."""
    free = sum(count * seconds for count, seconds in seconds_free.items())
    if not free:
        return dict.fromkeys(SIZES, 0.0)
    return {
        size: 1 - sum(one // size * size * seconds for one, seconds in seconds_free.items()) / free
        for size in SIZES
    }


def _sums(of: Integers, values: Integers, count: int) -> Integers:
    return np.bincount(of, values, count).astype(np.int64)
