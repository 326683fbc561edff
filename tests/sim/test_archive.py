"""Outcomes as files: everything comes back, and nothing else is accepted."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path

import msgspec
import numpy as np
import pytest

from unisono.sim.archive import load_outcome, save_outcome
from unisono.sim.outcome import Capacity, Effort, Fragments, Outcome, Spans, make_outcome
from unisono.sim.trace import BadTrace, Dropped, make_trace


def whole_outcome() -> Outcome:
    trace = make_trace(
        "t",
        submit=[0, 5],
        run=[10, 20],
        gpus=[1, 2],
        models=[("B", "A"), ()],
        queue=["é", "x"],
        names=["one", "two"],
        dropped=Dropped(1, 2, 3, 4),
        processors=8,
        epoch=12.5,
    )
    return make_outcome(
        "p",
        trace,
        Capacity(nodes=2, gpu_milli=4000),
        start=np.array([0.0, np.nan]),
        end=np.array([10.0, np.nan]),
        seed=7,
        effort=Effort(decisions=3, cpu_s=0.25),
        spans=Spans(
            names=("n1", "n2"),
            job=np.array([0]),
            node=np.array([1]),
            start=np.array([0.0]),
            end=np.array([10.0]),
            pods=np.array([1]),
            size=np.array([2000, 2000]),
        ),
        fragments=Fragments(time=np.array([0.0]), fragmented=np.array([1.0]), idle=np.array([2.0])),
    )


def same(one: object, other: object) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if is_dataclass(one) and not isinstance(one, type):
        assert type(one) is type(other)
        names = [field.name for field in fields(one)]
        return all(same(getattr(one, name), getattr(other, name)) for name in names)
    return one == other


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    save_outcome(whole_outcome(), path)
    assert same(load_outcome(path), whole_outcome())


def test_unrecorded_columns_stay_absent(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    outcome = whole_outcome()
    plain = make_outcome("p", outcome.trace, outcome.capacity, start=outcome.start, end=outcome.end)
    save_outcome(plain, path)
    assert load_outcome(path).spans is None
    assert load_outcome(path).fragments is None
    assert same(load_outcome(path), plain)


def test_refuses_other_files(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(b"something else")
    with pytest.raises(BadTrace, match="is not the outcome of a simulation"):
        load_outcome(path)
    np.savez(path, a=np.arange(3))
    with pytest.raises(BadTrace, match="is not the outcome of a simulation"):
        load_outcome(path)
    for about, problem in (({"schema": "x"}, "the schema is x"), ({}, "the schema is None")):
        np.savez(path, about=np.frombuffer(msgspec.json.encode(about), np.uint8))
        with pytest.raises(BadTrace, match=problem):
            load_outcome(path)
    about = {"schema": "unisono.outcome/v1"}
    np.savez(path, about=np.frombuffer(msgspec.json.encode(about), np.uint8))
    with pytest.raises(BadTrace, match="lacks 'policy'"):
        load_outcome(path)
