"""`unisono alerts`: what fires, in lines that people read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unisono.cli import alerts
from unisono.cli.main import main
from unisono.kube.form import Json


def alert(name: str, state: str = "firing", **labels: str) -> Json:
    about = {"alertname": name, "severity": "info", **labels}
    return {"labels": about, "state": state, "activeAt": "2026-01-01T10:00:00+00:00"}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Json]:
    """Return what the cluster tells; tests change it."""
    found: list[Json] = []
    monkeypatch.setattr(alerts, "_asked", lambda instance: found)
    return found


def test_many_of_a_name_are_counted(told: list[Json], capsys: pytest.CaptureFixture[str]) -> None:
    told += [alert("GPUUnderutilized", kubernetes_node="n", gpu=str(at)) for at in range(13)]
    told.append(alert("GPULost", "pending", node="n"))
    assert main(["alerts"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["ALERT", "SEVERITY", "STATE", "FOR", "ABOUT"]
    assert len(lines) == 11
    assert lines[-1].endswith("and 3 more")
    assert main(["alerts", "--pending", "-o", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 14


def test_peace_is_told_too(told: list[Json], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["alerts"]) == 0
    assert capsys.readouterr().out == "no alert is firing\n"
    told.append(alert("GPULost", "pending", node="n"))
    main(["alerts"])
    assert capsys.readouterr().out == "no alert is firing; 1 pending (--pending lists them)\n"


def test_where_nothing_runs_there_are_no_alerts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["alerts", "--data-dir", str(tmp_path)]) == 1
    assert "does not run" in capsys.readouterr().err
