"""What every module of the package must be: documented, in a layer, and imported."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "unisono"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Modules without an importer, because a user or the interpreter starts them by name.
STARTED_BY_NAME = {"unisono", "unisono.__main__", "unisono.runner.process.srun"}


def _name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def _imported_by(path: Path) -> set[str]:
    """Return every dotted name of ours that a module imports, with all possible readings.

    `from unisono.engine import cycle` may mean a module or a name inside one, so both count.
    """
    names: set[str] = set()
    for node in ast.walk(_tree_of(path)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import on line {node.lineno}"
            names.add(node.module or "")
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name for name in names if name.split(".")[0] == "unisono"}


def _commands() -> set[str]:
    """Return the modules in the table of commands, which `cli/main.py` imports by name."""
    from unisono.cli.commands import COMMANDS

    return {command.module for command in COMMANDS}


@pytest.mark.parametrize("path", MODULES, ids=_name_of)
def test_a_module_says_what_it_is_for(path: Path) -> None:
    docstring = ast.get_docstring(_tree_of(path))
    assert docstring, f"{path.relative_to(ROOT)} needs a docstring that names its concept"


def test_no_module_is_dead() -> None:
    # A package counts as used when one of its modules is: the import runs its __init__.
    imported = {name for path in MODULES for name in _imported_by(path) - {_name_of(path)}}
    used = imported | _commands() | STARTED_BY_NAME
    dead = [
        name
        for name in map(_name_of, MODULES)
        if name not in used and not any(other.startswith(f"{name}.") for other in used)
    ]
    assert not dead, f"no module imports {', '.join(dead)}: use or delete them"


def test_every_package_has_its_layer() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = config["tool"]["importlinter"]["contracts"]
    (layers,) = [one for one in contracts if one.get("containers") == ["unisono"]]
    placed = {
        name.strip() for layer in layers["layers"] for name in layer.replace("|", " ").split()
    }
    present = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or _is_package(path)}
    assert present - {"__init__", "__main__"} == placed


def _is_package(path: Path) -> bool:
    return path.is_dir() and any(path.rglob("*.py"))


def test_the_table_of_packages_has_a_row_for_each() -> None:
    document = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = document.partition("\n## Packages\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| \S.* \| \S.* \|$", table, re.MULTILINE)
    present = sorted(path.name for path in PACKAGE.iterdir() if _is_package(path))
    assert sorted(rows) == present, "docs/architecture.md: one row for each package in src/unisono"


PACKAGES = [_name_of(path) for path in MODULES if path.name == "__init__.py"]


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_children_of_a_package_import_each_other_without_a_cycle(package: str) -> None:
    imports: dict[str, set[str]] = {}
    for name, imported in _imports().items():
        if _is_below(package, name):
            children = {_child_of(package, each) for each in imported if _is_below(package, each)}
            child = _child_of(package, name)
            imports.setdefault(child, set()).update(children - {child})
    known = {child: others & imports.keys() for child, others in imports.items()}
    try:
        [*TopologicalSorter(known).static_order()]
    except CycleError as problem:
        pytest.fail(f"{package}: {' -> '.join(problem.args[1])}")


@cache
def _imports() -> dict[str, set[str]]:
    return {_name_of(path): _imported_by(path) for path in MODULES}


def _is_below(package: str, name: str) -> bool:
    return name.startswith(f"{package}.")


def _child_of(package: str, name: str) -> str:
    """Return the module or sub-package directly below a package that a name belongs to."""
    return name.removeprefix(f"{package}.").partition(".")[0]
