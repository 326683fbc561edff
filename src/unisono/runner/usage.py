"""What pods and nodes use, for `kubectl top`: invented from their requests.

A running pod uses between half and nine tenths of its requests. How much follows from its uid and
the minute, so that the same question gets the same answer and numbers still move.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.conditions import timestamp
from unisono.control.view import View
from unisono.kinds.quantity import Quantity
from unisono.runner.lifecycle import sidecars

_WINDOW_SECONDS = 60
# What a node needs for itself.
_NODE_MILLI = 250
_NODE_BYTES = 1 << 30
# What a container uses that asks for nothing.
_LEAST_MILLI = 5
_LEAST_BYTES = 16 << 20


class Usage:
    """Answers what is used; `apiserver` asks with the plural of a kind."""

    def __init__(self, view: View, clock: Callable[[], float]) -> None:
        """Look at the pods of a view."""
        self._view = view
        self._clock = clock

    def __call__(self, plural: str) -> list[Json]:
        """Return NodeMetrics for `nodes`, PodMetrics for `pods`."""
        now = self._clock()
        return list(self._nodes(now) if plural == "nodes" else self._pods(now))

    def _pods(self, now: float) -> Iterator[Json]:
        for pod in self._view.all(names.POD):
            if (pod.get("status") or {}).get("phase") != "Running":
                continue
            metadata = pod["metadata"]
            yield {
                **_head("PodMetrics", metadata, now),
                "containers": [
                    {"name": name, "usage": _amounts(milli, size)}
                    for name, milli, size in containers_usage(pod, now)
                ],
            }

    def _nodes(self, now: float) -> Iterator[Json]:
        used: dict[str, list[int]] = {}
        for pod in self._view.all(names.POD):
            if (pod.get("status") or {}).get("phase") == "Running":
                total = used.setdefault(pod["spec"].get("nodeName", ""), [0, 0])
                for _, milli, size in containers_usage(pod, now):
                    total[0] += milli
                    total[1] += size
        for node in self._view.all(names.NODE):
            metadata = node["metadata"]
            milli, size = used.get(metadata["name"], (0, 0))
            yield {
                **_head("NodeMetrics", metadata, now),
                "usage": _amounts(milli + _NODE_MILLI, size + _NODE_BYTES),
            }


def containers_usage(pod: Json, now: float) -> Iterator[tuple[str, int, int]]:
    """Yield the millicores and bytes that each running container uses."""
    beside = set(sidecars(pod))
    specs = [one for one in pod["spec"].get("initContainers") or () if one["name"] in beside]
    for spec in (*specs, *pod["spec"]["containers"]):
        resources = spec.get("resources") or {}
        asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        share = _share(f"{pod['metadata']['uid']}/{spec['name']}", now)
        milli = Quantity.from_raw(asked.get("cpu", 0)).milli * share // 1000
        size = Quantity.from_raw(asked.get("memory", 0)).units * share // 1000
        yield spec["name"], max(milli, _LEAST_MILLI), max(size, _LEAST_BYTES)


def _share(container: str, now: float) -> int:
    """Return how much of a request is used now, in thousandths: 500 to 900."""
    minute = int(now) // _WINDOW_SECONDS
    digest = hashlib.blake2b(f"{container}/{minute}".encode(), digest_size=4).digest()
    return 500 + int.from_bytes(digest, "big") % 401


def _head(kind: str, metadata: Json, now: float) -> Json:
    about = {"name": metadata["name"], "creationTimestamp": timestamp(now)}
    if metadata.get("namespace"):
        about["namespace"] = metadata["namespace"]
    if metadata.get("labels"):
        about["labels"] = metadata["labels"]
    return {
        "kind": kind,
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": about,
        "timestamp": timestamp(now),
        "window": f"{_WINDOW_SECONDS}s",
    }


def _amounts(milli: int, size: int) -> dict[str, str]:
    return {"cpu": f"{milli}m", "memory": f"{size >> 10}Ki"}
