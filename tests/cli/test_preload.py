"""Nothing is loaded once a cluster is ready: what is not loaded by then may never be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_nothing_is_loaded_after_a_cluster_is_ready(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "tests.cli.late_imports", str(tmp_path / "data")]
    done = subprocess.run(
        program, check=False, cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [], done.stderr
