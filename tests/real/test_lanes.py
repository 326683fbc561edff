"""Real tests are all found, in lanes that exist, and a second go has what it needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tests.real.__main__ as runner
from tests.real import binaries, debian, lanes
from tests.real.__main__ import ROOT, places, to_run_again
from tests.real.slurm import packages

_HERE = Path(__file__).resolve().parent


def test_no_file_with_real_tests_is_forgotten() -> None:
    asked = [ROOT / one for one in places()]
    own = {_HERE / "__main__.py", Path(__file__).resolve()}
    for path in (ROOT / "tests").rglob("*.py"):
        if "mark.real" in path.read_text(encoding="utf-8") and path not in own:
            assert any(path == one or one in path.parents for one in asked), path


def test_what_begins_early_or_is_in_order_exists() -> None:
    for lane in (*lanes.LONGEST_FIRST, *lanes.IN_ORDER):
        assert lane in lanes.TOGETHER or (ROOT / lane).is_file(), lane
    for beginning in (*lanes.APART, *(one for some in lanes.TOGETHER.values() for one in some)):
        assert (ROOT / beginning).exists(), beginning


def test_lanes_are_files_but_for_those_that_share_a_server_or_nothing() -> None:
    assert lanes.lane_of("tests/real/test_faults.py::test_a[b::c]") == "tests/real/test_faults.py"
    assert lanes.lane_of("tests/kube/test_servers.py::test_a[real]") == "conformance"
    assert (
        lanes.lane_of("tests/docs/test_pages.py::test_a[b]")
        == "tests/docs/test_pages.py::test_a[b]"
    )
    early = lanes.submit_options_of("tests/real/test_leaders.py::test_a")
    assert early < lanes.submit_options_of("tests/real/test_page.py::test_a")


def test_a_chapter_is_run_again_with_those_before_it() -> None:
    names = ["tests/real/test_seeds.py::test_b", "tests/real/test_seeds.py::test_c", "a.py::test_d"]
    assert to_run_again(names) == ["tests/real/test_seeds.py", "a.py::test_d"]


@pytest.mark.parametrize(
    ("failed", "again", "code", "runs"),
    [(0, 0, 0, 1), (2, 0, 0, 2), (2, 1, 1, 2), (6, 0, 1, 1)],
    ids=["all is well", "well the second time", "failed twice", "too many"],
)
def test_a_few_failures_have_one_second_go(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    failed: int,
    again: int,
    code: int,
    runs: int,
) -> None:
    asked: list[tuple[str, ...]] = []

    def run(*arguments: str) -> int:
        asked.append(arguments)
        if len(asked) > 1:
            return again
        (path,) = (one.partition("=")[2] for one in arguments if one.startswith("--failures-to="))
        if failed:
            Path(path).write_text("".join(f"a.py::test_{one}\n" for one in range(failed)))
        return int(failed > 0)

    monkeypatch.setattr(runner, "_pytest", run)
    for one in (binaries, debian, packages):
        monkeypatch.setattr(one, "main", lambda: 0)
    assert runner.main(["--jobs", "3", "-k", "slurm"]) == code
    assert len(asked) == runs
    assert asked[0][:4] == ("-n", "3", "-m", "real and not exhaustive")
    assert "slurm" in asked[0]
    told = capsys.readouterr().out
    assert ("NEEDED A SECOND GO" in told) == (runs == 2)
    if runs == 2:
        assert asked[1][-2:] == ("a.py::test_0", "a.py::test_1")
        assert told.endswith("  a.py::test_0\n  a.py::test_1\n")


_SOME_FAIL = """
import pytest

def test_fails():
    assert False

def test_passes():
    pass

@pytest.fixture
def broken():
    raise OSError

def test_cannot_be_prepared(broken):
    pass
"""


@pytest.mark.slow
def test_failures_are_recorded_for_every_worker(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(_SOME_FAIL)
    failures = tmp_path / "failures"
    command = [sys.executable, "-m", "pytest", "-p", "tests.real.lanes", "-n", "2"]
    done = subprocess.run(
        [*command, f"--rootdir={tmp_path}", f"--failures-to={failures}", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout
    names = sorted(failures.read_text().splitlines())
    assert names == ["test_some.py::test_cannot_be_prepared", "test_some.py::test_fails"]


@pytest.mark.slow
def test_lanes_begin_in_our_order_however_many_tests_they_have(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("def test_long(): pass\n")
    (tmp_path / "test_b.py").write_text("def test_1(): pass\n\n\ndef test_2(): pass\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.real.lanes", "-n", "1", "-v", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    passed = [line for line in done.stdout.splitlines() if "PASSED" in line]
    assert [one.split("::")[1].strip() for one in passed] == ["test_long", "test_1", "test_2"]
