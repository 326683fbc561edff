"""Everybody who works on an embedded API: controllers, pods, and the pages with their figures.

Apart from `up`, because this is what takes long to load: the API answers before it is there.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import replace

from unisono.cli.collector import calm_collector
from unisono.cli.embedded import Answering, Choices, working
from unisono.cli.instance import Instance, InstanceError
from unisono.cli.monitoring import monitored
from unisono.cli.preload import preload
from unisono.cli.recording import recorder
from unisono.cli.spare_memory import give_back, give_back_when_idle
from unisono.cli.timing import Timed
from unisono.engine.cycle import plan


@contextlib.asynccontextmanager
async def at_work(
    there: Answering, instance: Instance, arguments: argparse.Namespace, choices: Choices
) -> AsyncIterator[None]:
    """Work, and tell where the figures are, while the block lasts."""
    await asyncio.get_running_loop().run_in_executor(None, preload)
    timed = Timed(plan if arguments.record is None else recorder(arguments.record).plan)
    # With several users, who runs what is not everybody's business.
    port = 0 if arguments.users is not None else None
    port = arguments.metrics_port if arguments.metrics_port is not None else port
    async with (
        working(there, instance, replace(choices, decides=timed)) as cluster,
        monitored(
            cluster,
            instance,
            timed,
            port=port,
            extent=arguments.gpu_metrics,
            reuse=there.settings.buying.reuse,
        ) as pages,
    ):
        taken = int(there.url.rpartition(":")[2])
        # What is remembered may be shown to anybody; what signs somebody in may not.
        addresses = {name: address.partition("#")[0] for name, address in pages.items()}
        try:
            instance.remember(pid=os.getpid(), url=there.url, port=taken, **addresses)
        except InstanceError as trouble:
            # It works without; only commands that open a page do not find it then.
            print(f"unisono: warning: {trouble}", file=sys.stderr)
        for name, address in pages.items():
            print(f"{name:<10}  {address}")
        calm_collector()

        def spare() -> None:
            # What was read for quick looking goes first, and then what that leaves free.
            there.api.forget()
            cluster.at_work.view.forget()
            give_back()

        async with asyncio.TaskGroup() as tasks:
            tidying = tasks.create_task(give_back_when_idle(spare))
            try:
                yield
            finally:
                tidying.cancel()
