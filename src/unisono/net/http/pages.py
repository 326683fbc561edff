"""A small application of HTTP: a handler is asked for each request and returns the response.

The page, metrics, probes and webhooks are served so. They have no users of their own kind to count
and little to read, so bodies are bounded for each request alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unisono.net.http.messages import Call, Limits, Response, UnreadableAddress, address_of

PLAIN = "text/plain; charset=utf-8"
# Said by a proxy that speaks TLS before us, and by ourselves where we do.
FORWARDED_PROTOCOL = "x-forwarded-proto"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """A request as a handler sees it; header names are in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""
    fields: Sequence[tuple[bytes, bytes]] = ()  # the headers as they came
    client_name: str = ""  # of the certificate that the client showed, where one was asked for

    @property
    def takes_gzip(self) -> bool:
        """Whether the response may be packed."""
        return "gzip" in self.headers.get("accept-encoding", "")

    def values(self, name: str) -> list[str]:
        """Return every value of a header, one by one; `headers` joins them by commas."""
        wanted = name.lower().encode("latin-1")
        found = (value for key, value in self.fields if key.lower() == wanted)
        return [value.decode("utf-8", "replace") for value in found]


Handler = Callable[[PageRequest], Response | Awaitable[Response]]


def text(code: int, words: str, content_type: str = PLAIN) -> Response:
    """Return a response of plain text."""
    return Response(code=code, body=words.encode(), content_type=content_type)


class PageApplication:
    """Answers every request by one handler."""

    def __init__(
        self,
        handler: Handler,
        limits: Limits,
        *,
        answer_seconds: float,
        most_fields: int | None = None,
        on_stop: Callable[[], None] = lambda: None,
    ) -> None:
        """Take the handler and how long it may take; `most_fields` bounds the query."""
        self.limits = limits
        self._handler = handler
        self._answer_seconds = answer_seconds
        self._most_fields = most_fields
        self._on_stop = on_stop

    def begin(
        self, method: str, target: bytes, headers: Mapping[str, str], known: object = None
    ) -> Call:
        """Read the address of a request."""
        path, refused = "", None
        query: dict[str, str] = {}
        try:
            path, query = address_of(target, most_fields=self._most_fields)
        except UnreadableAddress as error:
            refused = text(400, f"{error}\n")
        return Call(
            method=method,
            path=path,
            query=query,
            headers=headers,
            refusal=refused,
            most_bytes=self.limits.body_bytes,
        )

    def lasting(self, call: Call) -> None:
        """Return no user: a handler finds out for itself."""

    def is_known(self, call: Call) -> bool:
        """Say no: clients prove nothing to the connection."""
        return False

    def take(self, call: Call, data: bytes) -> bool:
        """Take a part of a body, up to the bound."""
        is_fine = call.take(data)
        if not is_fine and call.refusal is None:
            most = self.limits.body_bytes
            call.refusal = text(413, f"the body of the request is larger than {most} bytes\n")
        return is_fine

    def drop(self, call: Call) -> None:
        """Forget a body."""
        call.body.clear()

    def answer(self, call: Call) -> Response | Coroutine[Any, Any, Response]:
        """Ask the handler."""
        if call.refusal is not None:
            return call.refusal
        headers = call.headers
        if call.is_encrypted:
            headers = {**headers, FORWARDED_PROTOCOL: "https"}
        request = PageRequest(
            method=call.method,
            path=call.path,
            query=call.query,
            headers=headers,
            body=b"".join(call.body),
            fields=call.fields,
            client_name=call.client_name,
        )
        found = self._handler(request)
        return found if isinstance(found, Response) else self._awaited(found)

    async def _awaited(self, work: Awaitable[Response]) -> Response:
        try:
            async with asyncio.timeout(self._answer_seconds):
                return await work
        except TimeoutError:
            return text(503, "the answer takes too long; try again\n")

    def failure(self) -> Response:
        """Return the answer to a request that failed by a mistake of ours."""
        return text(500, "internal error: see the output of the server\n")

    def leave(self, call: Call) -> None:
        """Forget the request."""
        call.body.clear()

    def stop(self) -> None:
        """End streams."""
        self._on_stop()
