"""Every console and YAML block of the documentation is run, or says why it is not."""

from __future__ import annotations

import gc
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.page import ROOT, Block, blocks, commands, name_of, pages
from tests.docs.shell import Shell
from unisono.kinds.documents import read_documents

# Their blocks are those of the English page, which is the one that is run.
_KOREAN = ("README.ko.md", "docs/ko/")


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _is_korean(path: Path) -> bool:
    return name_of(path).startswith(_KOREAN)


def _runs() -> list[Any]:
    """Return the pages with commands; those that take their time are marked."""
    found = []
    for path in pages():
        text = _text(path)
        has_commands = any(one.language == "console" and not one.not_run for one in blocks(text))
        if has_commands and not _is_korean(path):
            marks = [pytest.mark.slow] if "<!-- slow -->" in text else []
            found.append(pytest.param(path, marks=marks, id=name_of(path)))
    return found


# Slurm's programs leave it to the end of their process to close their connection.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("path", _runs())
def test_the_commands_of_a_page_do_what_it_says(path: Path, tmp_path: Path) -> None:
    _run(path, tmp_path)


@pytest.mark.real
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("path", [one for one in _runs() if "kubectl" in _text(one.values[0])])
def test_the_real_kubectl_prints_what_a_page_shows(path: Path, tmp_path: Path) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("there is no kubectl")
    _run(path, tmp_path, has_kubectl=True)


def _run(path: Path, tmp_path: Path, *, has_kubectl: bool = False) -> None:
    """Run all blocks of a page in a folder of its own."""
    for name in ("examples", "deploy", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    environment = {"HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "nowhere")}
    shell = Shell(tmp_path, environment, has_kubectl=has_kubectl)
    try:
        for block in blocks(_text(path)):
            if block.name and block.language in ("yaml", "bash", "conf"):
                (tmp_path / block.name).write_text(block.text, encoding="utf-8")
            if block.language == "console" and not block.not_run:
                for command in commands(block):
                    shell.run(command)
    finally:
        shell.close()
        gc.collect()


def _yaml_blocks() -> list[Any]:
    return [
        pytest.param(path, block, id=f"{name_of(path)}:{block.line}")
        for path in pages()
        if not _is_korean(path)
        for block in blocks(_text(path))
        if block.language in ("yaml", "json")
    ]


@pytest.mark.parametrize(("path", "block"), _yaml_blocks())
def test_manifests_can_be_read(path: Path, block: Block) -> None:
    if block.language == "json":
        if "…" not in block.text:
            json.loads(block.text)
        return
    documents = [one for one in yaml.safe_load_all(block.text) if one is not None]
    assert documents, f"{name_of(path)}: an empty block"
    if all(isinstance(one, dict) and "kind" in one and "apiVersion" in one for one in documents):
        read = read_documents("block.yaml", block.text.encode())
        assert [problem.line() for problem in read.problems] == []


@pytest.mark.parametrize("path", pages(), ids=name_of)
def test_what_is_not_run_says_why(path: Path) -> None:
    for block in blocks(_text(path)):
        assert block.language != "shell", "write console, so that it is run"
        if block.not_run:
            assert re.match(r"(needs|takes|is) ", block.not_run), block.not_run


@pytest.mark.parametrize("path", pages(), ids=name_of)
def test_the_text_names_the_file_of_a_block(path: Path) -> None:
    """The name behind the language is for us; most readers of Markdown do not show it."""
    text = _text(path)
    for block in blocks(text):
        if block.name:
            before = text.splitlines()[max(0, block.line - 14) : block.line]
            assert any(f"`{block.name}`" in line for line in before), block.name


def test_the_files_that_the_tour_names_are_there() -> None:
    text = _text(ROOT / "docs" / "guides" / "architecture-tour.md")
    named = re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`", text)
    assert len(named) > 25
    places = (ROOT, ROOT / "src" / "unisono")
    assert [one for one in named if not any((place / one).exists() for place in places)] == []
