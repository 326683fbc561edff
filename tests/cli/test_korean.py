"""Commands in Korean: what people read is, what programs read is not."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Shell
from tests.cli.test_top import picture
from unisono.cli.tables import width_of
from unisono.cli.top.frame import frame, sections
from unisono.cli.top.picture import Picture
from unisono.cli.top.view import View


@pytest.fixture(scope="module")
def small() -> tuple[Picture, float]:
    return picture()


@pytest.fixture
def korean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LC_ALL", raising=False)
    monkeypatch.delenv("LC_MESSAGES", raising=False)
    monkeypatch.delenv("LANGUAGE", raising=False)
    monkeypatch.setenv("LANG", "ko_KR.UTF-8")


@pytest.mark.usefixtures("korean")
def test_top_is_korean_and_its_columns_stand_below_each_other(
    small: tuple[Picture, float],
) -> None:
    found, now = small
    view = View()
    text = frame(found, now=now, width=100, height=40, view=view)
    assert "실행 중 (2)" in text
    assert "큐의 맨 앞" in text
    assert "Job default/large: 큐 lq-cq(ClusterQueue cq)에서" in text
    lines = text.split("\n")
    assert max(map(width_of, lines)) <= 100
    # The queue of a row begins in the column of its heading, however wide the letters are.
    head = next(line for line in lines if "경과" in line)
    row = next(line for line in lines if "default/job/runs" in line)
    assert width_of(head[: head.index("큐")]) == width_of(row[: row.index("lq-cq")])
    view.press("help", sections(found, now))
    assert "줄 고르기" in frame(found, now=now, width=100, height=40, view=view)


@pytest.mark.usefixtures("korean")
def test_forms_for_programs_have_no_language(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "a", "labels": {"kueue.x-k8s.io/queue-name": "none"}},
        "spec": {
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "main", "image": "busybox"}],
                }
            }
        },
    }
    assert shell.type("apply", "-f", shell.file(job)).code == 0
    said = shell.type("why", "job/a").ok()
    assert "Job" in said
    assert any("가" <= letter <= "힣" for letter in said)
    machine = shell.type("why", "job/a", "-o", "json").ok()
    assert machine.isascii()
    monkeypatch.setenv("LANG", "en_US.UTF-8")
    assert json.loads(machine) == json.loads(shell.type("why", "job/a", "-o", "json").ok())


def test_without_being_asked_all_is_english(small: tuple[Picture, float]) -> None:
    found, now = small
    assert "running (2)" in frame(found, now=now, width=100, height=40)
