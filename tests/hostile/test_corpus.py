"""Manifests from the field, all on one cluster: none of them harms another."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]


def corpus() -> Path:
    """Return the folder of manifests; skip the test where there is none."""
    named = os.environ.get("UNISONO_CORPUS")
    folder = Path(named) if named else _ROOT.parent / "shared" / "corpus"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not here; name the folder of manifests in UNISONO_CORPUS")
    return folder


@pytest.mark.slow
def test_no_manifest_harms_another() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.corpus", str(corpus())],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    print(done.stdout)
