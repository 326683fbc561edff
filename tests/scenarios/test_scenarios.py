"""Every story of every specification, one test each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.runner import run
from tests.scenarios.stories import AREAS, files, numbers_of

STORIES = [path for area in AREAS for path in files(area)]


@pytest.mark.parametrize("path", STORIES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_story(path: Path) -> None:
    run(path)


def test_every_number_of_the_specification_has_a_story_or_a_reason() -> None:
    for area in AREAS:
        assert numbers_of(area).missing() == []
