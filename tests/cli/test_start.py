"""What is loaded when: the API answers before the engine is there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from unisono.cli import up
from unisono.engine.model.errors import InvalidManifest
from unisono.runner.process import machine

# They take as long to load as everything else together (`runtime/embedded/services.py`).
_LOADED_LATE = ("numpy", "unisono.engine.cycle", "unisono.control.assembly", "unisono.kube.client")


def _loaded(statement: str) -> set[str]:
    code = f"{statement}; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_an_api_is_loaded_without_the_engine() -> None:
    there = _loaded("import unisono.cli.up, unisono.runtime.embedded.server")
    assert "unisono.apiserver.api" in there
    assert not there & set(_LOADED_LATE)


def test_processes_of_several_people_are_refused_without_root(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    words = ["--users", str(tmp_path / "users.yaml"), "--pods", "process"]
    arguments = up.parser().parse_args([*words, "--data-dir", str(tmp_path / "data")])
    with pytest.raises(InvalidManifest, match="run this as root, leave --users out"):
        up.run(arguments)
    assert not (tmp_path / "data").exists()


def test_processes_of_several_people_are_refused_without_namespaces(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(machine, "has_sandbox", lambda: False)
    words = ["--users", str(tmp_path / "users.yaml"), "--pods", "process"]
    with pytest.raises(InvalidManifest, match="this machine does not allow"):
        up.run(up.parser().parse_args(words))


@pytest.mark.parametrize("text", ["", "5", "0-5", "9-5", "a-b", "1-2147483648", "-5", "1-2-3"])
def test_a_range_of_system_users_goes_up(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        up.parser().parse_args([f"--pod-uids={text}"])
    assert "--pod-uids" in capsys.readouterr().err
    assert up.parser().parse_args(["--pod-uids=5-7"]).pod_uids == (5, 7)
