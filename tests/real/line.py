"""A client of a cluster that stays connected, for tests that ask again and again.

It lives in a thread of its own, since a connection belongs to one event loop; callers wait.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

from unisono.kube.client import Client
from unisono.kube.connect import connected
from unisono.kube.kubeconfig import find_access
from unisono.runtime.clock import RealClock
from unisono.runtime.ids import new_uid, random_source

T = TypeVar("T")
_SECONDS_TO_STOP = 20


class Line:
    """A way to one cluster, as one user."""

    def __init__(self, kubeconfig: Path) -> None:
        """Connect when first asked."""
        self._kubeconfig = kubeconfig
        self._loop = asyncio.new_event_loop()
        self._stack = AsyncExitStack()
        self._client: Client | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def ask(self, work: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        """Do something with the client."""

        async def main() -> T:
            if self._client is None:
                self._client = await self._stack.enter_async_context(
                    connected(
                        find_access(path=self._kubeconfig),
                        clock=RealClock(),
                        random_source=random_source(),
                        ids=new_uid,
                    )
                )
            return await work(self._client)

        return asyncio.run_coroutine_threadsafe(main(), self._loop).result()

    def close(self) -> None:
        """Hang up."""
        asyncio.run_coroutine_threadsafe(self._stack.aclose(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_SECONDS_TO_STOP)
        self._loop.close()
