"""A wheel is pure unless compiled modules are requested, and sources can be built."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ASK = "import hatchling.build as b, json; print(json.dumps(b.get_requires_for_build_wheel()))"


def _needed_to_build(asked_for: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        cwd=ROOT,
        env={**os.environ, "UNISONO_COMPILE": asked_for},
        capture_output=True,
        text=True,
        check=True,
    )
    needed: list[str] = json.loads(done.stdout)
    return needed


@pytest.mark.parametrize("asked_for", ["", "0", "no"])
def test_a_pure_wheel_needs_nothing_more(asked_for: str) -> None:
    assert _needed_to_build(asked_for) == []


def test_a_compiled_wheel_needs_the_compiler_and_the_types() -> None:
    needed = " ".join(_needed_to_build("1"))
    assert all(name in needed for name in ("mypy", "setuptools", "msgspec", "numpy"))


def test_the_source_distribution_has_the_build_hook() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]
    hook = ROOT / build["targets"]["wheel"]["hooks"]["custom"]["path"]
    assert hook.is_file()
    folder = str(hook.parent.relative_to(ROOT))
    assert f"/{folder}" in build["targets"]["sdist"]["include"]
    assert f"COPY {folder} ./{folder}" in (ROOT / "Containerfile").read_text("utf-8")
