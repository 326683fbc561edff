"""What can be done to pods (and to what makes them) beyond changing their fields.

Binding and eviction say which pod they mean, by uid, wherever the API lets them: a late request of
a replica that is no longer the leader then hits nothing (kube-api.md, 4.4).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from unisono.kube.calls import Call
from unisono.kube.client import Client
from unisono.kube.form import Json
from unisono.kube.mapping import POD, Kind


async def bind(client: Client, pod: str, namespace: str, *, node: str, uid: str = "") -> None:
    """Put a pod on a node; raises Conflict if it is on one already, or is another pod by now."""
    metadata = {"name": pod, "namespace": namespace}
    if uid:
        metadata["uid"] = uid
    binding: Json = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata,
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    await client.submit(POD, pod, namespace, "binding", binding)


async def evict(
    client: Client, pod: str, namespace: str, *, uid: str = "", grace_s: int | None = None
) -> None:
    """Ask a pod to leave; raises TooManyRequests if a disruption budget forbids it for now."""
    options: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if uid:
        options["preconditions"] = {"uid": uid}
    if grace_s is not None:
        options["gracePeriodSeconds"] = grace_s
    eviction: Json = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": namespace},
        "deleteOptions": options,
    }
    await client.submit(POD, pod, namespace, "eviction", eviction)


async def scale(client: Client, kind: Kind, name: str, namespace: str, *, replicas: int) -> Json:
    """Set how many replicas there shall be; returns the Scale."""
    return await client.patch(
        kind,
        name,
        namespace,
        {"spec": {"replicas": replicas}},
        subresource="scale",
        repeatable=True,  # the same number twice is the same number
    )


@asynccontextmanager
async def log(
    client: Client,
    pod: str,
    namespace: str,
    *,
    container: str = "",
    follow: bool = False,
    previous: bool = False,
    tail_lines: int | None = None,
    since_s: int | None = None,
    timestamps: bool = False,
) -> AsyncIterator[AsyncIterator[bytes]]:
    """Read what a container printed, in pieces; with `follow` until it ends."""
    query = {
        name: text
        for name, text in (
            ("container", container),
            ("follow", "true" if follow else ""),
            ("previous", "true" if previous else ""),
            ("tailLines", "" if tail_lines is None else str(tail_lines)),
            ("sinceSeconds", "" if since_s is None else str(since_s)),
            ("timestamps", "true" if timestamps else ""),
        )
        if text
    }
    path = await client.path(POD, pod, namespace, "log")
    # Anything but JSON: a server that insists on it would have nothing to send.
    call = Call(method="GET", path=path, query=query, headers={"Accept": "text/plain, */*"})
    async with client.caller.stream(call) as stream:
        yield stream.chunks
