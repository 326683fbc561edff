"""The lists print what is kept in `tables/`, and the narrow ones fit a terminal."""

from __future__ import annotations

from functools import cache

import pytest

from tests.cli.table_stories import COMMANDS, FOLDER, printed
from unisono.cli.tables import WIDTH


@cache
def _printed() -> dict[str, str]:
    return printed()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_list_prints_what_is_kept(name: str) -> None:
    said = _printed()[name]
    kept = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert said == kept, "if it is better now: python -m tests.cli.table_stories"
    is_wide = name.endswith("-wide")
    assert is_wide or max(map(len, said.splitlines())) <= WIDTH + 10
