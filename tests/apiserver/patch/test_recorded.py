"""Our patches and ownership against a real kube-apiserver in the same stories (`record`)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.apiserver.patch.judge import check_deployment, check_gadget, check_strategic
from tests.apiserver.patch.strategic_stories import TARGET
from unisono.apiserver.objects import Json

Check = Callable[[Json, Json | None, int, Json], None]

RECORDED: Json = json.loads((Path(__file__).parent / "recorded.json").read_text())


def replay(story: list[Json], check: Check) -> None:
    """Judge every step by what the server had before it."""
    live: Json | None = None
    for step in story:
        check(step, live, step["code"], step["answer"])
        if step["code"] < 300:
            live = step["answer"]


@pytest.mark.parametrize("story", RECORDED["gadgets"])
def test_a_gadget_becomes_the_same(story: list[Json]) -> None:
    replay(story, check_gadget)


@pytest.mark.parametrize("story", RECORDED["deployments"])
def test_a_deployment_becomes_the_same(story: list[Json]) -> None:
    replay(story, check_deployment)


@pytest.mark.parametrize("case", RECORDED["patches"])
def test_a_strategic_patch_leaves_the_same(case: Json) -> None:
    check_strategic(case["patch"], TARGET, case["code"], case["answer"])


def test_the_stories_tell_enough() -> None:
    steps = [step for story in RECORDED["gadgets"] for step in story]
    codes = [step["code"] for step in steps]
    assert codes.count(409) > 10
    assert codes.count(200) > 60
    assert {step["op"] for step in steps if step["code"] < 300} >= {
        *("apply", "force", "create", "put", "merge", "json", "status", "apply-status", "wipe"),
    }
