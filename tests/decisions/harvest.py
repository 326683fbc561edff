"""Cases from what other tests tell the engine: the stories of the specification first of all.

Everything that an engine hears and is asked while a test runs is noted, in the words of the
records; the case then stands for itself and does not depend on that test any more.
"""

from __future__ import annotations

import contextlib
import io
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from tests.decisions.adapter import overheard
from tests.decisions.store import ASKS, Case, answers

Json = Any
# By area: the tests that are listened to.
SOURCES = {"stories": ["tests/scenarios/test_scenarios.py"]}
# Longer ones say the same again and again.
_MOST_ASKED = 40


def harvest(area: str, tests: list[str]) -> list[Case]:
    """Run tests and return a case for every engine that decided something meanwhile."""
    plugin = _Plugin(area)
    with overheard(plugin.begin), contextlib.redirect_stdout(io.StringIO()):
        pytest.main(["-q", "-p", "no:cacheprovider", "-m", "not real", *tests], plugins=[plugin])
    return [*_usable(plugin.cases)]


class _Plugin:
    """Names cases after the test that runs."""

    def __init__(self, area: str) -> None:
        self._area = area
        self._test = ""
        self._number: Counter[str] = Counter()
        self.cases: list[Case] = []

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self._test = item.name.removeprefix("test_story[").removeprefix("test_").removesuffix("]")

    def begin(self, policy: Json, now: int) -> Callable[[list[Json]], None]:
        """Begin a case; return what is called with each of its steps."""
        self._number[self._test] += 1
        number = self._number[self._test]
        case = Case(
            name=f"{self._area}/{self._test}" + (f"#{number}" if number > 1 else ""),
            policy=policy,
            now=now,
            steps=[],
        )
        self.cases.append(case)
        return case.steps.append


def _usable(found: list[Case]) -> Iterator[Case]:
    """Yield cases that ask something, are not too long, and are not there already."""
    known: set[bytes] = set()
    for case in found:
        asked = [index for index, step in enumerate(case.steps) if step[0] in ASKS]
        if not asked:
            continue
        case.steps = case.steps[: asked[:_MOST_ASKED][-1] + 1]
        same = msgspec.json.encode((case.policy, case.steps))
        if same in known:
            continue
        known.add(same)
        try:
            case.decided = [*answers(case)]
        except Exception:  # noqa: BLE001  # a test that reached into the state, or that fails
            continue
        yield case
