"""A folder that cannot be an instance's: one sentence with the file and the next step, code 3."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from unisono.apiserver.storage.database import Database
from unisono.cli.main import OUTSIDE_FAILED, main
from unisono.monitor.ledger.store import LedgerError, LedgerStore
from unisono.runtime.instance import Instance


def _made(folder: Path) -> Path:
    folder.mkdir(mode=0o700)
    Database(folder / "state.db").close()
    return folder


def _newer(folder: Path) -> None:
    connection = sqlite3.connect(folder / "state.db")
    connection.execute("UPDATE meta SET value = '9' WHERE key = 'schema'")
    connection.commit()
    connection.close()


def _lossy(folder: Path) -> None:
    body = b"%020d %08x" % (7, 0)
    (folder / "state.db.acknowledged").write_bytes(b"%b %08x\n" % (body, zlib.crc32(body)))


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (_newer, "was written by a newer Unisono"),
        (_lossy, "has lost changes that were acknowledged"),
        (lambda folder: (folder / "state.db").write_bytes(b"x" * 9999), "move it away"),
    ],
    ids=["newer", "lossy", "something else"],
)
def test_a_database_that_cannot_be_used(
    spoil: Callable[[Path], object],
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = _made(tmp_path / "data")
    spoil(folder)
    assert main(["up", "--data-dir", str(folder)]) == OUTSIDE_FAILED
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1, said
    assert sentence in said[0]
    assert str(folder / "state.db") in said[0]


def test_a_second_process_is_refused_even_without_the_lock(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _made(tmp_path / "data")
    instance = Instance(folder)
    held = instance.lock()
    database = Database(instance.database)
    assert instance.is_running()
    (folder / "lock").unlink()
    assert main(["up", "--data-dir", str(folder)]) == OUTSIDE_FAILED
    assert "another process writes to it" in capsys.readouterr().err
    database.close()
    os.close(held)


def test_a_folder_of_another_user_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _made(tmp_path / "data")
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    assert main(["up", "--data-dir", str(folder)]) == OUTSIDE_FAILED
    assert f"belongs to user {own}, not to {own + 1}; start it as" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_to_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _made(tmp_path / "data")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert main(["up", "--data-dir", str(folder)]) == OUTSIDE_FAILED
    assert f"{folder} cannot be written to; make it writable" in capsys.readouterr().err


def test_what_went_wrong_among_tasks_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    error = ExceptionGroup("tasks", [ExceptionGroup("inner", [OSError(28, "No space", "f.db")])])

    def broken(*_: object) -> int:
        raise error

    monkeypatch.setattr("unisono.cli.up.serve", broken)
    assert main(["up"]) == OUTSIDE_FAILED
    assert capsys.readouterr().err == "unisono: f.db: No space\n"


def test_a_damaged_ledger_says_so_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    LedgerStore(path).close()
    content = bytearray(path.read_bytes())
    for start in range(4096, len(content), 4096):
        content[start : start + 4096] = bytes(4096)
    path.write_bytes(content)
    with pytest.raises(LedgerError, match=r"ledger\.db .*move it away"):
        LedgerStore(path).seen()


@contextmanager
def _small_disk(folder: Path, size: str) -> Iterator[Path]:
    folder.mkdir()
    options = f"size={size},mode=700"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip("a disk of a certain size needs root and mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


@pytest.mark.slow
@pytest.mark.parametrize("size", ["20k", "40k", "100k"])
def test_a_disk_that_is_full_from_the_start(size: str, tmp_path: Path) -> None:
    with _small_disk(tmp_path / "disk", size) as folder:
        program = [sys.executable, "-m", "unisono", "up", "--data-dir", str(folder)]
        done = subprocess.run(
            [*program, "--metrics-port", "none"],
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == OUTSIDE_FAILED
    assert "Traceback" not in done.stderr
    assert str(folder) in done.stderr
    assert "free some space" in done.stderr
