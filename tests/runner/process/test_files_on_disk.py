"""What process pods leave on disk: logs that do not grow, files that change all at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from unisono.runner.logs import LogFolder
from unisono.runner.process.disk import put_files
from unisono.runner.process.mounts import File
from unisono.runner.process.remote_shell import destination
from unisono.runner.process.shim import LogFile


def texts(path: Path) -> list[str]:
    """Return the lines of a log without their times."""
    return [line.partition(" ")[2] for line in path.read_text().splitlines()]


def test_lines_are_put_together_from_pieces(tmp_path: Path) -> None:
    log = LogFile(str(tmp_path / "deep" / "c.log"), 1 << 20, 3)
    for piece in (b"one\ntw", b"o\n", b"", b"thr", b"ee"):
        log.write(piece)
    log.close()
    path = tmp_path / "deep" / "c.log"
    assert texts(path) == ["one", "two", "three"]
    time = path.read_text().partition(" ")[0]
    assert len(time) == len("2026-11-16T00:00:00.000000000Z")
    assert log.tail(9) == "two\nthree"


def test_a_very_long_line_comes_in_pieces(tmp_path: Path) -> None:
    log = LogFile(str(tmp_path / "c.log"), 1 << 20, 3)
    log.write(b"x" * 40_000)
    log.close()
    assert "".join(texts(tmp_path / "c.log")) == "x" * 40_000
    assert max(map(len, texts(tmp_path / "c.log"))) == 16 << 10


def test_a_log_is_kept_in_a_few_files(tmp_path: Path) -> None:
    log = LogFile(str(tmp_path / "c.log"), 400, 3)
    for number in range(60):
        log.write(b"line %d\n" % number)
    log.close()
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == ["c.log", "c.log.1", "c.log.2"]
    lines = [line for name in reversed(kept) for line in texts(tmp_path / name)]
    assert lines == [f"line {number}" for number in range(60 - len(lines), 60)]


def test_removes_logs_of_pods_deleted_meanwhile(tmp_path: Path) -> None:
    logs = LogFolder(tmp_path)
    for uid in ("a", "b"):
        logs.begin("default", uid, "main", is_restart=False)
        logs.append("default", uid, "main", "x\n")
    assert logs.sweep(["a"]) == 1
    assert [path.name for path in (tmp_path / "default").iterdir()] == ["a"]


def test_files_change_all_at_once(tmp_path: Path) -> None:
    put_files(tmp_path, {"a": File(b"1"), "d/b": File(b"2", 0o600)})
    first = (tmp_path / "..data").readlink()
    assert (tmp_path / "a").read_bytes() == b"1"
    assert (tmp_path / "d" / "b").read_bytes() == b"2"
    assert (tmp_path / "d" / "b").stat().st_mode & 0o777 == 0o600
    put_files(tmp_path, {"a": File(b"1"), "d/b": File(b"2", 0o600)})
    assert (tmp_path / "..data").readlink() == first
    put_files(tmp_path, {"a": File(b"3")})
    assert (tmp_path / "a").read_bytes() == b"3"
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("..")) == [
        "a"
    ]
    assert not (tmp_path / first).exists()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("host cmd", ("host", ["cmd"])),
        ("-x -o A=b -p 22 me@host cmd -v", ("host", ["cmd", "-v"])),
        ("-oA=b -i key host", ("host", [])),
        ("host -l me cmd", ("host", ["cmd"])),
        ("-- host cmd", ("host", ["cmd"])),
        ("", ("", [])),
    ],
)
def test_a_call_of_ssh(call: str, expected: tuple[str, list[str]]) -> None:
    assert destination(call.split()) == expected
