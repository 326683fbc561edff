"""The program says which engine it runs, and only believes in extensions that this Python loads."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from unisono.runtime.engine_build import engine_kind


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return a package whose engine is Python."""
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "cycle.py").write_text("")
    return tmp_path


def test_sources_are_interpreted(package: Path) -> None:
    assert engine_kind(package) == "interpreted"


def test_an_extension_counts_as_compiled(package: Path) -> None:
    (package / "engine" / f"cycle{EXTENSION_SUFFIXES[0]}").write_bytes(b"")
    (package / "compiled-by").write_text("mypyc 2.4.1\n")
    assert engine_kind(package) == "compiled by mypyc 2.4.1"


def test_an_extension_for_another_python_is_not_run(package: Path) -> None:
    (package / "engine" / "cycle.cpython-27-pdp11.so").write_bytes(b"")
    (package / "compiled-by").write_text("mypyc 2.4.1\n")
    assert engine_kind(package) == "interpreted"
