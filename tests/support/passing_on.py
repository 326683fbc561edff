"""A transport that passes everything on, for tests that put something in its way."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

from unisono.kube.transport import Answer, Stream, Transport


class PassingOn:
    """Asks another transport."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def request(self, method: str, path: str, **more: Any) -> Answer:
        """Ask for an answer."""
        return await self._inner.request(method, path, **more)

    def stream(self, *arguments: Any, **more: Any) -> AbstractAsyncContextManager[Stream]:
        """Ask for a stream."""
        return self._inner.stream(*arguments, **more)
