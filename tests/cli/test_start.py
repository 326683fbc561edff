"""What is loaded when: the API answers before the engine is there."""

from __future__ import annotations

import subprocess
import sys

# They take as long to load as everything else together (`cli/at_work.py`).
_LOADED_LATE = ("numpy", "unisono.engine.cycle", "unisono.control.assembly", "unisono.kube.client")


def _loaded(statement: str) -> set[str]:
    code = f"{statement}; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_an_api_is_loaded_without_the_engine() -> None:
    there = _loaded("import unisono.cli.up, unisono.cli.embedded")
    assert "unisono.apiserver.api" in there
    assert not there & set(_LOADED_LATE)
