"""Go, and where what it builds is kept: `~/.cache/unisono/suites/PROJECT-VERSION`."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path


class CannotBuild(Exception):
    """Go is missing, or the module cannot be had or built; the text says why in one line."""


def cache(name: str) -> Path:
    """Return the folder of what is built of a project in a version."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "unisono" / "suites" / name


def go(*arguments: str, at: Path, flags: str = "") -> str:
    """Run Go in a folder, one package at a time; return what it prints."""
    if shutil.which("go") is None:
        raise CannotBuild("Go is not installed")
    all_flags = f"{os.environ.get('GOFLAGS', '')} -p=1 -buildvcs=false {flags}".strip()
    done = subprocess.run(
        ["nice", "go", *arguments],
        cwd=at,
        env={**os.environ, "GOFLAGS": all_flags, "CGO_ENABLED": "0", "GOWORK": "off"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1].strip()
        raise CannotBuild(f"go {arguments[0]}: {last}\n{done.stderr}")
    return done.stdout


def copied(source: Path, place: Path, *without: str) -> Path:
    """Return a copy of a module's sources that may be changed; the module cache is read-only."""
    if not place.exists():
        unfinished = place.with_name(f".{place.name}.{os.getpid()}")
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, unfinished, ignore=shutil.ignore_patterns(*without))
        subprocess.run(["chmod", "-R", "u+w", str(unfinished)], check=True)
        unfinished.rename(place)
    return place


def write(path: Path, text: str) -> None:
    """Write a file if it says something else: Go compiles what is newer."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
