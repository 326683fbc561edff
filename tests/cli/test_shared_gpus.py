"""Parts of GPUs through `unisono decide`: the manifests of examples/shared-gpus."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unisono.cli.main import main

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "shared-gpus"


def decided(capsys: pytest.CaptureFixture[str], *names: str, form: str = "json") -> str:
    files = [str(FOLDER / name) for name in names]
    assert main(["decide", "--until-stable", "-o", form, "-f", *files]) == 0
    return capsys.readouterr().out


def test_halves_share_gpus_and_leave_whole_ones_alone(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(decided(capsys, "nodes.yaml", "queue.yaml", "pods.yaml"))
    places = {one["workload"]: one["podSets"][0] for one in found["admitted"]}
    assert {name: one["nodes"] for name, one in places.items()} == {
        "ml/pod-ours": {"n1": 1},
        "ml/pod-kai": {"n1": 1},
        "ml/pod-hami": {"n1": 1},
        "ml/pod-alibaba": {"n1": 1},
        "ml/pod-whole": {"n0": 1},
    }
    assert [one.get("devices") for one in places.values()] == [
        {"n1": [0]},
        {"n1": [0]},
        {"n1": [1]},
        {"n1": [1]},
        None,
    ]


def test_a_late_pod_is_told_what_the_best_gpu_has_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = ("nodes.yaml", "queue.yaml", "pods.yaml", "too-much.yaml")
    (late,) = json.loads(decided(capsys, *names))["pending"]
    assert "the best GPU has 0 of 700 nvidia.com/gpu-milli" in late["message"]
    assert "n1(gpu 0)" in decided(capsys, *names, form="text")
