"""The stories of `unisono demo` end well, and say what they promise."""

from __future__ import annotations

import pytest

from unisono.cli.demo import LIVE, OFFLINE, parser, run


@pytest.mark.slow
@pytest.mark.parametrize("story", LIVE)
def test_a_story_on_a_living_cluster_ends(story: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(parser().parse_args([story])) == 0
    told = capsys.readouterr().out
    assert "admitted: all of it" in told
    assert all(len(line) <= 100 for line in told.splitlines())


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
