"""Every write takes one way into the store."""

from __future__ import annotations

import re
from pathlib import Path

import unisono.apiserver

PACKAGE = Path(unisono.apiserver.__file__).parent
STAGED = re.compile(r"\bstore\.(?:put|remove)\(")


def test_only_the_writer_stages_changes() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if STAGED.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"rest/writer.py"}
