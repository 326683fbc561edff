"""Gangs that agreed to move, and machines that end although pods are on them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.provision.stories import SEOUL, started
from tests.support.control_objects import job, node, queue
from tests.support.control_world import World
from tests.support.provisioning_world import bound, condition, nodes, pool, told
from unisono.control import names
from unisono.kube.form import Json

LAZY = {
    "consolidationPolicy": "WhenEmptyOrUnderutilized",
    "consolidateAfter": "30s",
    "budgets": [{"nodes": "100%"}],
}
WILLING = {
    "unisono.dev/disruptable": "true",
    "unisono.dev/time-limit": "100h",
    "unisono.dev/restart-cost": "1m",
}


def willing(annotations: Json, **more: Any) -> Json:
    """Return a gang of two that says something about moving."""
    made = job("train", pods=2, gpus=8, seconds=7200, **more)
    made["metadata"]["annotations"] = dict(annotations)
    return made


async def _with_room_elsewhere(world: World, annotations: Json, disruption: Json) -> set[str]:
    """Let a gang run on bought machines; then two nodes are free that are there anyway."""
    await world.create(*queue(), pool(zones=SEOUL, disruption=disruption))
    await world.create(willing(annotations))
    await world.pass_time(150)
    assert started(world, "train")
    before = set(nodes(world))
    await world.create(node("mine-1"), node("mine-2"))
    await world.pass_time(300)
    return before


def test_a_gang_that_agreed_moves_as_a_whole_to_nodes_that_are_free() -> None:
    async def story(world: World) -> None:
        before = await _with_room_elsewhere(world, WILLING, LAZY)
        assert set(nodes(world)) == {"mine-1", "mine-2"}
        assert started(world, "train")
        assert not before & set(bound(world).values())
        await world.pass_time(300)
        assert set(nodes(world)) == {"mine-1", "mine-2"}, "and it stays there"

    told(story)


@pytest.mark.parametrize(
    ("annotations", "disruption"),
    [
        ({}, LAZY),
        ({**WILLING, "unisono.dev/disruptable": "false"}, LAZY),
        (WILLING, {**LAZY, "consolidationPolicy": "WhenEmpty"}),
        (WILLING, {**LAZY, "budgets": [{"nodes": "1"}]}),
        ({key: text for key, text in WILLING.items() if "limit" not in key}, LAZY),
        ({**WILLING, "unisono.dev/restart-cost": "60h"}, LAZY),
    ],
    ids=["unasked", "unwilling", "only-empty", "budget", "no-limit", "not-worth-it"],
)
def test_otherwise_it_stays_where_it_is(annotations: Json, disruption: Json) -> None:
    async def story(world: World) -> None:
        before = await _with_room_elsewhere(world, annotations, disruption)
        assert before <= set(nodes(world))
        assert set(bound(world).values()) == before

    told(story)


def test_a_pod_that_must_not_be_disrupted_is_not() -> None:
    async def story(world: World) -> None:
        await world.create(*queue(), pool(zones=SEOUL, disruption=LAZY))
        made = willing(WILLING)
        made["spec"]["template"]["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] = "true"
        await world.create(made)
        await world.pass_time(150)
        before = set(nodes(world))
        await world.create(node("mine-1"), node("mine-2"))
        await world.pass_time(300)
        assert set(bound(world).values()) == before

    told(story)


def test_a_machine_that_is_too_old_ends_with_its_gang_only_where_the_pool_says_so() -> None:
    async def story(world: World) -> None:
        short = {"expireAfter": "10m", "terminationGracePeriod": "20m"}
        await world.create(*queue(), pool(zones=SEOUL, template=short))
        await world.create(willing({}))
        await world.pass_time(150)
        before = set(nodes(world))
        await world.pass_time(20 * 60)
        assert set(bound(world).values()) == before, "too old, and in use"
        assert any(note.reason == "NodeExpires" for note in world.notes)
        await world.pass_time(12 * 60)
        assert not before & set(nodes(world))
        assert condition(world.get(names.JOB, "train"), "Complete")["status"] != "True"

    told(story)
