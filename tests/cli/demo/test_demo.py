"""The stories of `unisono demo` end well, and say what they promise."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from unisono.cli.demo import command as demo
from unisono.cli.demo.command import LIVE, OFFLINE, TITLES, menu_text, parser, run
from unisono.cli.demo.look import objects


@pytest.mark.slow
@pytest.mark.parametrize("story", LIVE)
def test_a_story_on_a_living_cluster_ends(story: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(parser().parse_args([story])) == 0
    told = capsys.readouterr().out
    assert "admitted: every pod has a node" in told
    assert all(len(line) <= 100 for line in told.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("story", sorted({*TITLES} - {*LIVE} - {*OFFLINE}))
def test_a_longer_story_ends(story: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(parser().parse_args([story])) == 0
    assert capsys.readouterr().out


def test_production_ends_up_with_the_table_of_the_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(parser().parse_args(["preemption"])) == 0
    last = capsys.readouterr().out.rpartition("kubectl get rayclusters -A")[2]
    rows = [line.split() for line in last.splitlines() if "raycluster-" in line]
    assert [row[:-1] for row in rows] == [
        ["team-a", "raycluster-prod", "2", "2", "10", "24G", "4", "ready"],
        ["team-b", "raycluster-dev", "2", "-", "6", "16G", "0", "suspended"],
    ]


@pytest.mark.parametrize("story", OFFLINE)
def test_a_story_about_manifests_ends(story: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(parser().parse_args([story])) == 0
    assert capsys.readouterr().out.count("\n1. ") == 1


def test_at_a_terminal_there_is_a_menu(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = iter(["nonsense", "8", "a", "q"])
    told: list[str] = []
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda prompt: next(said))
    monkeypatch.setattr(demo, "_tell", told.extend)
    assert run(parser().parse_args([])) == 0
    assert told == ["pool", *TITLES]
    out = capsys.readouterr().out
    assert out.count(menu_text()) == 4
    assert "There is no 'nonsense'" in out


def test_without_a_terminal_the_tour_is_told_and_then_what_is_next(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(demo, "_tell", told.extend)
    assert run(parser().parse_args([])) == 0
    assert told == list(LIVE)
    assert "demo look " in capsys.readouterr().out


def test_the_busy_cluster_has_something_for_everybody() -> None:
    kinds = [one["kind"] for one in objects()]
    assert kinds.count("ClusterQueue") == 2
    assert kinds.count("Job") >= 8
    assert "NodePool" in kinds


@pytest.mark.slow
def test_the_busy_cluster_can_be_looked_at_until_it_is_told_to_end(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "unisono", "demo", "look"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        said = []
        for line in running.stdout:
            said.append(line)
            if line == "ready\n":
                break
        there = re.search(r"KUBECONFIG=(\S+)", "".join(said))
        assert there is not None, said
        assert re.search(r"^web +http://127\.0\.0\.1:\d+/#token=", "".join(said), re.MULTILINE)
        top = subprocess.run(
            [sys.executable, "-m", "unisono", "top"],
            env={**environment, "KUBECONFIG": there[1]},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 0
    assert "of 64 in use" in top
    assert not any(tmp_path.iterdir()), "nothing is left behind"
