"""Ranks that hold their gangs up: they are named, and their nodes avoided (monitoring §8)."""

from __future__ import annotations

import json

import pytest

from tests.control.training_world import (
    Json,
    World,
    events,
    gpu_node,
    places,
    play,
    pods,
    queues,
    status,
    train_job,
)
from unisono.control import names
from unisono.control.conditions import timestamp
from unisono.control.health.node_health import SUSPECT
from unisono.control.health.progress import PROGRESS, Progress, of_rank, read
from unisono.control.health.stragglers import (
    KNOWN,
    NAMED,
    Slow,
    follow,
    known,
    named,
    suspected_until,
    text_of,
    to_leave,
)
from unisono.kinds.pace import pace_of, ranked

NOW = 1_700_000_000.0
DAY = 86_400.0
EIGHT = dict(zip("abcdefgh", (1.00, 1.01, 0.99, 1.02, 0.98, 1.00, 1.01, 1.25), strict=True))


def test_one_of_eight_is_slow_and_is_told_of_after_five_minutes() -> None:
    ranks = ranked(EIGHT)
    assert round(ranks["h"].score, 2) == 12.19
    assert max(one.score for name, one in ranks.items() if name != "h") < 1.25
    slow: dict[str, Slow] = {}
    told: list[float] = []
    for minute in range(12):
        slow, findings = follow(slow, ranks, NOW + 60 * minute)
        told += [minute for _ in findings]
    assert told == [5]
    assert slow == {"h": Slow(timestamp(NOW), "slow")}


@pytest.mark.parametrize("times", [[1.25] * 8, [1.0] * 7 + [1.05], [1.0, 1.5], [2.0], []])
def test_no_rank_is_slow_among_equals_or_too_few(times: list[float]) -> None:
    ranks = ranked({str(at): one for at, one in enumerate(times)})
    assert not any(one.is_slow for one in ranks.values())


def test_a_rank_that_keeps_up_for_one_window_begins_anew() -> None:
    slow, _ = follow({}, ranked(EIGHT), NOW)
    slow, _ = follow(slow, ranked({**EIGHT, "h": 1.0}), NOW + 240)
    slow, findings = follow(slow, ranked(EIGHT), NOW + 300)
    assert (slow["h"].since, findings) == (timestamp(NOW + 300), [])


def test_half_as_slow_again_is_severe_after_ten_minutes() -> None:
    ranks = ranked({**EIGHT, "h": 1.6})
    slow, levels = {"h": Slow(timestamp(NOW), "slow")}, []
    for seconds in (540, 600, 660):
        slow, findings = follow(slow, ranks, NOW + seconds)
        levels += [one.level for one in findings]
    assert levels == ["severe"]
    assert known({KNOWN: text_of(slow) or ""}) == slow
    assert (text_of({}), known({KNOWN: "[]"}), known({KNOWN: "{"})) == (None, {}, {})


def test_a_rank_tells_its_own_time_or_is_timed_by_the_clock() -> None:
    told = None
    for step, own in ((1, 0.9), (2, 1.1), (3, None)):
        line = {"step": step, **({"step_seconds": own} if own else {})}
        report = read(json.dumps(line), NOW + 10 * step)
        assert report is not None
        told = of_rank(told, report)
    assert told is not None
    assert told.paces == (0.9, 1.1, 10.0)
    pace = pace_of({PROGRESS: told.text()})
    assert pace is not None
    assert (pace.step, pace.seconds) == (3, 1.1)
    for text in ("", "x", "[]", '{"step": 1}', '{"step": 1, "at": "", "paces": ["x"]}'):
        assert pace_of({PROGRESS: text}) is None


def on_node(**gangs: tuple[float, str, bool]) -> Json:
    node: Json = {"metadata": {"annotations": {}}}
    for gang, (at, level, moves) in gangs.items():
        text = named(node, gang, level, NOW + at, moves=moves)  # type: ignore[arg-type]
        node["metadata"]["annotations"][NAMED] = text
    return node


def test_two_gangs_within_a_day_make_a_node_suspect() -> None:
    one = on_node(a=(0, "slow", False))
    assert suspected_until(one, NOW + 1) is None
    two = on_node(a=(0, "slow", False), b=(3600, "slow", False))
    assert suspected_until(two, NOW + 3601) == NOW + DAY
    assert suspected_until(two, NOW + DAY + 1) is None
    severe = on_node(a=(0, "severe", True))
    assert suspected_until(severe, NOW + 1) == NOW + DAY
    assert to_leave(severe, NOW + 1) == ("a", NOW + 3600)
    assert to_leave(severe, NOW + 3601) is None
    assert to_leave(on_node(a=(0, "slow", True)), NOW + 1) is None


async def train(world: World, minutes: int, slow: str, seconds: float, saved: int = 0) -> None:
    """Let pods report a step a minute; the one on a node takes longer over it."""
    for minute in range(minutes):
        for pod in pods(world):
            takes = seconds if pod["spec"]["nodeName"] == slow else 1.0
            said = Progress(
                int(world.clock.now() - NOW),
                timestamp(world.clock.now()),
                checkpoint_step=saved * (minute + 1),
                paces=(takes,) * 5,
            )
            changes = {"metadata": {"annotations": {PROGRESS: said.text()}}}
            await world.client.patch(names.POD, pod["metadata"]["name"], "default", changes)
        await world.pass_time(60)


def taints(world: World, node: str) -> list[tuple[str, str]]:
    found = world.get(names.NODE, node)["spec"].get("taints") or []
    return [(one["key"], one["value"]) for one in found]


def test_a_slow_rank_is_named_and_its_node_suspect_when_it_is_bad() -> None:
    async def story(world: World) -> None:
        nodes = [gpu_node(f"n{number}") for number in range(1, 5)]
        await world.create(*nodes, *queues(gpus=32), train_job(nodes=4))
        await world.settle()
        await train(world, 8, "n3", 1.6)
        (told,) = events(world, "StragglerDetected")
        assert "on node n3 slows its gang down" in told
        assert "1.60 times the median" in told
        assert taints(world, "n3") == []
        await train(world, 4, "n3", 1.6)
        assert taints(world, "n3") == [(SUSPECT, "Straggler")]
        assert status(world, names.JOB_SET, "t")["restarts"] == 0  # no job asked to be moved
        await train(world, 2, "n3", 1.0)
        workload = world.every(names.WORKLOAD)[0]
        assert KNOWN not in workload["metadata"]["annotations"]

    play(story)


def test_a_gang_that_asks_for_it_moves_after_its_next_checkpoint() -> None:
    async def story(world: World) -> None:
        nodes = [gpu_node(f"n{number}") for number in range(1, 6)]
        asks = {"unisono.dev/straggler": "replace"}
        await world.create(*nodes, *queues(gpus=40), train_job(nodes=4, annotations=asks))
        await world.settle()
        slow = places(world)["t-node-0-2"]
        await train(world, 13, slow, 2.0)
        assert ("unisono.dev/quarantine", "Straggler") in taints(world, slow)
        assert slow in places(world).values()
        await train(world, 2, slow, 2.0, saved=100)
        await world.pass_time(60)
        assert slow not in places(world).values()
        assert len(places(world)) == 4
        assert status(world, names.JOB_SET, "t")["restartsCountTowardsMax"] == 0
        await world.pass_time(2 * 3600)
        assert taints(world, slow) == [(SUSPECT, "Straggler")]  # closed no more, but taken last

    play(story)
