"""The visibility API of Kueue: what one request for the pending workloads of a queue gets.

The embedded API answers so, and the extension server of a real cluster (`runtime.visibility`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import orjson

from unisono.apiserver.errors import ApiError, bad_request, method_not_allowed, not_found
from unisono.apiserver.objects import Json
from unisono.kinds.kueue.visibility import Window, summary, window_of
from unisono.kinds.shapes.served import Served
from unisono.net.http.messages import Response


class PendingLists(Protocol):
    """What knows the pending workloads of each queue, in order."""

    def of_cluster_queue(self, name: str, window: Window) -> list[Json] | None:
        """Return a part of a ClusterQueue's; None if there is no such queue."""

    def of_local_queue(self, namespace: str, name: str, window: Window) -> list[Json] | None:
        """Return a part of a LocalQueue's; None if there is no such queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What an address names."""

    served: Served
    namespace: str
    name: str
    subresource: str


def answer(lists: PendingLists, asked: Asked, method: str, query: Mapping[str, str]) -> Response:
    """Return the pending workloads of a queue with their positions; raise ApiError if not."""
    served = asked.served
    if asked.subresource and asked.subresource not in served.subresources:
        raise ApiError(404, "NotFound", "the server could not find the requested resource")
    if method != "GET" or not asked.subresource:
        raise method_not_allowed()
    try:
        window = window_of(query)
    except ValueError as error:
        raise bad_request(f"limit and offset are numbers, and {error} is none") from error
    if served.namespaced:
        items = lists.of_local_queue(asked.namespace, asked.name, window)
    else:
        items = lists.of_cluster_queue(asked.name, window)
    if items is None:
        raise not_found(served.singular, asked.name, group=served.group)
    return Response(body=orjson.dumps(summary(served.api_version, items)))
