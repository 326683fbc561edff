"""What runs beside the embedded API: controllers and pods, metrics, ledger and web page.

A module of its own, because this is what takes long to load: the API answers before.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace

from unisono.engine.cycle import plan
from unisono.runtime.embedded.monitoring import monitored
from unisono.runtime.embedded.server import Answering, Choices, working
from unisono.runtime.instance import Instance, InstanceError
from unisono.runtime.log import warn
from unisono.runtime.memory import calm_collector, give_back, give_back_when_idle
from unisono.runtime.preload import preload
from unisono.runtime.recording import recorder
from unisono.runtime.scheduler_metrics import Timed


@contextlib.asynccontextmanager
async def services(
    there: Answering, instance: Instance, choices: Choices
) -> AsyncIterator[Mapping[str, str]]:
    """Run everything beside the API while the block lasts; yield the addresses of the pages."""
    await asyncio.get_running_loop().run_in_executor(None, preload)
    timed = Timed(plan if choices.record is None else recorder(choices.record).plan)
    # With several users, metrics and page would show all of them each other's jobs.
    port = 0 if choices.metrics_port is None and choices.users else choices.metrics_port
    async with (
        working(there, instance, replace(choices, decides=timed)) as cluster,
        monitored(
            cluster,
            instance,
            timed,
            port=port,
            extent=choices.gpu_metrics,
            reuse=there.settings.buying.reuse,
            grafana=choices.grafana,
        ) as pages,
    ):
        taken = int(there.url.rpartition(":")[2])
        # instance.json holds no token: it is not a secret.
        addresses = {name: address.partition("#")[0] for name, address in pages.items()}
        try:
            instance.remember(pid=os.getpid(), url=there.url, port=taken, **addresses)
        except InstanceError as error:
            # It works without; only commands that open a page do not find it then.
            warn(str(error))
        calm_collector()

        def spare() -> None:
            # Caches for quick reading go first, then what that leaves free.
            there.api.forget()
            cluster.at_work.view.forget()
            give_back()

        async with asyncio.TaskGroup() as tasks:
            tidying = tasks.create_task(give_back_when_idle(spare))
            try:
                yield pages
            finally:
                tidying.cancel()
