"""Traces by name: a file, read by its name or columns, or a generator with its settings.

KTH-SP2.swf.gz                     a file
lublin:jobs=1000,load=0.9,seed=7   a generator with its settings
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from unisono.kinds.nearest import nearest
from unisono.sim.generators import gpu, kueue_perf, lublin
from unisono.sim.trace import BadTrace, Trace
from unisono.sim.traces.files import column_names
from unisono.sim.traces.journal import read_journal
from unisono.sim.traces.mapped import PRESETS, Column, parse_map, read_mapped
from unisono.sim.traces.published import (
    OPENB_COLUMNS,
    PHILLY_COLUMNS,
    read_openb,
    read_openb_fill,
    read_philly,
)
from unisono.sim.traces.swf import read_swf

GENERATORS: Mapping[str, Callable[..., Trace]] = {
    "lublin": lublin,
    "gpu": gpu,
    "kueue-perf": kueue_perf,
}
FORMATS = ("swf", "openb", "philly", "csv", "jsonl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How to read a file when its name does not say it all."""

    format: str = ""
    map: Mapping[str, Column] = field(default_factory=dict)
    processors: int = 0
    skip_bad: bool = False
    fill_gpu_milli: int = 0  # fill a cluster of so many GPUs with the pods of an openb list


def open_trace(text: str, reading: Reading | None = None, *, seed: int | None = None) -> Trace:
    """Return the trace that a text names; a seed overrules the generator's own."""
    how = reading or Reading()
    name, _, settings = text.partition(":")
    path = Path(text)
    format_ = "" if is_generated(text) else how.format or _format_of(path, how)
    if how.fill_gpu_milli and format_ != "openb":
        raise BadTrace(text, "only lists of pods (openb) can fill a cluster")
    if not format_:
        return _generated(name, settings, seed)
    match format_:
        case "swf":
            return read_swf(path, processors=how.processors, skip_bad=how.skip_bad)
        case "jsonl":
            return read_journal(path, skip_bad=how.skip_bad)
        case "openb":
            return _openb(path, how, seed)
        case "philly":
            return read_philly(path, skip_bad=how.skip_bad)
        case "csv":
            return read_mapped(path, how.map, skip_bad=how.skip_bad)
        case other:
            raise BadTrace("", f'unknown format "{other}"; --format is one of {", ".join(FORMATS)}')


def is_generated(text: str) -> bool:
    """Say whether a text names a generator; a file of the same name goes first."""
    name, colon, _ = text.partition(":")
    return name in GENERATORS and (bool(colon) or not Path(text).exists())


def _openb(path: Path, how: Reading, seed: int | None) -> Trace:
    if not how.fill_gpu_milli:
        return read_openb(path, skip_bad=how.skip_bad)
    chosen = 1 if seed is None else seed
    return read_openb_fill(path, gpu_milli=how.fill_gpu_milli, seed=chosen, skip_bad=how.skip_bad)


def _format_of(path: Path, how: Reading) -> str:
    name = path.name.removesuffix(".gz")
    if name.endswith(".swf"):
        return "swf"
    if name.endswith(".jsonl"):
        return "jsonl"
    if how.map:
        return "csv"
    if not name.endswith(".csv"):
        raise BadTrace(
            str(path), f"the format is unknown; give --format, one of {', '.join(FORMATS)}"
        )
    columns = column_names(path)
    for format_, needed in (("openb", OPENB_COLUMNS), ("philly", PHILLY_COLUMNS)):
        if set(needed) <= set(columns):
            return format_
    presets = [
        preset
        for preset, text in PRESETS.items()
        if {column.name for column in parse_map(text).values()} <= set(columns)
    ]
    hint = f"--map {presets[0]}" if presets else "--map submit=COLUMN,run=COLUMN,gpus=COLUMN,…"
    raise BadTrace(
        str(path),
        f"the meaning of its columns is unknown; give {hint}; they are {', '.join(columns)}",
    )


def _generated(name: str, settings: str, seed: int | None) -> Trace:
    generator = GENERATORS[name]
    known = inspect.signature(generator).parameters
    given: dict[str, float] = {}
    for part in filter(None, settings.split(",")):
        key, equals, value = part.partition("=")
        if key not in known or not equals:
            near = nearest(key, sorted(known))
            hint = f'; did you mean "{near}"?' if near else f"; known are {', '.join(known)}"
            raise BadTrace(name, f'unknown setting "{part}"{hint}')
        try:
            number = float(value)
        except ValueError as error:
            raise BadTrace(name, f'{key} is "{value}", which is not a number') from error
        given[key] = int(number) if isinstance(known[key].default, int) else number
    if seed is not None and "seed" in known:
        given["seed"] = seed
    return generator(**given)
