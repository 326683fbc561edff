"""From the rows of a period to its account, with a column for each figure.

A month has a hundred thousand pods and more. All that is counted is whole numbers below 2^53, which
sums of floats hold exactly; so NumPy may add them up, and parts still make up the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from unisono.monitor.ledger.attempts import Tries, is_lost
from unisono.monitor.ledger.periods import SIZES, Account, Parts, Period, Spent, Used
from unisono.monitor.ledger.rows import NodeRow, PodRow
from unisono.monitor.ledger.stretches import Nodes, Stretches, prices
from unisono.monitor.ledger.sweeping import lump, sweep

Integers = NDArray[np.int64]
_DAY = 86_400


def settle(
    period: Period,
    pods: Sequence[PodRow],
    workloads: Tries,
    nodes: Iterable[NodeRow],
    *,
    in_brief: bool = False,
) -> Account:
    """Return the account of a period.

    In brief, what nobody had is free, whatever else it was: enough to compare another with.
    """
    account = Account(period)
    there = Nodes.of(nodes, period)
    stretches = Stretches.of(pods, there, period)
    _spend(account, pods, workloads, there, stretches)
    if in_brief:
        lump(account, there, stretches)
    else:
        _by_day(account, stretches)
        sweep(account, there, stretches, pods, workloads)
    return account


def _spend(
    account: Account,
    pods: Sequence[PodRow],
    workloads: Tries,
    nodes: Nodes,
    stretches: Stretches,
) -> None:
    """Lay what pods used on their gangs."""
    seconds = _classes(pods, workloads, stretches, account.period)
    money = [prices(one, nodes, stretches.row) for one in seconds]
    sizes = np.minimum(np.searchsorted(SIZES, stretches.gpus), len(SIZES) - 1)
    asked = _sums(sizes, stretches.gpu_seconds, len(SIZES))
    account.demand.update({size: one for size, one in zip(SIZES, asked, strict=True) if one})

    sorts = [(one.model, one.capacity_type) for one in nodes.rows]
    groups: dict[tuple[str, str, str, str], int] = {}
    of_group: list[int] = []
    firsts: list[tuple[PodRow, tuple[str, str]]] = []
    for at, row in zip(stretches.pod.tolist(), stretches.row.tolist(), strict=True):
        pod, sort = pods[at], sorts[row]
        key = (pod.workload or pod.uid, pod.namespace, *sort)
        group = groups.get(key)
        if group is None:
            group = groups[key] = len(groups)
            firsts.append((pod, sort))
        of_group.append(group)
    of, count = np.array(of_group, dtype=np.int64), len(groups)

    def total(values: NDArray[np.float64] | Integers) -> list[float]:
        found: list[float] = np.bincount(of, values, count).tolist()
        return found

    peaks = np.zeros(count, np.int64)
    np.maximum.at(peaks, of, stretches.of_pod([one.peak_mib for one in pods]))
    columns = zip(
        groups.items(),
        zip(*(_sums(of, one, count) for one in seconds), strict=True),
        zip(*(_sums(of, one, count) for one in money), strict=True),
        _sums(of, stretches.of_pod([one.idle_devices for one in pods]), count),
        _sums(of, stretches.gpus, count),
        peaks.tolist(),
        total(stretches.floats_of_pod([one.tensor for one in pods])),
        total(stretches.floats_of_pod([one.covered for one in pods])),
        strict=True,
    )
    for (key, group), spent, cost, idle_devices, devices, peak_mib, tensor, covered in columns:
        pod, (model, capacity_type) = firsts[group]
        account.used[key] = Used(
            pod.workload,
            pod,
            model,
            capacity_type,
            Spent(Parts(*spent), Parts(*cost)),
            idle_devices,
            devices,
            peak_mib,
            tensor,
            covered,
        )


def _classes(
    pods: Sequence[PodRow], workloads: Tries, stretches: Stretches, period: Period
) -> tuple[Integers, ...]:
    """Return the GPU-seconds of every stretch, class by class."""
    gpus, since, until = stretches.gpus, stretches.since, stretches.until
    started = stretches.of_pod([one.started for one in pods])
    ended = stretches.of_pod([one.ended for one in pods])
    saved = stretches.of_pod([one.saved for one in pods])
    covered = stretches.floats_of_pod([one.covered for one in pods])
    busy = stretches.floats_of_pod([one.busy for one in pods])
    failed = stretches.of_pod([is_lost(one, workloads) for one in pods]).astype(bool)

    began = np.where(started > 0, started, np.where(ended > 0, ended, until))
    starting = gpus * np.maximum(0, np.minimum(began, until) - since)
    running = stretches.gpu_seconds - starting
    safe = np.where((started < saved) & (saved <= ended), saved, started)
    gone = gpus * np.maximum(0, np.minimum(until, ended) - np.maximum(since, safe))
    lost = np.where(failed & (started > 0), gone, 0)
    kept = running - lost
    # How busy it was is known of its whole life; parts of it are taken to be alike.
    life = gpus * np.maximum(1, np.where(ended > 0, ended, period.until) - began)
    whole = np.where(life > 0, life, 1)
    measured = np.minimum(kept, np.rint(covered * kept / whole).astype(np.int64))
    part = np.minimum(busy, covered) / np.where(covered > 0, covered, 1.0)
    at_work = np.minimum(measured, np.rint(part * measured).astype(np.int64))
    return at_work, measured - at_work, kept - measured, starting, lost


def _by_day(account: Account, stretches: Stretches) -> None:
    """Count what was held on each day."""
    period = account.period
    for day in range(period.since - period.since % _DAY, period.until, _DAY):
        long = np.minimum(stretches.until, day + _DAY) - np.maximum(stretches.since, day)
        amount = int((np.maximum(0, long) * stretches.gpus).sum())
        if amount:
            account.by_day[day] = amount


def _sums(of: Integers, values: Integers, count: int) -> list[int]:
    found: list[int] = np.bincount(of, values, count).astype(np.int64).tolist()
    return found
