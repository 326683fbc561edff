"""The benchmarks about time: what the peer is given, what is said when it or logs are absent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench import accasim, backfill, quality, sim
from bench.accasim import NotRun, accasim_folder, as_swf, run_accasim
from bench.harness import Note, Peer, Row, Target
from unisono.engine.cycle import plan
from unisono.engine.model.names import CPU, Instant
from unisono.sim.generators import lublin
from unisono.sim.traces.swf import read_swf


def test_the_peer_gets_the_same_jobs(tmp_path: Path) -> None:
    trace = lublin(jobs=50, processors=16)
    path = tmp_path / "jobs.swf"
    path.write_text(as_swf(trace), encoding="ascii")
    read = read_swf(path)
    assert read.processors == 16
    assert read.pods.tolist() == trace.pods.tolist()
    assert np.abs(read.submit - trace.submit).max() <= 0.5
    assert np.abs(read.run - trace.run).max() <= 1
    assert (read.request >= read.run).all()


def test_a_peer_that_is_not_installed_is_not_fetched_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(NotRun, match="not installed"):
        accasim_folder(install=False)
    assert not [*tmp_path.iterdir()]


def test_a_peer_that_fails_is_not_run_and_says_why(tmp_path: Path) -> None:
    with pytest.raises(NotRun, match="No module named 'accasim'"):
        run_accasim(tmp_path, lublin(jobs=3), 4, 1)


def test_a_peer_that_cannot_be_installed_is_not_run_and_ours_is_measured_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("UNISONO_TRACES", str(tmp_path))
    monkeypatch.setattr(accasim, "PACKAGES", ("--no-index", "there-is-no-such-package"))
    monkeypatch.setitem(sim.SIZES, "full", (sim.Case(10, sim.CAPACITY, samples=1),))
    found = [*sim.measure("full")]
    (beside,) = [one for one in found if isinstance(one, Target) and "AccaSim" in one.what]
    assert (beside.verdict, beside.median, beside.ratio) == ("not run", None, None)
    assert beside.peer == Peer(name="AccaSim", version=accasim.VERSION)
    assert beside.why
    (note,) = [one.text for one in found if isinstance(one, Note)]
    assert note.startswith(f"{sim.KTH}: not here")
    rows = {one.what for one in found if isinstance(one, Row)}
    assert rows >= {"ours, load 0.8", "ours, one node, load 0.8"}


def test_quality_without_logs_asks_the_plain_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNISONO_TRACES", str(tmp_path))
    found = [*quality.measure("tiny")]
    apart = {one.what: one.median for one in found if isinstance(one, Target)}
    assert apart["drawn easy: mean wait, apart"] == pytest.approx(0, abs=1e-9)
    assert len([one for one in found if isinstance(one, Note) and "not here" in one.text]) == 4


def test_before_a_cycle_with_backfill_there_is_room_and_some_gang_has_to_wait() -> None:
    state = backfill._cluster(backfill.EASY, CPU, 60, 60)
    made = plan(state, Instant(3_000))
    assert made.admissions
    assert made.reservations
    assert state.running
