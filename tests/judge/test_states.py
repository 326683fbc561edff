"""Explanations are true in simulated runs, and in every state of the stories of the demo."""

from __future__ import annotations

import pytest

from tests.judge.__main__ import STORIES
from tests.judge.judgement import judge
from tests.judge.states import MOST_PENDING, of_story, simulated


@pytest.mark.parametrize("seed", range(3))
def test_no_explanation_of_a_simulated_run_is_false(seed: int) -> None:
    """`python -m tests.judge --in simulator --runs 200` judges many more."""
    judged = [one for world in simulated(seed) for one in judge(world, most=MOST_PENDING)]
    assert judged, "something waits in a cluster under such a load"
    assert [one for one in judged if one.faults] == []


@pytest.mark.slow
@pytest.mark.parametrize("story", STORIES)
def test_no_explanation_in_a_story_is_false(story: str) -> None:
    judged = [one for world in of_story(story) for one in judge(world)]
    assert [one for one in judged if one.faults] == []
