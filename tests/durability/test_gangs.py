"""Two hundred gangs through a cluster that is killed all the time; the command is `gangs`."""

from __future__ import annotations

import pytest

from tests.durability.gangs import run


@pytest.mark.slow
@pytest.mark.parametrize(("pods", "gangs"), [("simulated", 200), ("process", 20)])
def test_gangs_survive_kill_9(pods: str, gangs: int) -> None:
    result = run(gangs, seed=1, pods=pods)
    print(result.line)
    assert result.faults == [], result.line
    assert result.kills >= gangs // 10
