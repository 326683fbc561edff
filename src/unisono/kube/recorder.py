"""Tells people what happened, as Events, without flooding anybody.

    record(…)  →  queue of 1000 (the oldest is dropped)  →  correlator  →  create or patch

Recording never waits and never fails: an event is a courtesy, not a promise. `flush` writes what is
queued; `run` does so whenever there is something.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any

from unisono.kube.client import Client
from unisono.kube.clock import Clock
from unisono.kube.correlator import Correlator, Count, Create, Note, Reference
from unisono.kube.mapping import EVENT
from unisono.kube.trouble import KubeTrouble, NotFound

MOST_QUEUED = 1000


class Recorder:
    """Writes Events about objects."""

    def __init__(
        self, client: Client, *, clock: Clock, component: str = "unisono", instance: str = ""
    ) -> None:
        """Prepare; component and instance are named in every event."""
        self._client = client
        self._clock = clock
        self._queue: deque[Note] = deque()
        self._bell = asyncio.Event()
        self.correlator = Correlator(component=component, instance=instance)
        self.dropped = 0  # the queue was full, or the API would not have it

    def record(
        self,
        about: Mapping[str, Any],
        type_: str,
        reason: str,
        message: str,
        *,
        related: Mapping[str, Any] | None = None,
    ) -> None:
        """Tell something about an object; `related` is who caused it, such as a preemptor."""
        note = Note(
            about=Reference.of(about),
            type=type_,
            reason=reason,
            message=message,
            related=None if related is None else Reference.of(related),
            at=self._clock.now(),
        )
        if len(self._queue) >= MOST_QUEUED:
            self._queue.popleft()
            self.dropped += 1
        self._queue.append(note)
        self._bell.set()

    async def run(self) -> None:
        """Write events until cancelled."""
        while True:
            await self._bell.wait()
            self._bell.clear()
            await self.flush()

    async def flush(self) -> None:
        """Write what is queued."""
        while self._queue:
            await self._write(self._queue.popleft())

    async def _write(self, note: Note) -> None:
        try:
            match self.correlator.decide(note):
                case Create(event):
                    await self._client.create(event)
                case Count(name, namespace, changes):
                    try:
                        await self._client.patch(EVENT, name, namespace, changes)
                    except NotFound:  # events do not live long
                        await self._client.create(self.correlator.again(note).event)
                case None:
                    self.dropped += 1
        except KubeTrouble:
            self.dropped += 1
