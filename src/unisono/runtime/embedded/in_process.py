"""The embedded API as a transport of the client: the same calls, without HTTP between them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence

from msgspec import convert

from unisono.apiserver.api import Api
from unisono.apiserver.errors import ApiError
from unisono.apiserver.request import Origin, Request, User
from unisono.apiserver.storage.store import WriteFailed
from unisono.kube.errors import KubeError, Status, Unreachable, error_of
from unisono.kube.transport import (
    NOTHING,
    Answer,
    Stored,
    Stream,
    WriteRequest,
    WriteResult,
)
from unisono.net.http.messages import Response


class InProcess:
    """A `kube.transport.Transport` that calls an API directly, as one user."""

    def __init__(
        self, api: Api, user: User, agent: str = "unisono", *, is_checked: bool = False
    ) -> None:
        """Take the API and the user; `is_checked` has writes validated like any other."""
        self._is_checked = is_checked
        self._api = api
        self._user = user
        self._agent = agent

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
        """Ask and return the whole answer."""
        request = self._request(method, path, query, headers, body)
        try:
            async with asyncio.timeout(timeout):
                response = await self._api.handle(request)
                whole = await _whole(response)
        except TimeoutError as error:
            raise Unreachable(f"{method} {path}: no answer in {timeout} s", sent=True) from error
        return Answer(response.code, response.headers, whole, tuple(request.warnings))

    async def write(self, orders: Sequence[WriteRequest]) -> list[WriteResult]:
        """Carry writes out without a request (`InProcessTransport`)."""
        staged = [self._staged(order) for order in orders]
        try:
            await self._api.direct.committed()
        except WriteFailed as error:
            status = Status(code=503, reason="ServiceUnavailable", message=str(error))
            return [one if isinstance(one, KubeError) else error_of(status) for one in staged]
        return staged

    def _staged(self, order: WriteRequest) -> WriteResult:
        own, user, is_checked = self._api.direct, self._user, self._is_checked
        kind, content = order.kind, order.content
        try:
            match order.verb:
                case "create":
                    staged = own.create(user, *kind, content, is_checked=is_checked)
                case "patch":
                    where = (order.namespace, order.name, order.subresource)
                    staged = own.patch(user, *kind, where, content, is_checked=is_checked)
                case _:
                    staged = own.bind(order.namespace, order.name, content)
        except ApiError as error:
            return error_of(convert(error.status(), Status))
        return Stored(*staged)

    @contextlib.asynccontextmanager
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
        """Ask and hand out the answer as it comes."""
        request = self._request(method, path, query, headers, body)
        try:
            async with asyncio.timeout(timeout):
                response = await self._api.handle(request)
        except TimeoutError as error:
            message = f"{method} {path}: no answer in {timeout} s"
            raise Unreachable(message, sent=True) from error
        chunks = response.chunks if response.chunks is not None else _once(response.body)
        try:
            yield Stream(response.code, response.headers, chunks)
        finally:
            closing = getattr(chunks, "aclose", None)
            if closing is not None:
                await closing()

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
    ) -> Request:
        if method in ("POST", "PUT", "PATCH"):
            # We know our own fields; looking for misspelt ones costs a second parse of every body.
            query = {"fieldValidation": "Ignore", **query}
        lowered = {name.lower(): value for name, value in headers.items()}
        lowered.setdefault("user-agent", self._agent)
        return Request(
            method=method,
            path=path,
            query=query,
            headers=lowered,
            body=body,
            user=self._user,
            origin=Origin.CLIENT if self._is_checked else Origin.CONTROLLER,
        )


async def _whole(response: Response) -> bytes:
    if response.chunks is None:
        return response.body
    return b"".join([chunk async for chunk in response.chunks])


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body
