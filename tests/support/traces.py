"""Published traces, where somebody has them: a folder named by UNISONO_TRACES, or beside us."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]


def published(name: str) -> Path:
    """Return a file of the folder of traces; skip the test where it is not."""
    named = os.environ.get("UNISONO_TRACES")
    folder = Path(named) if named else _ROOT.parent / "shared" / "traces"
    if not (folder / name).is_file():
        pytest.skip(f"{name} is not here; name the folder that has it in UNISONO_TRACES")
    return folder / name
