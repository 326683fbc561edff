"""The step-by-step tables of docs/architecture.md name functions that their files contain."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "unisono"
DOCUMENT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")

# Each table by its heading: the folder that its files are in, and its most steps.
TABLES = {"The way of a gang": (PACKAGE / "engine", 20), "The way of a Job": (PACKAGE, 20)}

_ROW = re.compile(r"^\| (\d+) \| `([\w/]+\.py)` \| `([\w.]+)` \| \S.* \|$", re.MULTILINE)


def _section(heading: str) -> str:
    text = DOCUMENT.partition(f"\n### {heading}\n")[2]
    return re.split(r"^##", text, maxsplit=1, flags=re.MULTILINE)[0]


STEPS = sorted(
    {
        (folder / file, function)
        for heading, (folder, _) in TABLES.items()
        for _, file, function in _ROW.findall(_section(heading))
    }
)


@pytest.mark.parametrize("heading", TABLES)
def test_a_table_has_numbered_steps_and_not_too_many(heading: str) -> None:
    numbers = [int(number) for number, _, _ in _ROW.findall(_section(heading))]
    rows = re.findall(r"^\| \d+ \|", _section(heading), re.MULTILINE)
    assert len(rows) == len(numbers), "a step is: | number | `file` | `function` | sentence |"
    assert numbers == list(range(1, len(numbers) + 1))
    assert 10 < len(numbers) <= TABLES[heading][1]


@pytest.mark.parametrize(
    ("file", "function"),
    STEPS,
    ids=[f"{file.relative_to(PACKAGE)}:{function}" for file, function in STEPS],
)
def test_a_step_names_a_function_that_its_file_contains(file: Path, function: str) -> None:
    assert file.is_file(), f"there is no {file.relative_to(PACKAGE)}: correct docs/architecture.md"
    assert _contains(ast.parse(file.read_text(encoding="utf-8")), function), (
        f"{file.relative_to(PACKAGE)} defines no {function}: correct docs/architecture.md"
    )


def _contains(module: ast.Module, function: str) -> bool:
    """Tell whether a module itself defines a function, a class, or a method of a class."""
    body: list[ast.stmt] = module.body
    for name in function.split("."):
        found = [
            node
            for node in body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and node.name == name
        ]
        if not found:
            return False
        body = found[0].body
    return True


@pytest.mark.parametrize(
    ("code", "function", "expected"),
    [
        ("def plan(): ...", "plan", True),
        ("class A:\n    async def run(self): ...", "A.run", True),
        ("from a import plan", "plan", False),
        ("class A: ...\ndef run(): ...", "A.run", False),
    ],
)
def test_only_definitions_count(code: str, function: str, expected: bool) -> None:
    assert _contains(ast.parse(code), function) is expected
