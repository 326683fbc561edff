"""What broken and slow GPUs cost: which node, what was wrong, whose work was lost.

A gang that ends badly takes the work of all of its pods with it. If a node of one of them had a
problem then, or was lost, that is the cause, and all of it counts there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from unisono.monitor.ledger.accounts import Period, priced
from unisono.monitor.ledger.rows import NodeRow, PodRow
from unisono.monitor.ledger.settlement import Tries, is_lost
from unisono.monitor.report.model import Fault

DOWN = "Down"
# A problem is noticed a little after a gang felt it, and its pods end a little after that.
_NEAR_SECONDS = 180
_MOST = 20
_MOST_OWNERS = 5

_Cause = tuple[str, str]  # a node, and what was wrong with it


@dataclass(slots=True)
class _Lost:
    times: int = 0
    seconds: int = 0  # for which the problem was there
    gpu_seconds: int = 0
    micro_usd: int = 0
    gangs: set[str] = field(default_factory=set)
    by_owner: dict[str, int] = field(default_factory=dict)


def faults_of(
    period: Period, pods: Iterable[PodRow], tries: Tries, nodes: Sequence[NodeRow]
) -> tuple[Fault, ...]:
    """Return the problems of a period, those that cost most first."""
    found: dict[_Cause, _Lost] = {}
    faulty: dict[str, list[NodeRow]] = {}
    prices: dict[str, NodeRow] = {}
    for row in nodes:
        prices[row.name] = row
        problem, part = _problem(row), period.clip(row.since, row.until)
        if problem:
            faulty.setdefault(row.name, []).append(row)
            if part.seconds:
                lost = found.setdefault((row.name, problem), _Lost())
                lost.times += 1
                lost.seconds += part.seconds
    if faulty:
        _lay_on(found, period, _gangs(period, pods, tries), tries, faulty, prices)
    worst = sorted(found.items(), key=lambda one: (-one[1].gpu_seconds, -one[1].seconds, one[0]))
    return tuple(_told(cause, lost) for cause, lost in worst[:_MOST])


def _gangs(period: Period, pods: Iterable[PodRow], tries: Tries) -> Iterable[list[PodRow]]:
    """Return the pods whose work was lost in the period, those of one gang and one end together."""
    found: dict[str, list[PodRow]] = {}
    for pod in pods:
        if pod.started and period.since <= pod.ended < period.until and is_lost(pod, tries):
            found.setdefault(pod.workload or pod.uid, []).append(pod)
    for of_gang in found.values():
        of_gang.sort(key=lambda one: (one.ended, one.uid))
        together: list[PodRow] = []
        for pod in of_gang:
            if together and pod.ended - together[-1].ended > _NEAR_SECONDS:
                yield together
                together = []
            together.append(pod)
        yield together


def _lay_on(
    found: dict[_Cause, _Lost],
    period: Period,
    gangs: Iterable[list[PodRow]],
    tries: Tries,
    faulty: dict[str, list[NodeRow]],
    prices: dict[str, NodeRow],
) -> None:
    for pods in gangs:
        cause = next((one for pod in pods if (one := _cause(pod, faulty)) is not None), None)
        if cause is None:
            continue
        lost = found.setdefault(cause, _Lost())
        attempts = tries.get(pods[0].workload, ())
        owner = attempts[-1].user if attempts else "unknown"
        lost.gangs.add(pods[0].workload or pods[0].uid)
        for pod in pods:
            is_saved = pod.started < pod.saved <= pod.ended
            since = max(period.since, pod.saved if is_saved else pod.started)
            amount = pod.gpus * max(0, pod.ended - since)
            lost.gpu_seconds += amount
            lost.by_owner[owner] = lost.by_owner.get(owner, 0) + amount
            if pod.node in prices:
                lost.micro_usd += priced(amount, prices[pod.node])


def _cause(pod: PodRow, faulty: dict[str, list[NodeRow]]) -> _Cause | None:
    """Return what was wrong with a pod's node when it ended."""
    for row in faulty.get(pod.node, ()):
        is_over = row.until and row.until < pod.ended - _NEAR_SECONDS
        if row.since <= pod.ended + _NEAR_SECONDS and not is_over:
            return row.name, _problem(row)
    return None


def _problem(row: NodeRow) -> str:
    return row.problem or ("" if row.is_up else DOWN)


def _told(cause: _Cause, lost: _Lost) -> Fault:
    owners = sorted(lost.by_owner.items(), key=lambda one: (-one[1], one[0]))[:_MOST_OWNERS]
    return Fault(
        node=cause[0],
        problem=cause[1],
        times=lost.times,
        seconds=lost.seconds,
        jobs=len(lost.gangs),
        gpu_hours=lost.gpu_seconds / 3600,
        cost_cents=(lost.micro_usd + 5_000) // 10_000,
        owners={name: amount / 3600 for name, amount in owners},
    )
