"""What the lists print about one busy cluster, kept in `tables/NAME.txt` to be looked at.

`python -m tests.cli.table_stories` writes these files anew: review the diff like code.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
from collections.abc import Awaitable, Callable
from pathlib import Path
from unittest import mock

from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import job, node, priority, queue
from tests.support.control_world import World
from unisono.cli import nodes, queues, workloads
from unisono.cli.listing import Reads, show
from unisono.cli.plan import command as plan
from unisono.kube.client import Client
from unisono.runtime.clock import RealClock

Prints = Callable[[Client, argparse.Namespace], Awaitable[int]]

FOLDER = Path(__file__).with_name("tables")


def _listing(reads: Reads) -> Prints:
    return lambda client, arguments: show(client, arguments, reads)


COMMANDS: dict[str, tuple[Prints, list[str]]] = {
    "queues": (_listing(queues.read), []),
    "queues-wide": (_listing(queues.read), ["-o", "wide"]),
    "workloads": (_listing(workloads.read), ["-A"]),
    "workloads-wide": (_listing(workloads.read), ["-A", "-o", "wide"]),
    "nodes": (_listing(nodes.read), []),
    "nodes-wide": (_listing(nodes.read), ["-o", "wide"]),
    "plan": (plan._living, []),
    "plan-wide": (plan._living, ["-A", "-o", "wide"]),
}
_PARSERS = {"queues": queues, "workloads": workloads, "nodes": nodes, "plan": plan}


def printed() -> dict[str, str]:
    """Return what every command prints about the same cluster."""

    async def run() -> dict[str, str]:
        world = simulated_world()
        async with world.running():
            await _busy(world)
            with mock.patch.object(RealClock, "now", return_value=world.clock.now()):
                return {name: await _print(world, name) for name in COMMANDS}

    return asyncio.run(run())


async def _print(world: World, name: str) -> str:
    prints, words = COMMANDS[name]
    arguments = _PARSERS[name.partition("-")[0]].parser().parse_args(words)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        await prints(world.client, arguments)
    return out.getvalue()


async def _busy(world: World) -> None:
    """One gang runs on more than its queue owns; others wait for quota, or are held."""
    flavor, vision, door = queue("vision", gpus=8)
    _, language, other_door = queue("language", gpus=16)
    for one in (vision, language):
        one["spec"]["cohortName"] = "research"
    await world.create(*(node(f"n{number}") for number in range(1, 4)), flavor)
    await world.create(vision, door, language, other_door, priority("urgent", 100))
    runs = job("pretrain", seconds=7200, queue_name="lq-vision")
    runs["metadata"]["annotations"] = {"unisono.dev/time-limit": "2h"}
    await world.create(runs)
    await world.settle()
    waits = job("reward-model", queue_name="lq-language", priority_class="urgent")
    waits["metadata"]["annotations"] = {"unisono.dev/time-limit": "30m"}
    held = job("ablation", pods=1, queue_name="lq-language")
    held["metadata"]["annotations"] = {"unisono.dev/hold": "user"}
    await world.create(waits, held, job("eval", queue_name="lq-vision"))
    await world.pass_time(600)


def main() -> None:
    """Write what is printed now into the files."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in printed().items():
        (FOLDER / f"{name}.txt").write_text(text, encoding="utf-8")
        print(f"{name}.txt")


if __name__ == "__main__":
    main()
