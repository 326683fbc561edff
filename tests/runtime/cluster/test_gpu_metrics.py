"""How often a Prometheus is asked what GPUs do."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from unisono.kube.clock import Clock
from unisono.monitor.active_alerts import ActiveAlert, AlertBoard
from unisono.monitor.gpu_history import GpuHistory
from unisono.monitor.ledger.utilization import PrometheusError, Series
from unisono.runtime.cluster.web import measuring
from unisono.runtime.log import Journal


class _Over(Exception):
    pass


class World:
    """A clock, a journal and a Prometheus in one; it ends after some pauses."""

    def __init__(self, rounds: int, *, is_there: bool = True) -> None:
        self.time = 1000.0
        self.pauses: list[float] = []
        self.rounds = rounds
        self.is_there = is_there
        self.asked = 0
        self.warnings: list[dict[str, Any]] = []
        self.board = AlertBoard()

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.time += seconds
        if len(self.pauses) == self.rounds:
            raise _Over

    def warning(self, event: str, **facts: Any) -> None:
        self.warnings.append(facts)

    def query(self, expression: str, at: int) -> list[Series]:
        self.asked += 1
        if not self.is_there:
            raise PrometheusError("it cannot be asked")
        return [Series({"kubernetes_node": "n1", "gpu": "0"}, 7.0)]

    def alerts(self) -> tuple[ActiveAlert, ...]:
        if not self.is_there:
            raise PrometheusError("it cannot be asked")
        return ()

    def measure(self, looked_at: float) -> GpuHistory:
        history = GpuHistory()

        async def main() -> None:
            with pytest.raises(_Over):
                await measuring(
                    history,
                    self.board,
                    self,
                    lambda: ("n1",),
                    lambda: looked_at,
                    cast(Clock, self),
                    cast(Journal, self),
                )

        asyncio.run(main())
        return history


def test_often_while_a_page_is_open_and_seldom_else() -> None:
    world = World(rounds=12)
    history = world.measure(looked_at=1000.0)
    assert world.pauses[:8] == [15.0] * 8
    assert world.pauses[-1] == 60.0
    assert history.reading(("n1", 0)) is not None
    assert history.version == 12


def test_trouble_is_told_once_and_ends_nothing() -> None:
    world = World(rounds=3, is_there=False)
    assert world.measure(looked_at=0.0).is_empty
    assert world.asked == 3
    assert world.board.error == "it cannot be asked"
    assert world.warnings == [{"reason": "it cannot be asked"}]
