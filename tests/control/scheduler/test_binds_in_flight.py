"""Pods that were bound keep their place before the view shows it."""

from __future__ import annotations

import asyncio

from tests.control.stories import gpu_node, told
from tests.runner.simulated_world import pod
from tests.support.control_world import World
from unisono.control import names
from unisono.control.scheduler.writes_in_flight import BindsInFlight
from unisono.kube.form import Key
from unisono.kube.transport import Transport

NOW = 1_700_000_000.0


class OverHttp:
    """Lets only requests through, as over HTTP, where a binding has no answer to look at."""

    def __init__(self, inner: Transport) -> None:
        self.request, self.stream = inner.request, inner.stream


def test_a_bound_pod_does_not_wait_until_the_view_shows_it() -> None:
    """Its place was given to others: read again before its echo came, it seemed to wait."""

    async def story(world: World) -> None:
        await world.create(gpu_node("n1", 8), pod("p", on=None))
        await world.store.committed()
        world.pump()
        while await world.driver.step() is not None:  # no watch event arrives meanwhile
            pass
        assert world.get(names.POD, "p")["spec"]["nodeName"] == "n1"
        (seen,) = world.view.all(names.POD)
        assert "nodeName" not in seen["spec"]
        world.driver.want("scheduler", Key("", "cycle"))
        while await world.driver.step() is not None:
            pass
        scheduler = world.assembly.scheduler
        assert "pod:default/p" not in scheduler.state.waiting
        assert list(scheduler.state.nodes.pods) == ["default/p"]
        await world.settle()
        assert list(scheduler.state.nodes.pods) == ["default/p"]
        await world.client.delete(names.POD, "p", "default", grace_s=0)
        await world.settle()
        assert not any(scheduler.state.nodes.pods)

    async def run() -> None:
        async with World(wrap=OverHttp).running() as world:
            await story(world)

    asyncio.run(run())


def test_a_waiting_pod_that_is_deleted_waits_no_more() -> None:
    async def story(world: World) -> None:
        await world.create(pod("p", on=None))
        await world.settle()
        assert "pod:default/p" in world.assembly.scheduler.state.waiting
        await world.client.delete(names.POD, "p", "default", grace_s=0)
        await world.settle()
        assert not world.assembly.scheduler.state.waiting

    told(story)


def test_a_binding_whose_answer_was_lost_keeps_its_place_for_a_while() -> None:
    sent = BindsInFlight()
    one = {"metadata": {"name": "p", "namespace": "default", "uid": "1"}, "spec": {}}
    block = sent.writing(NOW)
    block.__enter__()
    sent.note(one, "n1")
    assert not block.__exit__(GeneratorExit, GeneratorExit(), None)
    assert (sent.node_of(one), sent.next_due()) == ("n1", NOW + 30)
    assert list(sent.expired(NOW + 29)) == []
    assert list(sent.expired(NOW + 30)) == [Key("default", "p")]
    assert sent.node_of(one) == ""
    with sent.writing(NOW):
        sent.note(one, "n1")
    assert sent.next_due() is None
    another = {**one, "metadata": {**one["metadata"], "uid": "2"}}
    assert sent.node_of(another) == ""
