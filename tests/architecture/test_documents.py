"""Links of the documents lead somewhere, and make targets that they name exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "changes/*.md", "docs/**/*.md", "examples/**/*.md")
    for path in ROOT.glob(pattern)
)

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_MAKE = re.compile(r"`make ([a-z][a-z-]*)[^`]*`|^\s*\$?\s*make ([a-z][a-z-]*)", re.MULTILINE)
_TARGET = re.compile(r"^([a-z][a-z-]*):.*?## (.+)$", re.MULTILINE)
_MODULE = re.compile(r"`((?:\w+/)+\w+\.py)`")
_HEADING = re.compile(r"^\*\*(.+?)\*\*", re.MULTILINE)


def _targets() -> dict[str, str]:
    return dict(_TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))


def _name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", DOCUMENTS, ids=_name_of)
def test_links_lead_somewhere(path: Path) -> None:
    for link in _LINK.findall(path.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", link):  # another site's business
            continue
        target, _, anchor = link.partition("#")
        there = (path.parent / target).resolve() if target else path
        assert there.exists(), f"{_name_of(path)} links to {link}, which does not exist"
        if anchor:
            assert anchor in _anchors(there), f"{_name_of(path)} links to the missing {link}"


def _anchors(path: Path) -> set[str]:
    """Return the anchors that GitHub makes of a document's headings."""
    text = path.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


@pytest.mark.parametrize("path", DOCUMENTS, ids=_name_of)
def test_make_targets_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = {first or second for first, second in _MAKE.findall(text)}
    assert named <= set(_targets()), f"{_name_of(path)} names targets that are not in the Makefile"


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "adr").glob("*.md")), ids=_name_of)
def test_records_of_decisions_name_modules_that_exist(path: Path) -> None:
    roots = (ROOT, ROOT / "src" / "unisono", *(ROOT / "src" / "unisono").glob("*/"))
    for module in _MODULE.findall(path.read_text(encoding="utf-8")):
        there = any((root / module).exists() for root in roots)
        assert there, f"{_name_of(path)} names {module}, which does not exist"


def test_plain_make_lists_every_target() -> None:
    printed = subprocess.run(
        ["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for target, sentence in _targets().items():
        assert re.search(rf"^  {target} +{re.escape(sentence)}$", printed, re.MULTILINE)


def test_every_phony_target_is_explained() -> None:
    phony = re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    assert set(phony[1].split()) - {"help"} == set(_targets())


def test_glossary_is_in_alphabetical_order() -> None:
    words = _HEADING.findall((ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"))
    assert words
    assert words == sorted(words, key=str.lower)
    assert len(set(words)) == len(words)
