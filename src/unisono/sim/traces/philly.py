"""Microsoft's Philly cluster of 2017: training jobs as `timestamp,duration,num_gpus,…,cluster`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from unisono.sim.trace import Dropped, FloatArray, Trace, make_trace, split_gpus
from unisono.sim.traces.files import Sheet, bare_name, read_rows

COLUMNS = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")


def read_philly(path: Path, *, skip_bad: bool = False) -> Trace:
    """Read the jobs, sorted by time; each virtual cluster is a queue."""
    return read_rows(path, lambda sheet: _jobs(path, sheet), skip_bad=skip_bad)


def _jobs(path: Path, sheet: Sheet) -> Trace:
    submit = times(sheet, "timestamp")
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


def times(sheet: Sheet, name: str) -> FloatArray:
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
