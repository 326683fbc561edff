"""Korean pages mirror the English ones: the same headings, blocks and tables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.page import ROOT, blocks, name_of, pages

# The five walkthroughs, the migration guides and operations.
BOTH = (
    "gang-quota.md",
    "queues-and-gangs.md",
    "one-scheduler.md",
    "priority-and-preemption.md",
    "resilience.md",
    "from-kueue.md",
    "from-volcano.md",
    "from-slurm.md",
    "operations.md",
)
_HANGUL = re.compile(r"[가-힣]")


def _twins() -> list[tuple[Path, Path]]:
    found = [(ROOT / "README.md", ROOT / "README.ko.md")]
    folder = ROOT / "docs" / "ko"
    found += [(ROOT / "docs" / path.relative_to(folder), path) for path in folder.rglob("*.md")]
    return sorted(found)


def _shape(path: Path) -> list[str]:
    """Return what has to be the same: levels of headings, code, rows of tables."""
    text = path.read_text(encoding="utf-8")
    code = {block.line: block for block in blocks(text)}
    plain = re.sub(r"^( *)```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)
    headings = [f"heading {len(one)}" for one in re.findall(r"^(#+) ", plain, re.MULTILINE)]
    tables = [f"row of {one.count('|')}" for one in re.findall(r"^\|.*$", plain, re.MULTILINE)]
    told = [f"{one.language} {one.name}\n{one.text}" for _, one in sorted(code.items())]
    return [*headings, *tables, *told]


@pytest.mark.parametrize(("english", "korean"), _twins(), ids=name_of)
def test_a_korean_page_has_the_shape_of_the_english_one(english: Path, korean: Path) -> None:
    assert english.exists(), "a Korean page without an English one"
    assert _shape(korean) == _shape(english)
    assert len(_HANGUL.findall(korean.read_text(encoding="utf-8"))) > 100


def test_every_guide_is_there_in_both_languages() -> None:
    guides = {path.name for path in (ROOT / "docs" / "guides").glob("*.md")}
    korean = {path.name for path in (ROOT / "docs" / "ko" / "guides").glob("*.md")}
    assert korean <= guides
    assert korean >= set(BOTH)


def test_pages_are_found() -> None:
    assert len(pages()) > 50
