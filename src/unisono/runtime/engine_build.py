"""Which engine runs: the package's own Python, or modules that mypyc compiled (ADR 0024)."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_CYCLE = "engine/cycle"  # always among those that are compiled


def engine_kind(package: Path = _PACKAGE) -> str:
    """Return what runs, without importing any of it.

    Extensions for another Python are no use to this one, which runs the sources beside them.
    """
    if not any((package / f"{_CYCLE}{suffix}").exists() for suffix in EXTENSION_SUFFIXES):
        return "interpreted"
    compiler = (package / "compiled-by").read_text(encoding="utf-8").strip()
    return f"compiled by {compiler}"
