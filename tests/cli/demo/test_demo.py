"""The stories of `unisono demo` end well, and say what they promise."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from unisono.cli.demo import command as demo
from unisono.cli.demo import stage
from unisono.cli.demo.command import LIVE, OFFLINE, TITLES, menu_text, parser, run
from unisono.cli.demo.look import objects
from unisono.cli.demo.look_users import FLAVORS, RECIPES, STUCK, TEAMS, Recipe, manifest


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


def test_the_busy_cluster_has_teams_prices_and_machines_to_buy() -> None:
    kinds = [one["kind"] for one in objects()]
    assert kinds.count("ClusterQueue") == len(TEAMS) >= 3
    assert kinds.count("ResourceFlavor") == len(FLAVORS)
    assert "NodePool" in kinds


@pytest.mark.parametrize("recipe", [*RECIPES, *(recipe for _, recipe in STUCK)])
def test_a_recipe_is_a_job_of_a_team(recipe: Recipe) -> None:
    team = next(one for one in TEAMS if one.name in (recipe.teams or TEAMS[0].name))
    made = manifest(team, team.users[0], recipe, 3, random.Random(1), 20.0)
    assert made["metadata"]["namespace"] == team.name
    assert made["metadata"]["annotations"]["unisono.dev/user"] == team.users[0]
    # A limit that the job keeps: what runs longer would always be ended by it.
    limit = int(made["metadata"]["annotations"]["unisono.dev/time-limit"].removesuffix("s"))
    pod = made["spec"]["template"]["metadata"]["annotations"]
    assert int(pod["unisono.dev/run-seconds"]) / 20.0 <= limit + 1
    if recipe.flavor:
        assert recipe.flavor in team.quota


@pytest.mark.slow
def test_the_busy_cluster_can_be_looked_at_until_it_is_told_to_end(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "unisono", "demo", "look", "--speed", "600"]
    with (
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as running,
        contextlib.ExitStack() as at_the_end,
    ):
        at_the_end.callback(running.kill)  # if a check fails: it would go on for ever
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
        seen = set[str]()
        states = set[str]()
        until = time.monotonic() + 300
        while len(seen) < 120 and time.monotonic() < until:  # of twenty that there are at a time
            listed = subprocess.run(
                [sys.executable, "-m", "unisono", "workloads", "-A"],
                env={**environment, "KUBECONFIG": there[1]},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            rows = [line.split() for line in listed.splitlines()[1:]]
            seen |= {row[1] for row in rows}
            states |= {row[5] for row in rows}
            time.sleep(1)
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 0
    assert len(seen) >= 120, "arrivals go on"
    assert {"running", "waiting", "finished"} <= states
    assert " in use" in top
    assert not any(tmp_path.iterdir()), "nothing is left behind"


def test_a_wait_of_some_seconds_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing: Any = None
    on = stage.Stage(nothing, nothing, nothing, Path())
    monkeypatch.setattr(stage.Stage, "tell_changes", lambda self: None)
    monkeypatch.setattr(stage, "_QUIET_SECONDS", 0.05)
    looks = iter([False] * 4 + [True])
    asyncio.run(on.until("the gang runs", lambda: next(looks)))
    (line,) = capsys.readouterr().out.splitlines()
    assert line.endswith(" s  waiting until the gang runs")


def test_times_in_conditions_are_told_as_people_read_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing: Any = None
    on = stage.Stage(nothing, nothing, nothing, Path())
    planned = {"type": "CapacityPlanned", "status": "True", "reason": "Planned"}
    planned["message"] = "0/2 machines ready, about 2126-01-01T10:00:00Z"
    workload = {"metadata": {"name": "job-train-1a2b3"}, "status": {"conditions": [planned]}}
    monkeypatch.setattr(
        stage.Stage, "every", lambda self, key: [] if key == "/pods" else [workload]
    )
    on.tell_changes()
    told = capsys.readouterr().out
    assert "job-train" in told
    assert "0/2 machines ready, about" in told
    assert "T10:00:00Z" not in told
