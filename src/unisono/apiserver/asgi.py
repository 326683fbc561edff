"""HTTP in, HTTP out: the ASGI face of the API.

A plain callable, because a routing framework would cost more than the work itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from unisono.apiserver.access.guard import Flights
from unisono.apiserver.api import Api, refusal
from unisono.apiserver.errors import ApiError, too_large
from unisono.apiserver.request import Request, Response, User

MAX_BODY_BYTES = 3 * 1024 * 1024

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
# Who sent these headers; raises ApiError if nobody we know, or if it came from the wrong place.
Admit = Callable[[str, str, Mapping[str, str]], User]


class Disconnected(Exception):
    """The client went away before its request was complete."""


class Front:
    """Turns ASGI calls into requests of the API."""

    def __init__(self, api: Api, admit: Admit, flights: Flights | None = None) -> None:
        """Take the API, who decides whom to let in, and who counts those inside."""
        self.api = api
        self._admit = admit
        self._flights = flights or Flights()

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        if scope["type"] != "http":
            return
        headers = _headers(scope["headers"])
        try:
            response = await self._respond(scope, headers, receive)
        except Disconnected:
            return
        await _send(response, receive, send)

    async def _respond(
        self, scope: Mapping[str, Any], headers: dict[str, str], receive: Receive
    ) -> Response:
        try:
            method, path = scope["method"], scope["path"]
            user = self._admit(method, path, headers)
            body = await _body(receive) if method != "GET" else b""
            query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        except ApiError as error:
            return refusal(error)
        request = Request(
            method=method, path=path, query=query, headers=headers, body=body, user=user
        )
        is_long = request.flag("watch") or request.flag("follow")
        try:
            with self._flights.flight(method, is_long=is_long):
                return await self.api.handle(request)
        except ApiError as error:
            return refusal(error)


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers by name; what was given several times is joined by commas."""
    headers: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        headers[key] = f"{headers[key]},{text}" if key in headers else text
    return headers


async def _body(receive: Receive) -> bytes:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Disconnected
    body: bytes = message.get("body", b"")
    while message.get("more_body"):
        if len(body) > MAX_BODY_BYTES:
            break
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        body += message.get("body", b"")
    if len(body) > MAX_BODY_BYTES:
        raise too_large(MAX_BODY_BYTES)
    return body


async def _send(response: Response, receive: Receive, send: Send) -> None:
    headers = [(b"content-type", response.content_type.encode())]
    headers += [
        (name.encode(), value.encode("latin-1", "replace"))
        for name, value in response.headers.items()
    ]
    if response.chunks is None:
        headers.append((b"content-length", str(len(response.body)).encode()))
        await send({"type": "http.response.start", "status": response.code, "headers": headers})
        await send({"type": "http.response.body", "body": response.body})
        return
    await _stream(response, headers, receive, send)


async def _stream(
    response: Response, headers: list[tuple[bytes, bytes]], receive: Receive, send: Send
) -> None:
    """Send chunks until they end or the client goes away."""
    chunks = response.chunks
    assert chunks is not None
    await send({"type": "http.response.start", "status": response.code, "headers": headers})

    async def push() -> None:
        async for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def listen() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    pusher = asyncio.ensure_future(push())
    listener = asyncio.ensure_future(listen())
    try:
        await asyncio.wait({pusher, listener}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (pusher, listener):
            task.cancel()
        await asyncio.gather(pusher, listener, return_exceptions=True)
        closing = getattr(chunks, "aclose", None)
        if closing is not None:
            await closing()
