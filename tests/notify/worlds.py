"""A control plane with the controllers of notifications, and a postman instead of a network."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.support.control_objects import node, queue
from tests.support.control_world import World
from unisono.control.assembly import Assembly, embedded
from unisono.control.names import WORKLOAD
from unisono.control.view import View
from unisono.engine.model.policy import Policy
from unisono.kinds.decode import decode
from unisono.kinds.notifying import NOTIFIED
from unisono.kinds.policy.notifications import Notifications
from unisono.kinds.policy.settings import Settings
from unisono.kube.form import Json, Key
from unisono.notify.controller import ARRAYS, NAME, ArrayNotifier, LivePolicy, Notifier, Teller
from unisono.notify.events import read_told
from unisono.notify.messages import title
from unisono.notify.outbox import Letter, Outbox
from unisono.runner.simulated.kubelet import SimulatedKubelet, Simulation

MAIL: Json = {
    "server": "mail.example.org",
    "from": "unisono@example.org",
    "domain": "example.org",
    "recipients": ["boss@other.org"],
}


def section(**fields: Any) -> Notifications:
    """Return the section of a policy."""
    made, problems = decode(Notifications, fields)
    assert made is not None, problems
    return made


class Postman:
    """Delivers at once what the outbox has, and remembers it."""

    def __init__(self) -> None:
        self.outbox = Outbox()
        self.letters: list[Letter] = []
        self.awoken = 0

    def awake(self) -> None:
        self.awoken += 1

    def assembled(self, view: View, settings: Settings) -> Assembly:
        """Return the controllers of a process that has just started."""
        self.outbox = Outbox()
        made = embedded(view, settings)
        teller = Teller(LivePolicy(settings, self.outbox), self.outbox, self.awake)
        kubelet = SimulatedKubelet(Simulation())
        ours = (Notifier(teller), ArrayNotifier(teller))
        return Assembly(made.scheduler, (*made.controllers, *ours, kubelet))

    async def deliver(self, world: World) -> list[tuple[str, str]]:
        """Deliver all, let the controllers record it, and return targets with titles."""
        await world.settle()
        found: list[Letter] = []
        while deliveries := list(self.outbox.take(world.clock.now())):
            for delivery in deliveries:
                self.outbox.delivered(delivery, world.clock.now())
                found += delivery.letters
                for one in delivery.notices:
                    about = one.subject
                    key = Key(about.namespace, about.workload)
                    world.driver.want(ARRAYS if about.is_array else NAME, key)
            await world.settle()
        self.letters += found
        return [(one.target.key.removeprefix("mail to "), title(one.notice)) for one in found]


def play(
    story: Callable[[World, Postman], Awaitable[None]],
    notifications: Notifications | None,
    policy: Policy | None = None,
) -> None:
    """Run a story on a new cluster with sixteen GPUs."""
    postman = Postman()

    async def run() -> None:
        settings = Settings(notifications=notifications, policy=policy or Policy())
        world = World(assemble=postman.assembled, settings=settings)
        async with world.running():
            await world.create(node("n1"), node("n2"), *queue())
            await story(world, postman)

    asyncio.run(run())


def record(world: World, index: int = 0) -> dict[str, str]:
    """Return what is recorded as told of a Workload."""
    found = world.every(WORKLOAD)[index]["metadata"]["annotations"]
    return read_told(found.get(NOTIFIED, ""))
