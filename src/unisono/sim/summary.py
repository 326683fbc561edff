"""What a trace holds, before anything is simulated: sizes, times, users, queues, work."""

from __future__ import annotations

import msgspec
import numpy as np

from unisono.sim.fragmentation import typical_pods
from unisono.sim.measures import NAN, Spread, spread
from unisono.sim.outcome import Capacity
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
