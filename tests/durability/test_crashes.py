"""A few rounds of kill -9; `python -m tests.durability.crashes` runs a hundred."""

from __future__ import annotations

import pytest

from tests.durability.crashes import run


@pytest.mark.slow
def test_nothing_acknowledged_is_lost() -> None:
    assert run(rounds=3, seed=1) > 0
