"""What accounts used outlives a restart, and is written seldom."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import job, node, queue
from tests.support.control_world import World
from unisono.control.names import CONFIG_MAP
from unisono.control.scheduler.usage_ledger import FIELD, NAME
from unisono.engine.model.multifactor import Association, MultifactorRules, Weights
from unisono.engine.model.names import Instant
from unisono.engine.model.policy import Policy
from unisono.engine.ordering.priority_order import multifactor_of
from unisono.kinds.policy.settings import DEFAULTS

ANN = "user/lab/ann"


def settings(**more: bool) -> object:
    turns = MultifactorRules(
        weights=Weights(fair_share=1000),
        associations=(Association(account="lab"),),
        default_account="lab",
        **more,  # type: ignore[arg-type]  # flags only
    )
    return msgspec.structs.replace(DEFAULTS, policy=Policy(multifactor=turns))


def used(world: World, owner: str = ANN) -> float:
    """Return what an owner used, as the scheduler knows it."""
    multifactor = multifactor_of(world.assembly.scheduler.state)
    assert multifactor is not None
    return multifactor.usage.used(owner, "billing", Instant(int(world.clock.now() * 1000)))


def ledger(world: World) -> dict[str, float]:
    text = world.get(CONFIG_MAP, NAME, "kube-system")["data"][FIELD]
    return {owner: amount for owner, _, amount, _ in msgspec.json.decode(text)["records"]}


def train(name: str, seconds: int, user: str = "ann") -> dict[str, object]:
    made = job(name, seconds=seconds)
    made["metadata"]["labels"]["unisono.dev/user"] = user
    return made


@pytest.mark.parametrize("compat", [False, True])
def test_what_was_used_is_known_after_a_restart(compat: bool) -> None:
    async def story() -> None:
        async with simulated_world(settings=settings(compat=compat)).running() as world:
            await world.create(
                node("n1"), node("n2"), *queue(), train("short", 100), train("long", 5000, "bob")
            )
            await world.pass_time(1000)  # the short one is over, and its Workload may be gone
            before = {owner: used(world, owner) for owner in (ANN, "user/lab/bob", "account/lab")}
            assert before[ANN] > 0
            assert ledger(world)[ANN] == pytest.approx(before[ANN], rel=0.01)
            assert before["user/lab/bob"] > 5 * before[ANN]
            world.restart()
            await world.settle()
            for owner, amount in before.items():
                # As long as it runs, it is counted from where the ledger ends: not twice.
                assert used(world, owner) == pytest.approx(amount, rel=0.02)
            await world.pass_time(600)
            assert used(world, "user/lab/bob") > before["user/lab/bob"] * 1.4

    asyncio.run(story())


def test_it_is_written_only_while_something_runs() -> None:
    async def story() -> None:
        async with simulated_world(settings=settings()).running() as world:
            await world.create(node("n1"), node("n2"), *queue(), train("short", 100))
            await world.pass_time(1000)
            version = world.get(CONFIG_MAP, NAME, "kube-system")["metadata"]["resourceVersion"]
            await world.pass_time(3000)
            now = world.get(CONFIG_MAP, NAME, "kube-system")["metadata"]["resourceVersion"]
            assert now == version  # what fades by itself need not be written

    asyncio.run(story())


def test_what_cannot_be_read_is_told_and_written_anew() -> None:
    async def story() -> None:
        async with simulated_world(settings=settings()).running() as world:
            await world.create(node("n1"), node("n2"), *queue(), train("long", 5000))
            await world.pass_time(400)
            await world.client.patch(CONFIG_MAP, NAME, "kube-system", {"data": {FIELD: "{"}})
            world.restart()
            await world.settle()
            await world.pass_time(400)
            assert ledger(world)[ANN] > 0

    asyncio.run(story())


def test_without_turns_there_is_no_ledger() -> None:
    async def story() -> None:
        async with simulated_world().running() as world:
            await world.create(node("n1"), node("n2"), *queue(), train("short", 100))
            await world.pass_time(700)
            assert not [one for one in world.every(CONFIG_MAP) if one["metadata"]["name"] == NAME]

    asyncio.run(story())
