"""All informers of a process together: started, waited for, and asked how they are."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator, Sequence
from typing import Any

from unisono.kube.informer import Informer


class Caches:
    """The informers of a process."""

    def __init__(self, informers: Sequence[Informer[Any]]) -> None:
        """Take them in; the order is that of reports."""
        self._informers = tuple(informers)

    async def run(self) -> None:
        """Run all of them until cancelled."""
        async with asyncio.TaskGroup() as group:
            for each in self._informers:
                group.create_task(each.run())

    async def synced(self) -> None:
        """Wait until all of them are whole.

        What they hold then mostly stays, so the collector need not look at it every time.
        """
        for each in self._informers:
            await each.synced()
        gc.freeze()

    def not_ready(self) -> Iterator[str]:
        """Yield what is not whole yet, and why, for `/readyz`."""
        for each in self._informers:
            if not each.has_synced:
                reason = f": {each.last_trouble}" if each.last_trouble is not None else ""
                yield f"{each.kind.kind} is not read yet{reason}"

    def stale(self) -> Iterator[str]:
        """Yield what has not followed the API for too long, for `/livez`."""
        for each in self._informers:
            if each.is_stale():
                yield f"{each.kind.kind} has had no sign of the API for {each.silent_for():.0f} s"

    def silent_for(self) -> dict[str, float]:
        """Return the seconds since the last sign, by kind: `informer_last_event_seconds`."""
        return {each.kind.kind: each.silent_for() for each in self._informers if each.has_synced}
