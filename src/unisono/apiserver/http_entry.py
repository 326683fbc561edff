"""The door of the API for whoever comes over HTTP: let in, turned away, or answered.

Reads are answered at once; writes wait for the disk. A request is at work until its answer has
left, so that many slow readers of long lists cannot fill the memory.

Whatever is sent, the event loop stays free for everybody else: large requests are handled one after
the other, with a pause after each that is as long as it took, and bodies that have not been handled
yet fill no more than a part of the memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any
from urllib.parse import parse_qsl

import httptools

from unisono.apiserver.access.filters import ANONYMOUS, InFlightLimit
from unisono.apiserver.api import Api, refusal
from unisono.apiserver.errors import ApiError, bad_request, too_large
from unisono.apiserver.http.call import MAX_BODY_BYTES, Call
from unisono.apiserver.request import Request, Response, User
from unisono.apiserver.rest.size_limits import LARGE_BODY_BYTES

# Who sent these headers; raises ApiError if nobody we know, or if it came from the wrong place.
Admit = Callable[[str, str, Mapping[str, str]], User]


# A large request may take half of the time, but nobody waits longer than this for the next one.
_LONGEST_PAUSE_SECONDS = 1.0
# More would wait for half a minute and fill the memory meanwhile.
MAX_LARGE_WAITING = 16
# Of bodies that are on their way or wait, over all connections: twenty of the largest.
MAX_HELD_BYTES = 64 * 1024 * 1024


class HttpEntry:
    """Turns calls into requests of the API."""

    def __init__(self, api: Api, admit: Admit, flights: InFlightLimit | None = None) -> None:
        """Take the API, who decides whom to let in, and who counts those inside."""
        self.api = api
        self._admit = admit
        self._flights = flights or InFlightLimit()
        self._large = asyncio.Lock()  # held by the large request at work, and for a while after it
        self._large_waiting = 0
        self._held_bytes = 0

    def begin(
        self, method: str, target: bytes, headers: Mapping[str, str], known: User | None = None
    ) -> Call:
        """Look at the head of a request; `known` sent the same headers on this connection."""
        user, refused = None, None
        path = ""
        query: dict[str, str] = {}
        try:
            path, query = _address(target)
            user = known if known is not None else self._admit(method, path, headers)
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
        )

    def lasting(self, call: Call) -> User | None:
        """Return who sent a call if the same headers mean the same user the next time, too.

        Nobody's headers may be enough for some addresses only, and who may act for somebody else
        is decided anew each time.
        """
        headers = call.headers
        if "authorization" not in headers or "impersonate-user" in headers:
            return None
        return call.user

    def is_known(self, call: Call) -> bool:
        """Say whether whoever sent a call proved who they are."""
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
            call.refusal = refusal(too_large(MAX_BODY_BYTES))
        return is_fine

    def drop(self, call: Call) -> None:
        """Forget a call's body: it was handled, or nobody will."""
        self._held_bytes -= call.held
        call.held = 0

    def answer(self, call: Call) -> Response | Coroutine[Any, Any, Response]:
        """Answer a whole request, or return the work that will; `leave` must follow."""
        if call.refusal is not None or call.user is None:
            return call.refusal or refusal(ApiError(401, "Unauthorized", "Unauthorized"))
        request = Request(
            method=call.method,
            path=call.path,
            query=call.query,
            headers=call.headers,
            body=b"".join(call.body),
            words=_words(call.target) if call.path.endswith("/exec") else (),
            user=call.user,
        )
        is_long = call.method == "GET" and bool(
            request.flag("watch") or request.flag("follow") or request.words
        )
        try:
            call.flight = self._flights.enter(call.method, is_long=is_long)
        except ApiError as error:
            return refusal(error)
        if call.method != "GET" or request.words:
            return self._write(request)
        try:
            return self.api.read(request)
        except Exception as mistake:  # noqa: BLE001 (ours; the next request may fare better)
            return _broken(mistake)

    async def _write(self, request: Request) -> Response:
        if len(request.body) >= LARGE_BODY_BYTES:
            return await self._write_large(request)
        try:
            return await self.api.handle(request)
        except Exception as mistake:  # noqa: BLE001 (as above)
            return _broken(mistake)

    async def _write_large(self, request: Request) -> Response:
        """Answer a large request when it is its turn, and let others have theirs afterwards."""
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
        except Exception as mistake:  # noqa: BLE001 (as above)
            return _broken(mistake)
        finally:
            pause = min(loop.time() - began, _LONGEST_PAUSE_SECONDS)
            loop.call_later(pause, self._large.release)

    def leave(self, call: Call) -> None:
        """Note that the answer to a call has left, or that nobody waits for it any more."""
        self._flights.leave(call.flight)
        call.flight = ""
        self.drop(call)


def _busy(why: str) -> ApiError:
    return ApiError(429, "TooManyRequests", f"too many requests: {why}", retry_after=1)


def _broken(mistake: Exception) -> Response:
    """Answer in spite of a mistake of ours, and let the operator know."""
    context = {"message": "a request could not be answered", "exception": mistake}
    asyncio.get_running_loop().call_exception_handler(context)
    return refusal(ApiError(500, "InternalError", "Internal error: see the server's output"))


def _words(target: bytes) -> tuple[str, ...]:
    """Return every `command` of a query, of which each is a word."""
    query = target.partition(b"?")[2].decode("latin-1")
    pairs = parse_qsl(query, keep_blank_values=True)
    return tuple(value for name, value in pairs if name == "command")


def _address(target: bytes) -> tuple[str, dict[str, str]]:
    """Return path and query of what stands in a request's first line."""
    path, _, query = target.partition(b"?")
    if not path.startswith(b"/"):
        try:
            url = httptools.parse_url(target)
        except httptools.HttpParserInvalidURLError as error:
            raise bad_request("the address of the request cannot be read") from error
        path, query = url.path or b"/", url.query or b""
    if not query:
        return path.decode("latin-1"), {}
    return path.decode("latin-1"), dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
