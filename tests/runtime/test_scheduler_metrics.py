"""Figures of placement, and of the phases of decisions, from controllers at work."""

from __future__ import annotations

import asyncio
from functools import partial

from tests.support.control_objects import KUEUE, job, node, queue
from tests.support.control_world import World
from unisono.control.actions import Json
from unisono.control.assembly import embedded
from unisono.control.reconciling.workers import Crashes
from unisono.engine.cycle import plan
from unisono.monitor.metrics.registry import MetricsRegistry
from unisono.runtime.scheduler_metrics import Timed, metrics_of

RACK = "example.com/rack"


def in_rack(name: str, rack: str) -> Json:
    made = node(name)
    made["metadata"]["labels"][RACK] = rack
    return made


def values(figures: MetricsRegistry, name: str, suffix: str = "") -> dict[tuple[str, ...], float]:
    """Return what a family says, by the values of its labels."""
    return {
        tuple(sample.labels.values()): sample.value
        for family in figures.families()
        if family.name == name
        for sample in family.samples
        if sample.suffix == suffix
    }


def measured(world: World, timed: Timed) -> MetricsRegistry:
    return metrics_of(world.view, world.driver, timed, Crashes(), mode="test")


def test_a_gang_that_starts_and_one_that_does_not_fit() -> None:
    asyncio.run(_a_gang_that_starts_and_one_that_does_not_fit())


async def _a_gang_that_starts_and_one_that_does_not_fit() -> None:
    timed = Timed(plan)
    world = World(assemble=partial(embedded, decides=timed))
    async with world.running():
        figures = measured(world, timed)
        levels = {"levels": [{"nodeLabel": RACK}, {"nodeLabel": "kubernetes.io/hostname"}]}
        topology = {"apiVersion": KUEUE, "kind": "Topology", "metadata": {"name": "racks"}}
        await world.create(
            {**topology, "spec": levels},
            *queue(gpus=64),
            *(in_rack(f"n{at}", f"r{at // 2}") for at in range(3)),
            job("starts", pods=2, gpus=4),
            job("waits", pods=4, gpus=8),
        )
        await world.settle()

        phases = values(figures, "unisono_cycle_duration_seconds", "_count")
        assert set(phases) == {("total",), ("admit",), ("place",), ("plan",), ("bind",)}
        assert phases["total",] == phases["admit",] == phases["place",]
        seconds = values(figures, "unisono_cycle_duration_seconds", "_sum")
        assert seconds["total",] >= seconds["place",] > 0
        results = values(figures, "unisono_gang_placement_seconds", "_count")
        assert set(results) == {("placed",), ("refused",)}
        assert values(figures, "unisono_placer_cache_misses_total")[()] > 0
        assert sum(values(figures, "unisono_fragmented_gpus").values()) == 0  # n0 or n2 is full
        pods = values(figures, "unisono_largest_gang")
        assert pods["cluster", "8"] == 2
        assert pods["kubernetes.io/hostname", "4"] == 2
        assert (pods[RACK, "8"], pods[RACK, "1"]) in {(2, 16), (1, 8)}
