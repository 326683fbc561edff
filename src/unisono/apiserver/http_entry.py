"""The API as an application of HTTP: requests are authenticated, counted, answered.

Reads are answered at once; writes wait for the disk. A request counts as in flight until its answer
has left, so that many slow readers of long lists cannot fill the memory.

Whatever is sent, the event loop stays free for other clients: large requests are handled one after
the other, with a pause after each that is as long as it took, and bodies that have not been handled
yet fill no more than a part of the memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any
from urllib.parse import parse_qsl

from unisono.apiserver.access.filters import ANONYMOUS, InFlightLimit
from unisono.apiserver.api import Api, refusal
from unisono.apiserver.errors import ApiError, bad_request, too_large
from unisono.apiserver.request import Request, User
from unisono.apiserver.rest.body import LARGE_BODY_BYTES
from unisono.net.http.messages import Call, Limits, Response, UnreadableAddress, address_of

# Returns the user that sent these headers; raises ApiError if it is unknown, or from elsewhere.
Admit = Callable[[str, str, Mapping[str, str]], User]


# A large request may take half of the time, but the next one waits no longer than this.
_LONGEST_PAUSE_SECONDS = 1.0
# More would wait for half a minute and fill the memory meanwhile.
MAX_LARGE_WAITING = 16
# Of bodies that are on their way or wait, over all connections: twenty of the largest.
MAX_HELD_BYTES = 64 * 1024 * 1024


class HttpEntry:
    """Turns calls into requests of the API."""

    limits = Limits()

    def __init__(self, api: Api, admit: Admit, flights: InFlightLimit | None = None) -> None:
        """Take the API, what authenticates a request, and what counts those in flight."""
        self.api = api
        self._admit = admit
        self._flights = flights or InFlightLimit()
        self._large = asyncio.Lock()  # held by a large request, and for a while after it
        self._large_waiting = 0
        self._held_bytes = 0

    def begin(
        self, method: str, target: bytes, headers: Mapping[str, str], known: object = None
    ) -> Call:
        """Look at the head of a request; `known` sent the same headers on this connection."""
        user, refused = None, None
        path = ""
        query: dict[str, str] = {}
        try:
            path, query = address_of(target)
            user = known if isinstance(known, User) else self._admit(method, path, headers)
        except UnreadableAddress as error:
            refused = refusal(bad_request(str(error)))
        except ApiError as error:
            refused = refusal(error)
        return Call(
            method=method,
            path=path,
            target=target,
            query=query,
            headers=headers,
            user=user,
            refusal=refused,
            most_bytes=self.limits.body_bytes,
        )

    def lasting(self, call: Call) -> User | None:
        """Return the user of a call if the same headers mean the same user the next time, too.

        Headers without a token may be enough for some addresses only, and whether a user may act
        for another is decided anew each time.
        """
        headers = call.headers
        if "authorization" not in headers or "impersonate-user" in headers:
            return None
        return call.user if isinstance(call.user, User) else None

    def is_known(self, call: Call) -> bool:
        """Say whether the client of a call authenticated."""
        return call.user is not None and call.user is not ANONYMOUS

    def take(self, call: Call, data: bytes) -> bool:
        """Take a part of a call's body; say no if nothing more of it is wanted.

        Then the call is refused: its body is too large, or those of all calls together are.
        """
        is_fine = call.take(data)
        if call.body:
            call.held += len(data)
            self._held_bytes += len(data)
            if self._held_bytes > MAX_HELD_BYTES:
                call.refusal = refusal(_busy("too many bytes are on their way"))
                call.body.clear()
        if not call.body:
            self.drop(call)
        if not is_fine and call.refusal is None:
            call.refusal = refusal(too_large(self.limits.body_bytes))
        return is_fine

    def drop(self, call: Call) -> None:
        """Forget a call's body: it was handled, or never will be."""
        self._held_bytes -= call.held
        call.held = 0

    def answer(self, call: Call) -> Response | Coroutine[Any, Any, Response]:
        """Answer a whole request, or return the work that will; `leave` must follow."""
        if call.refusal is not None or not isinstance(call.user, User):
            return call.refusal or refusal(ApiError(401, "Unauthorized", "Unauthorized"))
        request = Request(
            method=call.method,
            path=call.path,
            query=call.query,
            headers=call.headers,
            body=b"".join(call.body),
            command=_command(call.target) if call.path.endswith("/exec") else (),
            user=call.user,
        )
        is_long = call.method == "GET" and bool(
            request.flag("watch") or request.flag("follow") or request.command
        )
        try:
            call.flight = self._flights.enter(call.method, is_long=is_long)
        except ApiError as error:
            return refusal(error)
        if call.method == "GET" and not request.command:
            return self.api.read(request)
        if len(request.body) >= LARGE_BODY_BYTES:
            return self._write_large(request)
        return self.api.handle(request)

    async def _write_large(self, request: Request) -> Response:
        """Answer a large request when it is its turn, and let other requests have theirs."""
        if self._large_waiting >= MAX_LARGE_WAITING:
            return refusal(_busy(f"{MAX_LARGE_WAITING} large requests wait already"))
        self._large_waiting += 1
        try:
            await self._large.acquire()
        finally:
            self._large_waiting -= 1
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            return await self.api.handle(request)
        finally:
            pause = min(loop.time() - began, _LONGEST_PAUSE_SECONDS)
            loop.call_later(pause, self._large.release)

    def failure(self) -> Response:
        """Return the answer to a request that could not be answered by a mistake of ours."""
        return refusal(ApiError(500, "InternalError", "Internal error: see the server's output"))

    def stop(self) -> None:
        """End every watch."""
        self.api.watches.stop()

    def leave(self, call: Call) -> None:
        """Note that the answer to a call has left, or that its client is gone."""
        self._flights.leave(call.flight)
        call.flight = ""
        self.drop(call)


def _busy(why: str) -> ApiError:
    return ApiError(429, "TooManyRequests", f"too many requests: {why}", retry_after=1)


def _command(target: bytes) -> tuple[str, ...]:
    """Return every `command` of a query, of which each is a word."""
    query = target.partition(b"?")[2].decode("latin-1")
    pairs = parse_qsl(query, keep_blank_values=True)
    return tuple(value for name, value in pairs if name == "command")
