"""The visibility API of Kueue: the pending workloads of a queue, in order, one window at a time.

    GET …/clusterqueues/NAME/pendingworkloads?limit=100&offset=200
    GET …/namespaces/NS/localqueues/NAME/pendingworkloads

The order is that of `queue_order`. Positions begin with 0 here, and with 1 in our own commands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from unisono.kinds import views
from unisono.kinds.digits import whole_number
from unisono.kinds.views import Raw

KIND = "PendingWorkloadsSummary"
_DEFAULT_LIMIT = 1000
# One answer of some tens of megabytes; Kueue has the same bound.
_MOST = 100_000


class Window(NamedTuple):
    """Which part of a queue is wanted."""

    limit: int = _DEFAULT_LIMIT
    offset: int = 0


class Place(NamedTuple):
    """Where a workload is: how many are before it in its ClusterQueue, and of its LocalQueue."""

    in_cluster_queue: int
    in_local_queue: int


def window_of(query: Mapping[str, str]) -> Window:
    """Read the parameters of a request; raise ValueError for what is no number.

    >>> window_of({}), window_of({"limit": "0", "offset": "-3"}).offset
    (Window(limit=1000, offset=0), 0)
    """
    limit = _number(query.get("limit", ""))
    return Window(
        limit=_DEFAULT_LIMIT if limit == 0 else min(max(limit, 0), _MOST),
        offset=max(_number(query.get("offset", "")), 0),
    )


def _number(text: str) -> int:
    number = whole_number(text.removeprefix("-")) if text else 0
    if number is None:
        raise ValueError(text)
    return -number if text.startswith("-") else number


def item(workload: Raw, place: Place) -> dict[str, Any]:
    """Return one pending workload as the API lists it."""
    view = views.Workload(workload)
    metadata = view.metadata
    found: dict[str, Any] = {"name": metadata.name, "namespace": metadata.namespace}
    found["creationTimestamp"] = metadata.creation_timestamp or None
    owners = [
        {"apiVersion": one.api_version, "kind": one.kind, "name": one.name, "uid": one.uid}
        for one in metadata.owner_references
    ]
    if owners:
        found["ownerReferences"] = owners
    return {
        "metadata": found,
        "priority": view.spec.priority,
        "localQueueName": view.spec.queue_name,
        "positionInClusterQueue": place.in_cluster_queue,
        "positionInLocalQueue": place.in_local_queue,
    }


def summary(api_version: str, items: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the answer with these workloads."""
    return {"kind": KIND, "apiVersion": api_version, "metadata": {}, "items": [*items]}
