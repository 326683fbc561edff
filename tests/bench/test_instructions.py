"""Rows of `bench.instructions` run, and a row that is not there is said."""

from __future__ import annotations

import pytest

from bench import instructions
from bench.instructions_row import ROWS


@pytest.mark.parametrize("row", [name for name in ROWS if not name.startswith("sim")])
def test_every_row_of_the_engine_has_work(row: str) -> None:
    work = ROWS[row]()
    work()


def test_unknown_row_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["instructions", "nosuchrow"])
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    with pytest.raises(SystemExit):
        instructions.main()
    assert "drain, one queue" in capsys.readouterr().err
