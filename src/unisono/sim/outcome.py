"""The outcome of a simulation as columns: when each job of a trace ran, and how the cluster was
used.

The simulator writes it, `measures` reduces it to figures and `page` draws it. Times are the trace's
seconds; a job that never started or never completed has NaN there. Step series hold from their
time until the next one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from unisono.sim.cost import Bill
from unisono.sim.trace import FloatArray, IntArray, Names, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What the whole cluster has."""

    nodes: int = 0
    cpu: int = 0  # millicores
    memory: int = 0  # MiB
    gpu_milli: int = 0  # thousandths of GPUs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Depth:
    """The cluster over time, in steps: recorded after each scheduling cycle."""

    time: FloatArray
    pending: IntArray  # jobs that wait
    running: IntArray  # jobs that run
    cpu: IntArray  # millicores in use
    gpu_milli: IntArray  # thousandths of GPUs in use


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spans:
    """Which jobs ran on which nodes: one row per interval of a job on a node."""

    names: Names  # of the nodes
    job: IntArray  # row of the trace
    node: IntArray  # index into names
    start: FloatArray
    end: FloatArray
    pods: IntArray  # of this job on this node
    size: IntArray | None = None  # of each node: thousandths of GPUs, or of CPUs without GPUs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunIntervals:
    """When jobs ran: one row per uninterrupted interval of a whole job."""

    job: IntArray
    start: FloatArray
    end: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fragments:
    """GPUs that typical pods could not use, in steps."""

    time: FloatArray
    fragmented: FloatArray  # thousandths of GPUs
    idle: FloatArray  # thousandths of GPUs


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """What the policy cost."""

    decisions: int = 0
    passes: int = 0
    cpu_s: float = 0.0  # of the policy
    wall_s: float = 0.0  # of the whole simulation


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """One trace under one policy; columns are in the order of the trace."""

    policy: str
    trace: Trace
    capacity: Capacity
    start: FloatArray  # first start; NaN: never
    end: FloatArray  # completion; NaN: never
    running: FloatArray  # s in which the job ran, lost work included
    lost: FloatArray  # s of that which were lost to preemption or failures
    preemptions: IntArray
    reclaims: IntArray  # those of the preemptions that took back lent quota
    held: FloatArray  # GPU-seconds held by a gang before its last member had its place
    run_intervals: RunIntervals  # needed whenever a job was preempted
    depth: Depth
    entitlement: FloatArray  # of each queue of the trace: its part of the cluster, any unit
    seed: int = 0
    spans: Spans | None = None
    fragments: Fragments | None = None
    effort: Effort = field(default_factory=Effort)
    bill: Bill | None = None  # what machines cost, where prices are known
    interruptions: int = 0  # of jobs, by nodes that failed


def make_outcome(
    policy: str,
    trace: Trace,
    capacity: Capacity,
    *,
    start: FloatArray,
    end: FloatArray,
    running: FloatArray | None = None,
    lost: FloatArray | None = None,
    preemptions: IntArray | None = None,
    reclaims: IntArray | None = None,
    held: FloatArray | None = None,
    run_intervals: RunIntervals | None = None,
    depth: Depth | None = None,
    entitlement: FloatArray | None = None,
    seed: int = 0,
    spans: Spans | None = None,
    fragments: Fragments | None = None,
    effort: Effort | None = None,
    bill: Bill | None = None,
    interruptions: int = 0,
) -> Outcome:
    """Return an outcome; what is left out is as if no job was ever interrupted.

    A job that has started and not ended runs until the last thing that is known to have happened.
    """
    count = len(trace)
    ran = run_intervals if run_intervals is not None else _uninterrupted(trace, start, end)
    return Outcome(
        policy=policy,
        trace=trace,
        capacity=capacity,
        start=start,
        end=end,
        running=_or(running, _running(count, ran)),
        lost=_or(lost, np.zeros(count)),
        preemptions=preemptions if preemptions is not None else np.zeros(count, np.int64),
        reclaims=reclaims if reclaims is not None else np.zeros(count, np.int64),
        held=_or(held, np.zeros(count)),
        run_intervals=ran,
        depth=depth if depth is not None else _depth(trace, ran, end),
        entitlement=_or(entitlement, np.ones(len(trace.queues))),
        seed=seed,
        spans=spans,
        fragments=fragments,
        effort=effort or Effort(),
        bill=bill,
        interruptions=interruptions,
    )


def _or(given: FloatArray | None, otherwise: FloatArray) -> FloatArray:
    return otherwise if given is None else given


def _uninterrupted(trace: Trace, start: FloatArray, end: FloatArray) -> RunIntervals:
    rows = np.flatnonzero(~np.isnan(start))
    last = float(np.nanmax(np.concatenate([trace.submit, start, end, [0.0]])))
    ends = np.where(np.isnan(end[rows]), last, end[rows])
    return RunIntervals(job=rows.astype(np.int64), start=start[rows], end=ends)


def _running(count: int, ran: RunIntervals) -> FloatArray:
    total = np.zeros(count)
    np.add.at(total, ran.job, ran.end - ran.start)
    return total


def _depth(trace: Trace, ran: RunIntervals, end: FloatArray) -> Depth:
    """Return the steps that follow from submissions, run intervals and completions."""
    jobs = ran.job
    completed = end[~np.isnan(end)]
    parts = [trace.submit, ran.start, ran.end, completed]
    instants, place = np.unique(np.concatenate(parts), return_inverse=True)
    submitted, started, stopped, gone = np.split(
        place, np.cumsum([len(part) for part in parts])[:3]
    )

    def steps(up: IntArray, down: IntArray, amount: IntArray | int) -> IntArray:
        change = np.zeros(len(instants), np.int64)
        np.add.at(change, up, amount)
        np.subtract.at(change, down, amount)
        return np.cumsum(change)

    running = steps(started, stopped, 1)
    # A job that still runs at the end has not gone back to the queue.
    still = stopped[np.isnan(end[jobs]) & (stopped == len(instants) - 1)]
    return Depth(
        time=instants,
        pending=steps(submitted, np.concatenate([gone, still]), 1) - running,
        running=running,
        cpu=steps(started, stopped, trace.job_cpu[jobs]),
        gpu_milli=steps(started, stopped, trace.job_gpu_milli[jobs]),
    )
