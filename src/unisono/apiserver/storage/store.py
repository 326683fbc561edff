"""The objects: two views, one writer.

A write is decided in the event loop without awaiting anything, against the *staged* view, which
has every write so far; then its batch is committed by the writer's thread while the next batch
gathers. Readers and watchers see the *committed* view only. So two writers can never both win, a
read never shows what a crash could take back, and a slow disk delays no watch.

    newest(…)  put(…)  remove(…)       staged: for the next write
    await committed()                  until everything staged so far is on disk
    get(…)  listing(…)  history(…)     committed

If a commit fails (a full disk), everything staged since is taken back and its writers are told.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson

from unisono.apiserver.storage.database import UNLOGGED, Database, is_full
from unisono.apiserver.storage.history import History
from unisono.apiserver.storage.record import Change, Key, Kind, Record

# How much past is kept, over all kinds. A watcher that is further behind starts anew.
MAX_HISTORY_CHANGES = 50_000
MAX_HISTORY_BYTES = 24 * 1024 * 1024

# When so much was written, the next pause of a second is used to tidy up the files.
_UNSETTLED_BYTES = 1024 * 1024
_PAUSE_SECONDS = 1.0

# Each write that waits for a batch has a future of its own: cancelling one leaves the others.
Waiters = list[asyncio.Future[None]]


class WriteFailed(Exception):
    """A write could not be made durable; nothing of it remains."""

    def __init__(self, path: object, error: BaseException) -> None:
        """Take the file, and what went wrong."""
        self.is_full = is_full(error)
        why = "the disk is full; free some space and try again" if self.is_full else str(error)
        super().__init__(f"could not be stored in {path}: {why}")


class TooLarge(Exception):
    """An object is larger than its author may store."""

    def __init__(self, size: int, most: int) -> None:
        """Take both in bytes."""
        super().__init__(f"the object takes {size} bytes; at most {most} are allowed")
        self.size, self.most = size, most


class Store:
    """All objects of all kinds."""

    def __init__(self, database: Database) -> None:
        """Read everything that the database holds."""
        self._database = database
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._rv, records = database.load()
        self._committed_rv = self._rv
        self._kinds: dict[str, dict[tuple[str, str], Record]] = {}
        self._order: dict[str, list[tuple[str, str]]] = {}  # keys of a kind, sorted
        self._sorted: dict[str, list[Record]] = {}
        self._histories: dict[str, History] = {}
        self._overlay: dict[Key, tuple[int, Record | None]] = {}
        self._stamps: dict[str, int] = {}
        self._unstamped = 0
        self._pending: list[Change] = []
        self._batch: Waiters | None = None  # for what is pending
        self._writing: Waiters | None = None  # for what the thread has in hand
        # The past in order: the version and the bytes of each change, and all bytes together.
        self._versions, self._sizes = array("q"), array("q")
        self._past_bytes = 0
        self._trim_to = 0
        self._unsettled = 0  # bytes
        self._fold_timer: asyncio.TimerHandle | None = None
        self.on_change: list[Callable[[Change], None]] = []  # called when a change is committed
        for record in records:
            self._kinds.setdefault(record.key[0], {})[record.key[1:]] = record
        self._boot = self._rv
        self._start = self._load_history()

    def _load_history(self) -> int:
        changes = self._database.history(self._rv)
        start = changes[0].rv - 1 if changes else self._rv
        for change in changes:
            self._histories.setdefault(change.record.key[0], History(start)).append(change)
            self._add_to_past(change)
        return start

    def close(self) -> None:
        """Finish what is being written and let go of the file; call after `committed`."""
        if self._fold_timer is not None:
            self._fold_timer.cancel()
        self._writer.shutdown()
        self._database.close()

    def is_in_place(self) -> bool:
        """Say whether what is written now will be there at the next start."""
        return self._database.is_in_place()

    # ---- the committed view ------------------------------------------------------------------

    @property
    def rv(self) -> int:
        """The newest version that readers can see."""
        return self._committed_rv

    def get(self, key: Key) -> Record | None:
        """Return an object."""
        kind = self._kinds.get(key[0])
        return kind.get(key[1:]) if kind else None

    def listing(self, kind: str) -> Sequence[Record]:
        """Return all objects of a kind by namespace and name. The list never changes."""
        found = self._sorted.get(kind)
        if found is None:
            objects = self._kinds.get(kind, {})
            order = self._order.get(kind)
            if order is None:
                order = self._order[kind] = sorted(objects)
            found = self._sorted[kind] = [objects[key] for key in order]
        return found

    def count(self, kind: str) -> int:
        """Return how many objects of a kind there are."""
        return len(self._kinds.get(kind, ()))

    def kinds(self) -> Iterator[tuple[str, int]]:
        """Yield each kind that has objects, and how many."""
        for kind, objects in self._kinds.items():
            if objects:
                yield kind, len(objects)

    def history(self, kind: str) -> History:
        """Return the recent past of a kind."""
        found = self._histories.get(kind)
        if found is None:
            # Of kinds that are not logged nothing from before this start is known.
            start = self._boot if kind in UNLOGGED else self._start
            found = self._histories[kind] = History(start)
        return found

    def wake_all(self) -> None:
        """Wake all watchers."""
        for history in self._histories.values():
            history.wake()

    def listing_at(self, kind: str, rv: int) -> Sequence[Record] | None:
        """Return all objects of a kind as of a version, or None if that is forgotten."""
        history = self.history(kind)
        if rv < history.complete_after:
            return None
        changes = history.after(rv)
        if not changes:
            return self.listing(kind)
        objects = dict(self._kinds.get(kind, {}))
        for change in reversed(changes):
            key = change.record.key[1:]
            if change.kind is Kind.ADDED:
                objects.pop(key, None)
            elif change.previous is None:
                return None  # from before the last start: what it was is not known
            else:
                objects[key] = change.previous
        return [objects[key] for key in sorted(objects)]

    # ---- the staged view ---------------------------------------------------------------------

    def newest(self, key: Key) -> Record | None:
        """Return an object as the next writer has to see it."""
        staged = self._overlay.get(key)
        if staged is not None:
            return staged[1]
        kind = self._kinds.get(key[0])
        return kind.get(key[1:]) if kind else None

    def newest_of(self, kind: str) -> Iterator[Record]:
        """Yield the objects of a kind as the next writer has to see them, in no certain order."""
        for key, record in self._kinds.get(kind, {}).items():
            if (kind, *key) not in self._overlay:
                yield record
        for full, (_, staged) in list(self._overlay.items()):
            if full[0] == kind and staged is not None:
                yield staged

    def stamp(self, kind: str) -> int:
        """Return a number that is another one whenever objects of a kind are staged otherwise."""
        return self._stamps.get(kind, self._unstamped)

    def put(self, key: Key, obj: dict[str, Any], *, most_bytes: int = 0) -> Record:
        """Stage an object, new or changed; its resourceVersion is set here.

        Raises `TooLarge`, and stages nothing, for one of more than `most_bytes`, if that is given,
        unless it was as large before: what is stored already must be able to shrink and to go.
        """
        previous = self.newest(key)
        rv = self._next_version(obj)
        data = _encoded(obj)
        if most_bytes and len(data) > max(most_bytes, len(previous.data) if previous else 0):
            self._rv -= 1
            raise TooLarge(len(data), most_bytes)
        record = Record(key, rv, data, obj["metadata"])
        kind = Kind.ADDED if previous is None else Kind.MODIFIED
        self._stage(Change(rv, kind, record, previous), record)
        return record

    def remove(self, key: Key, obj: dict[str, Any]) -> Record:
        """Stage the end of an object; `obj` is its last state."""
        previous = self.newest(key)
        rv = self._next_version(obj)
        record = Record(key, rv, _encoded(obj), obj["metadata"])
        self._stage(Change(rv, Kind.DELETED, record, previous), None)
        return record

    async def committed(self) -> None:
        """Wait until all that is staged now is durable."""
        batch = self._batch if self._batch is not None else self._writing
        if batch is not None:
            waiter = asyncio.get_running_loop().create_future()
            batch.append(waiter)
            await waiter

    def _next_version(self, obj: dict[str, Any]) -> int:
        self._rv += 1
        obj["metadata"]["resourceVersion"] = str(self._rv)
        return self._rv

    def _stage(self, change: Change, record: Record | None) -> None:
        self._pending.append(change)
        self._overlay[change.record.key] = (change.rv, record)
        self._stamps[change.record.key[0]] = change.rv
        if self._batch is None:
            self._batch = []
            if self._writing is None:
                # Not at once: whatever else this turn of the loop stages joins the batch.
                asyncio.get_running_loop().call_soon(self._commit)

    def _commit(self) -> None:
        if self._writing is not None or self._batch is None:
            return
        batch, self._pending = self._pending, []
        outcome = self._writing = self._batch
        self._batch = None
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._writer, self._database.commit, batch, self._trim_to)
        work.add_done_callback(lambda done: self._end(batch, outcome, done.exception()))

    def _end(self, batch: list[Change], waiters: Waiters, error: BaseException | None) -> None:
        self._writing = None
        if error is not None:
            self._take_back(waiters, error)
            return
        touched = self._publish(batch)
        # Writers before watchers: a controller of ours that knows what it wrote need not read it
        # again from its watch.
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
        for history in touched:
            history.wake()
        self._unsettled += sum(len(change.record.data) for change in batch)
        if self._batch is not None:
            self._commit()
        elif self._unsettled > _UNSETTLED_BYTES and self._fold_timer is None:
            loop = asyncio.get_running_loop()
            self._fold_timer = loop.call_later(_PAUSE_SECONDS, self._settle, self._rv)

    def _settle(self, rv: int) -> None:
        """Tidy up the files if nothing was written since a version; else look again."""
        self._fold_timer = None
        loop = asyncio.get_running_loop()
        if rv != self._rv:
            self._fold_timer = loop.call_later(_PAUSE_SECONDS, self._settle, self._rv)
            return
        self._unsettled = 0
        loop.run_in_executor(self._writer, self._database.settle)

    def _take_back(self, waiters: Waiters, error: BaseException) -> None:
        """Undo everything staged: later writes were decided on what has now not happened."""
        failed = [*waiters, *(self._batch or ())]
        self._pending, self._batch = [], None
        self._overlay.clear()
        self._stamps.clear()
        self._unstamped -= 1  # as no version ever was
        for waiter in failed:
            if not waiter.done():
                waiter.set_exception(WriteFailed(self._database.path, error))

    def _publish(self, batch: list[Change]) -> Iterable[History]:
        """Let readers see a batch; return the histories that changed."""
        touched: dict[str, History] = {}
        for change in batch:
            key = change.record.key
            kind = key[0]
            objects = self._kinds.setdefault(kind, {})
            if change.kind is Kind.DELETED:
                objects.pop(key[1:], None)
            else:
                objects[key[1:]] = change.record
            self._sorted.pop(kind, None)
            if change.kind is not Kind.MODIFIED:
                self._order.pop(kind, None)
            staged = self._overlay.get(key)
            if staged is not None and staged[0] == change.rv:
                del self._overlay[key]
            history = self.history(kind)
            history.append(change)
            self._add_to_past(change)
            touched[kind] = history
        self._committed_rv = batch[-1].rv
        self._forget()
        for change in batch:
            for listener in self.on_change:
                listener(change)
        return touched.values()

    def _add_to_past(self, change: Change) -> None:
        size = len(change.record.data)
        self._versions.append(change.rv)
        self._sizes.append(size)
        self._past_bytes += size

    def _forget(self) -> None:
        """Keep the past within its bounds, over all kinds together."""
        count, size = len(self._versions), self._past_bytes
        if count <= MAX_HISTORY_CHANGES and size <= MAX_HISTORY_BYTES:
            return
        # Drop a tenth more than needed, so that this is rare.
        limit, room = MAX_HISTORY_CHANGES * 9 // 10, MAX_HISTORY_BYTES * 9 // 10
        cut = 0
        while cut < count and (count - cut > limit or size > room):
            size -= self._sizes[cut]
            cut += 1
        self._past_bytes = size
        self._trim_to = self._versions[cut - 1]
        del self._versions[:cut], self._sizes[:cut]
        for history in self._histories.values():
            history.forget(self._trim_to)


def _encoded(obj: dict[str, Any]) -> bytes:
    """Return an object as JSON, in no more memory than it needs.

    The encoder's own buffer is several times larger and would live as long as the object.
    """
    return bytes(memoryview(orjson.dumps(obj)))
