"""Objects may be dated in a kubelet's future: its clock was set back, or the API's is ahead."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.runner.process.test_kubelet import Stage
from tests.runner.simulated_world import node, pod, simulated_world, word
from tests.support.control_world import Jumping, World
from unisono.control.conditions import timestamp
from unisono.control.names import NODE, POD
from unisono.kinds.overriding import override
from unisono.kube.form import Json

HOUR = 3600.0


class Wall(Jumping):
    """A clock on the wall, which can be set; nothing that is measured notices."""

    ahead = 0.0

    @override
    def now(self) -> float:
        return self.time + self.ahead


WORLDS: dict[str, Callable[[], World]] = {
    "simulated": simulated_world,
    "process": lambda: Stage().world,
}
both = pytest.mark.parametrize("is_set_back", [True, False], ids=["set back", "API ahead"])


@pytest.fixture(params=WORLDS)
def world(request: pytest.FixtureRequest) -> World:
    """Return a world with either kubelet."""
    return WORLDS[request.param]()


Dated = Callable[[], Awaitable[None]]


def after(seconds: float, world: World, manifest: Json, dated: Dated, *, is_set_back: bool) -> str:
    """Have something dated by a clock that is an hour ahead; return how the pod stands later.

    If the clock is set back, all components were ahead and restart; else the API alone is.
    """

    async def run() -> str:
        world.clock = clock = Wall()
        clock.ahead = HOUR if is_set_back else 0.0
        async with world.running():
            await world.create(node())
            await world.client.create(manifest)
            await world.settle()
            assert word(world) == "Ready"
            clock.ahead = HOUR
            await dated()
            if is_set_back:
                await world.settle()
                world.restart()
            clock.ahead = 0.0
            await world.pass_time(seconds)
            return word(world)

    return asyncio.run(run())


@both
def test_a_grace_is_not_longer_by_what_the_clocks_differ(world: World, is_set_back: bool) -> None:
    async def told_to_stop() -> None:
        await world.client.delete(POD, "p", "default")

    endless = pod(command=["sleep", "9999"], says={"stop-seconds": "9999"})
    assert after(28, world, endless, told_to_stop, is_set_back=is_set_back) == "Ready"
    assert after(33, world, endless, told_to_stop, is_set_back=is_set_back) == "gone"


@both
def test_a_node_is_not_waited_for_longer(world: World, is_set_back: bool) -> None:
    async def not_ready() -> None:
        (ready,) = node()["status"]["conditions"]
        lost = {**ready, "status": "Unknown", "lastTransitionTime": timestamp(world.clock.now())}
        await world.set_status(NODE, "n1", {"conditions": [lost]}, namespace="")

    endless = pod(command=["sleep", "9999"])
    assert after(9, world, endless, not_ready, is_set_back=is_set_back) == "Ready"
    assert after(11, world, endless, not_ready, is_set_back=is_set_back) == "Failed"


def test_a_deadline_is_not_later_by_what_the_clocks_differ(world: World) -> None:
    async def nothing() -> None:
        pass

    limited = pod(command=["sleep", "9999"], activeDeadlineSeconds=100)
    assert after(99, world, limited, nothing, is_set_back=True) == "Ready"
    # A process that does not stop by itself has its grace.
    assert after(135, world, limited, nothing, is_set_back=True) == "Failed"
