"""A workload trace as columns: one row per job, in the order in which the jobs were submitted.

Whatever a trace was read from or drawn by, it ends up here, so that the simulator, the measures and
the charts know one form only. Columns are NumPy arrays of equal length; names (users, groups,
queues, sets of GPU models) are kept once and rows refer to them by index. A job is a gang of equal
pods. Times are seconds from the start of the trace, as floats and never rounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unisono.engine.model.errors import InvalidManifest
from unisono.kinds.digits import whole_number
from unisono.sim.random_source import random_source


class BadTrace(InvalidManifest):
    """A trace, a list of nodes or an option that cannot be read: where, and what is wrong."""


class BadRows(BadTrace):
    """Some rows of a table cannot be read; the message is about the first of them."""

    def __init__(self, path: str, problem: str, rows: list[int]) -> None:
        """Say where and what, and which rows."""
        super().__init__(path, problem)
        self.rows = rows


IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Names = tuple[str, ...]

# How a job ended in the source, in the numbers of the Standard Workload Format.
FAILED = 0
FINISHED = 1
CANCELLED = 5
UNKNOWN = -1

WHOLE_GPU = 1000  # gpu_milli of a pod that does not share its GPUs


@dataclass(frozen=True, slots=True)
class Dropped:
    """How many jobs of the source are not in the trace, by the first reason that applied."""

    no_run: int = 0  # a run time that is zero, negative or unknown
    no_size: int = 0  # no processors, workers or devices
    too_large: int = 0  # more than the machine has
    unreadable: int = 0  # lines that are no jobs at all, skipped because that was asked for

    @property
    def total(self) -> int:
        """All of them."""
        return self.no_run + self.no_size + self.too_large + self.unreadable


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """Jobs to replay, sorted by (submit, number)."""

    name: str
    number: IntArray  # the job's number in the source
    submit: FloatArray  # s from the start of the trace
    run: FloatArray  # true run time, s
    request: FloatArray  # requested time, s; the run time where none was given
    pods: IntArray  # size of the gang
    cpu: IntArray  # millicores of one pod
    memory: IntArray  # MiB of one pod
    gpus: IntArray  # whole GPUs of one pod
    gpu_milli: IntArray  # share of each of them: 1..1000; below 1000 one GPU is shared; 0 without
    model_sets: tuple[Names, ...]  # sets of GPU models that a pod accepts; () is any
    model: IntArray  # index into model_sets
    users: Names
    user: IntArray  # index into users; likewise groups and queues
    groups: Names
    group: IntArray
    queues: Names
    queue: IntArray
    priority: IntArray  # higher goes first
    status: IntArray  # FINISHED, FAILED, CANCELLED or UNKNOWN
    names: Names = ()  # of the jobs, where the source has names besides numbers
    dropped: Dropped = field(default_factory=Dropped)
    processors: int = 0  # of the traced machine; 0 if unknown
    epoch: float = 0.0  # Unix time of second 0; 0 if unknown

    def __len__(self) -> int:
        """Return the number of jobs."""
        return len(self.number)

    @property
    def job_cpu(self) -> IntArray:
        """Millicores of each whole job."""
        return self.pods * self.cpu

    @property
    def job_gpu_milli(self) -> IntArray:
        """Thousandths of GPUs of each whole job."""
        return self.pods * self.gpus * self.gpu_milli

    @property
    def is_endless(self) -> bool:
        """Say whether no job ever ends: they fill a cluster."""
        return bool(len(self)) and bool(np.isinf(self.run).all())

    def name_of(self, row: int) -> str:
        """Return what to call a job."""
        return self.names[row] if self.names else str(int(self.number[row]))

    def take(self, rows: ArrayLike) -> Trace:
        """Return some of the jobs, sorted; a mask or row numbers say which."""
        which = np.asarray(rows)
        # An empty list has no type of its own.
        chosen = np.arange(len(self))[which if which.size else which.astype(np.intp)]
        return _sorted(_picked(self, chosen))

    def perfect(self) -> Trace:
        """Return the same jobs with requests that are the true run times."""
        return replace(self, request=self.run.copy())

    def with_submits(self, submit: FloatArray) -> Trace:
        """Return the same jobs submitted at other times."""
        return _sorted(replace(self, submit=np.asarray(submit, np.float64)))


def make_trace(
    name: str,
    *,
    submit: ArrayLike,
    run: ArrayLike,
    number: ArrayLike | None = None,
    request: ArrayLike | None = None,
    pods: ArrayLike = 1,
    cpu: ArrayLike = 0,
    memory: ArrayLike = 0,
    gpus: ArrayLike = 0,
    gpu_milli: ArrayLike | None = None,
    models: Sequence[Names] | None = None,
    user: ArrayLike | None = None,
    group: ArrayLike | None = None,
    queue: ArrayLike | None = None,
    priority: ArrayLike = 0,
    status: ArrayLike = UNKNOWN,
    names: Sequence[str] = (),
    dropped: Dropped | None = None,
    processors: int = 0,
    epoch: float = 0.0,
) -> Trace:
    """Return a trace of columns in any order; scalars hold for every job.

    Users, groups and queues are given as they are called in the source (numbers or names, one per
    job). A request that is missing, zero or negative becomes the run time.

    >>> trace = make_trace("two", submit=[5, 0], run=[10, 20], request=[-1, 60], queue=["b", "a"])
    >>> trace.submit.tolist(), trace.request.tolist(), trace.queues, trace.queue.tolist()
    ([0.0, 5.0], [60.0, 10.0], ('a', 'b'), [0, 1])
    """
    submits = np.asarray(submit, np.float64)
    count = len(submits)
    runs = _floats(run, count)
    asked = runs.copy() if request is None else _floats(request, count)
    wanted = _integers(gpus, count)
    shares = WHOLE_GPU if gpu_milli is None else gpu_milli
    model_sets, model = _coded_sets(models, count)
    users, user_of = _coded(user, count)
    groups, group_of = _coded(group, count)
    queues, queue_of = _coded(queue, count)
    return _sorted(
        Trace(
            name=name,
            number=np.arange(1, count + 1) if number is None else _integers(number, count),
            submit=submits,
            run=runs,
            request=np.where(asked > 0, asked, runs),
            pods=_integers(pods, count),
            cpu=_integers(cpu, count),
            memory=_integers(memory, count),
            gpus=wanted,
            gpu_milli=np.where(wanted > 0, _integers(shares, count), 0),
            model_sets=model_sets,
            model=model,
            users=users,
            user=user_of,
            groups=groups,
            group=group_of,
            queues=queues,
            queue=queue_of,
            priority=_integers(priority, count),
            status=_integers(status, count),
            names=tuple(names),
            dropped=dropped or Dropped(),
            processors=processors,
            epoch=epoch,
        )
    )


def _integers(values: ArrayLike, count: int) -> IntArray:
    return np.ascontiguousarray(np.broadcast_to(np.asarray(values, np.int64), count))


def _floats(values: ArrayLike, count: int) -> FloatArray:
    return np.ascontiguousarray(np.broadcast_to(np.asarray(values, np.float64), count))


def _coded(values: ArrayLike | None, count: int) -> tuple[Names, IntArray]:
    """Return the distinct values as names, and the index of each row's.

    Names that are numbers come first, in the order of numbers, whether the source wrote them as
    numbers or as text: the same jobs have the same columns, whatever file they came from.
    """
    if values is None:
        return ("",), np.zeros(count, np.int64)
    distinct, codes = np.unique(np.asarray(values), return_inverse=True)
    names = [str(value) for value in distinct.tolist()]
    order = sorted(range(len(names)), key=lambda place: _natural(names[place]))
    places = np.empty(len(names), np.int64)
    places[order] = np.arange(len(names))
    return tuple(names[place] for place in order), places[codes]


def _natural(name: str) -> tuple[int, int, str]:
    number = whole_number(name)
    return (1, 0, name) if number is None else (0, number, name)


def _coded_sets(models: Sequence[Names] | None, count: int) -> tuple[tuple[Names, ...], IntArray]:
    if models is None:
        return ((),), np.zeros(count, np.int64)
    known = tuple(sorted({tuple(sorted(one)) for one in models}))
    places = {one: place for place, one in enumerate(known)}
    return known, np.array([places[tuple(sorted(one))] for one in models], np.int64)


def _sorted(trace: Trace) -> Trace:
    order = np.lexsort((trace.number, trace.submit))
    return trace if np.array_equal(order, np.arange(len(trace))) else _picked(trace, order)


def _picked(trace: Trace, rows: NDArray[np.intp]) -> Trace:
    changed = {
        one.name: getattr(trace, one.name)[rows]
        for one in fields(trace)
        if isinstance(getattr(trace, one.name), np.ndarray)
    }
    names = tuple(trace.names[row] for row in rows) if trace.names else ()
    return replace(trace, **changed, names=names)


UP_TO_S = 30.0
REPLICAS = 20


def perturbed(trace: Trace, *, seed: int, up_to_s: float = UP_TO_S) -> Trace:
    """Return the trace with every arrival moved by up to so much, either way, but not before 0."""
    moved = random_source(seed, "shaking").uniform(-up_to_s, up_to_s, len(trace))
    earliest = min(0.0, float(trace.submit[0])) if len(trace) else 0.0
    return trace.with_submits(np.maximum(trace.submit + moved, earliest))


def perturbed_replicas(
    trace: Trace, *, seed: int, count: int = REPLICAS
) -> Iterator[tuple[int, Trace]]:
    """Yield shaken replicas with a seed of each."""
    for number in range(seed, seed + count):
        yield number, perturbed(trace, seed=number)


GPUS_PER_NODE = 8  # what machines for training have; a pod cannot be larger than its node


def split_gpus(total: IntArray, per_pod: int = GPUS_PER_NODE) -> tuple[IntArray, IntArray]:
    """Return pods and GPUs of each: one pod if it fits a node, else the largest equal parts.

    >>> [part.tolist() for part in split_gpus(np.array([1, 8, 12, 128]))]
    [[1, 1, 2, 16], [1, 8, 6, 8]]
    """
    each = np.minimum(total, 1)
    for size in range(2, per_pod + 1):
        each = np.where(total % size == 0, np.where(total > 0, size, 0), each)
    pods = np.where(each > 0, total // np.maximum(each, 1), 1)
    return pods, each
