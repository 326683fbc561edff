"""What every cluster has from the beginning; created where it is missing, never overwritten."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Iterator
from itertools import chain, islice
from typing import Any

import orjson

from unisono.apiserver.access.roles import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES
from unisono.apiserver.api import Api
from unisono.apiserver.request import Request, User
from unisono.kinds.decode import encode
from unisono.kinds.trainer.stock import STOCK_RUNTIMES

# The server itself, which may do everything.
SYSTEM = User(name="system:unisono", groups=("system:masters",))

_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_RUNTIMES = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes"
_VOLCANO_QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_HIGHEST = 2_000_000_000
_AT_ONCE = 128  # writes; more would hold more manifests than they save waits


class BootstrapFailed(Exception):
    """The server refused an object that it begins with: brought along, or its own by a bug."""


class CannotStore(Exception):
    """What a server begins with could not be stored; the message says why and what to do."""


async def bootstrap(api: Api, nodes: Iterable[dict[str, Any]] = ()) -> None:
    """Create what is missing, and these nodes."""
    writes = chain(_first_objects(api), (create(api, "/api/v1/nodes", node) for node in nodes))
    # Many at once share a commit, and each commit is a wait for the disk.
    while some := list(islice(writes, _AT_ONCE)):
        await asyncio.gather(*some)


def _first_objects(api: Api) -> Iterator[Coroutine[Any, Any, None]]:
    """Yield the writes of everything that is there without nodes."""
    for name in _NAMESPACES:
        yield create(api, "/api/v1/namespaces", _object("v1", "Namespace", name))
    for name, value in (
        ("system-cluster-critical", _HIGHEST),
        ("system-node-critical", _HIGHEST + 1000),
    ):
        priority = _object("scheduling.k8s.io/v1", "PriorityClass", name)
        priority["value"] = value
        priority["description"] = "For pods that the cluster itself needs."
        yield create(api, "/apis/scheduling.k8s.io/v1/priorityclasses", priority)
    for role in CLUSTER_ROLES:
        yield create(api, f"{_RBAC}/clusterroles", role)
    for binding in CLUSTER_ROLE_BINDINGS:
        yield create(api, f"{_RBAC}/clusterrolebindings", binding)
    for name, spec in STOCK_RUNTIMES.items():
        runtime = _object("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime", name)
        runtime["metadata"]["labels"] = {"trainer.kubeflow.org/framework": name.partition("-")[0]}
        runtime["spec"] = encode(spec)
        yield install(api, f"{_RUNTIMES}/{name}", runtime)
    for name in ("root", "default"):
        yield create(api, _VOLCANO_QUEUES, _volcano_queue(name))


async def create(api: Api, path: str, obj: dict[str, Any]) -> None:
    """Create an object unless there is one of its name."""
    request = Request(
        method="POST",
        path=path,
        query={"fieldManager": "unisono"},
        headers={"content-type": "application/json", "user-agent": "unisono"},
        body=orjson.dumps(obj),
        user=SYSTEM,
    )
    await _send(api, request, obj)


async def install(api: Api, path: str, obj: dict[str, Any], *, replaces: bool = False) -> None:
    """Apply an object as if a person had installed it; one of its name stays unless `replaces`.

    A newer one that is applied with kubectl simply takes over.
    """
    if (
        not replaces
        and (await api.handle(Request(method="GET", path=path, user=SYSTEM))).code == 200
    ):
        return
    request = Request(
        method="PATCH",
        path=path,
        query={"fieldManager": "kubectl", "force": "true" if replaces else "false"},
        headers={"content-type": "application/apply-patch+yaml"},
        body=orjson.dumps(obj),
        user=SYSTEM,
    )
    await _send(api, request, obj)


async def _send(api: Api, request: Request, obj: dict[str, Any]) -> None:
    response = await api.handle(request)
    if response.code not in (200, 201, 409):
        message = orjson.loads(response.body).get("message")
        if response.code >= 500:
            raise CannotStore(message)
        raise BootstrapFailed(f"{obj['kind']} {obj['metadata']['name']}: {message}")


def _volcano_queue(name: str) -> dict[str, Any]:
    """Return the queue above all others, or that of jobs that name none; both without limits."""
    queue = _object("scheduling.volcano.sh/v1beta1", "Queue", name)
    queue["spec"] = {"weight": 1, "reclaimable": True}
    if name != "root":
        queue["spec"]["parent"] = "root"
    return queue


def _object(api_version: str, kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}
