"""A proxy between our controllers and a real API server that does what networks and servers do.

It ends TLS with the server's own certificate, so clients cannot tell it from the server. By default
it passes everything on; `fault` may answer, delay, hold or drop each request instead.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import aiohttp
from aiohttp import web

from tests.real.control_plane import ControlPlane

_BODY = 64 * 1024 * 1024
# What answers that are given instead of the server's are called in a verdict.
_CALLED = {200: "watches expired (410)", 409: "conflicts (409)", 429: "refusals (429)"}
_SLOW_S = 0.05
_HOP_BY_HOP = ("connection", "keep-alive", "transfer-encoding", "content-length", "host")


class Asked(NamedTuple):
    """What is asked for, as far as faults care."""

    method: str
    path: str
    is_watch: bool
    resumes: bool = False  # a watch that goes on from a version

    @property
    def is_write(self) -> bool:
        """Whether it changes something; leases and reviews do not count."""
        quiet = "/leases" in self.path or "authorization.k8s.io" in self.path
        return self.method != "GET" and not quiet

    @property
    def frees_a_pod(self) -> bool:
        """Whether it lifts the gate of a pod, or binds it."""
        is_gate = self.method == "PATCH" and "/pods/" in self.path and "status" not in self.path
        return is_gate or self.binds_a_pod

    @property
    def binds_a_pod(self) -> bool:
        """Whether it sends a pod to its node."""
        return self.method == "POST" and self.path.endswith("/binding")


class Dropped(Exception):
    """The connection is cut; the fate of the request is unknown."""


# Returns an answer to give instead of the server's, or None to pass the request on.
Fault = Callable[[Asked], Awaitable["web.Response | None"]]


async def no_fault(asked: Asked) -> web.Response | None:
    """Pass everything on."""
    return None


class Proxy:
    """One proxy, in a thread of its own."""

    def __init__(self, plane: ControlPlane, faults: Counter[str]) -> None:
        """Prepare; nothing listens yet. What is done to requests is counted in `faults`."""
        self._faults = faults
        self._plane = plane
        self._watches: dict[int, web.Request] = {}  # requests have no hash
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self.port = 0
        self.fault: Fault = no_fault
        self.answers: Counter[tuple[str, int]] = Counter()  # method and status
        self.denied: list[str] = []  # what was answered with 403

    def drop_watches(self) -> None:
        """Cut every watch."""
        self._loop.call_soon_threadsafe(self._cut)

    def _cut(self) -> None:
        for request in list(self._watches.values()):
            if request.transport is not None:
                request.transport.abort()
                self._faults["watches cut"] += 1

    async def serve(self, ready: threading.Event) -> None:
        """Listen until told to stop."""
        directory = self._plane.ca_file.parent
        ours = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        ours.load_cert_chain(directory / "server.crt", directory / "server.key")
        app = web.Application(client_max_size=_BODY)
        app.router.add_route("*", "/{rest:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=ours)
        async with self._upstream():
            await site.start()
            self.port = runner.addresses[0][1]
            ready.set()
            await self._stop.wait()
            _abort(runner)
            await runner.cleanup()

    @asynccontextmanager
    async def _upstream(self) -> AsyncIterator[None]:
        theirs = ssl.create_default_context(cafile=str(self._plane.ca_file))
        connector = aiohttp.TCPConnector(ssl=theirs, limit=0)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5)
        async with aiohttp.ClientSession(
            connector=connector, timeout=timeout, auto_decompress=False
        ) as self._session:
            yield

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        is_watch = request.query.get("watch") in ("true", "1")
        resumes = is_watch and "sendInitialEvents" not in request.query
        asked = Asked(request.method, request.path, is_watch, resumes)
        body = await request.read()
        began = self._loop.time()
        try:
            answer = await self.fault(asked)
            self._count(answer, self._loop.time() - began)
            if answer is None:
                return await self._pass_on(request, asked, body)
        except (Dropped, aiohttp.ClientError, OSError) as trouble:
            self.answers[asked.method, 0] += 1
            self._faults[
                "requests lost" if isinstance(trouble, Dropped) else "connections broken"
            ] += 1
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=502)
        self.answers[asked.method, answer.status] += 1
        return answer

    def _count(self, answer: web.Response | None, seconds: float) -> None:
        if answer is not None:
            self._faults[_CALLED.get(answer.status, f"answers with {answer.status}")] += 1
        elif seconds > _SLOW_S:
            self._faults["requests held up"] += 1

    async def _pass_on(self, request: web.Request, asked: Asked, body: bytes) -> web.StreamResponse:
        headers = {
            name: text for name, text in request.headers.items() if name.lower() not in _HOP_BY_HOP
        }
        async with self._session.request(
            request.method,
            f"{self._plane.url}{request.raw_path}",
            data=body or None,
            headers=headers,
            allow_redirects=False,
            skip_auto_headers=("Content-Type", "User-Agent"),
        ) as theirs:
            self.answers[asked.method, theirs.status] += 1
            if theirs.status == web.HTTPForbidden.status_code:
                self.denied.append(f"{asked.method} {asked.path}")
            kept = {
                name: text
                for name, text in theirs.headers.items()
                if name.lower() not in _HOP_BY_HOP
            }
            ours = web.StreamResponse(status=theirs.status, headers=kept)
            await ours.prepare(request)
            if asked.is_watch:
                self._watches[id(request)] = request
            try:
                async for piece in theirs.content.iter_any():
                    await ours.write(piece)
                await ours.write_eof()
            finally:
                self._watches.pop(id(request), None)
            return ours

    def end(self) -> None:
        """Stop serving."""
        self._loop.call_soon_threadsafe(self._stop.set)

    def run(self, ready: threading.Event) -> None:
        """Serve in this thread."""
        try:
            self._loop.run_until_complete(self.serve(ready))
            self._loop.run_until_complete(_end_the_rest())
        finally:
            self._loop.close()


def _abort(runner: web.AppRunner) -> None:
    """Cut every connection: a client that was stopped or killed never closes its own."""
    assert runner.server is not None
    for one in runner.server.connections:
        if one.transport is not None:
            one.transport.abort()


async def _end_the_rest() -> None:
    """End requests that are still on their way, if any."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


@contextmanager
def proxied(
    plane: ControlPlane, kubeconfig: Path, faults: Counter[str] | None = None
) -> Iterator[tuple[Proxy, ControlPlane]]:
    """Run a proxy; yield it and the cluster as it looks from behind it."""
    proxy = Proxy(plane, Counter() if faults is None else faults)
    ready = threading.Event()
    thread = threading.Thread(target=proxy.run, args=(ready,), daemon=True)
    thread.start()
    assert ready.wait(60)
    config = json.loads(plane.kubeconfig.read_text())
    url = f"https://127.0.0.1:{proxy.port}"
    config["clusters"][0]["cluster"]["server"] = url
    kubeconfig.touch(mode=0o600)
    kubeconfig.write_text(json.dumps(config))
    try:
        yield proxy, replace(plane, kubeconfig=kubeconfig, url=url)
    finally:
        proxy.end()
        thread.join(60)


# ---- answers -------------------------------------------------------------------------------------


def refusal(code: int, reason: str, message: str, **headers: str) -> web.Response:
    """Return an API server's refusal."""
    return web.json_response(_status(code, reason, message), status=code, headers=headers)


def expired_watch() -> web.Response:
    """Return a watch that ends at once: what it asked for is forgotten."""
    error = {"type": "ERROR", "object": _status(410, "Expired", "too old resource version")}
    return web.Response(body=json.dumps(error).encode() + b"\n", content_type="application/json")


def _status(code: int, reason: str, message: str) -> dict[str, object]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
