"""Published traces of GPU clusters that need a reader of their own.

Alibaba's GPU-sharing cluster of 2023 (openb): pods that ask for shares, models and whole GPUs. Cite
Weng et al., "Beware of Fragmentation", USENIX ATC 2023. Two ways to replay a list:

    arrival   pods come at their creation time and would leave at their deletion time
    fill      pods come one after the other and stay, until demand is 1.3 times what there is

Microsoft's Philly cluster of 2017: training jobs as `timestamp,duration,num_gpus,…,cluster`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unisono.sim.random_source import random_source
from unisono.sim.trace import (
    FAILED,
    FINISHED,
    UNKNOWN,
    BadTrace,
    Dropped,
    FloatArray,
    IntArray,
    Trace,
    make_trace,
    split_gpus,
)
from unisono.sim.traces.files import Sheet, bare_name, read_rows

# ---- openb ---------------------------------------------------------------------------------------

OPENB_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
DEMAND = 1.3  # of the published experiments

Rows = NDArray[np.intp]

_PHASES = {"Succeeded": FINISHED, "Failed": FAILED}


def read_openb(path: Path, *, skip_bad: bool = False) -> Trace:
    """Read a list of pods as they arrived; lists without times can only be used to fill."""
    return read_rows(path, lambda sheet: _arriving(path, sheet), skip_bad=skip_bad)


def _arriving(path: Path, sheet: Sheet) -> Trace:
    if "creation_time" not in sheet.columns:
        raise BadTrace(str(path), "has no creation times; this list can only be replayed as fill")
    created, deleted = sheet.numbers("creation_time"), sheet.numbers("deletion_time")
    rows = np.flatnonzero(deleted > created)
    dropped = Dropped(no_run=len(sheet) - len(rows), unreadable=sheet.unreadable)
    run = deleted - created
    return _pods(path, sheet, rows, submit=created[rows], run=run[rows], dropped=dropped)


def read_openb_fill(
    path: Path, *, gpu_milli: int, seed: int, demand: float = DEMAND, skip_bad: bool = False
) -> Trace:
    """Read a list of pods to fill a cluster of so many GPUs: a second apart, and for ever.

    The list is shuffled, then uniformly drawn clones are appended until the GPU demand reaches
    `demand` times the capacity (a list that wants more is cut there instead), and it is shuffled
    once more.
    """
    until = demand * gpu_milli
    return read_rows(path, lambda sheet: _staying(path, sheet, until, seed), skip_bad=skip_bad)


def _staying(path: Path, sheet: Sheet, until: float, seed: int) -> Trace:
    wanted = sheet.whole_numbers("num_gpu") * sheet.whole_numbers("gpu_milli")
    rows = _filling(wanted, until, seed)
    one_by_one = np.arange(len(rows), dtype=np.float64)
    dropped = Dropped(unreadable=sheet.unreadable)
    return _pods(path, sheet, rows, submit=one_by_one, run=np.inf, dropped=dropped)


def _filling(wanted: IntArray, until: float, seed: int) -> Rows:
    """Return rows in an order, some of them twice, whose demand reaches what is asked for."""
    if not wanted.sum():
        raise BadTrace("", "no pod of the list requests a GPU, so it cannot fill a cluster of GPUs")
    rng = random_source(seed, "fill")
    rows = rng.permutation(len(wanted))
    missing = until - int(wanted.sum())
    while missing > 0:
        # As many as are needed on average; what is too many is cut below.
        clones = rng.integers(len(wanted), size=int(missing / wanted.mean()) + 1)
        rows = np.concatenate([rows, clones])
        missing -= int(wanted[clones].sum())
    arrived = np.cumsum(wanted[rows])
    return rng.permutation(rows[: int(np.searchsorted(arrived, until)) + 1])


def _pods(
    path: Path, sheet: Sheet, rows: Rows, *, submit: ArrayLike, run: ArrayLike, dropped: Dropped
) -> Trace:
    def numbers(name: str) -> IntArray:
        return sheet.whole_numbers(name)[rows]

    def texts(name: str) -> list[str]:
        column = sheet.columns.get(name)
        return [column[row] for row in rows] if column else [""] * len(rows)

    return make_trace(
        bare_name(path),
        submit=submit,
        run=run,
        number=np.arange(1, len(rows) + 1),
        cpu=numbers("cpu_milli"),
        memory=numbers("memory_mib"),
        gpus=numbers("num_gpu"),
        gpu_milli=numbers("gpu_milli"),
        models=[tuple(filter(None, text.split("|"))) for text in texts("gpu_spec")],
        group=texts("qos"),
        status=[_PHASES.get(text, UNKNOWN) for text in texts("pod_phase")],
        names=texts("name"),
        dropped=dropped,
    )


# ---- Philly --------------------------------------------------------------------------------------

PHILLY_COLUMNS = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")


def read_philly(path: Path, *, skip_bad: bool = False) -> Trace:
    """Read the jobs, sorted by time; each virtual cluster is a queue."""
    return read_rows(path, lambda sheet: _jobs(path, sheet), skip_bad=skip_bad)


def _jobs(path: Path, sheet: Sheet) -> Trace:
    submit = _times(sheet, "timestamp")
    run, gpus = sheet.numbers("duration"), np.nan_to_num(sheet.numbers("num_gpus"))
    no_run = ~(run > 0)
    no_size = ~no_run & (gpus <= 0)
    kept = ~(no_run | no_size)
    workers, each = split_gpus(gpus[kept].astype(np.int64))
    first = float(submit[kept].min()) if kept.any() else 0.0
    return make_trace(
        bare_name(path),
        number=np.flatnonzero(kept) + 1,
        submit=submit[kept] - first,
        run=run[kept],
        pods=workers,
        gpus=each,
        queue=np.array(sheet.column("cluster"))[kept],
        dropped=Dropped(int(no_run.sum()), int(no_size.sum()), unreadable=sheet.unreadable),
        epoch=first,
    )


def _times(sheet: Sheet, name: str) -> FloatArray:
    """Return a column of UTC times, written like 2017-10-09 07:01:55, as Unix seconds."""
    texts = sheet.column(name)
    try:
        moments = np.array(texts, "datetime64[us]")
    except ValueError:
        return sheet.each(name, _moment)
    return moments.astype(np.int64) / 1e6


def _moment(text: str) -> float:
    try:
        return float(np.datetime64(text, "us").astype(np.int64)) / 1e6
    except ValueError:
        raise ValueError("not a time") from None
