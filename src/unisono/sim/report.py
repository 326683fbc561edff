"""Reports for programs: what a trace holds, and a comparison with all figures by name.

Figures are means over the seeds. A figure without anything to measure is null.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from unisono.sim.comparison import Comparison, Row
from unisono.sim.fragmentation import typical_pods
from unisono.sim.measures import NAN, Measures, Spread, counts_gpus, measure, spread
from unisono.sim.outcome import Capacity, Outcome
from unisono.sim.trace import CANCELLED, FAILED, FINISHED, UNKNOWN, FloatArray, Trace


class Part(msgspec.Struct, frozen=True, rename="camel"):
    """A queue of a trace."""

    name: str
    jobs: int
    work_hours: float  # GPU-hours, or CPU-hours
    share: float  # of the whole work


class Summary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A trace in figures; times in seconds."""

    name: str
    jobs: int
    dropped: dict[str, int]
    span: float  # first submission to last
    processors: int
    counts: str  # what size and work are counted in: GPUs or CPUs
    size: Spread
    pods: Spread
    run: Spread
    request_ratio: Spread  # request / run
    work_hours: float  # NaN if a job never ends
    load: float  # work / (capacity * span); NaN if one of them is unknown
    wanted: float  # GPUs or CPUs of all jobs together, as if they all ran at once
    wanted_share: float  # of the cluster, or of the machine the trace comes from
    statuses: dict[str, int]
    typical_shapes: int  # of pods that cover 95 % of all
    users: int
    queues: tuple[Part, ...]  # the one with most work first


def summarise(trace: Trace, capacity: Capacity | None = None) -> Summary:
    """Return what a trace holds; its load on a cluster, or on the machine it comes from."""
    is_gpu = bool(trace.gpus.any())
    size = (trace.job_gpu_milli if is_gpu else trace.job_cpu) / 1000
    lasting = np.isfinite(trace.run)
    work = size * np.where(lasting, trace.run, 0.0) / 3600
    total = float(work.sum()) if lasting.all() else NAN
    span = float(trace.submit[-1] - trace.submit[0]) if len(trace) else NAN
    whole = float(trace.processors)
    if capacity is not None:
        whole = (capacity.gpu_milli if is_gpu else capacity.cpu) / 1000
    return Summary(
        name=trace.name,
        jobs=len(trace),
        dropped=left_out(trace),
        span=span,
        processors=trace.processors,
        counts="GPUs" if is_gpu else "CPUs",
        size=spread(size),
        pods=spread(trace.pods.astype(np.float64)),
        run=spread(trace.run[lasting]),
        request_ratio=spread(trace.request[lasting] / trace.run[lasting]),
        work_hours=total,
        load=total * 3600 / (whole * span) if whole > 0 and span > 0 else NAN,
        wanted=float(size.sum()),
        wanted_share=float(size.sum()) / whole if whole > 0 else NAN,
        statuses=_statuses(trace),
        typical_shapes=len(typical_pods(trace)),
        users=len(np.unique(trace.user)),
        queues=_parts(trace, work),
    )


def left_out(trace: Trace) -> dict[str, int]:
    """Return how many jobs are not replayed, by what was wrong with them."""
    dropped = trace.dropped
    return {
        "noRun": dropped.no_run,
        "noSize": dropped.no_size,
        "tooLarge": dropped.too_large,
        "unreadable": dropped.unreadable,
    }


def _statuses(trace: Trace) -> dict[str, int]:
    words = {"finished": FINISHED, "failed": FAILED, "cancelled": CANCELLED, "unknown": UNKNOWN}
    return {word: int((trace.status == status).sum()) for word, status in words.items()}


def _parts(trace: Trace, work: FloatArray) -> tuple[Part, ...]:
    jobs = np.bincount(trace.queue, minlength=len(trace.queues))
    hours = np.bincount(trace.queue, work, len(trace.queues))
    total = max(float(hours.sum()), 1e-12)
    order = sorted(np.flatnonzero(jobs).tolist(), key=lambda place: (-hours[place], place))
    return tuple(
        Part(
            trace.queues[place], int(jobs[place]), float(hours[place]), float(hours[place]) / total
        )
        for place in order
    )


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
