"""Any CSV of jobs, given a map of its columns: `submit=submit_time,run=duration,gpus=gpu*0.01`.

    MAP    = PART [, PART …]
    PART   = FIELD = COLUMN [* FACTOR] [{ TEXT:NUMBER [| TEXT:NUMBER …] }]
           | PRESET                     a known archive; later parts overrule it

| field | means |
| --- | --- |
| `submit` | when: seconds, or a UTC time like 2020-04-01 12:00:00; the only required field |
| `run` | run time in seconds; without it `end` minus `start` |
| `start`, `end` | when it started and ended |
| `request` | requested seconds |
| `workers` | pods of the gang |
| `cpu`, `memory`, `gpus` | of one pod: cores, MiB, GPUs (a fraction shares one) |
| `total_cpu`, `total_gpus` | of all pods together |
| `models` | GPU models that will do, joined by a bar |
| `number`, `name`, `user`, `group`, `queue`, `priority` | as they say |
| `status` | how it ended: any common word for finished, failed or cancelled |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from unisono.sim.trace import (
    CANCELLED,
    FAILED,
    FINISHED,
    UNKNOWN,
    WHOLE_GPU,
    BadTrace,
    Dropped,
    FloatArray,
    IntArray,
    Trace,
    make_trace,
    split_gpus,
)
from unisono.sim.traces.files import Sheet, bare_name, read_rows

FIELDS = (
    *("submit", "run", "start", "end", "request", "workers", "cpu", "memory", "gpus"),
    *("total_cpu", "total_gpus", "models", "number", "name", "user", "group", "queue"),
    *("priority", "status"),
)

# Archives whose column names are known, by what their files are called.
PRESETS = {
    "spot": "name=job_name,group=organization,models=gpu_model,cpu=cpu_request,gpus=gpu_request,"
    "workers=worker_num,submit=submit_time,run=duration,queue=organization,"
    "priority=job_type{HP:100|Spot:0}",
    "helios": "name=job_id,user=user,queue=vc,total_gpus=gpu_num,total_cpu=cpu_num,"
    "workers=node_num,status=state,submit=submit_time,run=duration",
    "acme": "name=job_id,user=user,group=type,queue=queue,total_gpus=gpu_num,total_cpu=cpu_num,"
    "workers=node_num,status=state,submit=submit_time,run=duration",
    "pai": "name=job_name,user=user,workers=inst_num,cpu=plan_cpu*0.01,gpus=plan_gpu*0.01,"
    "memory=plan_mem*1024,models=gpu_type,submit=start_time,start=start_time,end=end_time,"
    "status=status",
}

_PART = re.compile(
    r"(?P<field>\w+)=(?P<column>[^,*{}=]+)(?:\*(?P<factor>[0-9.eE+-]+))?(?:\{(?P<table>[^{}]*)\})?"
)


@dataclass(frozen=True, slots=True)
class Column:
    """Where a field comes from: a column, what to multiply it by, what its words are worth."""

    name: str
    factor: float = 1.0
    worth: Mapping[str, float] = field(default_factory=dict)


def parse_map(text: str) -> dict[str, Column]:
    """Return the column of each field that a text names.

    >>> parse_map("submit=at,gpus=plan_gpu*0.01")["gpus"]
    Column(name='plan_gpu', factor=0.01, worth={})
    """
    found: dict[str, Column] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        if part in PRESETS:
            found |= parse_map(PRESETS[part])
        else:
            name, column = _part(part)
            found[name] = column
    return found


def _part(text: str) -> tuple[str, Column]:
    match = _PART.fullmatch(text)
    if match is None:
        raise BadTrace("--map", f'"{text}" is not FIELD=COLUMN; presets: {", ".join(PRESETS)}')
    name = match["field"]
    if name not in FIELDS:
        raise BadTrace("--map", f'unknown field "{name}"; known are {", ".join(FIELDS)}')
    try:
        factor = float(match["factor"] or 1)
        pairs = [piece.rpartition(":") for piece in (match["table"] or "").split("|") if piece]
        worth = {key: float(value) for key, _, value in pairs}
    except ValueError as error:
        raise BadTrace("--map", f'"{text}": {error}') from error
    return name, Column(match["column"].strip(), factor, worth)


_WORDS = (
    (FINISHED, ("complet", "succe", "finish", "terminated", "done", "pass")),
    (CANCELLED, ("cancel", "kill", "revok")),
    (FAILED, ("fail", "error", "timeout", "node_fail", "oom")),
)


def read_mapped(path: Path, columns: Mapping[str, Column], *, skip_bad: bool = False) -> Trace:
    """Read a CSV; jobs without a run time or without anything to run on are dropped and counted."""
    if "submit" not in columns:
        raise BadTrace("--map", "submit=COLUMN is missing")

    def read(sheet: Sheet) -> Trace:
        return _Reading(sheet, columns).trace(bare_name(path), skip_bad=skip_bad)

    return read_rows(path, read, skip_bad=skip_bad)


class _Reading:
    """One file while it is read."""

    def __init__(self, sheet: Sheet, columns: Mapping[str, Column]) -> None:
        self._sheet = sheet
        self._columns = columns

    def trace(self, name: str, *, skip_bad: bool) -> Trace:
        submit = self._moments("submit")
        lost = np.isnan(submit)
        if lost.any() and not skip_bad:
            line = self._sheet.lines[int(np.argmax(lost))]
            raise BadTrace(f"{self._sheet.path}: line {line}", "the submit time is empty")
        run = self._runs()
        pods, gpus, gpu_milli = self._gangs()
        cpu = self._per_pod("cpu", pods) * 1000
        no_run = ~lost & ~(run > 0)
        no_size = ~lost & ~no_run & ((pods <= 0) | ((gpus <= 0) & (cpu <= 0)))
        kept = ~(lost | no_run | no_size)
        first = float(submit[kept].min()) if kept.any() else 0.0
        names = self._texts("name")
        return make_trace(
            name,
            number=self._numbers("number", np.arange(1.0, len(kept) + 1))[kept].astype(np.int64),
            submit=submit[kept] - first,
            run=run[kept],
            request=np.nan_to_num(self._numbers("request", -1.0), nan=-1.0)[kept],
            pods=pods[kept],
            cpu=np.ceil(cpu[kept]).astype(np.int64),
            memory=np.ceil(np.nan_to_num(self._numbers("memory", 0.0))[kept]).astype(np.int64),
            gpus=gpus[kept],
            gpu_milli=gpu_milli[kept],
            models=self._models(kept),
            user=self._texts("user")[kept],
            group=self._texts("group")[kept],
            queue=self._texts("queue")[kept],
            priority=np.nan_to_num(self._numbers("priority", 0.0))[kept].astype(np.int64),
            status=self._statuses()[kept],
            names=names[kept].tolist() if "name" in self._columns else (),
            dropped=Dropped(
                int(no_run.sum()),
                int(no_size.sum()),
                unreadable=self._sheet.unreadable + int(lost.sum()),
            ),
            epoch=first,
        )

    def _numbers(self, field: str, otherwise: FloatArray | float) -> FloatArray:
        column = self._columns.get(field)
        if column is None:
            return np.broadcast_to(np.asarray(otherwise, np.float64), len(self._sheet))
        if column.worth:
            return column.factor * self._sheet.each(column.name, lambda text: _worth(column, text))
        return column.factor * self._sheet.numbers(column.name)

    def _texts(self, field: str) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
        column = self._columns.get(field)
        texts = [""] * len(self._sheet) if column is None else self._sheet.column(column.name)
        return np.array(texts, np.str_)

    def _moments(self, field: str) -> FloatArray:
        column = self._columns[field]
        try:
            return column.factor * self._sheet.numbers(column.name)
        except BadTrace:
            return self._sheet.each(column.name, _moment)

    def _runs(self) -> FloatArray:
        if "run" in self._columns:
            return self._numbers("run", 0.0)
        if "start" not in self._columns or "end" not in self._columns:
            raise BadTrace("--map", "run=COLUMN is missing (or start= and end=)")
        return self._moments("end") - self._moments("start")

    def _gangs(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return pods, GPUs of each, and the share of each GPU."""
        pods = np.nan_to_num(self._numbers("workers", 1.0)).astype(np.int64)
        if "total_gpus" not in self._columns:
            each = np.nan_to_num(self._numbers("gpus", 0.0))
        else:
            total = np.nan_to_num(self._numbers("total_gpus", 0.0)).astype(np.int64)
            if "workers" in self._columns:
                # Where the parts would not be equal, the source means something else by a worker.
                is_even = (pods > 0) & (total % np.maximum(pods, 1) == 0)
            else:
                is_even = np.zeros(len(pods), np.bool_)
            split_pods, split_each = split_gpus(total)
            pods, each_gpus = (
                np.where(is_even, pods, split_pods),
                np.where(is_even, total // np.maximum(pods, 1), split_each),
            )
            each = each_gpus.astype(np.float64)
        shares = (each > 0) & (each < 1)
        gpu_milli = np.where(shares, np.maximum(np.round(each * WHOLE_GPU), 1), WHOLE_GPU)
        return pods, np.ceil(each).astype(np.int64), gpu_milli.astype(np.int64)

    def _per_pod(self, field: str, pods: IntArray) -> FloatArray:
        total = f"total_{field}"
        if total in self._columns:
            return np.nan_to_num(self._numbers(total, 0.0)) / np.maximum(pods, 1)
        return np.nan_to_num(self._numbers(field, 0.0))

    def _models(self, kept: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[tuple[str, ...]]:
        return [tuple(filter(None, text.split("|"))) for text in self._texts("models")[kept]]

    def _statuses(self) -> IntArray:
        texts = self._texts("status")
        known = {text: _status(text) for text in np.unique(texts).tolist()}
        return np.array([known[text] for text in texts.tolist()], np.int64)


def _worth(column: Column, text: str) -> float:
    if text not in column.worth:
        raise ValueError(f"not in the map, which knows {', '.join(column.worth)}")
    return column.worth[text]


def _moment(text: str) -> float:
    """Return Unix seconds of a time; one without a zone is UTC."""
    plain = text.strip()
    if not plain or plain.lower() in ("none", "nan", "null"):
        return float("nan")
    try:
        return float(plain)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(re.sub(r"\s+UTC$", "+00:00", plain))
    except ValueError:
        raise ValueError("neither seconds nor a time") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _status(text: str) -> int:
    plain = text.lower()
    for status, stems in _WORDS:
        if any(stem in plain for stem in stems):
            return status
    return UNKNOWN
