"""Nodes that failed are given nothing for a while, or put last (jobs §7.3 and §9, 21)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.control.training_world import (
    Json,
    World,
    crash,
    events,
    gpu_node,
    places,
    play,
    pods,
    queues,
    status,
    train_job,
)
from unisono.cli.nodes import listed, notes
from unisono.control import names
from unisono.control.conditions import find, timestamp
from unisono.control.health.node_health import NEVER, Record, Seen, follow
from unisono.kinds.device_faults import Fault, fault_of, left_open

NOW = 1_700_000_000.0
BROKEN = Fault("broken", "Xid79", "the GPU is gone")
HOURS = 3600.0


@pytest.mark.parametrize(
    ("reason", "message", "severity", "short"),
    [
        ("Xid79", "", "broken", "Xid79"),
        ("GpuError", "NVRM: Xid (PCI:0000:00:1e): 31, pid=7", "application", "Xid31"),
        ("XidErrors", "XID 63: row remapping", "suspect", "Xid63"),
        ("GpuCountMismatch", "7 of 8", "broken", "GpuCountMismatch"),
        ("not a label!", "", "broken", "not-a-label"),
        ("Xid9999", "unheard of", "broken", "Xid9999"),
    ],
)
def test_what_a_condition_says(reason: str, message: str, severity: str, short: str) -> None:
    condition = {"type": "GPUProblem", "status": "True", "reason": reason, "message": message}
    found = fault_of({"status": {"conditions": [condition]}})
    assert found is not None
    assert (found.severity, found.reason) == (severity, short)
    assert fault_of({"status": {"conditions": [{**condition, "status": "False"}]}}) is None


def seen(
    fault: Fault | None = None,
    *,
    away: float | None = None,
    tainted: bool = False,
    may: bool = True,
) -> Seen:
    return Seen(fault=fault, away_since=away, is_tainted=tainted, may_be_closed=lambda: may)


def test_a_broken_node_is_out_until_it_is_mended_and_ten_minutes_more() -> None:
    record = follow(Record(), seen(BROKEN), NOW).record
    assert (record.reason, record.until) == ("Xid79", "")
    assert follow(record, seen(BROKEN, tainted=True), NOW + HOURS).record == record
    mended = follow(record, seen(tainted=True), NOW + HOURS)
    assert mended.again_at == NOW + HOURS + 600
    released = follow(mended.record, seen(tainted=True), NOW + HOURS + 600)
    assert (released.record.reason, len(released.record.strikes)) == ("", 1)


def test_the_second_time_within_a_day_only_a_person_lets_it_back_in() -> None:
    once = Record(strikes=(timestamp(NOW),))
    again = follow(once, seen(BROKEN), NOW + 23 * HOURS).record
    assert again.until == NEVER
    assert follow(again, seen(tainted=True), NOW + 99 * HOURS).record.reason == "Xid79"
    assert follow(once, seen(BROKEN), NOW + 25 * HOURS).record.until == ""
    lifted = follow(again, seen(BROKEN), NOW + 24 * HOURS)  # the taint is gone
    assert lifted.record == Record(doubted="Xid79")
    assert lifted.events[0][0] == "QuarantineLifted"
    assert follow(lifted.record, seen(BROKEN), NOW + 25 * HOURS).record == lifted.record
    assert follow(lifted.record, seen(), NOW + 25 * HOURS).record == Record()


@pytest.mark.parametrize(("strikes", "seconds"), [(0, 60), (1, 600), (2, 6000), (4, 86_400)])
def test_a_flapping_node_is_trusted_later_each_time(strikes: int, seconds: float) -> None:
    before = Record(strikes=(timestamp(NOW),) * strikes)
    short = follow(before, seen(away=NOW), NOW + 9)
    assert (short.record, short.again_at) == (before, NOW + 10)
    lost = follow(before, seen(away=NOW), NOW + 10).record
    assert (lost.reason, lost.until) == ("NodeLost", "")
    assert follow(lost, seen(away=NOW, tainted=True), NOW + 50).record == lost
    back = follow(lost, seen(tainted=True), NOW + 100)
    assert back.again_at == NOW + 100 + seconds
    away = follow(back.record, seen(away=NOW + 110, tainted=True), NOW + 120)
    assert away.record == lost  # its time begins anew
    assert follow(back.record, seen(tainted=True), NOW + 100 + seconds).record.reason == ""


def test_not_too_many_nodes_are_out_at_a_time() -> None:
    alarm = follow(Record(), seen(BROKEN, may=False), NOW)
    assert (alarm.record.reason, alarm.events[0][0]) == ("", "QuarantineLimitReached")
    assert follow(alarm.record, seen(BROKEN, may=False), NOW + 1).events == ()


def test_a_record_that_cannot_be_read_is_none() -> None:
    record = Record(reason="Xid79", strikes=("a",))
    assert Record.of({"unisono.dev/health": record.text()}) == record
    for text in ("", "[]", "{", '{"strikes": 3}'):
        assert Record.of({"unisono.dev/health": text}) == Record()


# ---- on a living cluster -------------------------------------------------------------------------


async def report(world: World, name: str, *conditions: tuple[str, str, str]) -> None:
    """Write conditions (type, status, reason) of a node, besides that it is ready."""
    old = world.get(names.NODE, name)["status"]["conditions"][:1]
    at = timestamp(world.clock.now())
    told = [
        {"type": kind, "status": said, "reason": why, "message": "", "lastTransitionTime": at}
        for kind, said, why in conditions
    ]
    await world.set_status(names.NODE, name, {"conditions": [*old, *told]})
    await world.settle()


def taints(world: World, name: str) -> dict[str, str]:
    found = world.get(names.NODE, name)["spec"].get("taints") or ()
    return {one["key"].partition("/")[2]: f"{one['value']}:{one['effect']}" for one in found}


async def two_gangs(world: World, **more: Any) -> None:
    """Let gangs a and b have four GPUs each on n1 and n2; n3 is spare."""
    for name in ("n1", "n2", "n3"):
        await world.create(gpu_node(name))
    await world.create(*queues(gpus=24), train_job("a", gpus=4), train_job("b", gpus=4))
    await world.settle()


def test_a_gang_restarts_without_the_broken_node_and_the_other_runs_on() -> None:
    async def story(world: World) -> None:
        await two_gangs(world)
        before = places(world)
        broken = before["a-node-0-1"]
        await report(world, broken, ("GPUProblem", "True", "Xid79"))
        assert taints(world, broken) == {"quarantine": "Xid79:NoSchedule"}
        label = world.get(names.NODE, broken)["metadata"]["labels"]["unisono.dev/quarantine"]
        assert label == "Xid79"
        assert places(world) == before
        victim = next(one for one in pods(world) if one["spec"]["hostname"] == "a-node-0-1")
        await crash(world, victim)
        await world.pass_time(60)
        assert broken not in [node for host, node in places(world).items() if host[0] == "a"]
        assert {host: node for host, node in places(world).items() if host[0] == "b"} == {
            host: node for host, node in before.items() if host[0] == "b"
        }
        assert status(world, names.JOB_SET, "a")["restartsCountTowardsMax"] == 0
        await report(world, broken)
        await world.pass_time(601)
        assert taints(world, broken) == {}

    play(story)


def test_an_error_of_the_application_is_not_the_node_s() -> None:
    async def story(world: World) -> None:
        await two_gangs(world)
        before = places(world)
        node = before["a-node-0-0"]
        await report(world, node, ("GPUProblem", "True", "Xid31"))
        assert taints(world, node) == {}
        await crash(world, pods(world)[0])
        await world.pass_time(60)
        assert places(world) == before
        assert status(world, names.JOB_SET, "a")["restartsCountTowardsMax"] == 1

    play(story)


def test_a_suspect_is_taken_last() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1"), gpu_node("n2"), *queues())
        await report(world, "n1", ("GPUProblem", "True", "Xid63"))
        assert taints(world, "n1") == {"suspect": "Xid63:PreferNoSchedule"}
        await world.create(train_job("a", nodes=1), train_job("b", nodes=1))
        await world.settle()
        assert places(world) == {"a-node-0-0": "n2", "b-node-0-0": "n1"}
        await report(world, "n1")
        assert taints(world, "n1") == {}

    play(story)


def test_a_node_on_which_two_jobs_failed_is_suspect_for_an_hour() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1"), *queues(), train_job("a", nodes=1, gpus=4))
        await world.create(train_job("b", nodes=1, gpus=4))
        await world.settle()
        first, second = pods(world)
        await crash(world, first)
        await world.pass_time(60)
        assert taints(world, "n1") == {}
        await crash(world, second)
        await world.pass_time(60)
        assert taints(world, "n1") == {"suspect": "JobsFailed:PreferNoSchedule"}
        await world.pass_time(3600)
        assert taints(world, "n1") == {}

    play(story)


def test_a_person_may_put_a_node_in_quarantine_and_lift_it() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1"), gpu_node("n2"), *queues())
        own: Json = {"key": "unisono.dev/quarantine", "value": "mine", "effect": "NoSchedule"}
        await world.client.patch(names.NODE, "n1", "", {"spec": {"taints": [own]}})
        await report(world, "n2", ("AcceleratedHardwareReady", "False", "NvLink"))
        await world.pass_time(100)
        assert taints(world, "n1") == {"quarantine": "mine:NoSchedule"}
        # One of two nodes is out already: this one stays open, as the last choice.
        assert taints(world, "n2") == {"suspect": "NvLink:PreferNoSchedule"}
        await world.client.patch(names.NODE, "n1", "", {"spec": {"taints": None}})
        await world.pass_time(100)
        assert taints(world, "n1") == {}
        assert not find(world.get(names.NODE, "n1")["status"]["conditions"], "GPUProblem")

    play(story)


# ---- more are broken than may be closed ----------------------------------------------------------


def test_a_node_beyond_the_limit_is_closed_when_there_is_room() -> None:
    first = follow(Record(), seen(BROKEN, may=False), NOW)
    assert (first.record.doubted, first.record.over_limit) == ("Xid79", timestamp(NOW))
    assert first.again_at == NOW + 60
    later = follow(first.record, seen(BROKEN, may=False), NOW + 60)
    assert (later.record, later.events, later.again_at) == (first.record, (), NOW + 120)
    closed = follow(later.record, seen(BROKEN), NOW + 120)
    assert (closed.record.reason, closed.record.doubted, closed.record.over_limit) == (
        "Xid79",
        "",
        "",
    )
    assert closed.events[0][0] == "NodeQuarantined"
    assert follow(later.record, seen(), NOW + 120).record == Record()


def test_what_a_person_lifted_stays_open() -> None:
    lifted = follow(Record(reason="Xid79", strikes=(timestamp(NOW),)), seen(BROKEN), NOW).record
    assert (lifted.doubted, lifted.over_limit) == ("Xid79", "")
    assert follow(lifted, seen(BROKEN), NOW + HOURS).record.reason == ""


def test_a_broken_node_beyond_the_limit_is_used_last_and_said() -> None:
    async def story(world: World) -> None:
        await two_gangs(world)
        for name in ("n1", "n2"):
            await report(world, name, ("GPUProblem", "True", "Xid79"))
        await world.settle()
        closed = [one for one in ("n1", "n2") if "quarantine" in taints(world, one)]
        (is_open,) = {"n1", "n2"} - set(closed)
        assert len(closed) == 1
        assert taints(world, is_open) == {"suspect": "Xid79:PreferNoSchedule"}
        node = world.get(names.NODE, is_open)
        assert left_open(node["metadata"]["annotations"]) == "Xid79"
        (row,) = listed([node], [])
        assert row["status"].endswith("NotQuarantined")
        assert "still gets pods" in notes([row])[0]
        said = events(world, "QuarantineLimitReached")
        assert any("still gets pods" in one and "; on it: " in one for one in said)

    play(story)
