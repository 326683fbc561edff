"""A real kubectl against the embedded server: every transcript prints what it printed before.

`python -m tests.kubectl [name…]` writes them anew; read the difference like code.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.kubectl.cluster import running
from tests.kubectl.transcript import TRANSCRIPTS, Step, play, read

# The words of kubectl change from version to version; the transcripts are by this one.
RECORDED_WITH = "32"

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed"),
]


@cache
def _minor() -> str:
    found = subprocess.run(
        ["kubectl", "version", "--client", "-o", "json"], capture_output=True, check=True
    )
    return str(json.loads(found.stdout)["clientVersion"]["minor"]).rstrip("+")


def _exit_code(step: Step) -> str:
    return step.lines[-1] if step.lines and step.lines[-1].startswith("[exit ") else ""


@pytest.mark.parametrize("path", sorted(TRANSCRIPTS.glob("*.console")), ids=lambda path: path.stem)
def test_a_transcript_repeats(path: Path, tmp_path: Path) -> None:
    steps = read(path)
    is_same_kubectl = _minor() == RECORDED_WITH
    with running(tmp_path) as cluster:
        for before, now in zip(steps, play(steps, cluster), strict=True):
            if is_same_kubectl:
                assert now.text() == before.text()
            else:  # another kubectl has other words, but must succeed and fail alike
                assert _exit_code(now) == _exit_code(before), now.text()
