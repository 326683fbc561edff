"""`unisono sim`: what it says of traces and outcomes, what it writes, and what it refuses."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.simulations import schedule
from unisono.cli.main import main
from unisono.sim.archive import save_outcome
from unisono.sim.generators import lublin


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


def test_a_trace_is_shaken(tmp_path: Path) -> None:
    paths = [tmp_path / "plain.jsonl", tmp_path / "shaken.jsonl", tmp_path / "again.jsonl"]
    for path, more in zip(paths, ([], ["--shake", "1"], ["--shake", "1"]), strict=True):
        assert main(["sim", "trace", "gpu:jobs=50", "--write", str(path), *more]) == 0
    plain, once, again = (path.read_bytes() for path in paths)
    assert once != plain
    assert once == again


def test_a_cluster_is_filled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pods.csv"
    path.write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1000,1,1,500\nb,1000,1,2,1000\n"
    )
    command = ["sim", "trace", str(path), "--fill", "--seed", "42"]
    assert main([*command, "--cluster", "10x{gpu=8}", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert 104 <= found["wanted"] < 106
    assert found["wantedShare"] == pytest.approx(found["wanted"] / 80)
    assert found["workHours"] is None
    assert main([*command, "--cluster", "10x{gpu=8}"]) == 0
    assert re.search(r"wanted in the end +10[45]\S* GPUs, 13\d\.\d % of", capsys.readouterr().out)
    assert main(command) == 2
    assert "needs a cluster with GPUs" in capsys.readouterr().err
    other = ["sim", "trace", "gpu:jobs=5", "--fill", "--cluster", "1x{gpu=8}"]
    assert main(other) == 2
    assert "only lists of pods (openb) can fill a cluster" in capsys.readouterr().err


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
        (["lublin:jobs=x"], "is not a number"),
        (["lublin:jobs=5", "--cluster", "some"], "--cluster"),
        (["lublin:jobs=5", "--map", "x"], "--map"),
    ],
)
def test_what_is_wrong_is_said(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", "trace", *arguments]) == 2
    assert problem in capsys.readouterr().err


# --- sim show ------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path: Path) -> list[str]:
    """Two policies, three seeds each."""
    names = []
    for policy in ("fcfs", "easy"):
        for seed in (1, 2, 3):
            trace = lublin(jobs=200, processors=32, load=1, seed=seed)
            path = tmp_path / f"{policy}-{seed}.npz"
            save_outcome(replace(schedule(trace, policy), seed=seed), path)
            names.append(str(path))
    return names


def test_outcomes_side_by_side(saved: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "show", *saved]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.split() == ["FIGURE", "fcfs", "easy", "DIFFERENCE"]
    (slowdown,) = [line for line in rest if line.startswith("bounded slowdown, mean ")]
    assert slowdown.endswith(" better")
    assert len({len(line) for line in rest}) == 1  # aligned to the right


def test_outcomes_for_programs(saved: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "show", *saved, "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["policy"] for one in found["policies"]] == ["fcfs", "easy"]
    assert found["seeds"] == 3
    (wait,) = [row for row in found["rows"] if row["key"] == "wait.mean"]
    assert wait["cells"][1]["verdict"] == "better"
    assert wait["cells"][0]["difference"] is None


def test_a_page_of_outcomes(
    saved: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert main(["sim", "show", *saved, "--html", str(page)]) == 0
    assert capsys.readouterr().out.startswith("FIGURE")
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "lublin-200: fcfs and easy" in text


def test_a_file_that_is_no_outcome(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.npz"
    path.write_text("x")
    assert main(["sim", "show", str(path)]) == 2
    assert "is not the outcome of a simulation" in capsys.readouterr().err
