"""`unisono sim run`: policies side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from unisono.cli.main import main

LINES = """\
; MaxProcs: 4
1 0 -1 10 3 -1 -1 3 10 -1 1 1 1 -1 1 -1 -1 -1
2 1 -1 10 4 -1 -1 4 10 -1 1 1 1 -1 1 -1 -1 -1
3 2 -1 5 1 -1 -1 1 5 -1 1 2 1 -1 1 -1 -1 -1
4 3 -1 0 1 -1 -1 1 5 -1 1 2 1 -1 1 -1 -1 -1
"""


@pytest.fixture
def swf(tmp_path: Path) -> str:
    path = tmp_path / "small.swf"
    path.write_text(LINES)
    return str(path)


def test_policies_side_by_side(
    swf: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "out.html"
    argv = ["sim", "--trace", swf, "--policy", "fifo,easy,conservative", "--html", str(page)]
    assert main(argv) == 0
    out, err = capsys.readouterr()
    assert "3 jobs; 1 left out (1 without run time" in err
    assert out.split()[:5] == ["FIGURE", "fifo", "easy", "DIFFERENCE", "conservative"]
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_what_is_saved_can_be_shown_again(
    swf: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["sim", "run", "--trace", swf, "--policy", "easy", "-o", "json", "--save"]
    assert main([*argv, str(tmp_path / "kept"), "--audit"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert main(["sim", "show", str(tmp_path / "kept" / "easy.npz"), "-o", "json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert [one["policy"] for one in again["policies"]] == ["easy"]
    assert again == first
    assert (again["trace"], again["jobs"], again["nodes"]) == ("small", 3, 4)
    assert again["policies"][0]["meanWaitSeconds"] == pytest.approx(3)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--policy", "easy"], "--trace: is missing"),
        (["--trace", "lublin:jobs=5", "--policy", "nope"], 'there is no policy "nope"; there are'),
        (["--trace", "gpu:jobs=5,gpus=8"], "--nodes: is missing"),
        (["--trace", "lublin:jobs=5", "--jobs", "0"], "--jobs: must be at least 1"),
    ],
)
def test_what_is_wrong_is_named(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", *argv]) == 2
    assert message in capsys.readouterr().err


def test_policies_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "run", "--policy", "list"]) == 0
    assert "conservative" in capsys.readouterr().out


def test_several_seeds_give_verdicts(
    swf: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["sim", "run", "--policy", "fifo,easy", "--seeds", "3", "-o", "json"]
    generated = ["--trace", "lublin:jobs=80,processors=16,load=1.2", "--seed", "5"]
    assert main([*argv, *generated, "--save", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["seeds"] == 3
    (wait,) = [row for row in found["rows"] if row["key"] == "wait.mean"]
    assert wait["cells"][1]["verdict"] in ("better", "within spread")
    assert wait["cells"][1]["difference"] < 0
    assert wait["cells"][0]["low"] < wait["cells"][0]["high"]
    assert {path.name for path in tmp_path.glob("*.npz")} == {
        f"{policy}-{seed}.npz" for policy in ("fifo", "easy") for seed in (5, 6, 7)
    }
    # A file has one order of arrivals; it is shaken instead.
    assert main([*argv, "--trace", swf]) == 0
    assert json.loads(capsys.readouterr().out)["seeds"] == 3
    assert main(["sim", "run", "--trace", swf, "--seeds", "0"]) == 2
    assert "--seeds: must be at least 1" in capsys.readouterr().err


def test_nodes_described_by_their_gpus_have_room_for_the_rest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    argv = ["--trace", "gpu:jobs=8,gpus=64,seed=1", "--nodes", "8x{gpu=8}", "-o", "json"]
    assert main(["sim", *argv, "--policy", "easy"]) == 0
    found = {row["key"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert found["completed"]["cells"][0]["mean"] == 8


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--checkpoint", "-1"], "--checkpoint: must be at least 0, and is -1.0"),
        (["--restore", "5"], "--restore: is what going on costs"),
        (["--jobs", "0"], "--jobs: must be at least 1, and is 0"),
        (["--html", "nowhere/out.html"], "--html: there is no folder nowhere"),
        (["--nodes", "100y"], '--nodes (--cluster): "100y" is not COUNTxTYPE'),
        (["--faults", "often"], "often: No such file"),
        (["--faults", "mtbf=x"], '"x" is not a time'),
    ],
)
def test_numbers_that_mean_nothing_are_refused(
    options: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["sim", "run", "--trace", "gpu:jobs=5,gpus=8", "--nodes", "1x{gpu=8}"]
    assert main([*asked, *options]) == 2
    assert says in capsys.readouterr().err


def test_what_is_left_out_is_told_to_programs_too(
    swf: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", "--trace", swf, "--policy", "easy", "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["leftOut"] == {"noRun": 1, "noSize": 0, "tooLarge": 0, "unreadable": 0}


def test_the_same_for_people_and_programs(swf: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = []
    for form in ("json", "yaml"):
        assert main(["sim", "--trace", swf, "--policy", "easy", "-o", form]) == 0
        told.append(yaml.safe_load(capsys.readouterr().out))
    for one in told:
        del one["policies"][0]["wallSeconds"], one["policies"][0]["jobsPerSecond"]
        one["rows"] = [row["key"] for row in one["rows"]]
    assert told[0] == told[1]
    assert main(["sim", "trace", swf, "-o", "yaml"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["jobs"] == 3
