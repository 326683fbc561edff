"""A small API in memory, with faults on demand: what the client is tested against.

It knows nothing of kinds: a path is a collection, or an object in one. Versions count up over all
collections; watches replay from a history that can be forgotten.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from unisono.kube.errors import Unreachable
from unisono.kube.form import Json
from unisono.kube.transport import NOTHING, Answer, Stream

Fault = Callable[["Asked"], Answer | None]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came in."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def watches(self) -> bool:
        return self.query.get("watch") == "true"


@dataclass(slots=True)
class _Happened:
    version: int
    type: str
    collection: str
    object: Json


@dataclass(slots=True, eq=False)
class _Watcher:
    collection: str
    queue: asyncio.Queue[bytes | Exception | None] = field(default_factory=asyncio.Queue)


def status(code: int, reason: str, message: str = "", **details: Any) -> Json:
    """Make a Status."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message or reason,
        "details": details,
    }


def refuse(code: int, reason: str, *, retry_after: int | None = None, **details: Any) -> Answer:
    """Make an answer that says no."""
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    return Answer(code, headers, orjson.dumps(status(code, reason, **details)))


class FakeApi:
    """A transport with an API behind it."""

    def __init__(self) -> None:
        self.version = 100
        self.collections: dict[str, dict[str, Json]] = {}
        self.history: list[_Happened] = []
        self.forgotten = 0
        self.watch_list: Literal["yes", "invalid", "ignored", "broken"] = "yes"
        self.asked: list[Asked] = []
        self.faults: deque[Fault] = deque()  # one per request, in order
        self.is_silent = False  # nothing more reaches open watches
        self.hangs = False  # no request is answered
        self._watchers: list[_Watcher] = []

    # --- what a test does --------------------------------------------------------------------

    def put(self, collection: str, name: str, /, **content: Any) -> Json:
        """Create or change an object."""
        there = self.collections.setdefault(collection, {})
        old = there.get(name)
        self.version += 1
        metadata = {
            "name": name,
            "namespace": _namespace(collection),
            "uid": f"uid-{self.version}" if old is None else old["metadata"]["uid"],
            "resourceVersion": str(self.version),
        }
        new = {**content, "metadata": {**content.get("metadata", {}), **metadata}}
        there[name] = new
        self._happened("ADDED" if old is None else "MODIFIED", collection, new)
        return new

    def remove(self, collection: str, name: str) -> Json:
        """Delete an object."""
        old = self.collections[collection].pop(name)
        self.version += 1
        metadata = {**old["metadata"], "resourceVersion": str(self.version)}
        self._happened("DELETED", collection, {**old, "metadata": metadata})
        return old

    def forget(self) -> None:
        """Lose the history: watches from the past are answered with 410 from now on."""
        self.history.clear()
        self.forgotten = self.version

    def end_streams(self, how: Literal["closed", "cut"] = "closed") -> None:
        """End all watches, politely or not."""
        for each in self._watchers:
            each.queue.put_nowait(None if how == "closed" else Unreachable("cut", sent=True))
        self._watchers.clear()

    def stall(self) -> None:
        """Leave all watches open, and say nothing there any more."""
        self._watchers.clear()

    def bookmark(self, *, end_of_initial: bool = False) -> None:
        """Send a bookmark to every watch."""
        for each in self._watchers:
            each.queue.put_nowait(self._bookmark(end_of_initial))

    def send(self, line: bytes) -> None:
        """Send any bytes to every watch."""
        for each in self._watchers:
            each.queue.put_nowait(line)

    @property
    def open_streams(self) -> int:
        return len(self._watchers)

    def fail(self, *answers: Answer | Exception | None) -> None:
        """Let the next requests fail like this; None lets one through."""
        self.faults.extend(_fault(answer) for answer in answers)

    def lose_answer(self) -> None:
        """Carry the next request out, and lose the answer."""

        def fault(asked: Asked) -> Answer | None:
            self._answer(asked)
            raise Unreachable("the answer is lost", sent=True)

        self.faults.append(fault)

    # --- the transport -----------------------------------------------------------------------

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = NOTHING,
        headers: Mapping[str, str] = NOTHING,
        body: bytes = b"",
        timeout: float | None = None,
    ) -> Answer:
        asked = await self._take(method, path, query, headers, body, timeout)
        answer = self.faults.popleft()(asked) if self.faults else None
        return answer if answer is not None else self._answer(asked)

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = NOTHING,
        headers: Mapping[str, str] = NOTHING,
        body: bytes = b"",
        timeout: float | None = None,
    ) -> AsyncIterator[Stream]:
        asked = await self._take(method, path, query, headers, body, timeout)
        answer = self.faults.popleft()(asked) if self.faults else None
        if answer is None and asked.query.get("sendInitialEvents") and self.watch_list == "invalid":
            answer = refuse(422, "Invalid")
        if answer is not None:
            yield Stream(answer.code, answer.headers, _one(answer.body))
            return
        watcher = _Watcher(asked.path)
        for line in self._beginning(asked):
            watcher.queue.put_nowait(line)
        self._watchers.append(watcher)
        try:
            yield Stream(200, {}, self._read(watcher))
        finally:
            if watcher in self._watchers:
                self._watchers.remove(watcher)

    async def _take(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
        timeout: float | None,
    ) -> Asked:
        asked = Asked(method, path, dict(query), dict(headers), body)
        self.asked.append(asked)
        if self.hangs:
            await asyncio.sleep(timeout if timeout is not None else 60)
            raise Unreachable("no answer in time", sent=True)
        await asyncio.sleep(0)
        return asked

    async def _read(self, watcher: _Watcher) -> AsyncIterator[bytes]:
        while True:
            piece = await watcher.queue.get()
            if piece is None:
                return
            if isinstance(piece, Exception):
                raise piece
            while self.is_silent:
                await asyncio.sleep(3600)
            yield piece

    # --- what an API does --------------------------------------------------------------------

    def _beginning(self, asked: Asked) -> list[bytes | None]:
        initial = asked.query.get("sendInitialEvents") == "true"
        since = int(asked.query.get("resourceVersion") or 0)
        if initial and self.watch_list == "broken":
            return [_line("ERROR", status(500, "InternalError")), None]
        if initial or not since:
            there = self.collections.get(asked.path, {})
            lines: list[bytes | None] = [_line("ADDED", each) for each in there.values()]
            if initial and self.watch_list == "yes":
                lines.append(self._bookmark(True))
            return lines
        if since < self.forgotten:
            return [_line("ERROR", status(410, "Expired")), None]
        return [
            _line(each.type, each.object)
            for each in self.history
            if each.version > since and each.collection == asked.path
        ]

    def _bookmark(self, end_of_initial: bool) -> bytes:
        metadata: Json = {"resourceVersion": str(self.version)}
        if end_of_initial:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        return _line("BOOKMARK", {"kind": "Pod", "apiVersion": "v1", "metadata": metadata})

    def _happened(self, type_: str, collection: str, new: Json) -> None:
        happened = _Happened(self.version, type_, collection, new)
        self.history.append(happened)
        if not self.is_silent:
            for each in self._watchers:
                if each.collection == collection:
                    each.queue.put_nowait(_line(type_, new))

    def _answer(self, asked: Asked) -> Answer:
        collection, name = asked.path, ""
        if asked.method != "POST" and collection not in self.collections:
            collection, _, name = asked.path.rpartition("/")
        there = self.collections.get(collection)
        if asked.method == "POST":
            return self._create(collection, asked)
        if not name:
            return self._list(asked)
        if there is None or name not in there:
            return refuse(404, "NotFound")
        if asked.method == "GET":
            return Answer(200, {}, orjson.dumps(there[name]))
        if asked.method == "DELETE":
            return Answer(200, {}, orjson.dumps(self.remove(collection, name)))
        sent = asked.json
        wanted = sent.get("metadata", {}).get("resourceVersion")
        if wanted and wanted != there[name]["metadata"]["resourceVersion"]:
            return refuse(409, "Conflict")
        new = sent if asked.method == "PUT" else {**there[name], **sent}
        new["metadata"] = {**there[name]["metadata"], **sent.get("metadata", {})}
        return Answer(200, {}, orjson.dumps(self.put(collection, name, **new)))

    def _create(self, collection: str, asked: Asked) -> Answer:
        name = asked.json["metadata"]["name"]
        if name in self.collections.get(collection, {}):
            return refuse(409, "AlreadyExists")
        return Answer(201, {}, orjson.dumps(self.put(collection, name, **asked.json)))

    def _list(self, asked: Asked) -> Answer:
        items = list(self.collections.get(asked.path, {}).values())
        start = int(asked.query.get("continue", "0"))
        limit = int(asked.query.get("limit", "0")) or len(items)
        metadata = {"resourceVersion": str(self.version)}
        if start + limit < len(items):
            metadata["continue"] = str(start + limit)
        body = {"kind": "List", "metadata": metadata, "items": items[start : start + limit]}
        return Answer(200, {}, orjson.dumps(body))


def _line(type_: str, each: Json) -> bytes:
    return orjson.dumps({"type": type_, "object": each}) + b"\n"


def _namespace(collection: str) -> str:
    _, found, rest = collection.partition("/namespaces/")
    return rest.partition("/")[0] if found else ""


def _fault(answer: Answer | Exception | None) -> Fault:
    def fault(_: Asked) -> Answer | None:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return fault


async def _one(body: bytes) -> AsyncIterator[bytes]:
    yield body
