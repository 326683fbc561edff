"""Puts a client together: from a kubeconfig to something that can be asked."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from unisono.kube.calls import Caller
from unisono.kube.client import Client
from unisono.kube.clock import Clock
from unisono.kube.credentials import Credentials
from unisono.kube.kubeconfig import Access
from unisono.kube.priority_lanes import Lanes
from unisono.kube.transport import Transport


@asynccontextmanager
async def connected(
    access: Access,
    *,
    clock: Clock,
    random_source: random.Random,
    ids: Callable[[], str] | None = None,
    environ: Mapping[str, str] = os.environ,
    interactive: bool = False,
    lanes: Lanes | None = None,
    on_warning: Callable[[str], None] | None = None,
) -> AsyncIterator[Client]:
    """Speak to a real API over HTTP; the connections close with the context."""
    from unisono.kube.http_transport import (
        HttpTransport,  # aiohttp is slow to load; in-process needs none
    )

    credentials = Credentials(access, clock=clock, environ=environ, interactive=interactive)
    async with HttpTransport(access, credentials) as transport:
        yield client_over(
            transport,
            clock=clock,
            random_source=random_source,
            namespace=access.namespace,
            ids=ids,
            lanes=lanes,
            on_warning=on_warning,
        )


def client_over(
    transport: Transport,
    *,
    clock: Clock,
    random_source: random.Random,
    namespace: str = "default",
    ids: Callable[[], str] | None = None,
    lanes: Lanes | None = None,
    on_warning: Callable[[str], None] | None = None,
) -> Client:
    """Make a client for any transport; pass `lanes` to change or to lift the limits."""
    caller = Caller(
        transport, clock=clock, random_source=random_source, lanes=lanes, on_warning=on_warning
    )
    return Client(caller, namespace=namespace, ids=ids)
