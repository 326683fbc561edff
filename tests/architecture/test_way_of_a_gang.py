"""The architecture document's way of a gang through the engine names functions that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENGINE = ROOT / "src" / "unisono" / "engine"
_ROW = re.compile(r"^\| \d+ \| `([\w/]+\.py)` \| `([\w.]+)` \| .+ \|$", re.MULTILINE)
DOCUMENT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
STEPS: list[tuple[str, str]] = _ROW.findall(DOCUMENT)


def test_the_table_is_there() -> None:
    table = DOCUMENT.partition("### The way of a gang")[2].partition("\n## ")[0]
    assert len(STEPS) == len(re.findall(r"^\| \d+ \|", table, re.MULTILINE)) > 10


@pytest.mark.parametrize(("file", "function"), STEPS, ids=[f"{f}:{n}" for f, n in STEPS])
def test_a_step_names_a_function_that_exists(file: str, function: str) -> None:
    body: list[ast.stmt] = ast.parse((ENGINE / file).read_text(encoding="utf-8")).body
    for name in function.split("."):
        found = [
            node
            for node in body
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name
        ]
        assert found, f"{file} defines no {function}: correct docs/architecture.md"
        body = found[0].body
