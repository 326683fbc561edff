"""Compiled copies of the package: what is compiled can be, and the cache never has half of one."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tools.compiled import cache
from tools.compiled.__main__ import main
from tools.compiled.cache import CannotCompile, build, find, listed_modules

# mypyc makes classes of C structs of these; what they say about themselves is lost.
_LOST_BASES = {"Struct", "Enum", "IntEnum", "StrEnum", "Flag", "IntFlag", "TypedDict"}
# These keep what they found in a dictionary that a compiled instance has not.
_LOST_DECORATORS = {"cached_property"}


# --- what is compiled ----------------------------------------------------------------------------


def test_the_list_is_in_order_and_has_the_module_that_the_version_looks_for() -> None:
    modules = listed_modules()
    assert modules == sorted(set(modules))
    assert "unisono/engine/cycle.py" in modules


@pytest.mark.parametrize("module", listed_modules())
def test_a_listed_module_has_nothing_that_mypyc_gets_wrong(module: str) -> None:
    tree = ast.parse((cache.SOURCES / module).read_text(encoding="utf-8"))
    assert _gone_wrong(tree) == [], f"take {module} off the list, or the class out of it"


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("class Job(msgspec.Struct, frozen=True): ...", ["Job"]),
        ("class Job(Struct): ...", ["Job"]),
        ("class Kind(enum.Enum): ...", ["Kind"]),
        ("class Job(Base, eq=False): ...", ["Job"]),
        ("class Job:\n @functools.cached_property\n def size(self): ...", ["size"]),
        ("class Job(NamedTuple): ...\nclass Other(Protocol): ...", []),
    ],
)
def test_what_mypyc_gets_wrong_is_found(source: str, wrong: list[str]) -> None:
    assert _gone_wrong(ast.parse(source)) == wrong


def _gone_wrong(tree: ast.Module) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            if node.keywords or _LOST_BASES & {_last_name(base) for base in node.bases}:
                found.append(node.name)
        elif isinstance(node, ast.FunctionDef):
            if _LOST_DECORATORS & {_last_name(one) for one in node.decorator_list}:
                found.append(node.name)
    return found


def _last_name(node: ast.expr) -> str:
    return ast.unparse(node).partition("(")[0].partition("[")[0].rpartition(".")[2]


# --- the cache -----------------------------------------------------------------------------------


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Have a package of one file, and a compiler that only notes where it was asked to work."""
    folders: list[Path] = []

    def compile_copy(package: Path, folder: Path) -> None:
        folders.append(folder)
        shutil.copytree(package, folder / package.name)

    _write(tmp_path, "a = 1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "SOURCES", tmp_path)
    monkeypatch.setattr(cache, "check_tools", lambda: None)
    monkeypatch.setattr(cache, "compile_copy", compile_copy)
    return folders


def _write(root: Path, text: str) -> None:
    (root / cache.PACKAGE).mkdir(exist_ok=True)
    (root / cache.PACKAGE / "one.py").write_text(text)


def _kept(root: Path) -> set[str]:
    folder = root / "cache" / "unisono" / "compiled"
    return {path.name for path in folder.iterdir()} - {".lock"}


def test_a_state_of_the_sources_is_compiled_once(made: list[Path], tmp_path: Path) -> None:
    first = build()
    assert build() == first == find()
    assert (first / cache.PACKAGE / "one.py").read_text() == "a = 1"
    _write(tmp_path, "a = 2")
    with pytest.raises(CannotCompile, match="see make compiled"):
        find()
    assert build() != first
    assert len(made) == 2
    _write(tmp_path, "a = 1")
    assert build() == first
    assert len(made) == 2


def test_bytecode_is_no_source(made: list[Path], tmp_path: Path) -> None:
    first = build()
    (tmp_path / cache.PACKAGE / "__pycache__").mkdir()
    (tmp_path / cache.PACKAGE / "__pycache__" / "one.pyc").write_bytes(b"x")
    assert build() == first


def test_another_compiler_makes_another_copy(
    made: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = build()
    monkeypatch.setenv("CFLAGS", "-O0")
    assert build() != first


def test_what_fails_leaves_nothing(
    made: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(package: Path, folder: Path) -> None:
        (folder / "half").write_text("")
        raise CannotCompile("the compiler refused")

    monkeypatch.setattr(cache, "compile_copy", refuse)
    with pytest.raises(CannotCompile, match="refused"):
        build()
    assert _kept(tmp_path) == set()


def test_what_was_killed_is_swept_away_by_the_next(made: list[Path], tmp_path: Path) -> None:
    left = tmp_path / "cache" / "unisono" / "compiled" / ".building-killed"
    left.mkdir(parents=True)
    made_now = build()
    assert _kept(tmp_path) == {made_now.name}


def test_two_at_once_compile_once(made: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()
    compile_copy = cache.compile_copy

    def slowly(package: Path, folder: Path) -> None:
        begun.set()
        assert go_on.wait(20)
        compile_copy(package, folder)

    def told(text: str) -> None:
        if "waiting" in text:
            go_on.set()

    monkeypatch.setattr(cache, "compile_copy", slowly)
    monkeypatch.setattr(cache, "say", told)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(build)
        assert begun.wait(20)
        second = pool.submit(build)
        assert first.result(20) == second.result(20)
    assert len(made) == 1


def test_the_newest_two_are_kept_and_whatever_was_just_used(
    made: list[Path], tmp_path: Path
) -> None:
    copies = []
    for number, age_s in enumerate((9000, 8000, 7000, 60, 0)):
        _write(tmp_path, f"a = {number}")
        copies.append(build())
        now = copies[-1].stat().st_mtime
        os.utime(copies[-1], (now - age_s, now - age_s))
    _write(tmp_path, "a = 5")
    copies.append(build())
    assert _kept(tmp_path) == {one.name for one in copies[3:]}


# --- the command ---------------------------------------------------------------------------------


def test_the_last_line_is_the_folder(made: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    out, err = capsys.readouterr()
    assert out == f"{find()}\n"
    assert "compiling" in err


def _without_a_compiler(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    settings = {"CC": "no-such-compiler", "XDG_CACHE_HOME": str(tmp_path)}
    return subprocess.run(
        [sys.executable, "-m", "tools.compiled", *arguments],
        cwd=cache.HERE.parents[1],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_a_c_compiler_one_line_says_so(tmp_path: Path) -> None:
    done = _without_a_compiler(tmp_path)
    why = "no C compiler: no-such-compiler is not installed\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"compiled: {why}")


def test_without_a_c_compiler_a_command_runs_interpreted(tmp_path: Path) -> None:
    done = _without_a_compiler(tmp_path, "--with", sys.executable, "-m", "unisono", "--version")
    assert (done.returncode, done.stdout.split("(")[1]) == (0, "engine: interpreted)\n")
    assert done.stderr.startswith("compiled: engine: interpreted; no C compiler: ")


def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert [main(["--help"]), main(["--with"])] == [2, 2]
    assert capsys.readouterr().err.startswith("usage: ")
