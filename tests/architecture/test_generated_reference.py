"""The generated pages of the reference are current and complete."""

from __future__ import annotations

import pytest

from tools.reference.__main__ import FOLDER, PAGES
from unisono.cli.commands import COMMANDS


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_the_code_says(name: str) -> None:
    written = (FOLDER / name).read_text(encoding="utf-8")
    assert written == PAGES[name](), "write it anew: make reference"


def test_every_command_has_a_section() -> None:
    text = (FOLDER / "commands.md").read_text(encoding="utf-8")
    for command in COMMANDS:
        assert f"\n## `unisono {command.name}`\n" in text
        assert text.partition(f"\n## `unisono {command.name}`\n")[2].lstrip()[0] != "#"
