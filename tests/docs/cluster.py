"""The cluster that a page starts with `unisono up`: the same parts, in a thread of this process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

from unisono.cli import up
from unisono.runtime.embedded.server import Choices, running
from unisono.runtime.instance import Instance
from unisono.runtime.policy_file import chosen_policy

_SECONDS_TO_START = 120


class Cluster:
    """An embedded cluster with the options of `unisono up`, until it is stopped."""

    def __init__(self, words: Sequence[str], directory: Path) -> None:
        self._arguments = up.parser().parse_args(list(words))
        self.instance = Instance(directory)
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._trouble: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self.instance.prepare()
        self._thread.start()
        assert self._ready.wait(_SECONDS_TO_START), "the cluster did not start"
        if self._trouble is not None:
            raise self._trouble

    def stop(self) -> None:
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_SECONDS_TO_START)
        assert not self._thread.is_alive(), "the cluster did not stop"

    def _run(self) -> None:
        try:
            asyncio.run(self._until_stopped())
        except BaseException as error:  # noqa: BLE001 (told in the thread of the test)
            self._trouble = error
        finally:
            self._ready.set()

    async def _until_stopped(self) -> None:
        given = self._arguments
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        shape = "none" if given.nodes is None and given.pools else given.nodes
        choices = Choices(
            pods=given.pods,
            speed=given.speed,
            is_power_safe=False,
            policy=chosen_policy(self.instance, given.policy) if given.policy else None,
            objects=up.pools_of_file(given.pools) if given.pools is not None else (),
        )
        nodes = up._nodes(shape, is_first=True)
        async with running(self.instance, choices, nodes):
            self._ready.set()
            await self._stop.wait()
