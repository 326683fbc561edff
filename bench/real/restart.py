"""A full cluster: what the controller weighs there, and how soon a new one decides."""

from __future__ import annotations

import time
from collections.abc import Iterator

import uvloop

from bench.harness import Finding, Note, Scale, figures, target
from bench.real.gangs import committed, pause, wide
from bench.real.ground import (
    Ground,
    client_of,
    cpu_s,
    end,
    ground,
    in_lots,
    memory_bytes,
    peak_bytes,
)
from tests.real.stage import WORKLOAD, gang, queues
from unisono.apiserver.times import timestamp
from unisono.control import names
from unisono.control.conditions import is_true
from unisono.kinds.kueue.topology_assignment import pods_per_host
from unisono.kube.client import Client
from unisono.kube.form import Json
from unisono.provision.catalog.nodes import nodes_of, parse_shape

NODES: dict[Scale, int] = {"full": 1000, "quick": 100, "tiny": 4}
_PODS = 8  # in each gang, one to a GPU; so there is one running gang for every node
_STRAYS = 2  # pods of others on every node
_WAITING = 9  # workloads that wait, for every node
_AT_ONCE = 32
_REST_S = 5.0
_LOOK_S = 0.1


def measure(scale: Scale) -> Iterator[Finding]:
    """Fill a cluster, weigh the controller, replace it."""
    nodes = NODES[scale]
    with ground() as place:
        replica = place.start("--rate", "2000")
        replica.until_told("leading")
        objects = uvloop.run(_fill(place, nodes))
        pid = replica.process.pid
        working, most = memory_bytes(pid), peak_bytes(pid)
        end(replica)
        uvloop.run(_one_more(place))
        began = time.perf_counter()
        successor = place.start("--rate", "2000")
        uvloop.run(_until_admitted(place))
        taken = time.perf_counter() - began
        used = cpu_s(successor.process.pid)
        uvloop.run(pause(_REST_S))
        pid = successor.process.pid
        fresh, fresh_most = memory_bytes(pid), peak_bytes(pid)
        end(successor)
    for what, weight in (
        ("memory of the controller that filled it", working),
        ("its most memory", most),
        ("memory of its successor", fresh),
    ):
        yield figures(what, nodes, "nodes", [weight], "B")
    peak = figures("the successor's most memory", nodes, "nodes", [fresh_most], "B")
    yield peak
    yield target("memory of the controller", peak, 400e6, better="below")
    first = figures("from its start to its first decision", nodes, "nodes", [taken], "s")
    yield first
    yield target("first decision after a restart", first, 10, better="below")
    yield figures("processor time until then", nodes, "nodes", [used], "s")
    yield Note(objects)


async def _fill(place: Ground, nodes: int) -> str:
    async with client_of(place.plane) as client:
        shape = parse_shape(f"{nodes}x{{gpu={_PODS},cpu=64,memory=512Gi}}")
        made = list(nodes_of(shape, now=timestamp(time.time())))

        async def join(number: int) -> None:
            node = made[number]
            name = node["metadata"]["name"]
            await client.create(node)
            status = {"status": node["status"]}
            await client.patch(names.NODE, name, "", status, subresource="status")
            await client.patch(names.NODE, name, "", {"spec": {"taints": None}})
            for stray in range(_STRAYS):
                await client.create(_stray(f"{name}-{stray}", name))

        await in_lots(nodes, _AT_ONCE, join)
        for obj in queues("default"):
            await client.apply(wide(obj))

        async def run(number: int) -> None:
            # Its pods come at once: a gang that waits for them for long gives its nodes back.
            await client.create(_workload(f"runs-{number}", _PODS))
            for pod in _pods_of(await _admitted(place, client, f"runs-{number}")):
                await client.create(pod)

        await in_lots(nodes, _AT_ONCE, run)
        waiting = _WAITING * nodes
        await in_lots(waiting, _AT_ONCE, lambda n: client.create(_workload(f"waits-{n}", _PODS)))
        while await committed(client) < nodes:
            place.check()
            await pause()
        pods = (_PODS + _STRAYS) * nodes
        return f"{nodes:,} nodes, {pods:,} pods, {waiting + nodes:,} workloads"


async def _admitted(place: Ground, client: Client, name: str) -> Json:
    """Return a workload once it is admitted."""
    while True:
        found = await client.get(WORKLOAD, name, "default")
        if is_true((found.get("status") or {}).get("conditions"), "Admitted"):
            return found
        place.check()
        await pause(_LOOK_S)


async def _one_more(place: Ground) -> None:
    """Submit a job that needs no GPU: there is room, but no leader."""
    async with client_of(place.plane) as client:
        await client.create(_workload("late", 1, gpus=0))


async def _until_admitted(place: Ground) -> None:
    async with client_of(place.plane) as client:
        await _admitted(place, client, "late")


def _workload(name: str, pods: int, *, gpus: int = 1) -> Json:
    template = gang(name, "default", pods, 1)["spec"]["template"]
    limits = template["spec"]["containers"][0]["resources"]["limits"]
    limits["nvidia.com/gpu"] = str(gpus)
    template["spec"]["containers"][0]["resources"]["requests"] = dict(limits)
    return {
        "apiVersion": WORKLOAD.api_version,
        "kind": WORKLOAD.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "queueName": "team",
            "podSets": [{"name": "main", "count": pods, "template": template}],
        },
    }


def _pods_of(workload: Json) -> Iterator[Json]:
    """Yield the pods that an operator would have made, where they were sent."""
    name = workload["metadata"]["name"]
    (assigned,) = workload["status"]["admission"]["podSetAssignments"]
    hosts = [
        host for host, count in pods_per_host(assigned["topologyAssignment"]) for _ in range(count)
    ]
    spec = workload["spec"]["podSets"][0]["template"]["spec"]
    for number, host in enumerate(hosts):
        metadata = {
            "name": f"{name}-{number}",
            "namespace": "default",
            "labels": {names.POD_SET_LABEL: "main"},
            "annotations": {names.WORKLOAD_ANNOTATION: name},
        }
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {**spec, "nodeName": host},
        }


def _stray(name: str, node: str) -> Json:
    container = {"name": "main", "image": "agent:1", "resources": {"requests": {"cpu": "100m"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], "nodeName": node},
    }
