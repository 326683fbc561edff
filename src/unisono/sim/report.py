"""A comparison for programs: the figures of every policy by name, and the whole table.

Figures are means over the seeds. A figure without anything to measure is null.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from unisono.sim.comparison import Comparison, Row
from unisono.sim.measures import Measures, counts_gpus, measure
from unisono.sim.outcome import Outcome
from unisono.sim.summary import left_out

_HOUR_S = 3600


class PolicyFigures(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One policy in the figures that are asked for most."""

    policy: str
    wall_seconds: float | None
    jobs_per_second: float | None
    makespan_seconds: float | None
    utilisation: float | None
    mean_wait_seconds: float | None
    p50_wait_seconds: float | None
    p95_wait_seconds: float | None
    mean_bounded_slowdown: float | None
    p50_bounded_slowdown: float | None
    p95_bounded_slowdown: float | None
    mean_fragmentation: float | None
    jain_index: float | None
    goodput: float | None
    completed: float | None
    preemptions: float | None
    lost_gpu_hours: float | None
    cost_us_dollars: float | None = None
    machine_hours: float | None = None
    machines_peak: float | None = None
    paid_and_used: float | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Everything that `unisono sim -o json` says."""

    trace: str
    jobs: int
    left_out: dict[str, int]  # of the trace, by what was wrong with them
    nodes: int
    seeds: int
    policies: tuple[PolicyFigures, ...]
    rows: tuple[Row, ...]  # every figure of every policy, and how they differ from the first


def report(outcomes: Sequence[Outcome], found: Comparison) -> Report:
    """Return outcomes of one trace as a report."""
    first = outcomes[0]
    by_policy: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_policy.setdefault(outcome.policy, []).append(outcome)
    return Report(
        trace=first.trace.name,
        jobs=len(first.trace),
        left_out=left_out(first.trace),
        nodes=first.capacity.nodes,
        seeds=found.seeds,
        policies=tuple(_figures(policy, each) for policy, each in by_policy.items()),
        rows=found.rows,
    )


def _figures(policy: str, outcomes: list[Outcome]) -> PolicyFigures:
    measured = [measure(outcome) for outcome in outcomes]
    wall = _mean([outcome.effort.wall_s for outcome in outcomes])
    return PolicyFigures(
        policy=policy,
        wall_seconds=wall or None,
        jobs_per_second=len(outcomes[0].trace) / wall if wall else None,
        makespan_seconds=_mean([one.makespan for one in measured]),
        utilisation=_mean([one.utilisation for one in measured]),
        mean_wait_seconds=_mean([one.wait.mean for one in measured]),
        p50_wait_seconds=_mean([one.wait.median for one in measured]),
        p95_wait_seconds=_mean([one.wait.p95 for one in measured]),
        mean_bounded_slowdown=_mean([one.slowdown.mean for one in measured]),
        p50_bounded_slowdown=_mean([one.slowdown.median for one in measured]),
        p95_bounded_slowdown=_mean([one.slowdown.p95 for one in measured]),
        mean_fragmentation=_mean([one.fragmentation for one in measured]),
        jain_index=_mean([one.fairness.jain for one in measured]),
        goodput=_mean([one.goodput for one in measured]),
        completed=_mean([float(one.completed) for one in measured]),
        preemptions=_mean([float(one.preemptions) for one in measured]),
        lost_gpu_hours=_mean(
            [_lost_gpus(outcome, one) for outcome, one in zip(outcomes, measured, strict=True)]
        ),
        cost_us_dollars=_mean([one.cost for one in measured]),
        machine_hours=_mean([one.machine_hours for one in measured]),
        machines_peak=_mean([one.machines_peak for one in measured]),
        paid_and_used=_mean([one.paid_used for one in measured]),
    )


def _lost_gpus(outcome: Outcome, measured: Measures) -> float:
    return measured.lost / _HOUR_S if counts_gpus(outcome) else 0.0


def _mean(values: list[float]) -> float | None:
    mean = math.fsum(values) / len(values)
    return mean if math.isfinite(mean) else None
