"""Tells people what happened, as Events, without flooding anybody.

    record(…)  →  queue of 1000 (the oldest is dropped)  →  correlator  →  create or patch

Recording never waits and never fails: an event is a courtesy, not a promise. `flush` writes what is
queued; `run` does so with what has been queued for a moment. News that says all that another did
about the same object, and more, may take its place until then: a job that is created and started at
once is one event and not two.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from unisono.kube.client import Client
from unisono.kube.clock import Clock
from unisono.kube.correlator import Correlator, Count, Create, Note, Reference
from unisono.kube.direct import Order
from unisono.kube.form import Json
from unisono.kube.mapping import EVENT
from unisono.kube.trouble import KubeTrouble, NotFound

MOST_QUEUED = 1000
# So many are written together: enough for a burst, few enough that nothing else waits for them.
MOST_AT_ONCE = 16
# So long an event may be overtaken by the next; nobody reads them faster.
OVERTAKEN_WITHIN_S = 2.0


_Word = tuple[tuple[str, str, str, str], str]  # an object, and a reason


class Recorder:
    """Writes Events about objects."""

    def __init__(
        self, client: Client, *, clock: Clock, component: str = "unisono", instance: str = ""
    ) -> None:
        """Prepare; component and instance are named in every event."""
        self._client = client
        self._clock = clock
        self._queue: OrderedDict[int, Note] = OrderedDict()  # by their numbers
        self._last: dict[_Word, int] = {}  # the last of them about an object for a reason
        self._numbers = itertools.count()
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
        instead_of: Sequence[str] = (),
    ) -> None:
        """Tell something about an object; `related` is who caused it, such as a preemptor.

        What was told for one of the reasons of `instead_of` and is not written yet never will be.
        """
        note = Note(
            about=Reference.of(about),
            type=type_,
            reason=reason,
            message=message,
            related=None if related is None else Reference.of(related),
            at=self._clock.now(),
        )
        for other in instead_of:
            overtaken = self._last.pop((note.about.identity, other), None)
            if overtaken is not None:
                del self._queue[overtaken]
        if len(self._queue) >= MOST_QUEUED:
            self._take()
            self.dropped += 1
        number = next(self._numbers)
        self._queue[number] = note
        self._last[note.about.identity, reason] = number
        self._bell.set()

    async def run(self) -> None:
        """Write events until cancelled."""
        while True:
            await self._bell.wait()
            self._bell.clear()
            began = self._clock.now()
            await self._clock.sleep(OVERTAKEN_WITHIN_S)
            await self.flush(until=began)
            if self._queue:
                self._bell.set()

    async def flush(self, *, until: float = math.inf) -> None:
        """Write what was queued until a time, some at a time."""
        held: tuple[Note, Order] | None = None
        while self._has(until) or held is not None:
            decided, held = self._some([] if held is None else [held], until)
            lost = [note for note, trouble in await self._write(decided) if _is_gone(trouble)]
            anew = [(note, _create(self.correlator.again(note).event)) for note in lost]
            self.dropped += sum(_is_gone(trouble) for _, trouble in await self._write(anew))

    def _has(self, until: float) -> bool:
        return bool(self._queue) and next(iter(self._queue.values())).at <= until

    def _take(self) -> Note:
        """Take the first note out of the queue."""
        number, note = self._queue.popitem(last=False)
        if self._last.get(word := (note.about.identity, note.reason)) == number:
            del self._last[word]
        return note

    def _some(
        self, decided: list[tuple[Note, Order]], until: float
    ) -> tuple[list[tuple[Note, Order]], tuple[Note, Order] | None]:
        """Take some notes, of each event one: what is written at once arrives in any order."""
        names = {(order.namespace, order.name) for _, order in decided}
        while len(decided) < MOST_AT_ONCE and self._has(until):
            note = self._take()
            order = self._order(note)
            if order is None:
                continue
            if (order.namespace, order.name) in names:
                return decided, (note, order)
            names.add((order.namespace, order.name))
            decided.append((note, order))
        return decided, None

    def _order(self, note: Note) -> Order | None:
        match self.correlator.decide(note):
            case Create(event):
                return _create(event)
            case Count(name, namespace, changes):
                return Order("patch", EVENT, namespace, name, changes)
            case None:
                self.dropped += 1
                return None

    async def _write(self, decided: Sequence[tuple[Note, Order]]) -> list[tuple[Note, KubeTrouble]]:
        """Write events at once; return those of which nothing came."""
        if not decided:
            return []
        try:
            results = await self._client.write([order for _, order in decided], repeats=True)
        except KubeTrouble:
            self.dropped += len(decided)
            return []
        failed = [
            (note, result)
            for (note, _), result in zip(decided, results, strict=True)
            if isinstance(result, KubeTrouble)
        ]
        self.dropped += sum(not _is_gone(trouble) for _, trouble in failed)
        return failed


def _create(event: Json) -> Order:
    metadata = event["metadata"]
    return Order("create", EVENT, metadata["namespace"], metadata["name"], event)


def _is_gone(trouble: KubeTrouble) -> bool:
    """Say whether an event that was to be counted is there no more: they do not live long."""
    return isinstance(trouble, NotFound)
