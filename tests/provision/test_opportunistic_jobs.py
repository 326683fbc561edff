"""Nodes on loan, with every way to decide, and through crashes."""

from __future__ import annotations

import pytest

from tests.provision.opportunistic_stories import a_gang_of_four, short_job
from tests.provision.stories import started
from tests.support.control_world import World
from tests.support.provisioning_world import bound, claims, told
from unisono.control import names
from unisono.engine.model.policy import Backfill, Policy
from unisono.kinds.policy.settings import Settings
from unisono.kube.form import Json


def _is_over(world: World, name: str) -> bool:
    conditions: list[Json] = (world.get(names.JOB, name).get("status") or {}).get("conditions", [])
    return any(one["type"] == "Complete" and one["status"] == "True" for one in conditions)


@pytest.mark.parametrize("rules", [Backfill(dates=1), Backfill()], ids=["one date", "all dates"])
def test_with_backfill_too(rules: Backfill) -> None:
    async def story(world: World) -> None:
        await a_gang_of_four(world)
        await world.create(short_job("long", seconds=250, minutes=5))
        await world.create(short_job("short", seconds=100, minutes=2))
        await world.pass_time(5)
        assert started(world, "short")
        assert not started(world, "long")
        await world.pass_time(165)
        assert _is_over(world, "short")
        assert started(world, "gang")

    told(story, settings=Settings(policy=Policy(backfill=rules)))


def test_a_process_that_dies_after_every_single_write() -> None:
    """Which job uses which held node is read again; no two share a node, and the gang starts."""

    async def story(world: World) -> None:
        await a_gang_of_four(world)
        await world.create(short_job("short", seconds=100, minutes=2))
        for _ in range(60):
            before = world.store.rv
            while world.store.rv == before:
                world.pump()
                if await world.driver.step() is None and not world.pump():
                    break
                await world.store.committed()
            on = list(bound(world).values())
            assert len(on) == len(set(on))
            if world.store.rv == before:
                break
            world.restart()
        assert started(world, "short")
        assert len(claims(world)) == 2
        world.restart()
        await world.pass_time(170)
        assert _is_over(world, "short")
        assert started(world, "gang")

    told(story)
