"""Kinds that promise to leave nothing to be filled in after `prepare_create` keep the promise."""

from __future__ import annotations

import random
from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.apiserver.surroundings import Around, served_as
from tests.support.random_requests import Wild
from unisono.apiserver.builtin import STRATEGIES
from unisono.apiserver.errors import ApiError
from unisono.apiserver.schema.checker import Checker

WHOLE = sorted(key for key, strategy in STRATEGIES.items() if strategy.prepares_whole)


@pytest.mark.slow
@pytest.mark.parametrize("key", WHOLE)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_nothing_is_left_to_fill_in(key: str, seed: int) -> None:
    served, strategy = served_as(key), STRATEGIES[key]
    obj = Wild(random.Random(seed), [served]).object(served)
    checker = Checker(served.shape, typed=True)
    checker.prune(obj)
    obj.pop("status", None)
    for part in ("metadata", "spec"):
        if not isinstance(obj.get(part), dict):
            obj[part] = {}  # the writer refuses it otherwise
    checker.fill(obj)
    strategy.default(obj)
    try:
        strategy.prepare_create(obj, Around())
    except ApiError:
        return
    if checker.check(obj, None):
        return  # refused anyhow
    before = deepcopy(obj)
    checker.fill(obj)
    strategy.default(obj)
    assert obj == before


def test_there_are_such_kinds() -> None:
    assert WHOLE == ["/pods"]
