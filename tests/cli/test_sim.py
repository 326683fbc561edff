"""`unisono sim trace`: what it says of traces, what it writes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unisono.cli.main import main


def test_a_trace_in_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "trace", "kueue-perf:share=0.1", "--cluster", "100x{cpu=6}"]) == 0
    printed = capsys.readouterr().out
    assert "kueue-perf\n" in printed
    assert "  jobs            1500\n" in printed
    assert "  work            1.10 CPU-hours\n" in printed
    assert "  cohort-0-queue-0" in printed
    assert "  and 18 more queues\n" in printed
    assert all(line == line.rstrip() for line in printed.splitlines())


def test_json_has_every_queue(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "trace", "kueue-perf:share=0.1", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["jobs"], len(found["queues"]), found["counts"]) == (1500, 30, "CPUs")
    assert found["load"] == pytest.approx(found["workHours"] * 3600 / (600 * found["span"]))


def test_a_trace_is_written_and_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "own.jsonl.gz"
    assert main(["sim", "trace", "gpu:jobs=50", "--seed", "3", "--write", str(path)]) == 0
    first = capsys.readouterr().out
    again = path.read_bytes()
    assert main(["sim", "trace", str(path), "--write", str(path)]) == 0
    assert capsys.readouterr().out == first
    assert path.read_bytes() == again


def test_dropped_jobs_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = "1 0 -1 {run} 4 -1 -1 4 60 -1 1 7 2 -1 3 -1 -1 -1\n"
    path = tmp_path / "log.swf"
    path.write_text(job.format(run=50) + job.format(run=0) + "1 2 3\n")
    assert main(["sim", "trace", str(path)]) == 2
    assert "line 3: has 3 fields; a job has 18" in capsys.readouterr().err
    assert main(["sim", "trace", str(path), "--skip-bad", "--procs", "8"]) == 0
    assert "1 (dropped: 1 without run time, 1 unreadable)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["no-such.swf"], "no-such.swf"),
        (["lublin:jobs=x"], "is no number"),
        (["lublin:jobs=5", "--cluster", "some"], "--cluster"),
        (["lublin:jobs=5", "--map", "x"], "--map"),
    ],
)
def test_what_is_wrong_is_said(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", "trace", *arguments]) == 2
    assert problem in capsys.readouterr().err
