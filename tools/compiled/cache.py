"""Compiled copies of the package in the user's cache: built once for every state of the sources.

A copy's name is a digest of everything that its content depends on. It is built under another name
and then renamed, under a lock, so that a copy is either whole or not there.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parents[1] / "src"
PACKAGE = "unisono"
NATIVE = HERE / "native.py"
MODULES = HERE / "modules.txt"

_KEPT = 2  # the newest: of this state of the sources, and of the one to compare it with
_IN_USE_S = 3600  # a process may import from its copy for so long
_UNFINISHED = ".building-"


class CannotCompile(Exception):
    """There is no compiled copy, and cannot be; the text is one line and says why."""


def listed_modules() -> list[str]:
    """Return what is compiled, as paths below the sources."""
    return MODULES.read_text(encoding="utf-8").split()


def directory() -> Path:
    """Return where the copy of the sources as they are now is, or would be."""
    return _cache() / _digest()


def find() -> Path:
    """Return the compiled copy of the sources as they are now."""
    place = directory()
    if not place.is_dir():
        raise CannotCompile(f"no compiled copy of the sources in {place.parent}; see make compiled")
    os.utime(place)
    return place


def build() -> Path:
    """Return the compiled copy of the sources as they are now; make it if there is none."""
    place = directory()
    if not place.is_dir():
        check_tools()
        with _locked(place.parent):
            if not place.is_dir():  # no other process made it meanwhile
                _make(place)
    os.utime(place)
    return place


def check_tools() -> None:
    """Refuse at once, with a reason, where nothing can be compiled."""
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    if shutil.which(shlex.split(compiler)[0]) is None:
        raise CannotCompile(f"no C compiler: {compiler} is not installed")
    headers = Path(sysconfig.get_path("include"))
    if not (headers / "Python.h").exists():
        raise CannotCompile(f"no headers of Python: {headers}/Python.h is not there")
    for needed in ("mypyc", "setuptools"):
        if importlib.util.find_spec(needed) is None:
            raise CannotCompile(f"no {needed}: run make setup")


def _make(place: Path) -> None:
    cache = place.parent
    for left in cache.glob(f"{_UNFINISHED}*"):  # of a killed process: we have the lock
        shutil.rmtree(left, ignore_errors=True)
    unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=cache))
    try:
        count = len(listed_modules())
        say(f"compiling {count} modules into {place} (once; a minute or two)")
        compile_copy(SOURCES / PACKAGE, unfinished)
        unfinished.chmod(0o755)
        unfinished.rename(place)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    _forget_old(cache)


def compile_copy(package: Path, folder: Path) -> None:
    """Copy a package into a folder and compile it there; no process of ours is left behind."""
    leave = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(package, folder / package.name, ignore=leave)
    jobs = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    command = [sys.executable, str(NATIVE), str(folder), str(jobs or 1), *listed_modules()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        wrong = [line for line in (done.stdout + done.stderr).splitlines() if "error" in line]
        last = (wrong or done.stderr.strip().splitlines() or ["no output"])[-1].strip()
        raise CannotCompile(f"the compiler refused: {last}")


def _cache() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "unisono" / "compiled"


def _digest() -> str:
    """Return a name for the sources, the tools and the Python that they are compiled for."""
    found = hashlib.sha256()
    tools = [f"{name} {_version(name)}" for name in ("mypy", "numpy", "msgspec")]
    settings = [f"{name}={os.environ.get(name, '')}" for name in ("CC", "CFLAGS", "LDFLAGS")]
    for line in (sys.version, str(sysconfig.get_config_var("EXT_SUFFIX")), *tools, *settings):
        found.update(f"{line}\n".encode())
    files = (path for path in (SOURCES / PACKAGE).rglob("*") if path.is_file())
    sources = sorted(path for path in files if "__pycache__" not in path.parts)
    for path in (NATIVE, MODULES, *sources):
        content = path.read_bytes()
        name = path.relative_to(SOURCES) if SOURCES in path.parents else path.name
        found.update(f"{name} {len(content)}\n".encode())
        found.update(content)
    return found.hexdigest()[:16]


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "none"  # and `check_tools` says so


@contextmanager
def _locked(cache: Path) -> Iterator[None]:
    """Let one process at a time build; the lock of one that dies is free."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process compiles; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _forget_old(cache: Path) -> None:
    """Remove all but the newest copies and those that may be in use."""
    copies = [path for path in cache.iterdir() if not path.name.startswith(".")]
    last_used = {path: path.stat().st_mtime for path in copies}
    newest_first = sorted(copies, key=lambda path: (-last_used[path], path.name))
    for path in newest_first[_KEPT:]:
        if last_used[newest_first[0]] - last_used[path] > _IN_USE_S:
            shutil.rmtree(path, ignore_errors=True)


def say(text: str) -> None:
    """Print progress on stderr; stdout is for the answer."""
    print(f"compiled: {text}", file=sys.stderr, flush=True)
